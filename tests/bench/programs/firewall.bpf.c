/* The twin of firewall.pkt. With -DCOUNTERS=1 it counts packets and bytes a rule, as pktc's own objects do.
 *
 * Where nothing counts, which of two rules drops makes no difference: then the source is looked at before the
 * walk to the upper layer, so that what is dropped for it costs no more. With counters `broken` comes first.
 */
#include "packet.h"

#ifndef COUNTERS
#define COUNTERS 0
#endif

enum rule { DEFAULT, BROKEN_RULE, BOGON, TAIL, SCAN, WEB, SSH, SERVICES, REFLECT, DNS, ICMP_RULE, RULES };

#if COUNTERS
struct counter {
	__u64 packets, bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RULES);
	__type(key, __u32);
	__type(value, struct counter);
} counters SEC(".maps");
#endif

static __always_inline int hit(struct xdp_md *ctx, __u32 rule, int verdict)
{
#if COUNTERS
	struct counter *counter = bpf_map_lookup_elem(&counters, &rule);

	if (counter) {
		counter->packets++;
		counter->bytes += ctx->data_end - ctx->data;
	}
#endif
	return verdict;
}

/* What the rules ask of IP. */
struct ip {
	int v6;
	__u32 *src, *dst;
};

static __always_inline int is_bogon(const struct ip *ip)
{
	__u32 src = ntohl(ip->src[0]);

	if (ip->v6) {
		if (src == 0x20010db8 || src >> 22 == 0xfec0 >> 6)
			return 1;
		return src == 0 && ip->src[1] == 0 && ip->src[2] == 0 && ip->src[3] == ntohl(1);
	}
	switch (src >> 24) {
	case 0: case 127: case 240 ... 255:
		return 1;
	case 169:
		return src >> 16 == 0xa9fe;
	case 192:
		return src >> 8 == 0xc00002;
	case 198:
		return src >> 17 == 0xc612 >> 1;
	default:
		return 0;
	}
}

static __always_inline int is_admin(const struct ip *ip)
{
	__u32 src = ntohl(ip->src[0]);

	return ip->v6 ? src == 0x20010470 : src >> 24 == 10 || src >> 16 == 0x8d8e;
}

static __always_inline int is_resolver(const struct ip *ip)
{
	__u32 *dst = ip->dst;

	if (ip->v6)
		return dst[0] == ntohl(0x20014860) && dst[1] == ntohl(0x48600000) && dst[2] == 0 && dst[3] == ntohl(0x8888);
	return dst[0] == ntohl(0x08080808) || dst[0] == ntohl(0xc0a8aa14);
}

enum tcp_flags { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, URG = 32 };

static __always_inline int is_scan(__u8 flags)
{
	if ((flags & (FIN | SYN | RST | PSH | ACK | URG)) == 0)
		return 1;
	return flags & SYN && flags & (FIN | RST);
}

static __always_inline int filter_tcp(struct xdp_md *ctx, const struct walk *walk, const struct ip *ip)
{
	struct tcp *tcp = walk->at;
	__u32 header;

	if ((void *)(tcp + 1) > walk->end)
		return hit(ctx, BROKEN_RULE, XDP_DROP);
	header = (tcp->data_off >> 4) * 4;
	if (header < sizeof(*tcp) || walk->at + header > walk->end || walk->left < header)
		return hit(ctx, BROKEN_RULE, XDP_DROP);
	if (COUNTERS && is_bogon(ip))
		return hit(ctx, BOGON, XDP_DROP);
	if (is_scan(tcp->flags))
		return hit(ctx, SCAN, XDP_DROP);
	switch (ntohs(tcp->dport)) {
	case 80: case 443: case 8080 ... 8089:
		return hit(ctx, WEB, XDP_PASS);
	case 22:
		if (!is_admin(ip))
			return hit(ctx, SSH, XDP_DROP);
		break;
	case 23: case 135 ... 139: case 445: case 1433: case 3306: case 3389: case 5900 ... 5909:
		return hit(ctx, SERVICES, XDP_DROP);
	}
	return hit(ctx, DEFAULT, XDP_PASS);
}

static __always_inline int filter_udp(struct xdp_md *ctx, const struct walk *walk, const struct ip *ip)
{
	struct udp *udp = walk->at;

	if ((void *)(udp + 1) > walk->end || walk->left < sizeof(*udp))
		return hit(ctx, BROKEN_RULE, XDP_DROP);
	if (COUNTERS && is_bogon(ip))
		return hit(ctx, BOGON, XDP_DROP);
	switch (ntohs(udp->sport)) {
	case 17: case 19: case 111: case 123: case 389: case 1900: case 11211:
		if (ntohs(udp->dport) >= 1024)
			return hit(ctx, REFLECT, XDP_DROP);
	}
	if (udp->dport == htons(53) && !is_resolver(ip))
		return hit(ctx, DNS, XDP_DROP);
	return hit(ctx, DEFAULT, XDP_PASS);
}

/* ICMP of version 4 and 6, and SCTP, of which only the length is asked. */
static __always_inline int filter_other(struct xdp_md *ctx, const struct walk *walk, const struct ip *ip)
{
	struct icmp *icmp = walk->at;
	int is_icmp = walk->proto == ICMP || walk->proto == ICMPV6;
	__u32 header = is_icmp ? sizeof(*icmp) : walk->proto == SCTP ? 12 : 0;

	if (walk->at + header > walk->end || walk->left < header)
		return hit(ctx, BROKEN_RULE, XDP_DROP);
	if (COUNTERS && is_bogon(ip))
		return hit(ctx, BOGON, XDP_DROP);
	if (!is_icmp || (void *)(icmp + 1) > walk->end)
		return hit(ctx, DEFAULT, XDP_PASS);
	if (walk->proto == ICMP) {
		switch (icmp->type) {
		case 4: case 5: case 13: case 17:
			return hit(ctx, ICMP_RULE, XDP_DROP);
		}
	} else {
		switch (icmp->type) {
		case 137 ... 139:
			return hit(ctx, ICMP_RULE, XDP_DROP);
		}
	}
	return hit(ctx, DEFAULT, XDP_PASS);
}

static __always_inline int filter_upper(struct xdp_md *ctx, const struct walk *walk, const struct ip *ip)
{
	switch (walk->proto) {
	case TCP:
		return filter_tcp(ctx, walk, ip);
	case UDP:
		return filter_udp(ctx, walk, ip);
	default:
		return filter_other(ctx, walk, ip);
	}
}

static __always_inline int filter_behind(struct xdp_md *ctx, struct walk *walk, const struct ip *ip)
{
	switch (walk_extensions(walk)) {
	case UPPER:
		return filter_upper(ctx, walk, ip);
	case NOTHING:
		if (COUNTERS && is_bogon(ip))
			return hit(ctx, BOGON, XDP_DROP);
		return walk->later && ip->v6 ? hit(ctx, TAIL, XDP_DROP) : hit(ctx, DEFAULT, XDP_PASS);
	default:
		return hit(ctx, BROKEN_RULE, XDP_DROP);
	}
}

static __always_inline int filter_ipv4(struct xdp_md *ctx, void *at, void *end)
{
	struct ipv4 *header = at;
	struct ip ip = { 0, &header->src, &header->dst };
	struct walk walk = { .end = end };
	__u32 bytes, len;

	if ((void *)(header + 1) > end || !is_ipv4(header))
		return hit(ctx, BROKEN_RULE, XDP_DROP);
	bytes = ipv4_header(header);
	len = ntohs(header->len);
	if (len < bytes || at + bytes > end)
		return hit(ctx, BROKEN_RULE, XDP_DROP);
	if (!COUNTERS && is_bogon(&ip))
		return XDP_DROP;
	if (header->frag_off & LATER_FRAGMENT) {
		if (COUNTERS && is_bogon(&ip))
			return hit(ctx, BOGON, XDP_DROP);
		return hit(ctx, TAIL, XDP_DROP);
	}
	walk.at = at + bytes;
	walk.left = len - bytes;
	walk.proto = header->proto;
	if (likely(walk.proto != AH))
		return filter_upper(ctx, &walk, &ip);
	return filter_behind(ctx, &walk, &ip);
}

static __always_inline int filter_ipv6(struct xdp_md *ctx, void *at, void *end)
{
	struct ipv6 *header = at;
	struct ip ip = { 1, header->src, header->dst };
	struct walk walk = { header + 1, end };

	if (walk.at > end || header->version >> 4 != 6)
		return hit(ctx, BROKEN_RULE, XDP_DROP);
	if (!COUNTERS && is_bogon(&ip))
		return XDP_DROP;
	walk.left = ipv6_content(header);
	walk.proto = header->next_header;
	return filter_behind(ctx, &walk, &ip);
}

static __always_inline int filter_arp(struct xdp_md *ctx, void *at, void *end)
{
	struct arp *arp = at;

	if ((void *)(arp + 1) > end)
		return hit(ctx, BROKEN_RULE, XDP_DROP);
	if (arp->ptype == IPV4 && arp->hlen == 6 && arp->plen == 4 && at + 28 > end)
		return hit(ctx, BROKEN_RULE, XDP_DROP);
	return hit(ctx, DEFAULT, XDP_PASS);
}

SEC("xdp")
int firewall(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct eth *eth = data;
	void *at = eth + 1;
	__u16 type;

	if (at > end)
		return hit(ctx, BROKEN_RULE, XDP_DROP);
	type = eth->type;
#pragma unroll
	for (int i = 0; i <= TAGS; i++) {
		struct tag *tag = at;

		if (type == IPV4)
			return filter_ipv4(ctx, at, end);
		if (type == IPV6)
			return filter_ipv6(ctx, at, end);
		if (type == ARP)
			return filter_arp(ctx, at, end);
		if (!is_tag(type))
			return hit(ctx, DEFAULT, XDP_PASS);
		if (i == TAGS || (void *)(tag + 1) > end)
			break;
		type = tag->type;
		at = tag + 1;
	}
	return hit(ctx, BROKEN_RULE, XDP_DROP);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
