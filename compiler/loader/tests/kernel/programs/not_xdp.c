// A program for another hook.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tc")
int classify(struct __sk_buff *skb)
{
    return 0;
}

char _license[] SEC("license") = "GPL";
