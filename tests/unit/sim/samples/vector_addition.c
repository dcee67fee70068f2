// SPDX-License-Identifier: Apache-2.0
/* Adds two vectors: memory of the device, copies, one kernel.
 *     vector_addition samples.ptx */
#include "sample.h"

enum { count = 50000 };

int main(int words, char** word) {
    static float a[count], b[count], c[count];
    CUdeviceptr on_device[3];
    int number = count;
    void* parameters[] = {&on_device[0], &on_device[1], &on_device[2], &number};
    CUfunction kernel;
    REQUIRE(words == 2);
    open_device();
    kernel = load_kernel(word[1], "add_vectors");
    for (int i = 0; i < count; ++i) {
        a[i] = (float)i;
        b[i] = (float)(2 * i);
    }
    for (int i = 0; i < 3; ++i) CHECK(cuMemAlloc(&on_device[i], sizeof(a)));
    CHECK(cuMemcpyHtoD(on_device[0], a, sizeof(a)));
    CHECK(cuMemcpyHtoD(on_device[1], b, sizeof(b)));
    CHECK(cuLaunchKernel(kernel, (count + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
    CHECK(cuMemcpyDtoH(c, on_device[2], sizeof(c)));
    for (int i = 0; i < count; ++i) REQUIRE(c[i] == a[i] + b[i]);
    for (int i = 0; i < 3; ++i) CHECK(cuMemFree(on_device[i]));
    puts("added");
    return 0;
}
