// SPDX-License-Identifier: Apache-2.0
/* Ready-made code: loading, entries with declared parameters, launches; stand-ins where no GPU runs. */
#include "check.h"

#include <stdio.h>

static const char ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry brighten(.param .u64 pixels, .param .u32 count, .param .s32 by)\n{\n"
    "    .reg .pred %p;\n    .reg .b32 %r<8>;\n    .reg .b64 %a<4>;\n"
    "    ld.param.u64 %a0, [pixels];\n    ld.param.u32 %r0, [count];\n    ld.param.s32 %r1, [by];\n"
    "    mov.u32 %r2, %ctaid.x;\n    mov.u32 %r3, %ntid.x;\n    mov.u32 %r4, %tid.x;\n"
    "    mad.lo.s32 %r5, %r2, %r3, %r4;\n    setp.ge.u32 %p, %r5, %r0;\n    @%p bra done;\n"
    "    cvta.to.global.u64 %a1, %a0;\n    cvt.u64.u32 %a2, %r5;\n    add.s64 %a3, %a1, %a2;\n"
    "    ld.global.u8 %r6, [%a3];\n    add.s32 %r7, %r6, %r1;\n    st.global.u8 [%a3], %r7;\n"
    "done:\n    ret;\n}\n";

static const isthmus_parameter parameters[] = {{ISTHMUS_READ_WRITE, 1, 0, 0}, {0, 4, 0, 0}, {0, 4, 0, 0}};

struct seen {
    int calls;
    uint64_t blocks, threads;
};

static void brighten(void* context, const isthmus_launch_shape* shape, void* const* values) {
    struct seen* const seen = context;
    ++seen->calls;
    seen->blocks = shape->grid[0];
    seen->threads = shape->block[0];
    unsigned char* pixels;
    uint32_t count;
    int32_t by;
    memcpy(&pixels, values[0], sizeof pixels);
    memcpy(&count, values[1], sizeof count);
    memcpy(&by, values[2], sizeof by);
    for (uint32_t at = 0; at < count; ++at) pixels[at] = (unsigned char)(pixels[at] + by);
}

/* keeps Y1 */
static void modules_run(isthmus_device* device, int from_file) {
    struct seen seen = {0, 0, 0};
    const isthmus_stand_in stand_in = {"brighten", parameters, 3, brighten, &seen};
    isthmus_module_options options = ISTHMUS_MODULE_OPTIONS_INIT;
    options.stand_ins = &stand_in;
    options.stand_in_count = 1;
    isthmus_module* module = NULL;
    if (from_file) {
        char path[] = "/tmp/isthmus-c-module-XXXXXX";
        const int file = mkstemp(path);
        CHECK(file >= 0);
        FILE* const stream = fdopen(file, "w");
        CHECK(stream != NULL && fputs(ptx, stream) >= 0 && fclose(stream) == 0);
        WORKS(isthmus_device_load_module_file(device, path, &options, &module, ERR));
        CHECK(remove(path) == 0);
    } else {
        WORKS(isthmus_device_load_module(device, ptx, sizeof ptx - 1, &options, &module, ERR));
    }
    CHECK(isthmus_module_entry_count(module) == 1);
    CHECK(strcmp(isthmus_module_entry(module, 0), "brighten") == 0);
    CHECK(isthmus_module_entry(module, 1) == NULL);

    isthmus_module_kernel* kernel = NULL;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "darken", isthmus_module_find(module, "darken", parameters, 3, &kernel, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "brighten", isthmus_module_find(module, "brighten", parameters, 2, &kernel, ERR));
    isthmus_parameter odd[3];
    memcpy(odd, parameters, sizeof odd);
    odd[1].bytes = 12;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "parameters[1].alignment",
            isthmus_module_find(module, "brighten", odd, 3, &kernel, ERR));
    odd[1].bytes = 0;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "parameters[1].bytes",
            isthmus_module_find(module, "brighten", odd, 3, &kernel, ERR));
    odd[1].bytes = 4;
    odd[0].flags = 8;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "parameters[0].flags",
            isthmus_module_find(module, "brighten", odd, 3, &kernel, ERR));
    CHECK(kernel == NULL);
    WORKS(isthmus_module_find(module, "brighten", parameters, 3, &kernel, ERR));
    isthmus_module_free(module); /* the kernel keeps it */

    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_buffer* picture = shared_buffer(device, 1000);
    write_bytes(picture, 100);
    const uint32_t count = 1000;
    const int32_t by = 20;
    isthmus_launch_shape shape = ISTHMUS_LAUNCH_SHAPE_INIT;
    shape.grid[0] = 4;
    shape.block[0] = 256;
    const isthmus_argument arguments[] = {{picture, NULL, 0}, {NULL, &count, sizeof count}, {NULL, &by, sizeof by}};
    WORKS(isthmus_stream_launch_module(stream, kernel, &shape, arguments, 3, ERR));
    check_bytes(picture, 0, 1000, 120);
    if (seen.calls != 0) CHECK(seen.calls == 1 && seen.blocks == 4 && seen.threads == 256);

    isthmus_argument wrong[3];
    memcpy(wrong, arguments, sizeof arguments);
    wrong[1].value_bytes = 8;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "kernel 'brighten', argument 2",
            isthmus_stream_launch_module(stream, kernel, &shape, wrong, 3, ERR));
    shape.size = 8;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "shape", isthmus_stream_launch_module(stream, kernel, &shape, arguments, 3, ERR));
    check_bytes(picture, 0, 1000, 120);
    isthmus_buffer_free(picture);
    isthmus_stream_free(stream);
    isthmus_module_kernel_free(kernel);
}

static void does_nothing(void* context, const isthmus_launch_shape* shape, void* const* values) {
    (void)context, (void)shape, (void)values;
}

/* Two declarations that differ in alignments alone are two: the second is compared with the entry, too, and a launch
 * packs what it declared. keeps Y1 */
static void alignments_count(isthmus_device* device) {
    static const char late[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry late(.param .u8 first, .param .u64 second)\n{\n    ret;\n}\n";
    const isthmus_parameter right[] = {{0, 1, 1, 0}, {0, 8, 8, 0}}, wrong[] = {{0, 1, 1, 0}, {0, 8, 1, 0}};
    const isthmus_stand_in stand_in = {"late", right, 2, does_nothing, NULL};
    isthmus_module_options options = ISTHMUS_MODULE_OPTIONS_INIT;
    options.stand_ins = &stand_in;
    options.stand_in_count = 1;
    isthmus_module* module = NULL;
    WORKS(isthmus_device_load_module(device, late, sizeof late - 1, &options, &module, ERR));
    isthmus_module_kernel *kernel = NULL, *other = NULL;
    WORKS(isthmus_module_find(module, "late", right, 2, &kernel, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "parameter 1 lies at byte 8 instead of 1",
            isthmus_module_find(module, "late", wrong, 2, &other, ERR));
    CHECK(other == NULL);
    isthmus_module_kernel_free(kernel);
    isthmus_module_free(module);
}

static void bad_images_are_refused(isthmus_device* device) {
    isthmus_module* module = NULL;
    REFUSED(ISTHMUS_NO_GPU_CODE, "", isthmus_device_load_module(device, "no image", 8, NULL, &module, ERR));
    CHECK(isthmus_device_load_module_file(device, "/nonexistent/image.cubin", NULL, &module, NULL) != ISTHMUS_OK);
    isthmus_stand_in stand_in = {"brighten", parameters, 3, NULL, NULL};
    isthmus_module_options options = ISTHMUS_MODULE_OPTIONS_INIT;
    options.stand_ins = &stand_in;
    options.stand_in_count = 1;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "options.stand_ins[0].run",
            isthmus_device_load_module(device, ptx, sizeof ptx - 1, &options, &module, ERR));
    CHECK(module == NULL);
}

int main(void) {
    isthmus_runtime* runtime = open_runtime();
    for (size_t at = 0; at < isthmus_runtime_device_count(runtime); ++at) {
        modules_run(isthmus_runtime_device(runtime, at), 0);
        modules_run(isthmus_runtime_device(runtime, at), 1);
        alignments_count(isthmus_runtime_device(runtime, at));
        bad_images_are_refused(isthmus_runtime_device(runtime, at));
    }
    isthmus_runtime_free(runtime);
    return 0;
}
