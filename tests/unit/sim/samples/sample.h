// SPDX-License-Identifier: Apache-2.0
/* What the samples share: checked calls, and kernels from a file of PTX. They use the driver through <cuda.h> alone. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { sample_is_skipped = 77 };

#define CHECK(call)                                                                             \
    do {                                                                                        \
        CUresult answer = (call);                                                               \
        if (answer != CUDA_SUCCESS) {                                                           \
            fprintf(stderr, "%s:%d: %s answered %d\n", __FILE__, __LINE__, #call, (int)answer); \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)
#define REQUIRE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

/* The first device with its primary context; ends the program where there is none. */
static inline CUdevice open_device(void) {
    CUdevice device;
    CUcontext context;
    CUresult started = cuInit(0);
    if (started == CUDA_ERROR_NO_DEVICE) {
        puts("no device");
        exit(sample_is_skipped);
    }
    CHECK(started);
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    return device;
}

static inline int attribute_of(CUdevice device, CUdevice_attribute attribute) {
    int value = 0;
    CHECK(cuDeviceGetAttribute(&value, attribute, device));
    return value;
}

/* The kernel of this name. The text says an old version of PTX, which every driver takes. */
static inline CUfunction load_kernel(const char* path, const char* name) {
    CUmodule module;
    CUfunction function;
    long bytes;
    char *text, *version;
    FILE* file = fopen(path, "rb");
    REQUIRE(file != NULL);
    REQUIRE(fseek(file, 0, SEEK_END) == 0 && (bytes = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0);
    text = calloc((size_t)bytes + 1, 1);
    REQUIRE(text != NULL && fread(text, 1, (size_t)bytes, file) == (size_t)bytes);
    fclose(file);
    version = strstr(text, ".version 9.0");
    REQUIRE(version != NULL);
    memcpy(version, ".version 6.4", strlen(".version 6.4"));
    CHECK(cuModuleLoadData(&module, text));
    free(text);
    CHECK(cuModuleGetFunction(&function, module, name));
    return function;
}

#endif
