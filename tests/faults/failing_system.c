// SPDX-License-Identifier: Apache-2.0
/* Preloaded before a program that uses libisthmus.so: counts the system calls of the library itself, and makes planned
 * ones fail. Calls of other code in the process (the simulator, the C++ library, the test) are passed through.
 *
 * A call belongs to the library when it returns into it. Not failed: the C++ library's futexes; munmap, munlock and
 * close, whose failure is a leak by definition and cannot be acted on; dlsym, because missing functions are tested in
 * the driver's own tests; the C++ heap. tests/faults/run_faults compares this list with what the library imports. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char plan_call[64];      /* empty: any */
static long plan_nth;           /* 0: none */
static int plan_errno;          /* 0: the usual errno of the function */
static int plan_persistent;     /* from the n-th on */
static long seen;               /* calls that match the plan */
static long calls;              /* all calls since the plan was made */
static const char* first_fault; /* the function that failed first */

/* Mappings of the library that have not been unmapped. Kept by address: in an optimized build, a callback of the test
 * whose last call is munmap makes it a tail call, which returns into the library although the library did not call it.
 */
struct range {
    uintptr_t begin, end;
};
static struct range* mapped; /* in no order */
static size_t mapped_count, mapped_room;

/* Plans: "nth=3", "nth=3:errno=12", "call=mbind:nth=1:persistent"; "" plans none; counting restarts in every
 * case. Returns 0, or 1 for an invalid text. */
EXPORT int failing_system_plan(const char* text);
EXPORT long failing_system_calls(void);
EXPORT const char* failing_system_failed(void);
EXPORT long failing_system_mapped_bytes(void);

int failing_system_plan(const char* text) {
    char copy[256];
    if (strlen(text) >= sizeof copy) return 1;
    strcpy(copy, text);
    int understood = 1;
    pthread_mutex_lock(&mutex);
    plan_call[0] = 0;
    plan_nth = plan_errno = plan_persistent = 0;
    seen = calls = 0;
    char* rest = NULL;
    for (char* word = strtok_r(copy, ":", &rest); word; word = strtok_r(NULL, ":", &rest)) {
        if (sscanf(word, "nth=%ld", &plan_nth) == 1) continue;
        if (sscanf(word, "errno=%d", &plan_errno) == 1) continue;
        if (sscanf(word, "call=%63s", plan_call) == 1) continue;
        if (strcmp(word, "persistent") == 0) {
            plan_persistent = 1;
            continue;
        }
        understood = 0;
    }
    pthread_mutex_unlock(&mutex);
    return understood ? 0 : 1;
}

long failing_system_calls(void) {
    pthread_mutex_lock(&mutex);
    const long count = calls;
    pthread_mutex_unlock(&mutex);
    return count;
}

const char* failing_system_failed(void) {
    pthread_mutex_lock(&mutex);
    const char* name = first_fault;
    pthread_mutex_unlock(&mutex);
    return name;
}

long failing_system_mapped_bytes(void) {
    long bytes = 0;
    pthread_mutex_lock(&mutex);
    for (size_t at = 0; at < mapped_count; ++at) bytes += (long)(mapped[at].end - mapped[at].begin);
    pthread_mutex_unlock(&mutex);
    return bytes;
}

static int from_library(const void* address) {
    Dl_info info;
    return dladdr(address, &info) != 0 && info.dli_fname && strstr(info.dli_fname, "libisthmus.so") != NULL;
}

/* Counts the call. Returns the errno to fail with, or 0. */
static int planned(const char* name, const void* address, int usual) {
    if (!from_library(address)) return 0;
    int code = 0;
    pthread_mutex_lock(&mutex);
    ++calls;
    if (plan_call[0] == 0 || strcmp(plan_call, name) == 0) {
        ++seen;
        if (plan_nth != 0 && (seen == plan_nth || (plan_persistent && seen > plan_nth))) {
            code = plan_errno ? plan_errno : usual;
            if (!first_fault) first_fault = name;
        }
    }
    pthread_mutex_unlock(&mutex);
    return code;
}

static void* next(const char* name) {
    void* function = dlsym(RTLD_NEXT, name);
    if (!function) abort(); /* the test cannot go on without the system */
    return function;
}

/* One line for each function: its result, name, parameters, arguments, answer on failure, usual errno. */
#define CALL(result, name, parameters, arguments, failure, usual)                         \
    EXPORT result name parameters;                                                        \
    result name parameters {                                                              \
        static result(*real) parameters;                                                  \
        if (!__atomic_load_n(&real, __ATOMIC_ACQUIRE))                                    \
            __atomic_store_n(&real, (result(*) parameters)next(#name), __ATOMIC_RELEASE); \
        const int code = planned(#name, __builtin_return_address(0), usual);              \
        if (code != 0) {                                                                  \
            errno = code;                                                                 \
            return failure;                                                               \
        }                                                                                 \
        return real arguments;                                                            \
    }

/* These two return their error, and set no errno. */
CALL(int, pthread_create, (pthread_t * thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument),
     (thread, attributes, run, argument), EAGAIN, EAGAIN)
CALL(int, pthread_getattr_np, (pthread_t thread, pthread_attr_t* attributes), (thread, attributes), ENOMEM, ENOMEM)
CALL(int, madvise, (void* address, size_t bytes, int advice), (address, bytes, advice), -1, EINVAL)
CALL(int, mlock, (const void* address, size_t bytes), (address, bytes), -1, ENOMEM)
CALL(int, mlockall, (int flags), (flags), -1, ENOMEM)
CALL(int, mprotect, (void* address, size_t bytes, int protection), (address, bytes, protection), -1, ENOMEM)
CALL(long, mbind,
     (void* address, unsigned long bytes, int mode, const unsigned long* mask, unsigned long max_node, unsigned flags),
     (address, bytes, mode, mask, max_node, flags), -1, EPERM)
CALL(long, move_pages, (int pid, unsigned long count, void** pages, const int* nodes, int* status, int flags),
     (pid, count, pages, nodes, status, flags), -1, EPERM)
CALL(long, get_mempolicy, (int* mode, unsigned long* mask, unsigned long max_node, void* address, unsigned flags),
     (mode, mask, max_node, address, flags), -1, ENOSYS)
CALL(long, sysconf, (int name), (name), -1, EINVAL)
CALL(ssize_t, read, (int file, void* data, size_t bytes), (file, data, bytes), -1, EIO)
CALL(DIR*, opendir, (const char* path), (path), NULL, EMFILE)
CALL(struct dirent64*, readdir64, (DIR * directory), (directory), NULL, EIO)
CALL(int, getrlimit64, (__rlimit_resource_t resource, struct rlimit64* limit), (resource, limit), -1, EINVAL)
CALL(int, getrusage, (__rusage_who_t who, struct rusage* usage), (who, usage), -1, EINVAL)
CALL(int, sched_getaffinity, (pid_t thread, size_t bytes, cpu_set_t* cpus), (thread, bytes, cpus), -1, ESRCH)
CALL(int, sched_setaffinity, (pid_t thread, size_t bytes, const cpu_set_t* cpus), (thread, bytes, cpus), -1, EPERM)
CALL(int, uname, (struct utsname * facts), (facts), -1, EFAULT)
CALL(void*, dlopen, (const char* file, int mode), (file, mode), NULL, ENOENT)
CALL(int, dlinfo, (void* handle, int request, void* answer), (handle, request, answer), -1, EINVAL)
CALL(void*, aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes), NULL, ENOMEM)
CALL(ssize_t, write, (int file, const void* data, size_t bytes), (file, data, bytes), -1, ENOSPC)
CALL(int, memfd_create, (const char* name, unsigned flags), (name, flags), -1, EMFILE)
CALL(int, ftruncate64, (int file, off64_t bytes), (file, bytes), -1, ENOSPC)
CALL(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1, EMFILE)
CALL(int, socketpair, (int domain, int type, int protocol, int ends[2]), (domain, type, protocol, ends), -1, EMFILE)
CALL(int, bind, (int file, const struct sockaddr* address, socklen_t bytes), (file, address, bytes), -1, EACCES)
CALL(int, listen, (int file, int backlog), (file, backlog), -1, EADDRINUSE)
CALL(int, accept4, (int file, struct sockaddr* address, socklen_t* bytes, int flags), (file, address, bytes, flags), -1,
     EMFILE)
CALL(int, connect, (int file, const struct sockaddr* address, socklen_t bytes), (file, address, bytes), -1,
     ECONNREFUSED)
CALL(int, getsockopt, (int file, int level, int option, void* value, socklen_t* bytes),
     (file, level, option, value, bytes), -1, ENOPROTOOPT)
CALL(int, setsockopt, (int file, int level, int option, const void* value, socklen_t bytes),
     (file, level, option, value, bytes), -1, ENOMEM)
CALL(int, shutdown, (int file, int how), (file, how), -1, ENOTCONN)
CALL(ssize_t, sendmsg, (int file, const struct msghdr* message, int flags), (file, message, flags), -1, EPIPE)
CALL(ssize_t, recvmsg, (int file, struct msghdr* message, int flags), (file, message, flags), -1, ECONNRESET)
CALL(int, ppoll, (struct pollfd * files, nfds_t count, const struct timespec* timeout, const sigset_t* signals),
     (files, count, timeout, signals), -1, ENOMEM)
CALL(int, epoll_create1, (int flags), (flags), -1, EMFILE)
CALL(int, epoll_ctl, (int epoll, int operation, int file, struct epoll_event* event), (epoll, operation, file, event),
     -1, ENOSPC)
CALL(int, mkdir, (const char* path, mode_t mode), (path, mode), -1, EACCES)
CALL(int, rename, (const char* from, const char* to), (from, to), -1, EACCES)
CALL(int, unlinkat, (int directory, const char* path, int flags), (directory, path, flags), -1, EACCES)
CALL(int, flock, (int file, int operation), (file, operation), -1, ENOLCK)
CALL(int, fstat64, (int file, struct stat64* facts), (file, facts), -1, EIO)
CALL(int, fstatfs64, (int file, struct statfs64* facts), (file, facts), -1, EIO)
CALL(ssize_t, getrandom, (void* data, size_t bytes, unsigned flags), (data, bytes, flags), -1, EAGAIN)

/* Functions with an optional argument. */
EXPORT int open64(const char* path, int flags, ...);
int open64(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const int mode = va_arg(rest, int);
    va_end(rest);
    const int code = planned("open64", __builtin_return_address(0), EMFILE);
    if (code != 0) {
        errno = code;
        return -1;
    }
    return ((int (*)(const char*, int, ...))next("open64"))(path, flags, mode);
}

EXPORT int openat64(int directory, const char* path, int flags, ...);
int openat64(int directory, const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const int mode = va_arg(rest, int);
    va_end(rest);
    const int code = planned("openat64", __builtin_return_address(0), EMFILE);
    if (code != 0) {
        errno = code;
        return -1;
    }
    return ((int (*)(int, const char*, int, ...))next("openat64"))(directory, path, flags, mode);
}

/* The argument is a number here, a pointer for locks, and passed on as it is. */
EXPORT int fcntl64(int file, int command, ...);
int fcntl64(int file, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void* argument = va_arg(rest, void*);
    va_end(rest);
    const int code = planned("fcntl64", __builtin_return_address(0), EINVAL);
    if (code != 0) {
        errno = code;
        return -1;
    }
    return ((int (*)(int, int, ...))next("fcntl64"))(file, command, argument);
}

EXPORT int ioctl(int file, unsigned long request, ...);
int ioctl(int file, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void* argument = va_arg(rest, void*);
    va_end(rest);
    const int code = planned("ioctl", __builtin_return_address(0), EIO);
    if (code != 0) {
        errno = code;
        return -1;
    }
    return ((int (*)(int, unsigned long, ...))next("ioctl"))(file, request, argument);
}

/* Where the C++ library is linked into libisthmus.so, its calls return there, too. Its guards of local statics use
 * futexes that are not private, and their threads sleep for ever if a wake-up fails, which Linux never does. They are
 * passed through; the futexes of isthmus are private. */
static int is_futex_of_guard(long number, long operation) {
    return number == SYS_futex && (operation & FUTEX_PRIVATE_FLAG) == 0;
}

EXPORT long syscall(long number, ...);
long syscall(long number, ...) {
    long argument[6];
    va_list rest;
    va_start(rest, number);
    for (int at = 0; at < 6; ++at) argument[at] = va_arg(rest, long);
    va_end(rest);
    const int code =
        is_futex_of_guard(number, argument[1]) ? 0 : planned("syscall", __builtin_return_address(0), ENOSYS);
    if (code != 0) {
        errno = code;
        return -1;
    }
    return ((long (*)(long, ...))next("syscall"))(number, argument[0], argument[1], argument[2], argument[3],
                                                  argument[4], argument[5]);
}

EXPORT int prctl(int option, ...);
int prctl(int option, ...) {
    unsigned long argument[4];
    va_list rest;
    va_start(rest, option);
    for (int at = 0; at < 4; ++at) argument[at] = va_arg(rest, unsigned long);
    va_end(rest);
    const int code = planned("prctl", __builtin_return_address(0), EPERM);
    if (code != 0) {
        errno = code;
        return -1;
    }
    return ((int (*)(int, ...))next("prctl"))(option, argument[0], argument[1], argument[2], argument[3]);
}

/* Closing writes buffered data: it fails, and the file is closed. */
EXPORT int fclose(FILE* file);
int fclose(FILE* file) {
    const int code = planned("fclose", __builtin_return_address(0), ENOSPC);
    const int result = ((int (*)(FILE*))next("fclose"))(file);
    if (code == 0) return result;
    errno = code;
    return EOF;
}

/* Tracks what the library maps, and what any call unmaps. The kernel maps and unmaps whole pages. */
static uintptr_t page_end(const void* address, size_t bytes) {
    static uintptr_t page; /* not from sysconf, which this file makes fail */
    if (!__atomic_load_n(&page, __ATOMIC_RELAXED)) {
        __atomic_store_n(&page, (uintptr_t)getpagesize(), __ATOMIC_RELAXED);
    }
    return ((uintptr_t)address + bytes + page - 1) / page * page;
}

/* Call both with the mutex held. */
static void add_mapped(uintptr_t begin, uintptr_t end) {
    if (mapped_count == mapped_room) {
        mapped_room = 2 * mapped_room + 64;
        mapped = realloc(mapped, mapped_room * sizeof *mapped);
        if (!mapped) abort();
    }
    mapped[mapped_count++] = (struct range){begin, end};
}
static void remove_mapped(uintptr_t begin, uintptr_t end) {
    for (size_t at = mapped_count; at-- > 0;) {
        const struct range old = mapped[at];
        if (old.end <= begin || end <= old.begin) continue;
        mapped[at] = mapped[--mapped_count];
        if (old.begin < begin) add_mapped(old.begin, begin);
        if (end < old.end) add_mapped(end, old.end);
    }
}

EXPORT void* mmap64(void* address, size_t bytes, int protection, int flags, int file, off64_t offset);
void* mmap64(void* address, size_t bytes, int protection, int flags, int file, off64_t offset) {
    const void* caller = __builtin_return_address(0);
    const int code = planned("mmap64", caller, ENOMEM);
    if (code != 0) {
        errno = code;
        return MAP_FAILED;
    }
    void* data = ((void* (*)(void*, size_t, int, int, int, off64_t))next("mmap64"))(address, bytes, protection, flags,
                                                                                    file, offset);
    if (data != MAP_FAILED && !(flags & MAP_FIXED) && from_library(caller)) {
        pthread_mutex_lock(&mutex);
        add_mapped((uintptr_t)data, page_end(data, bytes));
        pthread_mutex_unlock(&mutex);
    }
    return data;
}

/* Holds the mutex across the call: another thread may get the same addresses as soon as they are free. */
EXPORT int munmap(void* address, size_t bytes);
int munmap(void* address, size_t bytes) {
    int (*const real)(void*, size_t) = (int (*)(void*, size_t))next("munmap");
    pthread_mutex_lock(&mutex);
    const int result = real(address, bytes);
    if (result == 0) remove_mapped((uintptr_t)address, page_end(address, bytes));
    pthread_mutex_unlock(&mutex);
    return result;
}

/* A forked child may unmap, too: no other thread holds the mutex while the process is copied. */
static void lock(void) {
    pthread_mutex_lock(&mutex);
}
static void unlock(void) {
    pthread_mutex_unlock(&mutex);
}
__attribute__((constructor)) static void survive_forks(void) {
    if (pthread_atfork(lock, unlock, unlock) != 0) abort();
}
