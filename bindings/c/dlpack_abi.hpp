// SPDX-License-Identifier: Apache-2.0
// The structs of DLPack 1.x (dlpack.h), which are a stable binary interface.
#pragma once

#include <cstdint>

extern "C" {

struct DLPackVersion {
    std::uint32_t major;
    std::uint32_t minor;
};
struct DLDevice {
    std::int32_t device_type;
    std::int32_t device_id;
};
struct DLDataType {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
};
struct DLTensor {
    void* data;
    DLDevice device;
    std::int32_t ndim;
    DLDataType dtype;
    std::int64_t* shape;
    std::int64_t* strides;  // in elements; NULL: C order without gaps
    std::uint64_t byte_offset;
};
struct DLManagedTensorVersioned {
    DLPackVersion version;
    void* manager_ctx;
    void (*deleter)(DLManagedTensorVersioned* self);
    std::uint64_t flags;
    DLTensor dl_tensor;
};
}

namespace isthmus::c {

// DLDeviceType.
inline constexpr std::int32_t dl_cpu = 1, dl_cuda = 2, dl_cuda_host = 3, dl_cuda_managed = 13;
// Bits of DLManagedTensorVersioned::flags.
inline constexpr std::uint64_t dl_read_only = 1;

}  // namespace isthmus::c
