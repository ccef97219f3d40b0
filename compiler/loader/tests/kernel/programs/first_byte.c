// Drops frames whose first byte is in a table and counts, per CPU, what it does.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct counter {
    __u64 packets;
    __u64 bytes;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, struct counter);
} counters SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, 16);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u64);
    __type(value, __u32);
} prefixes SEC(".maps");

// Volatile, so that the compiler does not fold it: a table that the program reads.
static const volatile __u8 dropped[4] = { 0, 0, 1, 1 };

static __attribute__((noinline)) int count(__u32 index, __u64 bytes)
{
    struct counter *counter = bpf_map_lookup_elem(&counters, &index);
    if (!counter)
        return 0;
    counter->packets++;
    counter->bytes += bytes;
    return 1;
}

SEC("xdp")
int first_byte(struct xdp_md *ctx)
{
    __u8 *data = (void *)(long)ctx->data;
    __u8 *end = (void *)(long)ctx->data_end;
    if (data + 14 > end)
        return XDP_ABORTED;
    __u8 first = data[0] & 3;
    count(dropped[first] ? 1 : 0, end - data);
    return dropped[first] ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int look_up(struct xdp_md *ctx)
{
    __u64 key = 32;
    return bpf_map_lookup_elem(&prefixes, &key) ? XDP_TX : XDP_PASS;
}

SEC("xdp")
int device(struct xdp_md *ctx)
{
    return ctx->ingress_ifindex == 77 && ctx->rx_queue_index == 1 ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
