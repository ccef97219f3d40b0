// Drops UDP to port 53 or 123, over IPv4 with at most two VLAN tags.
#include "bpf.h"

static const u16 ports[] = {htons(53), htons(123)};

SEC("xdp") int ports_filter(struct xdp_md *ctx)
{
    u8 *p = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    u16 type;

    if (p + 14 > end)
        return PASS;
    type = *(u16 *)(p + 12);
    p += 14;
    for (int tag = 0; tag < 2; tag++) {
        if (type != htons(0x8100))
            break;
        if (p + 4 > end)
            return PASS;
        type = *(u16 *)(p + 2);
        p += 4;
    }
    if (type != htons(0x0800) || p + 20 > end || p[0] >> 4 != 4 || p[9] != 17)
        return PASS;
    p += (p[0] & 15) * 4;
    if (p + 8 > end)
        return PASS;
    for (int i = 0; i < 2; i++)
        if (*(u16 *)(p + 2) == *(volatile const u16 *)&ports[i])
            return DROP;
    return PASS;
}
