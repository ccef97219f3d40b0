// What the programs here need of the kernel's headers.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef short s16;
typedef int s32;
typedef long long s64;

struct xdp_md {
    u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

enum { ABORTED, DROP, PASS, TX };

#define SEC(name) __attribute__((section(name), used))
#define UINT(name, value) int(*name)[value]
#define htons __builtin_bswap16

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const load_bytes)(struct xdp_md *ctx, u32 offset, void *to, u32 len) = (void *)189;

char licence[] SEC("license") = "GPL";
