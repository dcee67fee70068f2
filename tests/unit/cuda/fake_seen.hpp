// SPDX-License-Identifier: Apache-2.0
// The arguments that the fake driver received last; shared by the fake and its users.
#pragma once

#include "abi.hpp"

struct FakeSeen {
    long attributes_asked;  // calls of cuDeviceGetAttribute so far, which the list of calls omits
    isthmus::cuda_abi::CUmemoryPool pool;
    isthmus::cuda_abi::CUmemPoolProps pool_properties;
    isthmus::cuda_abi::CUmemAccessDesc access;
    isthmus::cuda_abi::CUmemPool_attribute attribute;
    std::uint64_t attribute_value;
    isthmus::cuda_abi::CUDA_MEMCPY2D copy_2d;
    isthmus::cuda_abi::CUDA_MEMCPY3D copy_3d;
    isthmus::cuda_abi::CUDA_MEMCPY3D_PEER copy_3d_peer;
    isthmus::cuda_abi::CUcontext contexts[2];
    struct {
        isthmus::cuda_abi::CUdeviceptr first;
        std::size_t pitch;
        unsigned value;
        std::size_t width, rows;
    } fill;
    struct {
        isthmus::cuda_abi::CUdeviceptr addresses[4];
        std::size_t sizes[4], count;
        isthmus::cuda_abi::CUmemLocation places[4];
        std::size_t first_of[4], place_count;
    } batch;
    std::size_t attributes;  // the number of the last cuMemRangeGetAttributes
    isthmus::cuda_abi::CUmem_advise advice;
    isthmus::cuda_abi::CUmemLocation location;
    isthmus::cuda_abi::CUdevice device;
    isthmus::cuda_abi::CUstream stream;
    isthmus::cuda_abi::CUgraphNode node;
    isthmus::cuda_abi::CUgraph parent, child;
    std::size_t dependencies;
    isthmus::cuda_abi::CUDA_KERNEL_NODE_PARAMS kernel_node;
    std::uint64_t kernel_node_extent_x;  // read through kernelParams during the call, as the driver does
    int kernel_node_value;               // the first value of the pack
};
