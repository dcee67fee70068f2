// SPDX-License-Identifier: Apache-2.0
// Compares the declarations of abi.hpp with the toolkit's <cuda.h>. Compiled only if that header was found; produces no
// code.
#include "abi.hpp"

#include <cuda.h>

namespace {
namespace ours = isthmus::cuda_abi;

// Result codes.
#define SAME_RESULT(name, spelling, value) static_assert(ours::result::name == static_cast<int>(spelling));
ISTHMUS_CUDA_RESULTS(SAME_RESULT)
#if CUDA_VERSION >= 13000
ISTHMUS_CUDA_RESULTS_13(SAME_RESULT)
#endif

// Flags and enumerators.
#define SAME_VALUE(mine, theirs) static_assert(static_cast<long long>(ours::mine) == static_cast<long long>(theirs))
static_assert(ours::device_cpu == CU_DEVICE_CPU && ours::device_invalid == CU_DEVICE_INVALID);
SAME_VALUE(mem_attach_global, CU_MEM_ATTACH_GLOBAL);
SAME_VALUE(mem_attach_host, CU_MEM_ATTACH_HOST);
SAME_VALUE(mem_attach_single, CU_MEM_ATTACH_SINGLE);
SAME_VALUE(ctx_sched_auto, CU_CTX_SCHED_AUTO);
SAME_VALUE(ctx_sched_spin, CU_CTX_SCHED_SPIN);
SAME_VALUE(ctx_sched_yield, CU_CTX_SCHED_YIELD);
SAME_VALUE(ctx_sched_blocking_sync, CU_CTX_SCHED_BLOCKING_SYNC);
SAME_VALUE(stream_default, CU_STREAM_DEFAULT);
SAME_VALUE(stream_non_blocking, CU_STREAM_NON_BLOCKING);
SAME_VALUE(event_default, CU_EVENT_DEFAULT);
SAME_VALUE(event_blocking_sync, CU_EVENT_BLOCKING_SYNC);
SAME_VALUE(event_disable_timing, CU_EVENT_DISABLE_TIMING);
SAME_VALUE(event_interprocess, CU_EVENT_INTERPROCESS);
SAME_VALUE(event_record_external, CU_EVENT_RECORD_EXTERNAL);
SAME_VALUE(event_wait_external, CU_EVENT_WAIT_EXTERNAL);
SAME_VALUE(host_alloc_portable, CU_MEMHOSTALLOC_PORTABLE);
SAME_VALUE(host_alloc_device_map, CU_MEMHOSTALLOC_DEVICEMAP);
SAME_VALUE(host_alloc_write_combined, CU_MEMHOSTALLOC_WRITECOMBINED);
SAME_VALUE(host_register_portable, CU_MEMHOSTREGISTER_PORTABLE);
SAME_VALUE(host_register_device_map, CU_MEMHOSTREGISTER_DEVICEMAP);
SAME_VALUE(host_register_io_memory, CU_MEMHOSTREGISTER_IOMEMORY);
SAME_VALUE(host_register_read_only, CU_MEMHOSTREGISTER_READ_ONLY);
SAME_VALUE(ipc_mem_lazy_enable_peer_access, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME_VALUE(mem_range_handle_dma_buf_fd, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
#if CUDA_VERSION >= 13000
SAME_VALUE(external_memory_dma_buf_fd, CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD);
#endif
SAME_VALUE(memory_type_host, CU_MEMORYTYPE_HOST);
SAME_VALUE(memory_type_device, CU_MEMORYTYPE_DEVICE);
SAME_VALUE(memory_type_array, CU_MEMORYTYPE_ARRAY);
SAME_VALUE(memory_type_unified, CU_MEMORYTYPE_UNIFIED);
SAME_VALUE(pointer_attribute::context, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME_VALUE(pointer_attribute::memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_VALUE(pointer_attribute::device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
SAME_VALUE(pointer_attribute::host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER);
SAME_VALUE(pointer_attribute::p2p_tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS);
SAME_VALUE(pointer_attribute::sync_memops, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
SAME_VALUE(pointer_attribute::buffer_id, CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME_VALUE(pointer_attribute::is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME_VALUE(pointer_attribute::device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_VALUE(pointer_attribute::is_legacy_ipc_capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
SAME_VALUE(pointer_attribute::range_start_addr, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME_VALUE(pointer_attribute::range_size, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME_VALUE(pointer_attribute::mapped, CU_POINTER_ATTRIBUTE_MAPPED);
SAME_VALUE(pointer_attribute::allowed_handle_types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES);
SAME_VALUE(pointer_attribute::is_gpu_direct_rdma_capable, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE);
SAME_VALUE(pointer_attribute::access_flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS);
SAME_VALUE(pointer_attribute::mempool_handle, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SAME_VALUE(pointer_attribute::mapping_size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE);
SAME_VALUE(pointer_attribute::mapping_base_addr, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR);
SAME_VALUE(pointer_attribute::memory_block_id, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID);
SAME_VALUE(p2p_attribute::performance_rank, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK);
SAME_VALUE(p2p_attribute::access_supported, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED);
SAME_VALUE(p2p_attribute::native_atomic_supported, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED);
SAME_VALUE(p2p_attribute::cuda_array_access_supported, CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED);
SAME_VALUE(mem_advise::set_read_mostly, CU_MEM_ADVISE_SET_READ_MOSTLY);
SAME_VALUE(mem_advise::unset_read_mostly, CU_MEM_ADVISE_UNSET_READ_MOSTLY);
SAME_VALUE(mem_advise::set_preferred_location, CU_MEM_ADVISE_SET_PREFERRED_LOCATION);
SAME_VALUE(mem_advise::unset_preferred_location, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION);
SAME_VALUE(mem_advise::set_accessed_by, CU_MEM_ADVISE_SET_ACCESSED_BY);
SAME_VALUE(mem_advise::unset_accessed_by, CU_MEM_ADVISE_UNSET_ACCESSED_BY);
SAME_VALUE(range_attribute::read_mostly, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
SAME_VALUE(range_attribute::preferred_location, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
SAME_VALUE(range_attribute::accessed_by, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY);
SAME_VALUE(range_attribute::last_prefetch_location, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
SAME_VALUE(usage_tile_pool, CU_MEM_CREATE_USAGE_TILE_POOL);
SAME_VALUE(location_type::device, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_VALUE(handle_type::none, CU_MEM_HANDLE_TYPE_NONE);
SAME_VALUE(handle_type::posix_file_descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME_VALUE(allocation_type::invalid, CU_MEM_ALLOCATION_TYPE_INVALID);
SAME_VALUE(allocation_type::pinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME_VALUE(access_none, CU_MEM_ACCESS_FLAGS_PROT_NONE);
SAME_VALUE(access_read, CU_MEM_ACCESS_FLAGS_PROT_READ);
SAME_VALUE(access_read_write, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME_VALUE(granularity_minimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME_VALUE(granularity_recommended, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME_VALUE(compression_none, CU_MEM_ALLOCATION_COMP_NONE);
SAME_VALUE(compression_generic, CU_MEM_ALLOCATION_COMP_GENERIC);
SAME_VALUE(mempool_attribute::reuse_follow_event_dependencies, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
SAME_VALUE(mempool_attribute::reuse_allow_opportunistic, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
SAME_VALUE(mempool_attribute::reuse_allow_internal_dependencies, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
SAME_VALUE(mempool_attribute::release_threshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME_VALUE(mempool_attribute::reserved_mem_current, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME_VALUE(mempool_attribute::reserved_mem_high, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
SAME_VALUE(mempool_attribute::used_mem_current, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME_VALUE(mempool_attribute::used_mem_high, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME_VALUE(launch_attribute::ignore, CU_LAUNCH_ATTRIBUTE_IGNORE);
SAME_VALUE(launch_attribute::access_policy_window, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
SAME_VALUE(launch_attribute::cooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME_VALUE(launch_attribute::synchronization_policy, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY);
SAME_VALUE(launch_attribute::cluster_dimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME_VALUE(launch_attribute::priority, CU_LAUNCH_ATTRIBUTE_PRIORITY);
SAME_VALUE(function_attribute::max_threads_per_block, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_VALUE(function_attribute::shared_size_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME_VALUE(function_attribute::const_size_bytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
SAME_VALUE(function_attribute::local_size_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME_VALUE(function_attribute::num_regs, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME_VALUE(function_attribute::ptx_version, CU_FUNC_ATTRIBUTE_PTX_VERSION);
SAME_VALUE(function_attribute::binary_version, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
SAME_VALUE(function_attribute::max_dynamic_shared_size_bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_VALUE(jit_option::error_log_buffer, CU_JIT_ERROR_LOG_BUFFER);
SAME_VALUE(jit_option::error_log_buffer_size_bytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME_VALUE(jit_input_ptx, CU_JIT_INPUT_PTX);
SAME_VALUE(capture_status::none, CU_STREAM_CAPTURE_STATUS_NONE);
SAME_VALUE(capture_status::active, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME_VALUE(capture_status::invalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME_VALUE(capture_mode::global, CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME_VALUE(capture_mode::thread_local_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME_VALUE(capture_mode::relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME_VALUE(add_capture_dependencies, CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
SAME_VALUE(set_capture_dependencies, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
SAME_VALUE(graph_update::success, CU_GRAPH_EXEC_UPDATE_SUCCESS);
SAME_VALUE(graph_update::error, CU_GRAPH_EXEC_UPDATE_ERROR);
SAME_VALUE(graph_update::topology_changed, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
SAME_VALUE(graph_update::node_type_changed, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
SAME_VALUE(graph_update::function_changed, CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED);
SAME_VALUE(graph_update::parameters_changed, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
SAME_VALUE(graph_update::not_supported, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
SAME_VALUE(graph_update::unsupported_function_change, CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE);
SAME_VALUE(graph_update::attributes_changed, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
SAME_VALUE(proc_address::flags_default, CU_GET_PROC_ADDRESS_DEFAULT);
SAME_VALUE(proc_address::flags_legacy_stream, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
SAME_VALUE(proc_address::flags_per_thread_stream, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
SAME_VALUE(proc_address::found, CU_GET_PROC_ADDRESS_SUCCESS);
SAME_VALUE(proc_address::symbol_not_found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
SAME_VALUE(proc_address::version_not_sufficient, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
#if CUDA_VERSION >= 12030
SAME_VALUE(handle_type::fabric, CU_MEM_HANDLE_TYPE_FABRIC);
SAME_VALUE(range_attribute::preferred_location_type, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE);
SAME_VALUE(range_attribute::preferred_location_id, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID);
SAME_VALUE(range_attribute::last_prefetch_location_type, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE);
SAME_VALUE(range_attribute::last_prefetch_location_id, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
SAME_VALUE(location_type::host, CU_MEM_LOCATION_TYPE_HOST);
SAME_VALUE(location_type::host_numa, CU_MEM_LOCATION_TYPE_HOST_NUMA);
SAME_VALUE(location_type::host_numa_current, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
#endif
#if CUDA_VERSION >= 13000
SAME_VALUE(location_type::none, CU_MEM_LOCATION_TYPE_NONE);
SAME_VALUE(usage_hardware_decompress, CU_MEM_CREATE_USAGE_HW_DECOMPRESS);
SAME_VALUE(allocation_type::managed, CU_MEM_ALLOCATION_TYPE_MANAGED);
SAME_VALUE(p2p_attribute::only_partial_native_atomic_supported,
           CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED);
SAME_VALUE(atomic_operation_count, CU_ATOMIC_OPERATION_MAX);
#endif

// Enumerations must have an int's size, because they are passed as int.
#define INT_SIZED(type) static_assert(sizeof(::type) == sizeof(ours::type) && alignof(::type) == alignof(ours::type))
INT_SIZED(CUresult);
INT_SIZED(CUdevice);
INT_SIZED(CUdevice_attribute);
INT_SIZED(CUpointer_attribute);
INT_SIZED(CUfunction_attribute);
INT_SIZED(CUdevice_P2PAttribute);
INT_SIZED(CUmem_advise);
INT_SIZED(CUmem_range_attribute);
INT_SIZED(CUmemorytype);
INT_SIZED(CUmemLocationType);
INT_SIZED(CUmemAllocationType);
INT_SIZED(CUmemAllocationHandleType);
INT_SIZED(CUmemAllocationGranularity_flags);
#if CUDA_VERSION >= 12010
INT_SIZED(CUmulticastGranularity_flags);
SAME_VALUE(granularity_minimum, CU_MULTICAST_GRANULARITY_MINIMUM);
SAME_VALUE(granularity_recommended, CU_MULTICAST_GRANULARITY_RECOMMENDED);
#endif
INT_SIZED(CUmemAccess_flags);
INT_SIZED(CUmemRangeHandleType);
INT_SIZED(CUexternalMemoryHandleType);
INT_SIZED(CUmemPool_attribute);
INT_SIZED(CUlaunchAttributeID);
INT_SIZED(CUstreamCaptureStatus);
INT_SIZED(CUstreamCaptureMode);
INT_SIZED(CUgraphExecUpdateResult);
INT_SIZED(CUjit_option);
INT_SIZED(CUdeviceptr);
INT_SIZED(CUmemGenericAllocationHandle);

// Structures: size, alignment, and the offset and size of each member.
#define SAME_SIZE(type) static_assert(sizeof(::type) == sizeof(ours::type) && alignof(::type) == alignof(ours::type))
#define SAME_MEMBER(type, member)                                            \
    static_assert(offsetof(::type, member) == offsetof(ours::type, member)); \
    static_assert(sizeof(::type::member) == sizeof(ours::type::member))
SAME_SIZE(CUuuid);
SAME_SIZE(CUipcMemHandle);
SAME_SIZE(CUipcEventHandle);
SAME_SIZE(CUmemPoolPtrExportData);
SAME_SIZE(CUDA_EXTERNAL_MEMORY_HANDLE_DESC);
SAME_MEMBER(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, type);
SAME_MEMBER(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, handle);
SAME_MEMBER(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size);
SAME_MEMBER(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, flags);
SAME_SIZE(CUDA_EXTERNAL_MEMORY_BUFFER_DESC);
SAME_MEMBER(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, offset);
SAME_MEMBER(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size);
SAME_MEMBER(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, flags);
#if CUDA_VERSION >= 12030
SAME_SIZE(CUmemFabricHandle);
#endif

SAME_SIZE(CUmemLocation);
SAME_MEMBER(CUmemLocation, type);
SAME_MEMBER(CUmemLocation, id);

SAME_SIZE(CUmemAllocationProp);
SAME_MEMBER(CUmemAllocationProp, type);
SAME_MEMBER(CUmemAllocationProp, requestedHandleTypes);
SAME_MEMBER(CUmemAllocationProp, location);
SAME_MEMBER(CUmemAllocationProp, win32HandleMetaData);
SAME_MEMBER(CUmemAllocationProp, allocFlags);
SAME_MEMBER(CUmemAllocationProp, allocFlags.compressionType);
SAME_MEMBER(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
SAME_MEMBER(CUmemAllocationProp, allocFlags.usage);

SAME_SIZE(CUmemAccessDesc);
SAME_MEMBER(CUmemAccessDesc, location);
SAME_MEMBER(CUmemAccessDesc, flags);

#if CUDA_VERSION >= 12010
SAME_SIZE(CUmulticastObjectProp);
SAME_MEMBER(CUmulticastObjectProp, numDevices);
SAME_MEMBER(CUmulticastObjectProp, size);
SAME_MEMBER(CUmulticastObjectProp, handleTypes);
SAME_MEMBER(CUmulticastObjectProp, flags);
#endif

SAME_SIZE(CUmemPoolProps);
SAME_MEMBER(CUmemPoolProps, allocType);
SAME_MEMBER(CUmemPoolProps, handleTypes);
SAME_MEMBER(CUmemPoolProps, location);
SAME_MEMBER(CUmemPoolProps, win32SecurityAttributes);
#if CUDA_VERSION >= 12030
SAME_MEMBER(CUmemPoolProps, maxSize);
SAME_MEMBER(CUmemPoolProps, usage);
#endif

SAME_SIZE(CUlaunchAttributeValue);
SAME_SIZE(CUlaunchAttribute);
SAME_MEMBER(CUlaunchAttribute, id);
SAME_MEMBER(CUlaunchAttribute, value);
SAME_MEMBER(CUlaunchAttributeValue, cooperative);
SAME_MEMBER(CUlaunchAttributeValue, priority);
SAME_MEMBER(CUlaunchAttributeValue, clusterDim);

SAME_SIZE(CUlaunchConfig);
SAME_MEMBER(CUlaunchConfig, gridDimX);
SAME_MEMBER(CUlaunchConfig, gridDimZ);
SAME_MEMBER(CUlaunchConfig, blockDimX);
SAME_MEMBER(CUlaunchConfig, blockDimZ);
SAME_MEMBER(CUlaunchConfig, sharedMemBytes);
SAME_MEMBER(CUlaunchConfig, hStream);
SAME_MEMBER(CUlaunchConfig, attrs);
SAME_MEMBER(CUlaunchConfig, numAttrs);

SAME_SIZE(CUDA_MEMCPY2D);
SAME_MEMBER(CUDA_MEMCPY2D, srcXInBytes);
SAME_MEMBER(CUDA_MEMCPY2D, srcMemoryType);
SAME_MEMBER(CUDA_MEMCPY2D, srcHost);
SAME_MEMBER(CUDA_MEMCPY2D, srcDevice);
SAME_MEMBER(CUDA_MEMCPY2D, srcArray);
SAME_MEMBER(CUDA_MEMCPY2D, srcPitch);
SAME_MEMBER(CUDA_MEMCPY2D, dstXInBytes);
SAME_MEMBER(CUDA_MEMCPY2D, dstMemoryType);
SAME_MEMBER(CUDA_MEMCPY2D, dstHost);
SAME_MEMBER(CUDA_MEMCPY2D, dstDevice);
SAME_MEMBER(CUDA_MEMCPY2D, dstArray);
SAME_MEMBER(CUDA_MEMCPY2D, dstPitch);
SAME_MEMBER(CUDA_MEMCPY2D, WidthInBytes);
SAME_MEMBER(CUDA_MEMCPY2D, Height);

SAME_SIZE(CUDA_MEMCPY3D);
SAME_MEMBER(CUDA_MEMCPY3D, srcZ);
SAME_MEMBER(CUDA_MEMCPY3D, srcLOD);
SAME_MEMBER(CUDA_MEMCPY3D, srcMemoryType);
SAME_MEMBER(CUDA_MEMCPY3D, srcHost);
SAME_MEMBER(CUDA_MEMCPY3D, srcDevice);
SAME_MEMBER(CUDA_MEMCPY3D, reserved0);
SAME_MEMBER(CUDA_MEMCPY3D, srcPitch);
SAME_MEMBER(CUDA_MEMCPY3D, srcHeight);
SAME_MEMBER(CUDA_MEMCPY3D, dstXInBytes);
SAME_MEMBER(CUDA_MEMCPY3D, dstMemoryType);
SAME_MEMBER(CUDA_MEMCPY3D, dstHost);
SAME_MEMBER(CUDA_MEMCPY3D, dstDevice);
SAME_MEMBER(CUDA_MEMCPY3D, dstPitch);
SAME_MEMBER(CUDA_MEMCPY3D, dstHeight);
SAME_MEMBER(CUDA_MEMCPY3D, WidthInBytes);
SAME_MEMBER(CUDA_MEMCPY3D, Depth);

SAME_SIZE(CUDA_MEMCPY3D_PEER);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, srcZ);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, srcMemoryType);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, srcHost);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, srcDevice);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, srcContext);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, srcPitch);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, srcHeight);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, dstMemoryType);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, dstHost);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, dstDevice);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, dstContext);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, dstPitch);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, dstHeight);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, WidthInBytes);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, Height);
SAME_MEMBER(CUDA_MEMCPY3D_PEER, Depth);

SAME_SIZE(CUDA_KERNEL_NODE_PARAMS);
SAME_MEMBER(CUDA_KERNEL_NODE_PARAMS, func);
SAME_MEMBER(CUDA_KERNEL_NODE_PARAMS, gridDimX);
SAME_MEMBER(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes);
SAME_MEMBER(CUDA_KERNEL_NODE_PARAMS, kernelParams);
SAME_MEMBER(CUDA_KERNEL_NODE_PARAMS, extra);
SAME_MEMBER(CUDA_KERNEL_NODE_PARAMS, kern);
SAME_MEMBER(CUDA_KERNEL_NODE_PARAMS, ctx);

#if CUDA_VERSION >= 12030
SAME_SIZE(CUgraphEdgeData);
SAME_SIZE(CUgraphNodeParams);
SAME_MEMBER(CUgraphNodeParams, type);
SAME_MEMBER(CUgraphNodeParams, conditional);
#endif
SAME_SIZE(CUgraphExecUpdateResultInfo);
SAME_MEMBER(CUgraphExecUpdateResultInfo, result);
SAME_MEMBER(CUgraphExecUpdateResultInfo, errorNode);
SAME_MEMBER(CUgraphExecUpdateResultInfo, errorFromNode);

#if CUDA_VERSION >= 13000
SAME_SIZE(CUctxCreateParams);
SAME_MEMBER(CUctxCreateParams, execAffinityParams);
SAME_MEMBER(CUctxCreateParams, numExecAffinityParams);
SAME_MEMBER(CUctxCreateParams, cigParams);
#endif

}  // namespace
