/* What the twins share: headers as they lie in the packet, and the walks over tags and extension headers.
 *
 * Numbers are compared in network order where that saves a swap. A pointer that may have grown by a variable
 * length is checked again before every read, as the verifier wants.
 */
#ifndef PACKET_H
#define PACKET_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define htons(x) ((__u16)__builtin_bswap16(x))
#define ntohs(x) __builtin_bswap16(x)
#define ntohl(x) __builtin_bswap32(x)

enum { TAGS = 4, EXTENSIONS = 8 };

enum ethertype {
	IPV4 = htons(0x0800),
	ARP = htons(0x0806),
	VLAN = htons(0x8100),
	IPV6 = htons(0x86dd),
	QINQ = htons(0x88a8),
	QINQ_OLD = htons(0x9100),
};

enum protocol {
	HOPOPTS = 0, ICMP = 1, TCP = 6, UDP = 17, ROUTING = 43, FRAGMENT = 44, AH = 51, ICMPV6 = 58, DSTOPTS = 60,
	SCTP = 132, MOBILITY = 135, HIP = 139, SHIM6 = 140,
};

struct eth {
	__u8 dst[6], src[6];
	__u16 type;
};

struct tag {
	__u16 tci, type;
};

struct arp {
	__u16 htype, ptype;
	__u8 hlen, plen;
	__u16 op;
};

struct ipv4 {
	__u8 version_ihl, tos;
	__u16 len, id, frag_off;
	__u8 ttl, proto;
	__u16 checksum;
	__u32 src, dst;
};

struct ipv6 {
	__u8 version, flow[3];
	__u16 payload_len;
	__u8 next_header, hop_limit;
	__u32 src[4], dst[4];
};

struct extension {
	__u8 next_header, hdr_len;
	__u16 frag_off; /* of a fragment header */
	__u32 rest;
};

struct tcp {
	__u16 sport, dport;
	__u32 seq, ack_seq;
	__u8 data_off, flags;
	__u16 window, checksum, urg_ptr;
};

struct udp {
	__u16 sport, dport, len, checksum;
};

struct icmp {
	__u8 type, code;
	__u16 checksum;
};

#define LATER_FRAGMENT htons(0x1fff) /* ipv4.frag_off */
#define LATER_FRAGMENT6 htons(0xfff8)

static __always_inline int is_tag(__u16 type)
{
	return type == VLAN || type == QINQ || type == QINQ_OLD;
}

/* Version 4 and a header length of 20 at least, in one comparison. */
static __always_inline int is_ipv4(const struct ipv4 *ip)
{
	return (__u8)(ip->version_ihl - 0x45) <= 0x4f - 0x45;
}

static __always_inline __u32 ipv4_header(const struct ipv4 *ip)
{
	return (ip->version_ihl & 0xf) * 4;
}

static __always_inline int is_extension(__u8 proto)
{
	switch (proto) {
	case HOPOPTS: case ROUTING: case FRAGMENT: case AH: case DSTOPTS: case MOBILITY: case HIP: case SHIM6:
		return 1;
	default:
		return 0;
	}
}

/* Bytes that IPv6 says follow its header; a jumbogram's reach to the frame's end. */
static __always_inline __u32 ipv6_content(const struct ipv6 *ip)
{
	__u32 len = ntohs(ip->payload_len);

	return len == 0 && ip->next_header == HOPOPTS ? 0xffff : len;
}

/* Where a walk over extension headers stands. */
struct walk {
	void *at;     /* the next header */
	void *end;    /* of the frame */
	__u32 left;   /* bytes that IP's length leaves from `at` on */
	__u8 proto;   /* what `at` is */
	__u8 later;   /* the first fragment header is a later fragment's */
};

enum walked {
	UPPER,   /* `at` is what `proto` says */
	NOTHING, /* a later fragment: nothing follows */
	BROKEN,  /* a header does not fit, or there are too many */
};

static __always_inline enum walked walk_extensions(struct walk *walk)
{
	int fragments = 0;

#pragma unroll
	for (int i = 0; i < EXTENSIONS; i++) {
		struct extension *header = walk->at;
		__u32 len;

		if (!is_extension(walk->proto))
			return UPPER;
		if ((void *)(header + 1) > walk->end || walk->left < sizeof(*header))
			return BROKEN;
		if (walk->proto == FRAGMENT) {
			if (header->frag_off & LATER_FRAGMENT6) {
				walk->later = !fragments;
				return NOTHING;
			}
			fragments = 1;
			len = sizeof(*header);
		} else if (walk->proto == AH) {
			len = (header->hdr_len + 2) * 4;
		} else {
			len = (header->hdr_len + 1) * 8;
		}
		if (walk->left < len || walk->at + len > walk->end)
			return BROKEN;
		walk->proto = header->next_header;
		walk->left -= len;
		walk->at += len;
	}
	return is_extension(walk->proto) ? BROKEN : UPPER;
}

#endif
