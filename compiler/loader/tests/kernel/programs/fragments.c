// Drops packets that are longer than their linear part (5.18).
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp.frags")
int fragments(struct xdp_md *ctx)
{
    long linear = (long)ctx->data_end - (long)ctx->data;
    return bpf_xdp_get_buff_len(ctx) > linear ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
