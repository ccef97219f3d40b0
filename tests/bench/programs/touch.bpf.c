/* Drops whatever comes, once it has read what the Ethernet header says of the rest. */
#include "packet.h"

SEC("xdp")
int touch(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	volatile struct eth *eth = data;

	if ((void *)(eth + 1) <= end)
		(void)eth->type;
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
