/* Drops whatever comes, and touches nothing of it. */
#include "packet.h"

SEC("xdp")
int no_touch(struct xdp_md *ctx)
{
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
