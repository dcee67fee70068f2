// SPDX-License-Identifier: Apache-2.0
// The driver's types as its callers see them, written from its documented binary interface; no toolkit is needed.
// Handles are pointers to the simulator's own objects. Arrays, textures and semaphores: array_types.hpp,
// semaphore_types.hpp. check_shapes.cpp compares them with <cuda.h> where there is one.
#pragma once

#include "semaphore_types.hpp"

#include <cstddef>
#include <cstdint>

namespace isthmus::sim {

using Result = int;                          // CUresult
using DeviceOrdinal = int;                   // CUdevice
using Address = unsigned long long;          // CUdeviceptr
using HostFunction = void (*)(void*);        // CUhostFn
using MemoryHandle = unsigned long long;     // CUmemGenericAllocationHandle
using DynamicShared = std::size_t (*)(int);  // CUoccupancyB2DSize

struct Context;
struct Stream;
struct Event;
struct Module;
struct Function;
struct LinkState;
struct Pool;
struct GraphObject;
struct GraphExec;
struct NodeObject;
struct UserObject;
struct GreenContext;
struct ResourceDescription;
struct Array;
struct MipmappedArray;
struct Texture;
struct Surface;
struct ExternalMemory;
struct LogHandle;  // CUlogsCallbackEntry_st
class SharedEvent;
using LogCallback = void (*)(void*, int level, char* text, std::size_t bytes);  // CUlogsCallback
using StreamCallback = void (*)(Stream*, Result, void*);

struct Uuid {
    unsigned char bytes[16];
};

struct Location {  // CUmemLocation
    int type;      // 1 device, 2 host, 3 host NUMA node, 4 the calling thread's node
    int id;
};

struct AccessDescription {  // CUmemAccessDesc
    Location location;
    int flags;  // 0 none, 1 read, 3 read and write
};

struct ExternalMemoryDescription {  // CUDA_EXTERNAL_MEMORY_HANDLE_DESC
    int type;                       // 9: a dma-buf
    union {
        int descriptor;
        struct {
            void* handle;
            const void* name;
        } win32;
    } handle;
    unsigned long long bytes;
    unsigned flags;
    unsigned reserved[16];
};

struct ExternalRange {  // CUDA_EXTERNAL_MEMORY_BUFFER_DESC
    unsigned long long offset;
    unsigned long long bytes;
    unsigned flags;
    unsigned reserved[16];
};

struct PoolProperties {  // CUmemPoolProps
    int allocation_type;
    int handle_types;
    Location location;
    void* win32_security;
    std::size_t max_bytes;
    unsigned short usage;
    unsigned char reserved[54];
};

struct AllocationProperties {  // CUmemAllocationProp
    int type;                  // 1 pinned, 2 managed
    int handle_types;          // 1 POSIX file descriptor, 8 fabric
    Location location;
    void* win32_metadata;
    unsigned char compression, gpu_direct_rdma;
    unsigned short usage;
    unsigned char reserved[4];
};

struct MulticastProperties {  // CUmulticastObjectProp
    unsigned devices;
    std::size_t bytes;
    unsigned long long handle_types;
    unsigned long long flags;
};

struct ShareableBytes {  // CUipcMemHandle, CUipcEventHandle, CUmemFabricHandle
    unsigned char bytes[64];
};

struct LaunchAttribute;

struct LaunchConfig {  // CUlaunchConfig
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    Stream* stream;
    const LaunchAttribute* attributes;
    unsigned attribute_count;
};

struct ClusterSize {
    unsigned x, y, z;
};

struct AccessWindow {  // CUaccessPolicyWindow
    void* base;
    std::size_t bytes;
    float hit_ratio;
    int on_hit, on_miss;  // 0 normal, 1 streaming, 2 persisting
};
struct DomainMap {  // CUlaunchMemSyncDomainMap
    unsigned char standard, remote;
};

union LaunchAttributeValue {  // CUlaunchAttributeValue
    char bytes[64];
    AccessWindow window;
    ClusterSize cluster;
    DomainMap domains;
    int number;  // all others that are modelled
};

struct LaunchAttribute {  // CUlaunchAttribute
    int id;
    int reserved;
    LaunchAttributeValue value;
};

struct KernelNodeParameters {  // CUDA_KERNEL_NODE_PARAMS_v1
    Function* function;
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    void** parameters;
    void** extra;
};

struct KernelNodeParameters2 {  // CUDA_KERNEL_NODE_PARAMS_v2
    KernelNodeParameters launch;
    Function* kernel;  // where `function` is null
    Context* context;  // of the kernel; null: the current one
};

struct ExecAffinity {  // CUexecAffinityParam
    int type;
    unsigned multiprocessors;
};

struct EdgeData {  // CUgraphEdgeData
    unsigned char from_port, to_port, type;
    unsigned char reserved[5];
};

struct ConditionalParameters {  // CUDA_CONDITIONAL_NODE_PARAMS
    std::uint64_t handle;
    int type;  // 0 if, 1 while, 2 switch
    unsigned size;
    GraphObject** bodies;
    Context* context;
};
struct MemoryOperation {   // CUstreamBatchMemOpParams
    int type;              // 1 wait 32, 2 write 32, 3 flush, 4 wait 64, 5 write 64, 6 barrier
    unsigned order_flags;  // of a flush or a barrier
    Address address;
    std::uint64_t value;
    unsigned flags;
    unsigned reserved;
    Address alias;
    std::uint64_t more;
};
struct MemoryOperations {  // CUDA_BATCH_MEM_OP_NODE_PARAMS
    Context* context;
    unsigned count;
    MemoryOperation* all;
    unsigned flags;
};
struct HostNodeParameters {  // CUDA_HOST_NODE_PARAMS
    HostFunction function;
    void* data;
};
struct FillNodeParameters {  // CUDA_MEMSET_NODE_PARAMS
    Address address;
    std::size_t pitch;
    unsigned value, element_bytes;
    std::size_t width, height;  // in elements, and rows
};
struct FillNodeParameters2 {  // CUDA_MEMSET_NODE_PARAMS_v2
    FillNodeParameters fill;
    Context* context;
};

struct AllocationNodeParameters {  // CUDA_MEM_ALLOC_NODE_PARAMS
    PoolProperties properties;
    const AccessDescription* access;
    std::size_t access_count;
    std::size_t bytes;
    Address address;  // out
};

struct Copy2D {  // CUDA_MEMCPY2D; memory types: 1 host, 2 device, 3 array, 4 unified
    std::size_t source_x_bytes, source_y;
    int source_type;
    const void* source_host;
    Address source_device;
    void* source_array;
    std::size_t source_pitch;
    std::size_t destination_x_bytes, destination_y;
    int destination_type;
    void* destination_host;
    Address destination_device;
    void* destination_array;
    std::size_t destination_pitch;
    std::size_t width_bytes, height;
};

struct Copy3DEnd {
    std::size_t x_bytes, y, z, lod;
    int type;
    const void* host;
    Address device;
    void* array;
    Context* context;  // of peer copies; reserved in others
    std::size_t pitch, height;
};

struct Copy3D {  // CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER
    Copy3DEnd source, destination;
    std::size_t width_bytes, height, depth;
};
struct CopyNodeParameters {  // CUDA_MEMCPY_NODE_PARAMS
    int flags, reserved;
    Context* context;
    Copy3D copy;
};

struct CopyAttributes {  // CUmemcpyAttributes
    int source_order;    // 1 in stream order, 2 during the call, 3 any
    Location source_hint, destination_hint;
    unsigned flags;
};
struct BatchedPointer {
    Address address;
    std::size_t row_length, layer_rows;  // in elements; 0: without gaps
    Location hint;
};
struct BatchedArray {
    void* array;
    std::size_t offset[3];
};
struct BatchedEnd {  // CUmemcpy3DOperand
    int type;        // 1 pointer, 2 array
    union {
        BatchedPointer pointer;
        BatchedArray array;
    };
};
struct BatchedCopy {  // CUDA_MEMCPY3D_BATCH_OP
    BatchedEnd source, destination;
    std::size_t width, height, depth;  // in elements of the arrays, which are bytes without an array
    int source_order;
    unsigned flags;
};

struct ChildNodeParameters {  // CUDA_CHILD_GRAPH_NODE_PARAMS
    GraphObject* graph;
    int ownership;  // 0: the node gets a clone; 1: the graph moves into it
};
struct NodeParameters {  // CUgraphNodeParams
    int type;
    int reserved[3];
    union {
        long long padding[29];
        KernelNodeParameters2 kernel;
        CopyNodeParameters copy;
        FillNodeParameters2 fill;
        HostNodeParameters host;
        ChildNodeParameters child;
        Event* event;  // of wait and record nodes
        SemaphoreNodeParameters semaphores;
        AllocationNodeParameters allocation;
        Address freed;
        MemoryOperations words;
        ConditionalParameters conditional;
    };
    long long reserved_too;
};

struct InstantiateParameters {  // CUDA_GRAPH_INSTANTIATE_PARAMS
    std::uint64_t flags;
    Stream* upload_stream;
    NodeObject* error_node;  // out
    int result;              // out: CUgraphInstantiateResult
};

struct DevResource {  // CUdevResource
    int type;         // 1 multiprocessors; 0 none
    unsigned char hidden[92];
    unsigned count, least, multiple;
    unsigned char more[36];
};

struct alignas(64) TensorMap {  // CUtensorMap
    unsigned char bytes[128];
};

struct LockArguments {    // CUcheckpointLockArgs
    unsigned timeout_ms;  // 0: no limit
    unsigned reserved;
    std::uint64_t more[7];
};
struct ReservedArguments {  // CUcheckpointCheckpointArgs, CUcheckpointUnlockArgs
    std::uint64_t reserved[8];
};
struct DevicePair {  // CUcheckpointGpuPair
    Uuid from, to;
};
struct RestoreArguments {  // CUcheckpointRestoreArgs
    DevicePair* pairs;
    unsigned pair_count;
    char reserved[52 - sizeof(DevicePair*)];
    std::uint64_t more;
};

struct UpdateResult {  // CUgraphExecUpdateResultInfo
    int result;
    NodeObject* error_node;
    NodeObject* error_from_node;
};

// The CUresult values that the simulator returns.
namespace result {
inline constexpr Result ok = 0, invalid_value = 1, out_of_memory = 2, not_initialized = 3, deinitialized = 4,
                        no_device = 100, invalid_device = 101, invalid_image = 200, invalid_context = 201,
                        invalid_source = 300, no_binary = 209, unsupported_limit = 215, peer_unsupported = 217,
                        invalid_ptx = 218, ptx_too_new = 222, file_not_found = 301, operating_system = 304,
                        invalid_handle = 400, illegal_state = 401, not_found = 500, not_ready = 600,
                        illegal_address = 700, peer_already_enabled = 704, peer_not_enabled = 705, assertion = 710,
                        illegal_instruction = 715, misaligned_address = 716, invalid_pc = 718, launch_failed = 719,
                        cooperative_launch_too_large = 720, context_is_destroyed = 709, already_registered = 712,
                        not_registered = 713, launch_out_of_resources = 701, not_permitted = 800, not_supported = 801,
                        invalid_cluster_size = 912, capture_unsupported = 900, capture_implicit = 906,
                        graph_update_failure = 910, invalid_resource_type = 914, invalid_resource_configuration = 915,
                        unknown = 999;
}  // namespace result

// The CUdevice_attribute values that the simulator itself reads; it depends on facts, never on names of machines.
namespace attribute {
inline constexpr int max_threads_per_block = 1, max_block_x = 2, max_grid_x = 5, max_shared_per_block = 8,
                     warp_size = 10, multiprocessors = 16, integrated = 18, cluster_launch = 120, pci_bus = 33,
                     pci_device = 34, max_threads_per_multiprocessor = 39, unified_addressing = 41, pci_domain = 50,
                     cc_major = 75, cc_minor = 76, stream_priorities = 78, managed = 83, pageable = 88,
                     concurrent_managed = 89, native_host_atomics = 86, partial_host_atomics = 147,
                     host_pointer_for_registered = 91, max_shared_optin = 97, host_register = 99,
                     largest_access_window = 109, registers_per_multiprocessor = 82,
                     max_blocks_per_multiprocessor = 106, memory_domains = 126, shared_per_multiprocessor = 81,
                     reserved_shared = 111, sparse_arrays = 112, read_only_register = 113, memory_pools = 115,
                     virtual_memory = 102, posix_handles = 103, compression = 107, virtual_memory_rdma = 110,
                     dma_buf = 124, ipc_events = 125, stream_words_v1 = 92, flush_remote = 98, words_of_64 = 122,
                     wait_nor = 123, fabric_handles = 128, multicast = 132, decompression = 136,
                     node_virtual_memory = 141, host_virtual_memory = 145, host_alloc_dma_buf = 146;
}  // namespace attribute

}  // namespace isthmus::sim
