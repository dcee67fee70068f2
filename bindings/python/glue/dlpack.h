/* SPDX-License-Identifier: Apache-2.0
 * The structures of DLPack 1.x and of the unversioned protocol before it (dmlc/dlpack, dlpack.h). */
#ifndef ISTHMUS_PYTHON_DLPACK_H
#define ISTHMUS_PYTHON_DLPACK_H
#include <stdint.h>

typedef struct DLTensor {
    void* data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t* shape;
    int64_t* strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor tensor;
    void* context;
    void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void* context;
    void (*deleter)(struct DLManagedTensorVersioned* self);
    uint64_t flags;
    DLTensor tensor;
} DLManagedTensorVersioned;

#endif
