// SPDX-License-Identifier: Apache-2.0
// Lets threads stand still at random, one at a time, as on a virtual machine that gets no time: for LD_PRELOAD
// (`meson test --setup stalled`). Each stall ends by itself. A test that fails depends on how long something takes.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { longest_us = 200000, pause_us = 200000 };

static int tick_signal, stall_signal;
static volatile int is_stalled;
static unsigned random_state;  // races change which thread is next, no more

static unsigned random_number(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static void stall(int number) {
    (void)number;
    const int error = errno;
    is_stalled = 1;
    struct timespec left = {0, (long)(random_number() % longest_us) * 1000};
    syscall(SYS_nanosleep, &left, NULL);
    is_stalled = 0;
    errno = error;
}

// Async-signal-safe, so without opendir().
static int threads_of_process(int* threads, int most) {
    struct entry {
        unsigned long inode;
        long offset;
        unsigned short bytes;
        unsigned char type;
        char name[];
    };
    int count = 0;
    const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return 0;
    _Alignas(8) char entries[4096];
    long bytes;
    while ((bytes = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
        for (long at = 0; at < bytes;) {
            const struct entry* const one = (const struct entry*)(entries + at);
            const int thread = atoi(one->name);
            if (thread > 0 && count < most) threads[count++] = thread;
            at += one->bytes;
        }
    }
    close(folder);
    return count;
}

static void tick(int number) {
    (void)number;
    if (is_stalled) return;
    const int error = errno;
    int threads[256];
    const int count = threads_of_process(threads, 256);
    // The first thread waits for the others in most tests: it is chosen more often.
    if (count > 0) {
        const unsigned chosen = random_number() % 4 == 0 ? 0 : random_number() % (unsigned)count;
        syscall(SYS_tgkill, getpid(), threads[chosen], stall_signal);
    }
    errno = error;
}

// Threads that block all signals (workers, the simulator's) stand still as others do.
__attribute__((visibility("default"))) int sigfillset(sigset_t* set) {
    memset(set, 0xff, sizeof *set);
    if (stall_signal != 0) {
        sigdelset(set, tick_signal);
        sigdelset(set, stall_signal);
    }
    return 0;
}

__attribute__((constructor)) static void start(void) {
    tick_signal = SIGRTMAX - 2;
    stall_signal = SIGRTMAX - 3;
    random_state = (unsigned)getpid() * 2654435761u ^ (unsigned)time(NULL);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, tick_signal);
    sigaddset(&action.sa_mask, stall_signal);
    action.sa_handler = tick;
    if (sigaction(tick_signal, &action, NULL) != 0) return;
    action.sa_handler = stall;
    if (sigaction(stall_signal, &action, NULL) != 0) return;
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = tick_signal;
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
    const struct itimerspec every = {{0, pause_us * 1000L}, {0, pause_us * 1000L}};
    timer_settime(timer, 0, &every, NULL);
}
