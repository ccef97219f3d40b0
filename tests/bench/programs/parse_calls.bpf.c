/* parse.pkt by bpf_xdp_load_bytes: a call for Ethernet and one for IP, and one more for each tag between them.
 * Only where IPv4 has options the packet's length is asked for.
 */
#include "packet.h"

static __always_inline int parse_ipv4(struct xdp_md *ctx, __u32 at)
{
	struct ipv4 ip;
	__u32 header;

	if (bpf_xdp_load_bytes(ctx, at, &ip, sizeof(ip)) || !is_ipv4(&ip))
		return XDP_PASS;
	header = ipv4_header(&ip);
	if (ntohs(ip.len) < header)
		return XDP_PASS;
	if (unlikely(header > sizeof(ip)) && at + header > bpf_xdp_get_buff_len(ctx))
		return XDP_PASS;
	return XDP_DROP;
}

static __always_inline int parse_ipv6(struct xdp_md *ctx, __u32 at)
{
	struct ipv6 ip;

	if (bpf_xdp_load_bytes(ctx, at, &ip, sizeof(ip)))
		return XDP_PASS;
	return ip.version >> 4 == 6 ? XDP_DROP : XDP_PASS;
}

SEC("xdp.frags")
int parse_calls(struct xdp_md *ctx)
{
	__u32 at = sizeof(struct eth);
	struct eth eth;
	__u16 type;

	if (bpf_xdp_load_bytes(ctx, 0, &eth, sizeof(eth)))
		return XDP_PASS;
	type = eth.type;
#pragma unroll
	for (int i = 0; i <= TAGS; i++) {
		struct tag tag;

		if (type == IPV4)
			return parse_ipv4(ctx, at);
		if (type == IPV6)
			return parse_ipv6(ctx, at);
		if (i == TAGS || !is_tag(type) || bpf_xdp_load_bytes(ctx, at, &tag, sizeof(tag)))
			return XDP_PASS;
		type = tag.type;
		at += sizeof(tag);
	}
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
