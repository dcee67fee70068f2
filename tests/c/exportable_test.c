// SPDX-License-Identifier: Apache-2.0
/* Buffers that leave as dma-bufs, where the driver exports them, and the refusal everywhere else. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { bytes = 3 * 65536 + 20, seen_by_cpus = 0, seen_by_gpus = 1 };

static void leaves_as_a_dma_buf(isthmus_device* device, isthmus_buffer* buffer, int32_t seen_by) {
    static unsigned char content[bytes];
    isthmus_stream* const stream = isthmus_device_stream(device);
    CHECK(isthmus_buffer_bytes(buffer) == bytes);
    memset(content, 1, sizeof content);
    WORKS(isthmus_stream_copy_to_host(stream, content, buffer, 0, bytes, ERR));
    WORKS(isthmus_stream_synchronize(stream, ISTHMUS_WAIT_DEFAULT, ERR));
    for (size_t at = 0; at < bytes; ++at) CHECK(content[at] == 0);
    if (seen_by == seen_by_cpus) check_bytes(buffer, 0, bytes, 0);

    int file = -1, again = -1;
    WORKS(isthmus_buffer_export_dma_buf(buffer, &file, ERR));
    WORKS(isthmus_buffer_export_dma_buf(buffer, &again, ERR));
    CHECK(file >= 0 && again >= 0 && file != again);
    CHECK((fcntl(file, F_GETFD) & FD_CLOEXEC) != 0);
    WORKS(isthmus_stream_fill(stream, buffer, 0, ISTHMUS_REST, 7, ERR));
    WORKS(isthmus_stream_synchronize(stream, ISTHMUS_WAIT_DEFAULT, ERR));
    close(again);
    /* A driver's dma-buf has no mapping for the CPU; the simulator's has. */
    unsigned char* const at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (at != MAP_FAILED) CHECK(at[0] == 7 && at[bytes - 1] == 7);
    if (getenv("ISTHMUS_SIM") != NULL) CHECK(at != MAP_FAILED);
    if (at != MAP_FAILED) munmap(at, bytes);
    close(file);
    isthmus_stream_free(stream);
}

/* keeps Y1, Y5 */
static void exportable_memory_where_the_driver_exports_it(isthmus_device* device) {
    for (int32_t seen_by = seen_by_cpus; seen_by <= seen_by_gpus; ++seen_by) {
        const int32_t feature = seen_by == seen_by_cpus ? ISTHMUS_FEATURE_HOST_DMA_BUF : ISTHMUS_FEATURE_DMA_BUF;
        isthmus_exportable_options options = ISTHMUS_EXPORTABLE_OPTIONS_INIT;
        CHECK(options.seen_by == seen_by_gpus);
        options.seen_by = seen_by;
        isthmus_buffer* buffer = NULL;
        if (isthmus_device_is_cpu(device) || !isthmus_device_has(device, feature)) {
            isthmus_error* error = NULL;
            CHECK(isthmus_device_allocate_exportable(device, bytes, &options, &buffer, &error) == ISTHMUS_UNSUPPORTED);
            CHECK(buffer == NULL && strlen(isthmus_error_remedy(error)) > 10);
            isthmus_error_free(error);
            continue;
        }
        const isthmus_code made = isthmus_device_allocate_exportable(device, bytes, &options, &buffer, NULL);
        if (made == ISTHMUS_UNSUPPORTED) { /* nor has it handles of device memory to share */
            CHECK(seen_by == seen_by_gpus && !isthmus_device_has(device, ISTHMUS_FEATURE_VIRTUAL_MEMORY));
            continue;
        }
        CHECK(made == ISTHMUS_OK);
        leaves_as_a_dma_buf(device, buffer, seen_by);
        isthmus_buffer_free(buffer);
    }
}

/* keeps Y1, Y5 */
static void other_buffers_and_wrong_options_are_refused(isthmus_device* device) {
    isthmus_buffer* buffer = shared_buffer(device, 4096);
    int file = -1;
    REFUSED(ISTHMUS_UNSUPPORTED, "", isthmus_buffer_export_dma_buf(buffer, &file, ERR));
    CHECK(file == -1);
    isthmus_buffer_free(buffer);
    buffer = NULL;
    isthmus_exportable_options options = ISTHMUS_EXPORTABLE_OPTIONS_INIT;
    options.seen_by = 2;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "`options.seen_by` is 2",
            isthmus_device_allocate_exportable(device, 4096, &options, &buffer, ERR));
    options.seen_by = 1;
    options.reserved = 1;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "options.reserved",
            isthmus_device_allocate_exportable(device, 4096, &options, &buffer, ERR));
    options.reserved = 0;
    options.size = 3;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "options",
            isthmus_device_allocate_exportable(device, 4096, &options, &buffer, ERR));
    CHECK(isthmus_device_allocate_exportable(device, 0, NULL, &buffer, NULL) != ISTHMUS_OK && buffer == NULL);
    CHECK(isthmus_device_allocate_exportable(device, UINT64_MAX, NULL, &buffer, NULL) != ISTHMUS_OK && buffer == NULL);
}

int main(void) {
    isthmus_runtime* runtime = open_runtime();
    for (size_t at = 0; at < isthmus_runtime_device_count(runtime); ++at) {
        exportable_memory_where_the_driver_exports_it(isthmus_runtime_device(runtime, at));
        other_buffers_and_wrong_options_are_refused(isthmus_runtime_device(runtime, at));
    }
    isthmus_runtime_free(runtime);
    return 0;
}
