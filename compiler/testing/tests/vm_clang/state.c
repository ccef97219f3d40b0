// Maps of all kinds, global variables: counts packets by IPv4 source, drops sources in a trie from the third on.
#include "bpf.h"

struct prefix {
    u32 length, address;
};

struct {
    UINT(type, 1);
    UINT(max_entries, 2);
    u32 *key;
    u64 *value;
} seen SEC(".maps");

struct {
    UINT(type, 11);
    UINT(max_entries, 8);
    UINT(map_flags, 1);
    struct prefix *key;
    u64 *value;
} blocked SEC(".maps");

struct {
    UINT(type, 6);
    UINT(max_entries, 1);
    u32 *key;
    u64 *value;
} total SEC(".maps");

u64 dropped;
u32 limit = 2;

SEC("xdp") int state(struct xdp_md *ctx)
{
    u8 *p = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct prefix prefix = {.length = 32};
    u64 one = 1, *count;
    u32 zero = 0;

    if (p + 34 > end)
        return PASS;
    count = map_lookup(&total, &zero);
    if (!count)
        return ABORTED;
    *count += 1;
    prefix.address = *(u32 *)(p + 26);
    count = map_lookup(&seen, &prefix.address);
    if (!count)
        return map_update(&seen, &prefix.address, &one, 0) ? TX : PASS;
    __sync_fetch_and_add(count, 1);
    if (*count > limit && map_lookup(&blocked, &prefix)) {
        __sync_fetch_and_add(&dropped, 1);
        return DROP;
    }
    return PASS;
}
