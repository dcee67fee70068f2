// SPDX-License-Identifier: Apache-2.0
/* A program in C: a buffer that the device fills and the CPU reads. */
#include <isthmus.h>

#include <stdio.h>

int main(void) {
    isthmus_runtime* runtime = NULL;
    isthmus_buffer* buffer = NULL;
    isthmus_host_view* view = NULL;
    void* data = NULL;
    if (isthmus_runtime_open(NULL, &runtime, NULL) != ISTHMUS_OK) return 1;
    isthmus_device* device = isthmus_runtime_default_device(runtime);
    isthmus_stream* stream = isthmus_device_stream(device);
    if (isthmus_device_allocate_shared(device, 90, NULL, &buffer, NULL) != ISTHMUS_OK) return 1;
    if (isthmus_stream_fill(stream, buffer, 0, ISTHMUS_REST, 1, NULL) != ISTHMUS_OK) return 1;
    if (isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data, NULL) !=
        ISTHMUS_OK) {
        return 1;
    }
    int sum = 0;
    for (int at = 0; at < 90; ++at) sum += ((const unsigned char*)data)[at];
    isthmus_host_view_free(view);
    isthmus_buffer_free(buffer);
    isthmus_stream_free(stream);
    isthmus_runtime_free(runtime);
    printf("sum %d\n", sum);
    return 0;
}
