// More rounds than the verifier follows.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int too_long(struct xdp_md *ctx)
{
    __u32 sum = 0;

    for (int i = 0; i < 2000000; i++)
        sum += bpf_get_prandom_u32();
    return sum == 1 ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
