// SPDX-License-Identifier: Apache-2.0
// Numbers of the driver's binary interface that are used here: result codes, flags and enumerators.
#pragma once

#include <driver_abi/results.def>

namespace isthmus::cuda_abi {

namespace result {
#define ISTHMUS_CUDA_RESULT(name, spelling, value) inline constexpr int name = value;
ISTHMUS_CUDA_RESULTS(ISTHMUS_CUDA_RESULT)
ISTHMUS_CUDA_RESULTS_13(ISTHMUS_CUDA_RESULT)
#undef ISTHMUS_CUDA_RESULT
}  // namespace result

inline constexpr int device_cpu = -1;  // as a CUdevice: the host (prefetch, advice)
inline constexpr int device_invalid = -2;

inline constexpr unsigned mem_attach_global = 1, mem_attach_host = 2, mem_attach_single = 4;
inline constexpr unsigned ctx_sched_auto = 0, ctx_sched_spin = 1, ctx_sched_yield = 2, ctx_sched_blocking_sync = 4;
inline constexpr unsigned stream_default = 0, stream_non_blocking = 1;
inline constexpr unsigned event_default = 0, event_blocking_sync = 1, event_disable_timing = 2, event_interprocess = 4;
inline constexpr unsigned event_record_default = 0, event_record_external = 1;
inline constexpr unsigned event_wait_default = 0, event_wait_external = 1;
inline constexpr unsigned host_alloc_portable = 1, host_alloc_device_map = 2, host_alloc_write_combined = 4;
inline constexpr unsigned host_register_portable = 1, host_register_device_map = 2, host_register_io_memory = 4,
                          host_register_read_only = 8;
inline constexpr unsigned ipc_mem_lazy_enable_peer_access = 1;
inline constexpr int mem_range_handle_dma_buf_fd = 1;
inline constexpr int external_memory_dma_buf_fd = 9;

inline constexpr int memory_type_host = 1, memory_type_device = 2, memory_type_array = 3, memory_type_unified = 4;

namespace pointer_attribute {
inline constexpr int context = 1, memory_type = 2, device_pointer = 3, host_pointer = 4, p2p_tokens = 5,
                     sync_memops = 6, buffer_id = 7, is_managed = 8, device_ordinal = 9, is_legacy_ipc_capable = 10,
                     range_start_addr = 11, range_size = 12, mapped = 13, allowed_handle_types = 14,
                     is_gpu_direct_rdma_capable = 15, access_flags = 16, mempool_handle = 17, mapping_size = 18,
                     mapping_base_addr = 19, memory_block_id = 20;
}  // namespace pointer_attribute

namespace p2p_attribute {
inline constexpr int performance_rank = 1, access_supported = 2, native_atomic_supported = 3,
                     cuda_array_access_supported = 4, only_partial_native_atomic_supported = 5;
}  // namespace p2p_attribute

inline constexpr int atomic_operation_count = 13;  // CU_ATOMIC_OPERATION_MAX of CUDA 13.0

namespace mem_advise {
inline constexpr int set_read_mostly = 1, unset_read_mostly = 2, set_preferred_location = 3,
                     unset_preferred_location = 4, set_accessed_by = 5, unset_accessed_by = 6;
}  // namespace mem_advise

namespace range_attribute {
inline constexpr int read_mostly = 1, preferred_location = 2, accessed_by = 3, last_prefetch_location = 4,
                     preferred_location_type = 5, preferred_location_id = 6, last_prefetch_location_type = 7,
                     last_prefetch_location_id = 8;
}  // namespace range_attribute

namespace location_type {
inline constexpr int none = 0, device = 1, host = 2, host_numa = 3, host_numa_current = 4;
}  // namespace location_type
namespace handle_type {
inline constexpr int none = 0, posix_file_descriptor = 1, fabric = 8;
}  // namespace handle_type
namespace allocation_type {
inline constexpr int invalid = 0, pinned = 1, managed = 2;
}  // namespace allocation_type
inline constexpr int access_none = 0, access_read = 1, access_read_write = 3;
inline constexpr int granularity_minimum = 0, granularity_recommended = 1;
inline constexpr unsigned char compression_none = 0, compression_generic = 1;
inline constexpr unsigned short usage_tile_pool = 1, usage_hardware_decompress = 2;

namespace mempool_attribute {
inline constexpr int reuse_follow_event_dependencies = 1, reuse_allow_opportunistic = 2,
                     reuse_allow_internal_dependencies = 3, release_threshold = 4, reserved_mem_current = 5,
                     reserved_mem_high = 6, used_mem_current = 7, used_mem_high = 8;
}  // namespace mempool_attribute

namespace launch_attribute {
inline constexpr int ignore = 0, access_policy_window = 1, cooperative = 2, synchronization_policy = 3,
                     cluster_dimension = 4, priority = 8;
}  // namespace launch_attribute

namespace function_attribute {
inline constexpr int max_threads_per_block = 0, shared_size_bytes = 1, const_size_bytes = 2, local_size_bytes = 3,
                     num_regs = 4, ptx_version = 5, binary_version = 6, max_dynamic_shared_size_bytes = 8;
}  // namespace function_attribute

namespace jit_option {
inline constexpr int error_log_buffer = 5, error_log_buffer_size_bytes = 6;
}  // namespace jit_option
inline constexpr int jit_input_ptx = 1;

namespace capture_status {
inline constexpr int none = 0, active = 1, invalidated = 2;
}  // namespace capture_status
namespace capture_mode {
inline constexpr int global = 0, thread_local_ = 1, relaxed = 2;
}  // namespace capture_mode

inline constexpr unsigned add_capture_dependencies = 0, set_capture_dependencies = 1;
namespace graph_node_type {
inline constexpr int conditional = 13;
}
namespace conditional_type {
inline constexpr int once = 0, loop = 1;
}
namespace graph_update {
inline constexpr int success = 0, error = 1, topology_changed = 2, node_type_changed = 3, function_changed = 4,
                     parameters_changed = 5, not_supported = 6, unsupported_function_change = 7, attributes_changed = 8;
}  // namespace graph_update

namespace proc_address {
inline constexpr unsigned long long flags_default = 0, flags_legacy_stream = 1, flags_per_thread_stream = 2;
inline constexpr int found = 0, symbol_not_found = 1, version_not_sufficient = 2;
}  // namespace proc_address

}  // namespace isthmus::cuda_abi
