/* The twin of udp_port.pkt. What cannot be UDP leaves at once; the port is asked before lengths are. */
#include "packet.h"

#define PORT htons(53)

static __always_inline int decide(const struct udp *udp, void *end, __u32 left)
{
	if ((void *)(udp + 1) > end || udp->dport != PORT || left < sizeof(*udp))
		return XDP_PASS;
	return XDP_DROP;
}

static __always_inline int decide_behind(struct walk *walk)
{
	if (walk_extensions(walk) != UPPER || walk->proto != UDP)
		return XDP_PASS;
	return decide(walk->at, walk->end, walk->left);
}

SEC("xdp")
int udp_port(struct xdp_md *ctx)
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
			__u32 header, len;

			if ((void *)(ip + 1) > end || (ip->proto != UDP && ip->proto != AH))
				return XDP_PASS;
			if (ip->frag_off & LATER_FRAGMENT || !is_ipv4(ip))
				return XDP_PASS;
			header = ipv4_header(ip);
			len = ntohs(ip->len);
			if (len < header)
				return XDP_PASS;
			if (unlikely(ip->proto == AH)) {
				struct walk walk = { at + header, end, len - header, AH };

				return decide_behind(&walk);
			}
			return decide(at + header, end, len - header);
		}
		if (type == IPV6) {
			struct ipv6 *ip = at;
			struct walk walk = { ip + 1, end };

			if (walk.at > end || ip->version >> 4 != 6)
				return XDP_PASS;
			if (likely(ip->next_header == UDP))
				return decide(walk.at, end, ntohs(ip->payload_len));
			if (!is_extension(ip->next_header))
				return XDP_PASS;
			walk.left = ipv6_content(ip);
			walk.proto = ip->next_header;
			return decide_behind(&walk);
		}
		if (i == TAGS || !is_tag(type) || (void *)(tag + 1) > end)
			return XDP_PASS;
		type = tag->type;
		at = tag + 1;
	}
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
