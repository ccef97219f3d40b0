// Sums the two bytes around an offset that the packet names, wherever they lie; signed arithmetic.
#include "bpf.h"

SEC("xdp.frags") int parts(struct xdp_md *ctx)
{
    u8 at, pair[2];
    s32 sum;

    if (load_bytes(ctx, 0, &at, 1))
        return ABORTED;
    if (load_bytes(ctx, at, pair, 2))
        return TX;
    sum = (s16)(pair[0] - 100) + (signed char)pair[1];
    return sum < 0 ? DROP : PASS;
}
