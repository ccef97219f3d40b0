// A program that changes packets, which from 6.13 on may only take the place of a function that might.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int changing(struct xdp_md *ctx)
{
    if (bpf_xdp_adjust_head(ctx, 0))
        return XDP_ABORTED;
    return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
