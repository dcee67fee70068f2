// SPDX-License-Identifier: Apache-2.0
/* The first program in C, and the excerpts of docs/c.md. */
#include <isthmus.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// show: check
/* Ends the program with what failed and what works instead. */
static void check(isthmus_code code, isthmus_error* error) {
    if (code == ISTHMUS_OK) return;
    fprintf(stderr, "%s: %s\n", isthmus_code_name(code), isthmus_error_message(error));
    fprintf(stderr, "try: %s\n", isthmus_error_remedy(error));
    isthmus_error_free(error);
    exit(1);
}
// end

// show: work
/* Code beside isthmus: on a GPU it gives its work to the stream, here it does it. */
static int32_t double_all(void* context, void* cu_stream, const isthmus_native_use* uses) {
    const size_t bytes = *(const size_t*)context;
    unsigned char* const pixels = uses[0].pointer;
    if (cu_stream != NULL) return 0; /* a kernel would be launched on (cudaStream_t)cu_stream */
    for (size_t at = 0; at < bytes; ++at) pixels[at] = (unsigned char)(2 * pixels[at]);
    return 0;
}
// end

int main(void) {
    isthmus_error* error = NULL;
    // show: open
    isthmus_runtime* runtime = NULL;
    check(isthmus_runtime_open(NULL, &runtime, &error), error);
    isthmus_device* device = isthmus_runtime_default_device(runtime); /* borrowed: never freed */
    isthmus_stream* stream = isthmus_device_stream(device);
    printf("%s\n", isthmus_device_name(device));
    // end

    // show: share
    isthmus_shared_use use = ISTHMUS_SHARED_USE_INIT;
    use.host = ISTHMUS_USE_READS_ONCE;
    use.device = ISTHMUS_USE_WRITES_ONCE;
    isthmus_buffer* frame = NULL;
    check(isthmus_device_allocate_shared(device, 640 * 480, &use, &frame, &error), error);
    printf("%s\n", isthmus_buffer_explain(frame));
    check(isthmus_stream_fill(stream, frame, 0, ISTHMUS_REST, 21, &error), error);
    // end

    // show: view
    isthmus_host_view* view = NULL;
    void* data = NULL;
    check(isthmus_buffer_open_on_host(frame, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data, &error),
          error); /* waits for the fill, and for nothing else */
    const unsigned char* const pixels = data;
    printf("first %d, last %d\n", pixels[0], pixels[isthmus_host_view_bytes(view) - 1]);
    const int right = pixels[0] == 21 && pixels[640 * 480 - 1] == 21;
    isthmus_host_view_free(view);
    // end

    // show: native
    size_t bytes = 640 * 480;
    isthmus_native_use uses[] = {{frame, ISTHMUS_READ_WRITE, 0, NULL}};
    check(isthmus_stream_enqueue_native(stream, "double", uses, 1, double_all, &bytes, &error), error);
    check(isthmus_stream_synchronize(stream, 60000000000, &error), error); /* at most 60 s */
    // end

    // show: free
    isthmus_runtime_free(runtime); /* in any order: what is left works on */
    isthmus_stream_free(stream);
    isthmus_buffer_free(frame);
    // end
    return right ? 0 : 1;
}
