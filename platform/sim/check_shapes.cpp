// SPDX-License-Identifier: Apache-2.0
// Compiled only where a toolkit is found. Compares the shape of every exported function with the real declaration: the
// number of parameters, and the size, class and pointer-ness of each. Produces no code.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

#include "array_types.hpp"
#include "types.hpp"

#include <type_traits>

// As <cudaGL.h>, which needs the headers of OpenGL.
extern "C" {
CUresult cuGLGetDevices_v2(unsigned*, CUdevice*, unsigned, int);
CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource*, unsigned, unsigned);
CUresult cuGraphicsGLRegisterImage(CUgraphicsResource*, unsigned, unsigned, unsigned);
}

namespace isthmus::sim::shapes {

// The simulator's own declarations, as ordinary C++ functions of this namespace; never defined.
#define ISTHMUS_SIM_EXPORT(symbol, parameters) Result symbol parameters;
#include "exports.def"
#undef ISTHMUS_SIM_EXPORT

enum class Class { pointer, function, aggregate, number };

template <class T>
constexpr Class class_of() {
    if constexpr (std::is_pointer_v<T>) {
        return std::is_function_v<std::remove_pointer_t<T>> ? Class::function : Class::pointer;
    } else {
        return std::is_class_v<T> ? Class::aggregate : Class::number;
    }
}

// Pointed-to types must have the same size, where both sides know it and the type is no opaque handle.
template <class T, class = void>
struct Size {
    static constexpr std::size_t value = 0;
};
template <class T>
struct Size<T, std::enable_if_t<(sizeof(T) > 0) && !std::is_function_v<T>>> {
    static constexpr std::size_t value = sizeof(T);
};

template <class Ours, class Theirs>
constexpr bool same_type() {
    if (class_of<Ours>() != class_of<Theirs>() || sizeof(Ours) != sizeof(Theirs)) return false;
    if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
        using A = std::remove_cv_t<std::remove_pointer_t<Ours>>;
        using B = std::remove_cv_t<std::remove_pointer_t<Theirs>>;
        if constexpr (!std::is_void_v<A> && !std::is_void_v<B> && !std::is_function_v<A> && !std::is_function_v<B>) {
            if (Size<A>::value != 0 && Size<B>::value != 0 && Size<A>::value != Size<B>::value) return false;
            return std::is_pointer_v<A> == std::is_pointer_v<B>;
        }
    }
    return true;
}

template <class Ours, class Theirs>
struct Same : std::false_type {};
template <class R, class... Ours, class S, class... Theirs>
struct Same<R(Ours...), S(Theirs...)> {
    static constexpr bool compute() {
        if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
            return false;
        } else {
            return sizeof(R) == sizeof(S) && (same_type<Ours, Theirs>() && ...);
        }
    }
    static constexpr bool value = compute();
};

#define ISTHMUS_SIM_EXPORT(symbol, parameters) \
    static_assert(Same<decltype(symbol), decltype(::symbol)>::value, #symbol " has another shape in <cuda.h>");
#include "exports.def"
#undef ISTHMUS_SIM_EXPORT

static_assert(
    sizeof(LaunchConfig) == sizeof(CUlaunchConfig) && sizeof(Copy2D) == sizeof(CUDA_MEMCPY2D) &&
    sizeof(Copy3D) == sizeof(CUDA_MEMCPY3D) && sizeof(Copy3D) == sizeof(CUDA_MEMCPY3D_PEER) &&
    sizeof(PoolProperties) == sizeof(CUmemPoolProps) && sizeof(Location) == sizeof(CUmemLocation) &&
    sizeof(AccessDescription) == sizeof(CUmemAccessDesc) && sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute) &&
    sizeof(EdgeData) == sizeof(CUgraphEdgeData) && sizeof(KernelNodeParameters) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1) &&
    sizeof(KernelNodeParameters2) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2) &&
    sizeof(ConditionalParameters) == sizeof(CUDA_CONDITIONAL_NODE_PARAMS) &&
    sizeof(MemoryOperation) == sizeof(CUstreamBatchMemOpParams) &&
    offsetof(MemoryOperation, value) == offsetof(CUstreamBatchMemOpParams, waitValue.value) &&
    offsetof(MemoryOperation, flags) == offsetof(CUstreamBatchMemOpParams, waitValue.flags) &&
    offsetof(MemoryOperation, order_flags) == offsetof(CUstreamBatchMemOpParams, memoryBarrier.flags) &&
    sizeof(MemoryOperations) == sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS) &&
    sizeof(HostNodeParameters) == sizeof(CUDA_HOST_NODE_PARAMS) &&
    sizeof(FillNodeParameters2) == sizeof(CUDA_MEMSET_NODE_PARAMS_v2) &&
    sizeof(CopyNodeParameters) == sizeof(CUDA_MEMCPY_NODE_PARAMS) &&
    sizeof(ChildNodeParameters) == sizeof(CUDA_CHILD_GRAPH_NODE_PARAMS) &&
    sizeof(CopyAttributes) == sizeof(CUmemcpyAttributes) &&
    offsetof(CopyAttributes, flags) == offsetof(CUmemcpyAttributes, flags) &&
    sizeof(BatchedEnd) == sizeof(CUmemcpy3DOperand) && sizeof(BatchedCopy) == sizeof(CUDA_MEMCPY3D_BATCH_OP) &&
    offsetof(BatchedEnd, pointer.hint) == offsetof(CUmemcpy3DOperand, op.ptr.locHint) &&
    offsetof(BatchedCopy, source_order) == offsetof(CUDA_MEMCPY3D_BATCH_OP, srcAccessOrder) &&
    sizeof(NodeParameters) == sizeof(CUgraphNodeParams) &&
    offsetof(NodeParameters, conditional) == offsetof(CUgraphNodeParams, conditional) &&
    sizeof(AllocationNodeParameters) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) &&
    offsetof(AllocationNodeParameters, address) == offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, dptr) &&
    sizeof(DevResource) == sizeof(CUdevResource) && offsetof(DevResource, count) == offsetof(CUdevResource, sm) &&
    sizeof(InstantiateParameters) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) &&
    offsetof(InstantiateParameters, result) == offsetof(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out) &&
    sizeof(FillNodeParameters) == sizeof(CUDA_MEMSET_NODE_PARAMS) &&
    offsetof(FillNodeParameters, width) == offsetof(CUDA_MEMSET_NODE_PARAMS, width) &&
    sizeof(UpdateResult) == sizeof(CUgraphExecUpdateResultInfo) &&
    sizeof(LockArguments) == sizeof(CUcheckpointLockArgs) &&
    sizeof(ReservedArguments) == sizeof(CUcheckpointUnlockArgs) &&
    sizeof(RestoreArguments) == sizeof(CUcheckpointRestoreArgs) &&
    offsetof(RestoreArguments, pair_count) == offsetof(CUcheckpointRestoreArgs, gpuPairsCount) &&
    sizeof(AllocationProperties) == sizeof(CUmemAllocationProp) &&
    sizeof(MulticastProperties) == sizeof(CUmulticastObjectProp) && sizeof(ShareableBytes) == sizeof(CUipcMemHandle) &&
    sizeof(ShareableBytes) == sizeof(CUipcEventHandle) && sizeof(ShareableBytes) == sizeof(CUmemFabricHandle));
static_assert(offsetof(AllocationProperties, location) == offsetof(CUmemAllocationProp, location) &&
              offsetof(AllocationProperties, compression) == offsetof(CUmemAllocationProp, allocFlags) &&
              offsetof(AllocationProperties, usage) == offsetof(CUmemAllocationProp, allocFlags.usage) &&
              offsetof(MulticastProperties, bytes) == offsetof(CUmulticastObjectProp, size) &&
              offsetof(MulticastProperties, handle_types) == offsetof(CUmulticastObjectProp, handleTypes) &&
              offsetof(MulticastProperties, flags) == offsetof(CUmulticastObjectProp, flags));
static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream) &&
              offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs) &&
              offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value) &&
              sizeof(LaunchAttributeValue) == sizeof(CUlaunchAttributeValue) &&
              sizeof(AccessWindow) == sizeof(CUaccessPolicyWindow) &&
              sizeof(DomainMap) == sizeof(CUlaunchMemSyncDomainMap) &&
              offsetof(AccessWindow, on_miss) == offsetof(CUaccessPolicyWindow, missProp) &&
              offsetof(KernelNodeParameters, extra) == offsetof(CUDA_KERNEL_NODE_PARAMS_v1, extra) &&
              offsetof(KernelNodeParameters2, launch.extra) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, extra) &&
              offsetof(KernelNodeParameters2, context) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, ctx) &&
              offsetof(UpdateResult, error_node) == offsetof(CUgraphExecUpdateResultInfo, errorNode) &&
              offsetof(UpdateResult, error_from_node) == offsetof(CUgraphExecUpdateResultInfo, errorFromNode) &&
              offsetof(Copy2D, destination_pitch) == offsetof(CUDA_MEMCPY2D, dstPitch) &&
              offsetof(Copy3D, destination.pitch) == offsetof(CUDA_MEMCPY3D, dstPitch) &&
              offsetof(Copy3D, source.context) == offsetof(CUDA_MEMCPY3D_PEER, srcContext) &&
              offsetof(Copy3D, destination.context) == offsetof(CUDA_MEMCPY3D_PEER, dstContext) &&
              offsetof(Copy3D, depth) == offsetof(CUDA_MEMCPY3D, Depth) &&
              offsetof(PoolProperties, max_bytes) == offsetof(CUmemPoolProps, maxSize));
static_assert(sizeof(ArrayDescription) == sizeof(CUDA_ARRAY_DESCRIPTOR) &&
              sizeof(ArrayDescription3D) == sizeof(CUDA_ARRAY3D_DESCRIPTOR) &&
              offsetof(ArrayDescription3D, flags) == offsetof(CUDA_ARRAY3D_DESCRIPTOR, Flags) &&
              sizeof(SparseProperties) == sizeof(CUDA_ARRAY_SPARSE_PROPERTIES) &&
              sizeof(ArrayMemoryRequirements) == sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS) &&
              sizeof(ExternalMipmappedArray) == sizeof(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC) &&
              sizeof(TextureResource) == sizeof(CUDA_RESOURCE_DESC) &&
              offsetof(TextureResource, from.pitched.pitch) == offsetof(CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes) &&
              offsetof(TextureResource, from.linear.bytes) == offsetof(CUDA_RESOURCE_DESC, res.linear.sizeInBytes) &&
              offsetof(TextureResource, flags) == offsetof(CUDA_RESOURCE_DESC, flags) &&
              sizeof(TextureSampling) == sizeof(CUDA_TEXTURE_DESC) &&
              offsetof(TextureSampling, border_color) == offsetof(CUDA_TEXTURE_DESC, borderColor) &&
              sizeof(TextureView) == sizeof(CUDA_RESOURCE_VIEW_DESC) &&
              offsetof(TextureView, last_layer) == offsetof(CUDA_RESOURCE_VIEW_DESC, lastLayer));
static_assert(sizeof(SemaphoreDescription) == sizeof(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC) &&
              offsetof(SemaphoreDescription, flags) == offsetof(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, flags) &&
              sizeof(SemaphoreParameters) == sizeof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS) &&
              sizeof(SemaphoreParameters) == sizeof(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS) &&
              offsetof(SemaphoreParameters, flags) == offsetof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, flags) &&
              offsetof(SemaphoreParameters, flags) == offsetof(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, flags) &&
              sizeof(SemaphoreNodeParameters) == sizeof(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) &&
              sizeof(SemaphoreNodeParameters) == sizeof(CUDA_EXT_SEM_WAIT_NODE_PARAMS) &&
              offsetof(NodeParameters, semaphores) == offsetof(CUgraphNodeParams, extSemSignal));
static_assert(attribute::texture_alignment == CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT &&
              attribute::texture_1d_width == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH &&
              attribute::texture_2d_height == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT &&
              attribute::texture_3d_depth == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH &&
              attribute::texture_2d_layered_width == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH &&
              attribute::texture_2d_layers == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS &&
              attribute::texture_1d_layered_width == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH &&
              attribute::gather_width == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH &&
              attribute::texture_3d_depth_alternate == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE &&
              attribute::texture_pitch_alignment == CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT &&
              attribute::cubemap_layers == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS &&
              attribute::surface_1d_width == CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH &&
              attribute::surface_3d_depth == CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH &&
              attribute::surface_2d_layers == CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS &&
              attribute::surface_cubemap_layers == CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS &&
              attribute::texture_1d_linear_width == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH &&
              attribute::texture_2d_linear_pitch == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH &&
              attribute::mipmapped_2d_height == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT &&
              attribute::mipmapped_1d_width == CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH &&
              attribute::timeline_semaphores == CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED);
static_assert(attribute::stream_words_v1 == CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1 &&
              attribute::flush_remote == CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES &&
              attribute::words_of_64 == CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS &&
              attribute::wait_nor == CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR);
static_assert(attribute::cluster_launch == CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH &&
              attribute::read_only_register == CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED &&
              attribute::virtual_memory == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED &&
              attribute::posix_handles == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED &&
              attribute::compression == CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED &&
              attribute::virtual_memory_rdma == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED &&
              attribute::ipc_events == CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED &&
              attribute::fabric_handles == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED &&
              attribute::multicast == CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED &&
              attribute::node_virtual_memory == CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED &&
              attribute::host_virtual_memory == CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED &&
              attribute::memory_pools == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED &&
              attribute::host_register == CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED &&
              attribute::max_shared_optin == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN &&
              attribute::host_pointer_for_registered == CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM &&
              attribute::concurrent_managed == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS &&
              attribute::pci_domain == CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID &&
              attribute::pci_bus == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID &&
              attribute::stream_priorities == CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED &&
              attribute::max_threads_per_multiprocessor == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);

}  // namespace isthmus::sim::shapes
