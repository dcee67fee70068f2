// SPDX-License-Identifier: Apache-2.0
// Descriptors of other libraries: what must hold so that their elements are a View.
#include <isthmus/descriptors.hpp>
#include <isthmus/device.hpp>

#include "composed.hpp"
#include "device_state.hpp"
#include "external_stream.hpp"
#include "launch_errors.hpp"
#include "stream_state.hpp"

#include <charconv>
#include <cstring>
#include <limits>
#include <string>

namespace isthmus {
inline namespace v0 {
namespace {

using detail::DescribedMemory;
using detail::ElementAsked;

constexpr std::string_view dlpack = "a DLPack tensor";
constexpr std::string_view cuda_array = "a CUDA array";

std::string_view name_of(std::uint8_t kind) noexcept {
    switch (kind) {
        case DlDataType::integer: return "int";
        case DlDataType::unsigned_integer: return "uint";
        case DlDataType::floating: return "float";
        case DlDataType::opaque: return "opaque";
        case DlDataType::bfloat: return "bfloat";
        case DlDataType::complex: return "complex";
        case DlDataType::boolean: return "bool";
        default: return "unknown type ";
    }
}
std::string text_of(const DlDataType& type) {
    return type.lanes == 1 ? composed("{}{}", name_of(type.kind), unsigned{type.bits})
                           : composed("{}{}x{}", name_of(type.kind), unsigned{type.bits}, unsigned{type.lanes});
}

// The elements of the extents; refuses negative ones, and more bytes than an address space has.
Result<std::uint64_t> count_of(std::string_view what, std::span<const std::int64_t> shape, std::uint32_t bytes) {
    std::uint64_t count = 1;
    bool none = false;
    for (std::size_t at = 0; at < shape.size(); ++at) {
        if (shape[at] < 0) return make_error<errors::descriptor_negative_extent>(what, shape[at], at);
        none = none || shape[at] == 0;
        const auto extent = static_cast<std::uint64_t>(shape[at]);
        const std::uint64_t most = std::numeric_limits<std::int64_t>::max() / bytes;
        if (extent != 0 && count > most / extent) return make_error<errors::descriptor_too_large>(what);
        if (extent != 0) count *= extent;
    }
    return none ? 0 : count;
}

// The strides must be those of C order, in units of `step` for one element. A dimension of one element has any.
Result<void> refuse_strided(std::string_view what, std::span<const std::int64_t> shape,
                            std::span<const std::int64_t> strides, std::int64_t step, std::string_view unit) {
    std::int64_t expected = step;
    for (std::size_t at = shape.size(); at-- > 0;) {
        if (shape[at] == 1) continue;
        if (strides[at] != expected) {
            return make_error<errors::descriptor_strided>(what, strides[at], unit, at, expected);
        }
        expected *= shape[at];
    }
    return {};
}

Result<DescribedMemory> placed(std::string_view what, const void* base, std::uint64_t offset, std::uint64_t count,
                               bool read_only, bool on_host, const ElementAsked& asked) {
    if (read_only && asked.writes) return make_error<errors::descriptor_read_only>(what);
    if (count == 0) return DescribedMemory{nullptr, 0, on_host};
    if (base == nullptr) return make_error<errors::descriptor_null>(what, count);
    const auto begin = reinterpret_cast<std::uintptr_t>(base);
    const std::uint64_t bytes = count * asked.bytes;
    if (offset > std::numeric_limits<std::uintptr_t>::max() - begin ||
        bytes > std::numeric_limits<std::uintptr_t>::max() - begin - offset) {
        return make_error<errors::descriptor_too_large>(what);
    }
    const std::uintptr_t first = begin + offset;
    if (first % asked.alignment != 0) {
        return make_error<errors::descriptor_misaligned>(what, first % asked.alignment, asked.alignment);
    }
    return DescribedMemory{reinterpret_cast<void*>(first), count, on_host};
}

// The NumPy type string: byte order, kind, bytes. false: it is none.
bool parsed(std::string_view typestr, char& order, char& kind, std::uint32_t& bytes) noexcept {
    if (typestr.size() < 3) return false;
    order = typestr[0];
    kind = typestr[1];
    const char* const end = typestr.data() + typestr.size();
    const auto [last, error] = std::from_chars(typestr.data() + 2, end, bytes);
    return error == std::errc() && last == end && bytes > 0 &&
           (order == '<' || order == '>' || order == '|' || order == '=');
}

char kind_letter(const DlDataType& type) noexcept {
    if (type.lanes != 1) return 'V';  // the protocol has no vectors: raw bytes
    switch (type.kind) {
        case DlDataType::integer: return 'i';
        case DlDataType::unsigned_integer: return 'u';
        case DlDataType::floating: return 'f';
        case DlDataType::complex: return 'c';
        case DlDataType::boolean: return 'b';
        default: return 'V';
    }
}

Result<void> refuse_typestr(std::string_view typestr, const ElementAsked& asked) {
    char order = 0, kind = 0;
    std::uint32_t bytes = 0;
    if (!parsed(typestr, order, kind, bytes)) return make_error<errors::descriptor_typestr_unknown>(typestr);
    const char wanted = kind_letter(asked.type);
    if (kind != wanted || bytes != asked.bytes) {
        return make_error<errors::descriptor_of_another_type>(cuda_array, typestr, text_of(asked.type));
    }
    // Machines that this library is for are little-endian; raw bytes have no order.
    if (order == '>' && bytes > 1 && kind != 'V') return make_error<errors::descriptor_big_endian>(typestr);
    return {};
}

Result<void> refuse_place(const Device& device, const DlDevice& where) {
    switch (where.type) {
        case DlDevice::cpu:
        case DlDevice::cuda_host:
        case DlDevice::cuda_managed: return {};
        case DlDevice::cuda: break;
        default: return make_error<errors::descriptor_of_another_kind_of_device>(where.type);
    }
    if (!device.is_cpu() && where.id == device.state()->driver->facts().ordinal) return {};
    return make_error<errors::descriptor_of_another_device>(where.id, named(*device.state()));
}

}  // namespace

DlTensor DlTensor::read(const void* tensor) noexcept {
    DlTensor made;
    std::memcpy(static_cast<void*>(&made), tensor, sizeof made);
    return made;
}

namespace detail {

Result<DescribedMemory> described_memory(const Device& device, const DlTensor& tensor, bool read_only,
                                         const ElementAsked& asked) {
    if (Result<void> place = refuse_place(device, tensor.device); !place) return std::move(place).error();
    const DlDataType& type = tensor.type;
    if (type.kind != asked.type.kind || type.bits != asked.type.bits || type.lanes != asked.type.lanes) {
        return make_error<errors::descriptor_of_another_type>(dlpack, text_of(type), text_of(asked.type));
    }
    if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) {
        return make_error<errors::descriptor_without_shape>(dlpack, tensor.ndim);
    }
    const std::span<const std::int64_t> shape(tensor.shape, static_cast<std::size_t>(tensor.ndim));
    Result<std::uint64_t> count = count_of(dlpack, shape, asked.bytes);
    if (!count) return std::move(count).error();
    if (tensor.strides != nullptr && *count > 0) {
        const std::span<const std::int64_t> strides(tensor.strides, shape.size());
        if (Result<void> order = refuse_strided(dlpack, shape, strides, 1, "elements"); !order) {
            return std::move(order).error();
        }
    }
    return placed(dlpack, tensor.data, tensor.byte_offset, *count, read_only, tensor.device.type == DlDevice::cpu,
                  asked);
}

Result<DescribedMemory> described_memory(const CudaArray& array, const ElementAsked& asked) {
    if (array.masked) return make_error<errors::descriptor_masked>();
    if (Result<void> type = refuse_typestr(array.typestr, asked); !type) return std::move(type).error();
    Result<std::uint64_t> count = count_of(cuda_array, array.shape, asked.bytes);
    if (!count) return std::move(count).error();
    if (!array.strides.empty()) {
        if (array.strides.size() != array.shape.size()) {
            return make_error<errors::descriptor_strides_of_other_rank>(array.strides.size(), array.shape.size());
        }
        if (*count > 0) {
            Result<void> order = refuse_strided(cuda_array, array.shape, array.strides, asked.bytes, "bytes");
            if (!order) return std::move(order).error();
        }
    }
    return placed(cuda_array, array.data, 0, *count, array.read_only, false, asked);
}

}  // namespace detail

Result<void> wait_for_producer(Stream& stream, const CudaArray& array) {
    if (!array.stream) return {};
    if (*array.stream == 0) return make_error<errors::descriptor_stream_zero>();
    constexpr std::uint64_t legacy = 1;  // wrap_stream() takes it as nullptr
    void* const native =
        *array.stream == legacy ? nullptr : reinterpret_cast<void*>(static_cast<std::uintptr_t>(*array.stream));
    Result<Stream> producer = detail::wrapped_stream(stream.state()->device, native);
    if (!producer) return std::move(producer).error();
    return stream.wait_stream(*producer);
}

}  // namespace v0
}  // namespace isthmus
