// SPDX-License-Identifier: Apache-2.0
// The kernels of the tests of multimem functions. For architectures before 90, where the functions do not compile, they
// do nothing: no device of these takes part in a multicast object.
#include "multimem_kernels.hpp"

#include <isthmus/mapping/multimem.hpp>

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define HAS_MULTIMEM 1
#else
#define HAS_MULTIMEM 0
#endif

namespace conformance {

using namespace isthmus;

ISTHMUS_KERNEL(multimem_sum, Index i, Out<std::int32_t> out, std::uint64_t object) {
#if HAS_MULTIMEM
    out[i] = multimem_load_add(multimem_at<std::int32_t>(object, i));
#endif
}

ISTHMUS_KERNEL(multimem_combine, Index i, Out<std::int64_t> out, std::uint64_t object) {
#if HAS_MULTIMEM
    const std::int64_t* const word = multimem_at<std::int64_t>(object, i);
    out[0] = multimem_load_add(word);
    out[1] = multimem_load_min(word);
    out[2] = multimem_load_max(word);
    out[3] = multimem_load_and(word);
    out[4] = multimem_load_or(word);
    out[5] = multimem_load_xor(word);
#endif
}

ISTHMUS_KERNEL(multimem_change, Index i, std::uint64_t object, std::int32_t operation, std::int32_t value) {
#if HAS_MULTIMEM
    std::int32_t* const word = multimem_at<std::int32_t>(object, i);
    switch (operation) {
        case 0: multimem_store(word, value); break;
        case 1: multimem_add(word, value); break;
        case 2: multimem_min(word, value); break;
        case 3: multimem_max(word, value); break;
        case 4: multimem_and(word, value); break;
        case 5: multimem_or(word, value); break;
        default: multimem_xor(word, value); break;
    }
#endif
}

ISTHMUS_KERNEL(multimem_sum_floats, Index i, Out<float> out, std::uint64_t object) {
#if HAS_MULTIMEM
    float* const word = multimem_at<float>(object, i);
    multimem_store(word, 0.25F);
    multimem_add(word, 1);
    out[i] = multimem_load_add(word);
#endif
}

}  // namespace conformance
