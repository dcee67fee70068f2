// SPDX-License-Identifier: Apache-2.0
// The driver's types for external semaphores as its callers see them. check_shapes.cpp compares them with <cuda.h>
// where there is one.
#pragma once

namespace isthmus::sim {

struct Semaphore;

struct SemaphoreDescription {  // CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC
    int type;                  // 1: an opaque descriptor; 9: one of a timeline
    union {
        int descriptor;
        struct {
            void* handle;
            const void* name;
        } win32;
        const void* sci_sync;
    } handle;
    unsigned flags;
    unsigned reserved[16];
};

struct SemaphoreParameters {  // CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS and CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS
    unsigned long long value;
    unsigned long long sci_sync_fence;
    unsigned long long mutex_key;
    unsigned more[12];
    unsigned flags;
    unsigned reserved[16];
};

struct SemaphoreNodeParameters {  // CUDA_EXT_SEM_SIGNAL_NODE_PARAMS and CUDA_EXT_SEM_WAIT_NODE_PARAMS
    Semaphore** semaphores;
    const SemaphoreParameters* parameters;
    unsigned count;
};

}  // namespace isthmus::sim
