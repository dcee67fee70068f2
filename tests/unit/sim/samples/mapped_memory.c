// SPDX-License-Identifier: Apache-2.0
/* Adds two vectors that lie in the memory of the host, in place: allocated there, and registered.
 *     mapped_memory samples.ptx */
#include "sample.h"

enum { count = 16384, bytes = count * sizeof(float) };

int main(int words, char** word) {
    float* host[3] = {NULL, NULL, NULL};
    CUdeviceptr there[3];
    int number = count, registers;
    void* parameters[] = {&there[0], &there[1], &there[2], &number};
    CUfunction kernel;
    CUdevice device;
    REQUIRE(words == 2);
    device = open_device();
    if (attribute_of(device, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY) == 0) {
        puts("this device maps no memory of the host");
        return sample_is_skipped;
    }
    kernel = load_kernel(word[1], "add_vectors");
    registers = attribute_of(device, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
    for (int i = 0; i < 3; ++i) {
        if (i == 1 && registers) {
            REQUIRE(posix_memalign((void**)&host[i], 4096, bytes) == 0);
            CHECK(cuMemHostRegister(host[i], bytes, CU_MEMHOSTREGISTER_DEVICEMAP));
        } else {
            CHECK(cuMemHostAlloc((void**)&host[i], bytes, CU_MEMHOSTALLOC_DEVICEMAP));
        }
        CHECK(cuMemHostGetDevicePointer(&there[i], host[i], 0));
    }
    for (int i = 0; i < count; ++i) {
        host[0][i] = (float)i;
        host[1][i] = 0.5f;
        host[2][i] = 0;
    }
    CHECK(cuLaunchKernel(kernel, (count + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
    CHECK(cuCtxSynchronize());
    for (int i = 0; i < count; ++i) REQUIRE(host[2][i] == (float)i + 0.5f);
    for (int i = 0; i < 3; ++i) {
        if (i == 1 && registers) {
            CHECK(cuMemHostUnregister(host[i]));
            free(host[i]);
        } else {
            CHECK(cuMemFreeHost(host[i]));
        }
    }
    puts("added in place");
    return 0;
}
