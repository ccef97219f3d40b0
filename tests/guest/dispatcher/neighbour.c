// Somebody else's program in a dispatcher: it counts, and leads on by more verdicts than usual.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
    __uint(priority, 20);
    __uint(XDP_PASS, 1);
    __uint(XDP_DROP, 1);
} _neighbour SEC(".xdp_run_config");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} seen SEC(".maps");

SEC("xdp")
int neighbour(struct xdp_md *ctx)
{
    __u32 key = 0;
    __u64 *value = bpf_map_lookup_elem(&seen, &key);
    if (value)
        __sync_fetch_and_add(value, 1);
    return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
