// Reads the packet without a check of its length: the verifier refuses it.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int unchecked(struct xdp_md *ctx)
{
    __u8 *data = (void *)(long)ctx->data;
    return data[20] == 1 ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
