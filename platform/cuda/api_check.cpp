// SPDX-License-Identifier: Apache-2.0
// Compares the signatures in functions.def with the toolkit's <cuda.h>. Compiled only if that header was found;
// produces no code.
#define __CUDA_API_VERSION_INTERNAL  // declares every variant under its exported name, without renaming macros
#include <cuda.h>

#include "abi.hpp"

#include <type_traits>

#if CUDA_VERSION < 13000  // declares what an older toolkit lacks, so that the rest is still checked
#undef cuMemPrefetchBatchAsync
#undef cuMemDiscardBatchAsync
#undef cuMemDiscardAndPrefetchBatchAsync
extern "C" CUresult cuMemPrefetchBatchAsync(CUdeviceptr*, size_t*, size_t, CUmemLocation*, size_t*, size_t,
                                            unsigned long long, CUstream);
extern "C" CUresult cuMemDiscardBatchAsync(CUdeviceptr*, size_t*, size_t, unsigned long long, CUstream);
extern "C" CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr*, size_t*, size_t, CUmemLocation*, size_t*, size_t,
                                                      unsigned long long, CUstream);
typedef int CUatomicOperation;
extern "C" CUresult cuDeviceGetHostAtomicCapabilities(unsigned*, const CUatomicOperation*, unsigned, CUdevice);
#endif

#undef cuDeviceGetUuid  // 13.0 declares only its second variant
extern "C" CUresult cuDeviceGetUuid(CUuuid*, CUdevice);
#if CUDA_VERSION < 12010
struct CUmulticastObjectProp;
extern "C" CUresult cuMulticastGetGranularity(size_t*, const CUmulticastObjectProp*, int);
extern "C" CUresult cuMulticastCreate(CUmemGenericAllocationHandle*, const CUmulticastObjectProp*);
extern "C" CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle, CUdevice);
extern "C" CUresult cuMulticastBindMem(CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle, size_t,
                                       size_t, unsigned long long);
extern "C" CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t, unsigned long long);
extern "C" CUresult cuMulticastUnbind(CUmemGenericAllocationHandle, CUdevice, size_t, size_t);
#endif
#if CUDA_VERSION < 12040
extern "C" CUresult cuFuncGetParamInfo(CUfunction, size_t, size_t*, size_t*);
#endif
#if CUDA_VERSION < 12050
extern "C" CUresult cuCtxRecordEvent(CUcontext, CUevent);
#endif

// The hints have two variants. Toolkits before 12.2 lack the newer ones; 13.0 does not declare the older ones, which
// its driver still exports.
#undef cuMemPrefetchAsync
#undef cuMemAdvise
#if CUDA_VERSION < 12020
extern "C" CUresult cuMemPrefetchAsync_v2(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream);
extern "C" CUresult cuMemAdvise_v2(CUdeviceptr, size_t, CUmem_advise, CUmemLocation);
#elif CUDA_VERSION >= 13000
extern "C" CUresult cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream);
extern "C" CUresult cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUdevice);
#endif

namespace {

// Two types match if they are passed the same way and mean the same kind of thing: scalars of one size (enumerations
// are int here), structures of one size, pointers to matching types.
template <class A, class B>
constexpr bool alike() {
    if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
        using To = std::remove_pointer_t<A>;
        using From = std::remove_pointer_t<B>;
        if constexpr (std::is_const_v<To> != std::is_const_v<From>) {
            return false;
        } else if constexpr (std::is_class_v<To> || std::is_void_v<To> || std::is_function_v<To>) {
            return std::is_class_v<To> == std::is_class_v<From> && std::is_void_v<To> == std::is_void_v<From> &&
                   std::is_function_v<To> == std::is_function_v<From>;
        } else {
            return alike<std::remove_const_t<To>, std::remove_const_t<From>>();
        }
    } else if constexpr (std::is_scalar_v<A> && std::is_scalar_v<B>) {
        return std::is_pointer_v<A> == std::is_pointer_v<B> &&
               std::is_floating_point_v<A> == std::is_floating_point_v<B> && sizeof(A) == sizeof(B);
    } else if constexpr (std::is_class_v<A> && std::is_class_v<B>) {
        // NOLINTNEXTLINE(misc-redundant-expression): both are the same where a parameter's type is the toolkit's own
        return sizeof(A) == sizeof(B) && alignof(A) == alignof(B);  // abi_check compares the members
    } else {
        return false;
    }
}

template <class Ours, class Theirs>
struct SameShape : std::false_type {};
template <class R, class... P, class S, class... Q>
requires(sizeof...(P) == sizeof...(Q)) struct SameShape<R(P...), S(Q...)>
    : std::bool_constant<alike<R, S>() && (alike<P, Q>() && ...)> {
};

}  // namespace

namespace isthmus::cuda_abi {
#define X(member, symbol, exported, version, need, parameters) \
    static_assert(SameShape<CUresult parameters, decltype(::exported)>::value, #exported);
#include "functions.def"
#undef X
// Shows that the check can fail.
static_assert(!SameShape<CUresult(int, CUstream), decltype(::cuStreamSynchronize)>::value);
static_assert(!SameShape<CUresult(CUstream*), decltype(::cuStreamSynchronize)>::value);
static_assert(!SameShape<CUresult(long), decltype(::cuInit)>::value);
}  // namespace isthmus::cuda_abi
