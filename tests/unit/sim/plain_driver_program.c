// SPDX-License-Identifier: Apache-2.0
/* A program that uses the driver through <cuda.h> only and is linked like any other. It runs on the simulator without a
 * change: counts devices, allocates, copies both ways, orders work by streams and events, and gets refusals. */
#include <cuda.h>

#include <stdio.h>
#include <string.h>

#define EXPECT(call, code)                                                                \
    do {                                                                                  \
        CUresult result = (call);                                                         \
        if (result != (code)) {                                                           \
            fprintf(stderr, "%s answered %d, not %d\n", #call, (int)result, (int)(code)); \
            return 1;                                                                     \
        }                                                                                 \
    } while (0)

int main(void) {
    char there[4096], back[4096];
    int devices = 0, version = 0;
    unsigned char word = 7;
    CUdevice device;
    CUcontext context;
    CUdeviceptr memory, second;
    CUstream stream;
    CUevent event;
    void *pinned = NULL, *found = NULL;
    CUdriverProcAddressQueryResult status;
    EXPECT(cuCtxGetDevice(&device), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(cuInit(0), CUDA_SUCCESS);
    EXPECT(cuDriverGetVersion(&version), CUDA_SUCCESS);
    EXPECT(cuDeviceGetCount(&devices), CUDA_SUCCESS);
    if (devices < 1 || version < 11000) return 2;
    EXPECT(cuDeviceGet(&device, devices), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(cuDeviceGet(&device, 0), CUDA_SUCCESS);
    EXPECT(cuMemAlloc(&memory, 16), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    EXPECT(cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT(cuMemAlloc(&memory, sizeof(there)), CUDA_SUCCESS);
    EXPECT(cuMemAlloc(&second, sizeof(there)), CUDA_SUCCESS);
    EXPECT(cuMemHostAlloc(&pinned, sizeof(there), 0), CUDA_SUCCESS);
    EXPECT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    EXPECT(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    memset(there, word, sizeof(there));
    EXPECT(cuMemcpyHtoD(memory, there, sizeof(there)), CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoDAsync(second, memory, sizeof(there), stream), CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoHAsync(pinned, second, sizeof(there), stream), CUDA_SUCCESS);
    EXPECT(cuEventRecord(event, stream), CUDA_SUCCESS);
    EXPECT(cuEventSynchronize(event), CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoH(back, second, sizeof(back)), CUDA_SUCCESS);
    if (memcmp(there, back, sizeof(back)) != 0 || memcmp(there, pinned, sizeof(back)) != 0) return 3;
    EXPECT(cuMemcpyDtoH(back, second + 1, sizeof(back)), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGetProcAddress("cuMemAlloc", &found, 3020, 0, &status), CUDA_SUCCESS);
    if (found == NULL || status != CU_GET_PROC_ADDRESS_SUCCESS) return 4;
    EXPECT(cuGetProcAddress("cuMemAlloc", &found, version + 1, 0, &status), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDeviceGetNvSciSyncAttributes(NULL, device, 1), CUDA_ERROR_NOT_SUPPORTED); /* not modelled */
    EXPECT(cuMemFree(memory), CUDA_SUCCESS);
    EXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemFree(second), CUDA_SUCCESS);
    EXPECT(cuMemFreeHost(pinned), CUDA_SUCCESS);
    EXPECT(cuEventDestroy(event), CUDA_SUCCESS);
    EXPECT(cuStreamDestroy(stream), CUDA_SUCCESS);
    EXPECT(cuDevicePrimaryCtxRelease(device), CUDA_SUCCESS);
    printf("%d device(s), driver %d\n", devices, version);
    return 0;
}
