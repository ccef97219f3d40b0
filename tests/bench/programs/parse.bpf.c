/* The twin of parse.pkt. */
#include "packet.h"

SEC("xdp")
int parse(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct eth *eth = data;
	void *at = eth + 1;
	__u16 type;

	if (at > end)
		return XDP_PASS;
	type = eth->type;
#pragma unroll
	for (int i = 0; i <= TAGS; i++) {
		struct tag *tag = at;

		if (type == IPV4) {
			struct ipv4 *ip = at;

			if ((void *)(ip + 1) > end || !is_ipv4(ip))
				return XDP_PASS;
			if (at + ipv4_header(ip) > end || ntohs(ip->len) < ipv4_header(ip))
				return XDP_PASS;
			return XDP_DROP;
		}
		if (type == IPV6) {
			struct ipv6 *ip = at;

			return (void *)(ip + 1) <= end && ip->version >> 4 == 6 ? XDP_DROP : XDP_PASS;
		}
		if (i == TAGS || !is_tag(type) || (void *)(tag + 1) > end)
			return XDP_PASS;
		type = tag->type;
		at = tag + 1;
	}
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
