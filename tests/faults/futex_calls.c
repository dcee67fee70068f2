// SPDX-License-Identifier: Apache-2.0
/* A library whose name makes failing_system.so take its calls for those of libisthmus.so. */
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What FUTEX_WAKE answers: the number of threads, or -1. `flags`: 0 or FUTEX_PRIVATE_FLAG. */
__attribute__((visibility("default"))) long wake(uint32_t* word, int flags);
long wake(uint32_t* word, int flags) {
    const long woken = syscall(SYS_futex, word, FUTEX_WAKE | flags, 1, NULL, NULL, 0);
    return woken; /* not a tail call: the call returns into this library */
}
