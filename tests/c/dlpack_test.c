// SPDX-License-Identifier: Apache-2.0
/* Tensors of DLPack out of scopes, and into buffers. */
#include "check.h"
#include "kernels.h"

/* As dlpack.h 1.x declares them. */
typedef struct {
    int32_t device_type, device_id;
} DLDevice;
typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;
typedef struct {
    void* data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t* shape;
    int64_t* strides;
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensorVersioned {
    struct {
        uint32_t major, minor;
    } version;
    void* manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned*);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

static const uint32_t float32 = 2 | 32 << 8 | 1 << 16; /* kDLFloat */

/* keeps Y1, Y3: a tensor keeps its view open, whatever is freed before. */
static void views_become_tensors(void) {
    isthmus_runtime* runtime = open_runtime();
    isthmus_device* device = isthmus_runtime_default_device(runtime);
    isthmus_buffer* buffer = shared_buffer(device, 4 * 6 * 5);
    isthmus_stream* stream = isthmus_device_stream(device);
    write_bytes(buffer, 0);
    isthmus_host_view* view = NULL;
    void* data = NULL;
    WORKS(isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    const int64_t shape[] = {6, 5};
    DLManagedTensorVersioned* tensor = NULL;
    DLManagedTensorVersioned* second = NULL;
    WORKS(isthmus_host_view_to_dlpack(view, shape, 2, float32, &tensor, ERR));
    WORKS(isthmus_host_view_to_dlpack(view, shape, 1, float32, &second, ERR));
    CHECK(tensor->version.major == 1 && tensor->flags == 1);
    CHECK(tensor->dl_tensor.data == data && tensor->dl_tensor.byte_offset == 0);
    CHECK(tensor->dl_tensor.device.device_type == 1 && tensor->dl_tensor.device.device_id == 0);
    CHECK(tensor->dl_tensor.ndim == 2 && tensor->dl_tensor.shape[0] == 6 && tensor->dl_tensor.shape[1] == 5);
    CHECK(tensor->dl_tensor.strides[0] == 5 && tensor->dl_tensor.strides[1] == 1);
    CHECK(tensor->dl_tensor.dtype.code == 2 && tensor->dl_tensor.dtype.bits == 32 &&
          tensor->dl_tensor.dtype.lanes == 1);

    isthmus_host_view_free(view);
    REFUSED(ISTHMUS_IN_USE, "", isthmus_stream_fill(stream, buffer, 0, ISTHMUS_REST, 1, ERR));
    tensor->deleter(tensor);
    REFUSED(ISTHMUS_IN_USE, "", isthmus_stream_fill(stream, buffer, 0, ISTHMUS_REST, 1, ERR));
    second->deleter(second);
    WORKS(isthmus_stream_fill(stream, buffer, 0, ISTHMUS_REST, 1, ERR));

    WORKS(isthmus_buffer_open_on_host(buffer, 4, 100, ISTHMUS_READ_WRITE, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    const int64_t most[] = {25}, too_many[] = {26}, negative[] = {-1}, overflow[] = {INT64_MAX, INT64_MAX, 2};
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "shape", isthmus_host_view_to_dlpack(view, too_many, 1, float32, &tensor, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "shape", isthmus_host_view_to_dlpack(view, negative, 1, float32, &tensor, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "shape", isthmus_host_view_to_dlpack(view, overflow, 3, float32, &tensor, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "dtype",
            isthmus_host_view_to_dlpack(view, most, 1, 2 | 4 << 8 | 1 << 16, &tensor, ERR));
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "ndim", isthmus_host_view_to_dlpack(view, most, 65, float32, &tensor, ERR));
    WORKS(isthmus_host_view_to_dlpack(view, most, 1, float32, &tensor, ERR));
    CHECK(tensor->flags == 0 && tensor->dl_tensor.data == data);
    /* Everything else goes first. */
    isthmus_stream_free(stream);
    isthmus_buffer_free(buffer);
    isthmus_runtime_free(runtime);
    isthmus_host_view_free(view);
    CHECK(((unsigned char*)tensor->dl_tensor.data)[99] == 1);
    memset(tensor->dl_tensor.data, 2, 100);
    tensor->deleter(tensor);
}

static void scopes_become_tensors(isthmus_device* device) {
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_buffer* buffer = shared_buffer(device, 64);
    isthmus_native_use use = {buffer, ISTHMUS_WRITE, 0, NULL};
    isthmus_native_scope* scope = NULL;
    WORKS(isthmus_stream_open_native_scope(stream, "dlpack", &use, 1, &scope, ERR));
    DLManagedTensorVersioned* tensor = NULL;
    const int64_t shape[] = {16};
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "index",
            isthmus_native_scope_to_dlpack(scope, 1, shape, 1, float32, &tensor, ERR));
    WORKS(isthmus_native_scope_to_dlpack(scope, 0, shape, 1, float32, &tensor, ERR));
    const int on_cpu = isthmus_device_is_cpu(device);
    CHECK(tensor->dl_tensor.device.device_type == (on_cpu ? 1 : 2));
    CHECK(tensor->dl_tensor.device.device_id == (on_cpu ? 0 : isthmus_device_ordinal(device)));
    CHECK(tensor->dl_tensor.data == use.pointer && tensor->flags == 0);
    isthmus_buffer_free(buffer);
    WORKS(isthmus_native_scope_close(scope, 0, ERR));
    tensor->deleter(tensor);
    isthmus_stream_free(stream);
}

static int deleted;
static void count_deletion(DLManagedTensorVersioned* self) {
    (void)self;
    ++deleted;
}

static void tensors_become_buffers(isthmus_device* device) {
    static float memory[4][8];
    int64_t shape[] = {4, 8}, strides[] = {8, 1};
    DLManagedTensorVersioned tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.version.major = 1;
    tensor.deleter = count_deletion;
    tensor.dl_tensor.data = memory;
    tensor.dl_tensor.device.device_type = 1;
    tensor.dl_tensor.ndim = 2;
    tensor.dl_tensor.dtype.code = 2;
    tensor.dl_tensor.dtype.bits = 32;
    tensor.dl_tensor.dtype.lanes = 1;
    tensor.dl_tensor.shape = shape;
    tensor.dl_tensor.strides = strides;
    deleted = 0;
    isthmus_buffer* buffer = NULL;

    tensor.version.major = 2;
    REFUSED(ISTHMUS_UNSUPPORTED, "version 2", isthmus_device_adopt_dlpack(device, &tensor, NULL, &buffer, ERR));
    tensor.version.major = 1;
    tensor.dl_tensor.device.device_type = 7;
    REFUSED(ISTHMUS_UNSUPPORTED, "type 7", isthmus_device_adopt_dlpack(device, &tensor, NULL, &buffer, ERR));
    tensor.dl_tensor.device.device_type = 2;
    tensor.dl_tensor.device.device_id = 63;
    REFUSED(ISTHMUS_WRONG_DEVICE, "63", isthmus_device_adopt_dlpack(device, &tensor, NULL, &buffer, ERR));
    tensor.dl_tensor.device.device_id = -1; /* as the CPU device is numbered */
    REFUSED(ISTHMUS_WRONG_DEVICE, "-1", isthmus_device_adopt_dlpack(device, &tensor, NULL, &buffer, ERR));
    tensor.dl_tensor.byte_offset = UINT64_MAX;
    tensor.dl_tensor.device.device_type = 1;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "last address", isthmus_device_adopt_dlpack(device, &tensor, NULL, &buffer, ERR));
    tensor.dl_tensor.byte_offset = 0;
    tensor.dl_tensor.device.device_type = 1;
    tensor.dl_tensor.device.device_id = 0;
    strides[0] = 16;
    REFUSED(ISTHMUS_UNSUPPORTED, "C order", isthmus_device_adopt_dlpack(device, &tensor, NULL, &buffer, ERR));
    strides[0] = 8;
    shape[0] = -4;
    REFUSED(ISTHMUS_INVALID_ARGUMENT, "shape", isthmus_device_adopt_dlpack(device, &tensor, NULL, &buffer, ERR));
    shape[0] = 4;
    CHECK(deleted == 0 && buffer == NULL);

    memory[3][7] = 2.5f;
    tensor.flags = 1;
    WORKS(isthmus_device_adopt_dlpack(device, &tensor, NULL, &buffer, ERR));
    CHECK(isthmus_buffer_bytes(buffer) == sizeof memory);
    isthmus_host_view* view = NULL;
    void* data = NULL;
    WORKS(isthmus_buffer_open_on_host(buffer, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    CHECK(((const float*)data)[31] == 2.5f);
    isthmus_host_view_free(view);
    isthmus_buffer_free(buffer);
    WORKS(isthmus_device_synchronize(device, ISTHMUS_WAIT_DEFAULT, ERR));
    CHECK(deleted == 1);
}

static int32_t writes_nothing(void* context, void* cu_stream, const isthmus_native_use* uses) {
    (void)cu_stream;
    (void)uses;
    ++*(int*)context;
    return 0;
}

/* keeps Y1, G7: what a tensor says of its memory binds the library, whatever the mapping allows. */
static void read_only_tensors_are_not_written(isthmus_device* device) {
    enum { count = 256 };
    static float memory[count];
    const float fives = 5.0f, zero = 0.0f;
    for (int at = 0; at < count; ++at) memory[at] = fives;
    int64_t shape[] = {count};
    DLManagedTensorVersioned tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.version.major = 1;
    tensor.flags = 1; /* DLPACK_FLAG_BITMASK_READ_ONLY */
    tensor.deleter = count_deletion;
    tensor.dl_tensor.data = memory;
    tensor.dl_tensor.device.device_type = 1;
    tensor.dl_tensor.ndim = 1;
    tensor.dl_tensor.dtype.code = 2;
    tensor.dl_tensor.dtype.bits = 32;
    tensor.dl_tensor.dtype.lanes = 1;
    tensor.dl_tensor.shape = shape;
    deleted = 0;
    isthmus_buffer* constant = NULL;
    WORKS(isthmus_device_adopt_dlpack(device, &tensor, NULL, &constant, ERR));
    isthmus_stream* stream = isthmus_device_stream(device);
    isthmus_buffer* other = shared_buffer(device, sizeof memory);
    write_bytes(other, 0);
    isthmus_host_view* view = NULL;
    void* data = NULL;
    const char* const why = "for reading only";

    for (int times = 0; times < 2; ++times) { /* the second time views open at once */
        const uint32_t modes[] = {ISTHMUS_WRITE, ISTHMUS_READ_WRITE};
        for (int at = 0; at < 2; ++at) {
            REFUSED(ISTHMUS_NOT_ACCESSIBLE, why,
                    isthmus_buffer_open_on_host(constant, 0, ISTHMUS_REST, modes[at], ISTHMUS_WAIT_DEFAULT, &view,
                                                &data, ERR));
            REFUSED(ISTHMUS_NOT_ACCESSIBLE, why,
                    isthmus_buffer_open_on_host(constant, 0, 8, modes[at], ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
        }
        WORKS(isthmus_buffer_open_on_host(constant, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data,
                                          ERR));
        CHECK(memcmp(data, memory, sizeof memory) == 0);
        DLManagedTensorVersioned* out = NULL;
        WORKS(isthmus_host_view_to_dlpack(view, shape, 1, float32, &out, ERR));
        CHECK(out->flags == 1);
        out->deleter(out);
        isthmus_host_view_free(view);
    }

    REFUSED(ISTHMUS_NOT_ACCESSIBLE, why, isthmus_stream_fill(stream, constant, 0, ISTHMUS_REST, 7, ERR));
    REFUSED(ISTHMUS_NOT_ACCESSIBLE, why, isthmus_stream_fill(stream, constant, 8, 8, 7, ERR));
    REFUSED(ISTHMUS_NOT_ACCESSIBLE, why, isthmus_stream_copy(stream, constant, 0, other, 0, sizeof memory, ERR));
    REFUSED(ISTHMUS_NOT_ACCESSIBLE, why, isthmus_stream_copy_from_host(stream, constant, 0, &zero, sizeof zero, ERR));
    const void* const scale = isthmus_kernel_by_name("scale");
    const struct weights by = {2.0f, 1};
    const uint64_t extent[3] = {count, 1, 1};
    const isthmus_argument into[] = {{constant, NULL, 0}, {other, NULL, 0}, {NULL, &by, sizeof by}};
    const isthmus_argument from[] = {{other, NULL, 0}, {constant, NULL, 0}, {NULL, &by, sizeof by}};
    REFUSED(ISTHMUS_NOT_ACCESSIBLE, why, isthmus_stream_launch(stream, scale, extent, into, 3, ERR));
    int called = 0;
    isthmus_native_use use = {constant, ISTHMUS_WRITE, 0, NULL};
    isthmus_native_scope* scope = NULL;
    for (int at = 0; at < 2; ++at) {
        REFUSED(ISTHMUS_NOT_ACCESSIBLE, why, isthmus_stream_open_native_scope(stream, "own", &use, 1, &scope, ERR));
        REFUSED(ISTHMUS_NOT_ACCESSIBLE, why,
                isthmus_stream_enqueue_native(stream, "own", &use, 1, writes_nothing, &called, ERR));
        use.flags = ISTHMUS_READ_WRITE;
    }
    CHECK(called == 0);

    /* What reads works. */
    WORKS(isthmus_stream_launch(stream, scale, extent, from, 3, ERR));
    WORKS(isthmus_buffer_open_on_host(other, 0, ISTHMUS_REST, ISTHMUS_READ, ISTHMUS_WAIT_DEFAULT, &view, &data, ERR));
    for (int at = 0; at < count; ++at) CHECK(((const float*)data)[at] == 11.0f);
    isthmus_host_view_free(view);
    use.flags = ISTHMUS_READ;
    WORKS(isthmus_stream_open_native_scope(stream, "own", &use, 1, &scope, ERR));
    DLManagedTensorVersioned* out = NULL;
    WORKS(isthmus_native_scope_to_dlpack(scope, 0, shape, 1, float32, &out, ERR));
    CHECK(out->flags == 1);
    out->deleter(out);
    WORKS(isthmus_native_scope_close(scope, 0, ERR));
    WORKS(isthmus_stream_copy(stream, other, 0, constant, 0, sizeof memory, ERR));
    float back[count];
    WORKS(isthmus_stream_copy_to_host(stream, back, constant, 0, sizeof back, ERR));
    WORKS(isthmus_device_synchronize(device, ISTHMUS_WAIT_DEFAULT, ERR));
    CHECK(memcmp(back, memory, sizeof back) == 0);
    isthmus_buffer_free(constant);
    isthmus_buffer_free(other);
    isthmus_stream_free(stream);
    WORKS(isthmus_device_synchronize(device, ISTHMUS_WAIT_DEFAULT, ERR));
    CHECK(deleted == 1);
    for (int at = 0; at < count; ++at) CHECK(memory[at] == fives);
}

int main(void) {
    CHECK(register_kernels() == ISTHMUS_OK);
    views_become_tensors();
    isthmus_runtime* runtime = open_runtime();
    for (size_t at = 0; at < isthmus_runtime_device_count(runtime); ++at) {
        scopes_become_tensors(isthmus_runtime_device(runtime, at));
        tensors_become_buffers(isthmus_runtime_device(runtime, at));
        read_only_tensors_are_not_written(isthmus_runtime_device(runtime, at));
    }
    isthmus_runtime_free(runtime);
    return 0;
}
