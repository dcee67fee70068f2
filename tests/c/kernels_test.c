// SPDX-License-Identifier: Apache-2.0
/* Kernels by name: registered ones, the camera's, and those of modules. */
#include "check.h"
#include "kernels.h"

/* keeps Y1: what C++ registers, C finds. */
static const void* kernels_are_registered_once(void) {
    CHECK(isthmus_kernel_by_name("scale") == NULL);
    CHECK(register_kernels() == ISTHMUS_OK);
    const size_t count = isthmus_kernel_count();
    CHECK(register_kernels() == ISTHMUS_OK);
    CHECK(isthmus_kernel_count() == count);
    CHECK(register_second_scale() == ISTHMUS_IN_USE);
    CHECK(register_foreign_kernel() == ISTHMUS_INVALID_ARGUMENT);
    CHECK(register_nameless_kernel() == ISTHMUS_INVALID_ARGUMENT);
    CHECK(isthmus_kernel_count() == count);
    CHECK(isthmus_kernel_by_name("") == NULL && isthmus_kernel_by_name("unknown") == NULL);
    CHECK(isthmus_kernel_name(count) == NULL);
    CHECK(strcmp(isthmus_kernel_name(0), "scale") == 0);
    const void* const scale = isthmus_kernel_by_name("scale");
    CHECK(scale != NULL && isthmus_kernel_rank(scale) == 1);
    CHECK(strstr(isthmus_kernel_parameters(scale), "View<const float> in") != NULL);
    CHECK(isthmus_kernel_rank(&count) == -1 && isthmus_kernel_parameters(&count) == NULL);
    return scale;
}

static void fill_floats(isthmus_buffer* buffer, float first) {
    isthmus_host_view* view = NULL;
    void* data = NULL;
    WORKS(isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_WRITE, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    for (size_t at = 0; at < isthmus_host_view_bytes(view) / sizeof(float); ++at)
        ((float*)data)[at] = first + (float)at;
    isthmus_host_view_free(view);
}

static void kernels_run(isthmus_device* device, const void* scale) {
    enum { count = 1000 };
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_buffer* in = shared_buffer(device, count * sizeof(float));
    isthmus_buffer* out = shared_buffer(device, count * sizeof(float));
    fill_floats(in, 1);
    const struct weights by = {2.0f, 10};
    const uint64_t extent[3] = {count, 1, 1};
    const isthmus_argument arguments[] = {{out, NULL, 0}, {in, NULL, 0}, {NULL, &by, sizeof by}};
    WORKS(isthmus_stream_launch(stream, scale, extent, arguments, 3, ERR));
    isthmus_host_view* view = NULL;
    void* data = NULL;
    WORKS(isthmus_buffer_open_on_host(out, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    for (int at = 0; at < count; ++at) CHECK(((const float*)data)[at] == 2.0f * (float)(at + 1) + 10.0f);
    /* A view is open: refused, and nothing has run. */
    REFUSED(ISTHMUS_IN_USE, "", isthmus_stream_launch(stream, scale, extent, arguments, 3, ERR));
    isthmus_host_view_free(view);

    const void* const add_position = isthmus_kernel_by_name("cells.add_position");
    isthmus_buffer* cells = shared_buffer(device, 8 * 4 * sizeof(uint32_t));
    write_bytes(cells, 0);
    const uint32_t width = 8;
    const uint64_t rectangle[3] = {8, 4, 1};
    const isthmus_argument two[] = {{cells, NULL, 0}, {NULL, &width, sizeof width}};
    WORKS(isthmus_stream_launch(stream, add_position, rectangle, two, 2, ERR));
    WORKS(isthmus_buffer_open_on_host(cells, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    for (uint32_t at = 0; at < 32; ++at) CHECK(((const uint32_t*)data)[at] == at % 8 + 1000 * (at / 8));
    isthmus_host_view_free(view);
    isthmus_buffer_free(cells);
    isthmus_buffer_free(in);
    isthmus_buffer_free(out);
    isthmus_stream_free(stream);
}

static void wrong_arguments_are_named(isthmus_device* device, const void* scale) {
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_buffer* buffer = shared_buffer(device, 64);
    const struct weights by = {1.0f, 0};
    const uint64_t extent[3] = {16, 1, 1};
    const isthmus_argument good[] = {{buffer, NULL, 0}, {buffer, NULL, 0}, {NULL, &by, sizeof by}};
    isthmus_argument bad[3];

    REFUSED(ISTHMUS_INVALID_ARGUMENT, "kernel 'scale' takes 3 arguments, and got 2",
            isthmus_stream_launch(stream, scale, extent, good, 2, ERR));
    memcpy(bad, good, sizeof good);
    bad[1].buffer = NULL;
    bad[1].value = &by;
    bad[1].value_bytes = 8;
    REFUSED(ISTHMUS_INVALID_ARGUMENT,
            "kernel 'scale', argument 2 ('in'): it takes a buffer, of which it reads elements of 4 bytes, and got a "
            "value of 8 bytes",
            isthmus_stream_launch(stream, scale, extent, bad, 3, ERR));
    memcpy(bad, good, sizeof good);
    bad[2].value_bytes = 4;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "argument 3 ('by'): it takes a value of 8 bytes, and got a value of 4 bytes",
            isthmus_stream_launch(stream, scale, extent, bad, 3, ERR));
    memcpy(bad, good, sizeof good);
    bad[2].buffer = buffer;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "got a buffer", isthmus_stream_launch(stream, scale, extent, bad, 3, ERR));
    memcpy(bad, good, sizeof good);
    bad[0].value = &by;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "a buffer and a value",
            isthmus_stream_launch(stream, scale, extent, bad, 3, ERR));
    memcpy(bad, good, sizeof good);
    bad[2].value = NULL;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "got NULL", isthmus_stream_launch(stream, scale, extent, bad, 3, ERR));

    const uint64_t flat[3] = {16, 2, 1};
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "extent[1]", isthmus_stream_launch(stream, scale, flat, good, 3, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "no registered kernel", isthmus_stream_launch(stream, &by, extent, good, 3, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "`arguments` is NULL",
            isthmus_stream_launch(stream, scale, extent, NULL, 3, ERR));

    /* Other code's memory may lie anywhere; a kernel's elements may not. */
    static unsigned char memory[3 * 4096];
    isthmus_buffer* odd = NULL;
    if (isthmus_device_is_cpu(device)) {
        WORKS(isthmus_device_adopt(device, memory + 1, 64, NULL, &odd, ERR));
        memcpy(bad, good, sizeof good);
        bad[1].buffer = odd;
        REFUSED(ISTHMUS_INVALID_ARGUMENT, "adopted memory that does not begin at a multiple of 4",
                isthmus_stream_launch(stream, scale, extent, bad, 3, ERR));
    }
    isthmus_buffer_free(odd);
    isthmus_buffer_free(buffer);
    isthmus_stream_free(stream);
}

/* `struct plane` and `struct luma` are Plane and LumaLayout of <isthmus/kernels/camera.hpp>. */
struct plane {
    uint32_t width, height, pitch;
};
struct luma {
    uint32_t offset_bytes, pitch_bytes, step_bytes;
};

static void camera_kernels_run(isthmus_device* device) {
    WORKS(isthmus_camera_register_kernels(ERR));
    WORKS(isthmus_camera_register_kernels(ERR));
    const void* const to_gray = isthmus_kernel_by_name("camera.to_gray");
    CHECK(to_gray != NULL && isthmus_kernel_rank(to_gray) == 2);
    CHECK(isthmus_kernel_rank(isthmus_kernel_by_name("camera.frame_response")) == 0);
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_buffer* frame = shared_buffer(device, 64 * 48 * 2);
    isthmus_buffer* gray = shared_buffer(device, 64 * 48);
    write_bytes(frame, 77);
    const struct plane plane = {64, 48, 64};
    const struct luma layout = {0, 128, 2};
    const uint64_t extent[3] = {64, 48, 1};
    const isthmus_argument arguments[] = {
        {gray, NULL, 0}, {NULL, &plane, sizeof plane}, {frame, NULL, 0}, {NULL, &layout, sizeof layout}};
    WORKS(isthmus_stream_launch(stream, to_gray, extent, arguments, 4, ERR));
    check_bytes(gray, 0, 64 * 48, 77);
    isthmus_buffer_free(gray);
    isthmus_buffer_free(frame);
    isthmus_stream_free(stream);
}

int main(void) {
    const void* const scale = kernels_are_registered_once();
    isthmus_runtime* runtime = open_runtime();
    for (size_t at = 0; at < isthmus_runtime_device_count(runtime); ++at) {
        isthmus_device* const device = isthmus_runtime_device(runtime, at);
        kernels_run(device, scale);
        wrong_arguments_are_named(device, scale);
        camera_kernels_run(device);
    }
    isthmus_runtime_free(runtime);
    return 0;
}
