// SPDX-License-Identifier: Apache-2.0
/* Multiplies two matrices through tiles in shared memory, in a stream between two events.
 *     matrix_multiplication samples.ptx */
#include "sample.h"

enum { width = 64, tile = 8, size = width * width };

int main(int words, char** word) {
    static float a[size], b[size], c[size];
    CUdeviceptr on_device[3];
    int number = width;
    void* parameters[] = {&on_device[0], &on_device[1], &on_device[2], &number};
    CUfunction kernel;
    CUstream stream;
    CUevent start, end;
    float milliseconds = -1;
    REQUIRE(words == 2);
    open_device();
    kernel = load_kernel(word[1], "multiply_matrices");
    for (int i = 0; i < size; ++i) {
        a[i] = (float)(i % 7);
        b[i] = (float)(i % 5 - 2);
    }
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&start, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
    for (int i = 0; i < 3; ++i) CHECK(cuMemAlloc(&on_device[i], sizeof(a)));
    CHECK(cuMemcpyHtoDAsync(on_device[0], a, sizeof(a), stream));
    CHECK(cuMemcpyHtoDAsync(on_device[1], b, sizeof(b), stream));
    CHECK(cuEventRecord(start, stream));
    CHECK(cuLaunchKernel(kernel, width / tile, width / tile, 1, tile, tile, 1, 0, stream, parameters, NULL));
    CHECK(cuEventRecord(end, stream));
    CHECK(cuMemcpyDtoHAsync(c, on_device[2], sizeof(c), stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuEventElapsedTime(&milliseconds, start, end));
    REQUIRE(milliseconds >= 0);
    for (int y = 0; y < width; ++y) {
        for (int x = 0; x < width; ++x) {
            float wanted = 0;
            for (int k = 0; k < width; ++k) wanted += a[y * width + k] * b[k * width + x];
            REQUIRE(c[y * width + x] == wanted);
        }
    }
    for (int i = 0; i < 3; ++i) CHECK(cuMemFree(on_device[i]));
    CHECK(cuEventDestroy(start));
    CHECK(cuEventDestroy(end));
    CHECK(cuStreamDestroy(stream));
    puts("multiplied");
    return 0;
}
