// SPDX-License-Identifier: Apache-2.0
// Memory that another library describes (DLPack, __cuda_array_interface__), as an argument of kernels. Plain
// structures: neither library's headers nor Python are needed.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/foreign_view.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {

class Device;
class Stream;

// DLPack's structures in the layout of its C header (github.com/dmlc/dlpack, dlpack.h, version 1).
struct DlDevice {
    enum Type : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };  // of those that DLPack has
    std::int32_t type = cpu;
    std::int32_t id = 0;  // of cuda: the number of the GPU in this process
};
struct DlDataType {
    enum Kind : std::uint8_t {
        integer = 0,
        unsigned_integer = 1,
        floating = 2,
        opaque = 3,
        bfloat = 4,
        complex = 5,
        boolean = 6
    };
    std::uint8_t kind = integer;
    std::uint8_t bits = 0;
    std::uint16_t lanes = 1;
};
struct DlTensor {
    void* data = nullptr;
    DlDevice device;
    std::int32_t ndim = 0;
    DlDataType type;
    const std::int64_t* shape = nullptr;
    const std::int64_t* strides = nullptr;  // in elements; nullptr: C order
    std::uint64_t byte_offset = 0;          // from data to the first element

    // A copy of the DLTensor at this address, which code with its own declaration of it filled. Shape and strides stay
    // where they are.
    ISTHMUS_API static DlTensor read(const void* tensor) noexcept;
};
static_assert(sizeof(void*) != 8 ||
              (sizeof(DlTensor) == 48 && offsetof(DlTensor, device) == 8 && offsetof(DlTensor, ndim) == 16 &&
               offsetof(DlTensor, type) == 20 && offsetof(DlTensor, shape) == 24 && offsetof(DlTensor, strides) == 32 &&
               offsetof(DlTensor, byte_offset) == 40 && sizeof(DlDevice) == 8 && sizeof(DlDataType) == 4));

// The entries of __cuda_array_interface__ (version 3).
struct CudaArray {
    const void* data = nullptr;
    bool read_only = false;
    std::span<const std::int64_t> shape;
    std::span<const std::int64_t> strides;  // in bytes; empty: C order
    std::string_view typestr;               // "<f4"
    bool masked = false;                    // there is a mask
    // Where the producer's work on the array is: 1 is the legacy default stream, 2 the per-thread one, otherwise a
    // CUstream. nullopt: nothing has to be waited for.
    std::optional<std::uint64_t> stream;
};

// What an element type is called in descriptors. Specialise it for vectors and 16-bit floats:
//   template <> struct isthmus::DescribedElement<float4> { static constexpr DlDataType type{DlDataType::floating, 32,
//   4}; };
template <class T>
struct DescribedElement {
    static_assert(std::is_arithmetic_v<T>, "isthmus: specialise DescribedElement for this type, which is no number");
    static constexpr DlDataType type{std::is_same_v<T, bool>       ? DlDataType::boolean
                                     : std::is_floating_point_v<T> ? DlDataType::floating
                                     : std::is_signed_v<T>         ? DlDataType::integer
                                                                   : DlDataType::unsigned_integer,
                                     static_cast<std::uint8_t>(8 * sizeof(T)), 1};
};

// The elements that a descriptor names, in C order, as ForeignView<T> for launches (T const: to read). Only the
// descriptor is examined: no driver call. Its word on where the memory lies is a claim: a launch judges the address, as
// that of every raw view (A17, L3). The producer owns the memory and keeps it until the last launch has ended.
// `device`: where the memory is, by a DLPack device of type cuda. `read_only`: DLPack's flag, which stands beside the
// tensor (DLManagedTensorVersioned::flags, bit 0).
// Errors: invalid_argument (another element type, lanes or byte order; a stride that is not that of C order; a mask; a
// negative or too large extent; null; misaligned for T), not_permitted (read-only memory for a T that is not const),
// wrong_device (another GPU's), unsupported (another type of device).
template <class T>
Result<ForeignView<T>> foreign_view(const Device& device, const DlTensor& tensor, bool read_only = false);
template <class T>
Result<ForeignView<T>> foreign_view(const CudaArray& array);

// Makes later work of the stream follow what the producer gave to the array's stream so far; the host does not wait.
// (A DLPack producer does that itself for the stream that it is passed: Stream::native_handle().) No stream: nothing.
// Errors: invalid_argument (stream 0, which the protocol excludes), those of Device::wrap_stream() (2 is unsupported)
// and Stream::wait_stream().
ISTHMUS_API Result<void> wait_for_producer(Stream& stream, const CudaArray& array);

namespace detail {
struct ElementAsked {
    DlDataType type;
    std::uint32_t bytes;
    std::uint32_t alignment;
    bool writes;
};
struct DescribedMemory {
    void* data = nullptr;
    std::uint64_t count = 0;
    bool on_host = false;
};
ISTHMUS_API Result<DescribedMemory> described_memory(const Device& device, const DlTensor& tensor, bool read_only,
                                                     const ElementAsked& asked);
ISTHMUS_API Result<DescribedMemory> described_memory(const CudaArray& array, const ElementAsked& asked);

template <class T>
constexpr ElementAsked element_asked() noexcept {
    using Element = DescribedElement<std::remove_const_t<T>>;
    static_assert(std::size_t{Element::type.bits} * Element::type.lanes == 8 * sizeof(T),
                  "isthmus: DescribedElement states another size than the type has");
    return {Element::type, sizeof(T), alignof(T), !std::is_const_v<T>};
}
template <class T>
Result<ForeignView<T>> viewed(Result<DescribedMemory> memory) {
    if (!memory) return std::move(memory).error();
    return ForeignView<T>(static_cast<T*>(memory->data), memory->count, memory->on_host);
}
}  // namespace detail

template <class T>
Result<ForeignView<T>> foreign_view(const Device& device, const DlTensor& tensor, bool read_only) {
    return detail::viewed<T>(detail::described_memory(device, tensor, read_only, detail::element_asked<T>()));
}
template <class T>
Result<ForeignView<T>> foreign_view(const CudaArray& array) {
    return detail::viewed<T>(detail::described_memory(array, detail::element_asked<T>()));
}

}  // namespace v0
}  // namespace isthmus
