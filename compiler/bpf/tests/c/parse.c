// An ordinary parser: UDP to port 53, over IPv4, with one optional VLAN tag.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;

struct xdp_md {
    u32 data, data_end;
};

__attribute__((section("xdp"), used)) int parse(struct xdp_md *ctx)
{
    u8 *p = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    u16 type;
    u32 length;

    if (p + 14 > end)
        return 2;
    type = *(u16 *)(p + 12);
    p += 14;
    if (type == __builtin_bswap16(0x8100)) {
        if (p + 4 > end)
            return 2;
        type = *(u16 *)(p + 2);
        p += 4;
    }
    if (type != __builtin_bswap16(0x0800) || p + 20 > end)
        return 2;
    length = (p[0] & 15) * 4;
    if (length < 20 || p[9] != 17)
        return 2;
    p += length;
    if (p + 8 > end)
        return 2;
    return *(u16 *)(p + 2) == __builtin_bswap16(53) ? 1 : 2;
}
