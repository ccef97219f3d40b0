// As many kinds of instructions as one program can hold; it is read, never run.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;

struct xdp_md {
    u32 data, data_end;
};

static void *(*const lookup)(void *, const void *) = (void *)1;

#if __BPF_CPU_VERSION__ >= 4
static u64 divide_signed(const s64 *numbers, u64 sum)
{
    s32 half = sum;
    sum += numbers[0] / numbers[1] + numbers[1] % numbers[2];
    return sum + half / (s32)numbers[2] + half % 7;
}
#else
static u64 divide_signed(const s64 *numbers, u64 sum)
{
    return sum;
}
#endif

__attribute__((section("xdp"), used)) int rich(struct xdp_md *ctx)
{
    u64 *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    u64 sum = 0, key = 0x123456789abcdefULL;
    s32 half;

    if (d + 4 > end)
        return 1;
    sum += __sync_fetch_and_add(&d[0], 3);
    sum += __sync_fetch_and_or((u32 *)&d[1], 3);
    __sync_fetch_and_add((u32 *)&d[1], 5);
    sum += __sync_lock_test_and_set(&d[1], sum);
    sum += __sync_val_compare_and_swap(&d[2], 3, sum);
    __sync_fetch_and_or(&d[0], sum);
    __sync_fetch_and_xor(&d[3], sum);
    __sync_fetch_and_and(&d[3], sum);
    sum ^= __sync_fetch_and_xor(&d[3], sum);
    sum += __sync_fetch_and_and(&d[3], sum);
    sum = divide_signed((s64 *)d, sum);
    sum += *(s16 *)(d + 1) + *(s8 *)(d + 2) + *(s32 *)(d + 3);
    sum += (s16)sum;
    sum += (s8)sum;
    half = sum;
    sum += (u32)half % (u32)d[3];
    sum += d[1] / d[2];
    sum += __builtin_bswap16(d[2]) + __builtin_bswap32(d[3]);
    d[1] = __builtin_bswap64(d[2]);
    if (half < (s32)d[1])
        sum += 7;
    if ((u32)half > (u32)d[3])
        sum *= key;
    sum = -sum;
    half = -half;
    *(u16 *)d = sum >> 3;
    *(u8 *)(d + 1) = half << (sum & 7);
    if (lookup(&key, &sum))
        sum |= 0x100;
    return sum + half;
}
