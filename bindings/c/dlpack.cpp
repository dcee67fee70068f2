// SPDX-License-Identifier: Apache-2.0
// Tensors of DLPack out of scopes, and into buffers.
#include "dlpack_abi.hpp"

#include <isthmus/detail/constant_memory.hpp>
#include <isthmus/device.hpp>

#include "calls.hpp"
#include "handles.hpp"
#include "scopes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace isthmus;

namespace {

constexpr std::int32_t most_dimensions = 64;

// What a tensor needs until its deleter is called: `Owner` is a reference to a view, or to a buffer.
template <class Owner>
struct Exported {
    DLManagedTensorVersioned tensor{};
    std::vector<std::int64_t> shape, strides;
    Owner owner;
};

// Bytes of one element; nothing: no whole bytes.
std::optional<std::uint64_t> element_bytes(const DLDataType& type) noexcept {
    const std::uint64_t bits = std::uint64_t{type.bits} * type.lanes;
    return bits == 0 || bits % 8 != 0 ? std::nullopt : std::optional(bits / 8);
}

// Bytes of a tensor in C order; nothing: a negative dimension, or more than strides can count.
std::optional<std::uint64_t> bytes_of(std::uint64_t element, const std::int64_t* shape,
                                      std::int32_t dimensions) noexcept {
    std::uint64_t bytes = element;
    bool empty = false;
    for (std::int32_t at = 0; at < dimensions; ++at) {
        if (shape[at] < 0) return std::nullopt;
        if (shape[at] == 0) {
            empty = true;
        } else if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(shape[at]), &bytes)) {
            return std::nullopt;
        }
    }
    if (bytes > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return empty ? 0 : bytes;
}

struct Part {
    void* data;
    std::size_t bytes;
    bool writable;
    DLDevice device;
};

template <class Owner>
Result<DLManagedTensorVersioned*> exported(const c::Call& call, const Part& part, const std::int64_t* shape,
                                           std::int32_t ndim, std::uint32_t dtype, Owner owner) {
    if (ndim < 0 || ndim > most_dimensions) {
        return call.refuse("ndim", "is " + std::to_string(ndim), "a tensor has 0 to 64 dimensions");
    }
    if (ndim > 0) ISTHMUS_TRY(call.needs({{"shape", shape}}));
    const DLDataType type{static_cast<std::uint8_t>(dtype), static_cast<std::uint8_t>(dtype >> 8),
                          static_cast<std::uint16_t>(dtype >> 16)};
    const std::optional<std::uint64_t> element = element_bytes(type);
    if (!element) {
        return call.refuse("dtype", "has elements that are no whole bytes", "pass code | bits << 8 | lanes << 16");
    }
    const std::optional<std::uint64_t> bytes = bytes_of(*element, shape, ndim);
    if (!bytes || *bytes > part.bytes) {
        return call.refuse("shape",
                           bytes ? "makes a tensor of " + std::to_string(*bytes) + " bytes"
                                 : std::string("has a negative number, or more elements than can be counted"),
                           "the memory has " + std::to_string(part.bytes) + " bytes");
    }
    auto made = std::make_unique<Exported<Owner>>();
    made->shape.assign(shape, shape + ndim);
    made->strides.resize(static_cast<std::size_t>(ndim), 1);
    for (std::int32_t at = ndim - 2; at >= 0; --at) {
        const auto here = static_cast<std::size_t>(at);
        made->strides[here] = made->strides[here + 1] * std::max<std::int64_t>(made->shape[here + 1], 1);
    }
    made->owner = std::move(owner);
    DLManagedTensorVersioned& tensor = made->tensor;
    tensor.version = {1, 0};
    tensor.manager_ctx = made.get();
    tensor.deleter = [](DLManagedTensorVersioned* self) { delete static_cast<Exported<Owner>*>(self->manager_ctx); };
    tensor.flags = part.writable ? 0 : c::dl_read_only;
    tensor.dl_tensor = {part.data, part.device, ndim, type, made->shape.data(), made->strides.data(), 0};
    return &made.release()->tensor;
}

bool in_c_order(const DLTensor& tensor) noexcept {
    if (tensor.strides == nullptr) return true;
    std::int64_t expected = 1;
    for (std::int32_t at = tensor.ndim - 1; at >= 0; --at) {
        if (tensor.shape[at] != 1 && tensor.strides[at] != expected) return false;
        expected *= tensor.shape[at];
    }
    return true;
}

struct Memory {
    std::byte* data;
    std::uint64_t bytes;
};

Result<Memory> memory_of(const c::Call& call, const DLManagedTensorVersioned& tensor, const isthmus_device& device) {
    const DLTensor& inside = tensor.dl_tensor;
    const auto unsupported = [&](const std::string& why, const char* remedy) {
        return Error(Code::unsupported, std::string(call.name) + ": the tensor " + why, remedy);
    };
    if (tensor.version.major != 1) {
        return unsupported("is of version " + std::to_string(tensor.version.major) + " of DLPack",
                           "export it as version 1");
    }
    const std::int32_t type = inside.device.device_type;
    if (type != c::dl_cpu && type != c::dl_cuda && type != c::dl_cuda_host && type != c::dl_cuda_managed) {
        return unsupported("lies on a device of type " + std::to_string(type), "pass memory of the CPU or of CUDA");
    }
    if (type == c::dl_cuda && (device.cpp->is_cpu() || inside.device.device_id != isthmus_device_ordinal(&device))) {
        return Error(Code::wrong_device,
                     std::string(call.name) + ": the tensor lies on CUDA device " +
                         std::to_string(inside.device.device_id) + ", and the device is number " +
                         std::to_string(isthmus_device_ordinal(&device)),
                     "adopt it on the device that it lies on");
    }
    if (inside.ndim < 0 || inside.ndim > most_dimensions || (inside.ndim > 0 && inside.shape == nullptr)) {
        return call.refuse("tensor", "has " + std::to_string(inside.ndim) + " dimensions", "pass 0 to 64 of them");
    }
    const std::optional<std::uint64_t> element = element_bytes(inside.dtype);
    if (!element) return unsupported("has elements that are no whole bytes", "convert it to bytes");
    const std::optional<std::uint64_t> bytes = bytes_of(*element, inside.shape, inside.ndim);
    if (!bytes) return call.refuse("tensor", "has a shape that no memory has", "pass a valid tensor");
    if (*bytes != 0 && !in_c_order(inside)) {
        return unsupported("is not in C order without gaps", "make it contiguous before it is exported");
    }
    const std::uint64_t first = reinterpret_cast<std::uintptr_t>(inside.data);
    if (inside.byte_offset > UINTPTR_MAX - first || *bytes > UINTPTR_MAX - first - inside.byte_offset) {
        return call.refuse("tensor", "ends behind the last address", "pass a valid tensor");
    }
    return Memory{static_cast<std::byte*>(inside.data) + inside.byte_offset, *bytes};
}

}  // namespace

isthmus_code isthmus_host_view_to_dlpack(isthmus_host_view* view, const int64_t* shape, int32_t ndim, uint32_t dtype,
                                         DLManagedTensorVersioned** tensor, isthmus_error** error) {
    return c::guarded("isthmus_host_view_to_dlpack", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"view", view}, {"tensor", tensor}}));
        const Part part{view->data, view->bytes, view->writable, {c::dl_cpu, 0}};
        ISTHMUS_TRY(*tensor, exported(call, part, shape, ndim, dtype, c::Ref<isthmus_host_view>(*view)));
        return {};
    });
}

isthmus_code isthmus_native_scope_to_dlpack(isthmus_native_scope* scope, size_t index, const int64_t* shape,
                                            int32_t ndim, uint32_t dtype, DLManagedTensorVersioned** tensor,
                                            isthmus_error** error) {
    return c::guarded("isthmus_native_scope_to_dlpack", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"scope", scope}, {"tensor", tensor}}));
        if (index >= scope->uses.size()) {
            return call.refuse("index", "is " + std::to_string(index),
                               "the scope has " + std::to_string(scope->uses.size()) + " uses");
        }
        const isthmus_native_scope::Opened& use = scope->uses[index];
        const bool on_cpu = scope->device->cpp->is_cpu();
        const DLDevice device{on_cpu ? c::dl_cpu : c::dl_cuda, on_cpu ? 0 : isthmus_device_ordinal(scope->device)};
        const Part part{use.pointer, use.buffer->cpp.size_bytes(), use.writable, device};
        ISTHMUS_TRY(*tensor, exported(call, part, shape, ndim, dtype, use.buffer));
        return {};
    });
}

isthmus_code isthmus_device_adopt_dlpack(isthmus_device* device, DLManagedTensorVersioned* tensor, isthmus_event* after,
                                         isthmus_buffer** buffer, isthmus_error** error) {
    return c::guarded("isthmus_device_adopt_dlpack", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"device", device}, {"tensor", tensor}, {"buffer", buffer}}));
        ISTHMUS_TRY(const Memory memory, memory_of(call, *tensor, *device));
        AdoptOptions options;
        options.c_release = {tensor, [](void* context, void*, std::size_t) {
                                 auto* const adopted = static_cast<DLManagedTensorVersioned*>(context);
                                 if (adopted->deleter != nullptr) adopted->deleter(adopted);
                             }};
        if (after != nullptr) options.after_event = after->cpp;
        auto made = std::make_unique<isthmus_buffer>(*device, Buffer<std::byte>(), memory.data);
        if ((tensor->flags & c::dl_read_only) != 0) {
            options.use.host = options.use.device = Use::reads_often;
            ISTHMUS_TRY(auto constant,
                        detail::adopt_constant(device->cpp->state(), memory.data, memory.bytes, std::move(options)));
            made->cpp = Buffer<std::byte>(std::move(constant));
        } else {
            ISTHMUS_TRY(made->cpp, device->cpp->adopt<std::byte>(memory.data, memory.bytes, std::move(options)));
        }
        *buffer = made.release();
        return {};
    });
}
