// SPDX-License-Identifier: Apache-2.0
/* A program on the driver API, as others write it: it knows neither isthmus nor the simulator, and opens libcuda. Its
 * argument says what it does. Needs no toolkit. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned long long address;
static int (*init)(unsigned);
static int (*retain)(void**, int);
static int (*set_current)(void*);
static int (*allocate)(address*, size_t);
static int (*allocate_managed)(address*, size_t, unsigned);
static int (*fill)(address, unsigned char, size_t, void*);
static int (*copy_in)(address, const void*, size_t);
static int (*copy_out)(void*, address, size_t);
static int (*create_stream)(void**, unsigned);
static int (*destroy_stream)(void*);
static int (*load_module)(void**, const void*);
static int (*get_function)(void**, void*, const char*);
static int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                     void**);
static int (*export_table)(const void**, const void*);

static void* find(void* library, const char* name) {
    void* const found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s is missing\n", name);
        exit(90);
    }
    return found;
}

static void need(int code, const char* what) {
    if (code == 0) return;
    fprintf(stderr, "%s answered %d\n", what, code);
    exit(91);
}

static void open_driver(const char* name) {
    void* const library = dlopen(name, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(92);
    }
    *(void**)&init = find(library, "cuInit");
    *(void**)&retain = find(library, "cuDevicePrimaryCtxRetain");
    *(void**)&set_current = find(library, "cuCtxSetCurrent");
    *(void**)&allocate = find(library, "cuMemAlloc_v2");
    *(void**)&allocate_managed = find(library, "cuMemAllocManaged");
    *(void**)&fill = find(library, "cuMemsetD8Async");
    *(void**)&copy_in = find(library, "cuMemcpyHtoD_v2");
    *(void**)&copy_out = find(library, "cuMemcpyDtoH_v2");
    *(void**)&create_stream = find(library, "cuStreamCreate");
    *(void**)&destroy_stream = find(library, "cuStreamDestroy_v2");
    *(void**)&load_module = find(library, "cuModuleLoadData");
    *(void**)&get_function = find(library, "cuModuleGetFunction");
    *(void**)&launch = find(library, "cuLaunchKernel");
    *(void**)&export_table = find(library, "cuGetExportTable");
}

static void open_device(void) {
    void* context = NULL;
    need(init(0), "cuInit");
    need(retain(&context, 0), "cuDevicePrimaryCtxRetain");
    need(set_current(context), "cuCtxSetCurrent");
}

static void copy(void) {
    char there[1000], back[1000];
    address memory = 0;
    memset(there, 7, sizeof there);
    open_device();
    need(allocate(&memory, sizeof there), "cuMemAlloc");
    need(copy_in(memory, there, sizeof there), "cuMemcpyHtoD");
    need(copy_out(back, memory, sizeof back), "cuMemcpyDtoH");
    if (memcmp(there, back, sizeof back) != 0) exit(93);
    puts("copied");
}

static void touch(void) { /* device memory, as if it were the host's */
    address memory = 0;
    open_device();
    need(allocate(&memory, 4096), "cuMemAlloc");
    *(volatile int*)memory = 1;
    puts("touched");
}

static void touch_managed(void) { /* while the device may work on it: right where both may access it at once */
    address memory = 0;
    void* stream = NULL;
    open_device();
    need(create_stream(&stream, 1), "cuStreamCreate");
    need(allocate_managed(&memory, 4096, 1), "cuMemAllocManaged");
    need(fill(memory, 0, 4096, stream), "cuMemsetD8Async");
    *(volatile int*)memory = 1;
    puts("touched");
}

static void read_unwritten(void) { /* a kernel adds to a word that nothing wrote */
    static const char text[] =
        ".version 6.0\n.target sm_50\n.address_size 64\n"
        ".visible .entry add_one(.param .u64 word) { .reg .b32 %r<2>; .reg .b64 %d;\n"
        "ld.param.u64 %d, [word];\n"
        "ld.global.u32 %r0, [%d];\n"
        "add.u32 %r1, %r0, 1; st.global.u32 [%d], %r1; ret; }\n";
    void *module = NULL, *function = NULL;
    void* parameters[1];
    address memory = 0;
    int back = 0;
    open_device();
    need(allocate(&memory, 4), "cuMemAlloc");
    need(load_module(&module, text), "cuModuleLoadData");
    need(get_function(&function, module, "add_one"), "cuModuleGetFunction");
    parameters[0] = &memory;
    need(launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), "cuLaunchKernel");
    need(copy_out(&back, memory, sizeof back), "cuMemcpyDtoH");
    puts("added");
}

static void destroy_twice(void) {
    void* stream = NULL;
    open_device();
    need(create_stream(&stream, 1), "cuStreamCreate");
    need(destroy_stream(stream), "cuStreamDestroy");
    destroy_stream(stream);
}

static volatile sig_atomic_t came;
static void note(int signal) {
    came = signal;
}

static void await_signal(void) {
    signal(SIGTERM, note);
    signal(SIGUSR1, note);
    puts("ready");
    fflush(stdout);
    while (!came) usleep(1000);
    printf("signal %d\n", (int)came);
    exit(came == SIGUSR1 ? 5 : 6);
}

static void run_children(const char* self) {
    int i;
    for (i = 0; i < 2; ++i) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) {
            execl(self, self, "copy", (char*)NULL);
            _exit(94);
        }
        if (waitpid(child, &status, 0) != child || status != 0) exit(95);
    }
}

int main(int count, char** words) {
    const char* const asked = count > 1 ? words[1] : "copy";
    const void* table = NULL;
    if (strcmp(asked, "silent") == 0) return count > 2 ? atoi(words[2]) : 0;
    if (strcmp(asked, "words") == 0) {
        int i;
        for (i = 2; i < count; ++i) printf("<%s>\n", words[i]);
        return 0;
    }
    if (strcmp(asked, "signal") == 0) await_signal();
    if (strcmp(asked, "raise") == 0) return raise(atoi(words[2]));
    if (strcmp(asked, "children") == 0) {
        run_children(words[0]);
        return 0;
    }
    open_driver(strcmp(asked, "other-name") == 0 ? "libcuda.so" : "libcuda.so.1");
    if (strcmp(asked, "touch") == 0) {
        touch();
    } else if (strcmp(asked, "touch-managed") == 0) {
        touch_managed();
    } else if (strcmp(asked, "read-unwritten") == 0) {
        read_unwritten();
    } else if (strcmp(asked, "destroy-twice") == 0) {
        destroy_twice();
    } else if (strcmp(asked, "runtime-library") == 0) {
        return export_table(&table, NULL) == 801 ? 0 : 1;
    } else {
        copy();
    }
    return 0;
}
