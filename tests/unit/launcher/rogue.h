// rogue.h: programs without a libc that take the place of a part of a sandbox, and lie.
#ifndef TEST_LAUNCHER_ROGUE_H
#define TEST_LAUNCHER_ROGUE_H

#include "guest/note.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#if defined(__x86_64__)
__asm__(".globl _start\n_start: xor %ebp,%ebp\n and $-16,%rsp\n call rogue_main\n");
static long call(long nr, long a, long b, long c, long d)
{
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "+a"(nr)
                     : "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return nr;
}
#else
__asm__(".globl _start\n_start: mov x29, xzr\n mov x30, xzr\n bl rogue_main\n");
static long call(long nr, long a, long b, long c, long d)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
#endif

__attribute__((used, noreturn)) void rogue_main(void);

#endif
