// SPDX-License-Identifier: Apache-2.0
// The types of the driver's binary interface that isthmus uses, declared here so that no build needs a CUDA toolkit.
// abi_check.cpp compares them with <cuda.h> where one exists. Standard library only.
#pragma once

#include "abi_values.hpp"

#include <cstddef>
#include <cstdint>

namespace isthmus::cuda_abi {

// The driver's enumerations are passed as int (they have an int's size and calling convention).
using CUresult = int;
using CUdevice = int;
using CUdevice_attribute = int;
using CUpointer_attribute = int;
using CUfunction_attribute = int;
using CUdevice_P2PAttribute = int;
using CUatomicOperation = int;
using CUmem_advise = int;
using CUmem_range_attribute = int;
using CUmemorytype = int;
using CUmemLocationType = int;
using CUmemAllocationType = int;
using CUmemAllocationHandleType = int;
using CUmemAllocationGranularity_flags = int;
using CUmulticastGranularity_flags = int;
using CUmemAccess_flags = int;
using CUmemPool_attribute = int;
using CUlaunchAttributeID = int;
using CUstreamCaptureStatus = int;
using CUstreamCaptureMode = int;
using CUgraphExecUpdateResult = int;
using CUdriverProcAddressQueryResult = int;
using CUjit_option = int;
using CUjitInputType = int;
using CUmemRangeHandleType = int;
using CUexternalMemoryHandleType = int;

using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;
using CUgraphConditionalHandle = std::uint64_t;
using CUgraphNodeType = int;
using CUgraphConditionalNodeType = int;

// Handles: distinct pointer types, never dereferenced here. Declared first, so that these names are isthmus's own even
// if <cuda.h> was included before.
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUlib_st;
struct CUkern_st;
struct CUlinkState_st;
struct CUarray_st;
struct CUevent_st;
struct CUstream_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct CUuserObject_st;
struct CUmemPoolHandle_st;
struct CUextMemory_st;
struct CUexecAffinityParam;
struct CUctxCigParam;
using CUcontext = CUctx_st*;
using CUmodule = CUmod_st*;
using CUfunction = CUfunc_st*;
using CUlibrary = CUlib_st*;
using CUkernel = CUkern_st*;
using CUlinkState = CUlinkState_st*;
using CUarray = CUarray_st*;
using CUevent = CUevent_st*;
using CUstream = CUstream_st*;
using CUgraph = CUgraph_st*;
using CUgraphNode = CUgraphNode_st*;
using CUgraphExec = CUgraphExec_st*;
using CUuserObject = CUuserObject_st*;
using CUmemoryPool = CUmemPoolHandle_st*;
using CUexternalMemory = CUextMemory_st*;

using CUhostFn = void (*)(void* user_data);
using CUstreamCallback = void (*)(CUstream stream, CUresult status, void* user_data);

// The two streams that exist without creation.
inline CUstream stream_legacy() noexcept {
    return reinterpret_cast<CUstream>(std::uintptr_t{1});
}
inline CUstream stream_per_thread() noexcept {
    return reinterpret_cast<CUstream>(std::uintptr_t{2});
}

struct CUuuid {
    char bytes[16];
};
struct CUipcMemHandle {
    char reserved[64];
};
struct CUipcEventHandle {
    char reserved[64];
};
struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
    CUexternalMemoryHandleType type;
    union {
        int fd;
        struct {
            void* handle;
            const void* name;
        } win32;
        const void* nvSciBufObject;
    } handle;
    unsigned long long size;
    unsigned flags;
    unsigned reserved[16];
};
struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
    unsigned long long offset;
    unsigned long long size;
    unsigned flags;
    unsigned reserved[16];
};
struct CUmemFabricHandle {
    unsigned char data[64];
};
struct CUmemPoolPtrExportData {
    unsigned char reserved[64];
};

struct CUmemLocation {
    CUmemLocationType type;
    int id;
};
struct CUmemAllocationProp {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void* win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
};
struct CUmemAccessDesc {
    CUmemLocation location;
    CUmemAccess_flags flags;
};
struct CUmulticastObjectProp {
    unsigned numDevices;
    std::size_t size;
    unsigned long long handleTypes;
    unsigned long long flags;
};
struct CUmemPoolProps {
    CUmemAllocationType allocType;
    CUmemAllocationHandleType handleTypes;
    CUmemLocation location;
    void* win32SecurityAttributes;
    std::size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};

// A 64-byte union of the driver; only the members that are read or written here.
union CUlaunchAttributeValue {
    char pad[64];
    int cooperative;
    int priority;
    struct {
        unsigned x, y, z;
    } clusterDim;
    void* alignment;
};
struct CUlaunchAttribute {
    CUlaunchAttributeID id;
    char pad[4];
    CUlaunchAttributeValue value;
};
struct CUlaunchConfig {
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute* attrs;
    unsigned numAttrs;
};

struct CUDA_MEMCPY2D {
    std::size_t srcXInBytes, srcY;
    CUmemorytype srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    std::size_t srcPitch;
    std::size_t dstXInBytes, dstY;
    CUmemorytype dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    std::size_t dstPitch;
    std::size_t WidthInBytes, Height;
};
struct CUDA_MEMCPY3D {
    std::size_t srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void* reserved0;
    std::size_t srcPitch, srcHeight;
    std::size_t dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void* reserved1;
    std::size_t dstPitch, dstHeight;
    std::size_t WidthInBytes, Height, Depth;
};
struct CUDA_MEMCPY3D_PEER {
    std::size_t srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    CUcontext srcContext;
    std::size_t srcPitch, srcHeight;
    std::size_t dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    CUcontext dstContext;
    std::size_t dstPitch, dstHeight;
    std::size_t WidthInBytes, Height, Depth;
};

// For cuCtxCreate (CUDA 13.0); its two parameter types stay opaque.
struct CUctxCreateParams {
    CUexecAffinityParam* execAffinityParams;
    int numExecAffinityParams;
    CUctxCigParam* cigParams;
};

struct CUDA_KERNEL_NODE_PARAMS {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    void** kernelParams;
    void** extra;
    CUkernel kern;
    CUcontext ctx;
};
struct CUgraphEdgeData {
    unsigned char from_port, to_port, type;
    unsigned char reserved[5];
};
struct CUDA_CONDITIONAL_NODE_PARAMS {
    CUgraphConditionalHandle handle;
    CUgraphConditionalNodeType type;
    unsigned size;
    CUgraph* phGraph_out;
    CUcontext ctx;
};
struct CUgraphNodeParams {
    CUgraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        CUDA_CONDITIONAL_NODE_PARAMS conditional;
    };
    long long reserved2;
};
struct CUgraphExecUpdateResultInfo {
    CUgraphExecUpdateResult result;
    CUgraphNode errorNode;
    CUgraphNode errorFromNode;
};

}  // namespace isthmus::cuda_abi
