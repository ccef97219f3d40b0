// One of a chain: its verdict is the packet's byte number PLACE, and it counts that it ran.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define JOIN(a, b) a##b
#define CONFIG(name) JOIN(_, name)

struct {
    __uint(priority, PRIORITY);
    __uint(XDP_DROP, ON_DROP);
    __uint(XDP_PASS, ON_PASS);
    __uint(XDP_TX, ON_TX);
} CONFIG(NAME) SEC(".xdp_run_config");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, ENTRIES);
    __type(key, __u32);
    __type(value, __u64);
} seen SEC(".maps");

static const volatile __u32 place = PLACE;
__u64 runs;

static __attribute__((noinline)) int verdict(struct xdp_md *ctx)
{
    __u8 *data = (void *)(long)ctx->data;
    if (data + 14 > (__u8 *)(long)ctx->data_end)
        return XDP_ABORTED;
    return data[PLACE];
}

SEC("xdp")
int NAME(struct xdp_md *ctx)
{
    __u32 key = place;
    __u64 *value = bpf_map_lookup_elem(&seen, &key);
    if (value)
        ++*value;
    ++runs;
    return verdict(ctx);
}

char _license[] SEC("license") = LICENSE;
