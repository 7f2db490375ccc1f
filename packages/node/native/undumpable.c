/*
 * A library that makes the process that loads it not dumpable: code of the same uid can then neither read its memory, its
 * environment and its descriptors nor trace it. Node has no such call, and a supervisor cannot make it for a program it
 * starts, since execve() undoes it. The daemon loads this file at its start; what the daemon starts is dumpable again.
 *
 * It needs no C library, so that one file serves images with any of them.
 */
#include <sys/prctl.h>
#include <sys/syscall.h>

static void set_dumpable(long value) {
#if defined(__x86_64__)
  long result;
  register long fourth __asm__("r10") = 0, fifth __asm__("r8") = 0;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"((long)SYS_prctl), "D"((long)PR_SET_DUMPABLE), "S"(value), "d"(0L), "r"(fourth), "r"(fifth)
                   : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long number __asm__("x8") = SYS_prctl, first __asm__("x0") = PR_SET_DUMPABLE, second __asm__("x1") = value;
  register long third __asm__("x2") = 0, fourth __asm__("x3") = 0, fifth __asm__("x4") = 0;
  __asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second), "r"(third), "r"(fourth), "r"(fifth) : "memory");
#else
#error "no system call written for this processor"
#endif
}

__attribute__((constructor)) static void begin(void) { set_dumpable(0); }
