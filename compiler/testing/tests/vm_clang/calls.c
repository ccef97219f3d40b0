// Subprograms that call each other, with pointers into the packet and into the caller's frame; a loop.
#include "bpf.h"

static __attribute__((noinline)) u32 fold(u64 sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    return (u16)(sum + (sum >> 16));
}

static __attribute__((noinline)) u32 sum_words(const u16 *words, u32 *out)
{
    u64 sum = 0;
    for (int i = 0; i < 10; i++)
        sum += words[i];
    *out = fold(sum);
    return 1;
}

SEC("xdp") int checksum(struct xdp_md *ctx)
{
    u8 *p = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    u32 sum;

    if (p + 34 > end)
        return PASS;
    if (!sum_words((u16 *)(p + 14), &sum))
        return ABORTED;
    return sum == 0xffff ? PASS : DROP;
}
