// The kernels that the conformance tests launch.
#include <isthmus/kernel.hpp>

#include <cstdint>

namespace conformance {

using namespace isthmus;

ISTHMUS_KERNEL(add_one, Index i, View<std::int32_t> data) {
    data[i] += 1;
}

ISTHMUS_KERNEL(scale_into, Index i, Out<std::int32_t> out, View<const std::int32_t> in, std::int32_t factor) {
    out[i] = in[i] * factor;
}

ISTHMUS_KERNEL(coordinates, Index2 i, Out<std::uint64_t> out, std::uint64_t width) {
    out[i.y * width + i.x] = i.y * 100000 + i.x;
}

ISTHMUS_KERNEL(coordinates_3d, Index3 i, Out<std::uint64_t> out, std::uint64_t width, std::uint64_t height) {
    out[(i.z * height + i.y) * width + i.x] = (i.z * 1000 + i.y) * 1000 + i.x;
}

ISTHMUS_BLOCK_KERNEL(block_sums, 64, Block block, Out<std::int64_t> sums, View<const std::int32_t> in) {
    ISTHMUS_SHARED(std::int64_t, partial, 64);
    block.for_each_thread([&](std::uint32_t thread) { partial[thread] = in[block.index() * 64 + thread]; });
    for (std::uint32_t half = 32; half > 0; half /= 2) {
        block.for_each_thread([&](std::uint32_t thread) {
            if (thread < half) partial[thread] += partial[thread + half];
        });
    }
    block.for_each_thread([&](std::uint32_t thread) {
        if (thread == 0) sums[block.index()] = partial[0];
    });
}

ISTHMUS_KERNEL(churn, Index i, View<std::int32_t> data, std::int32_t rounds) {
    auto value = static_cast<std::uint32_t>(data[i]);  // unsigned: it wraps, as the test that knows the result does
    for (std::int32_t round = 0; round < rounds; ++round) value = value * 1664525u + 1013904223u;
    data[i] = static_cast<std::int32_t>(value);
}

// One writer per flag; the release of each pairs with the acquires of the others.
ISTHMUS_KERNEL_FUNCTION void raise_flag(std::int32_t& flag) {
#if defined(__CUDA_ARCH__)
    __threadfence_system();
    *const_cast<volatile std::int32_t*>(&flag) = 1;
#else
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
#endif
}
ISTHMUS_KERNEL_FUNCTION bool is_raised(const std::int32_t& flag) {
#if defined(__CUDA_ARCH__)
    const bool raised = *const_cast<const volatile std::int32_t*>(&flag) != 0;
    __threadfence_system();
    return raised;
#else
    return __atomic_load_n(&flag, __ATOMIC_ACQUIRE) != 0;
#endif
}

ISTHMUS_KERNEL(meet, Index, View<std::int32_t> met, View<std::int32_t> flags, std::int32_t self, std::int32_t parties) {
    constexpr int stride = 32;  // meeting_stride
    raise_flag(flags[self * stride]);
    bool all = false;
    while (!all && !is_raised(flags[parties * stride])) {
        all = true;
        for (std::int32_t party = 0; party < parties; ++party) all = all && is_raised(flags[party * stride]);
    }
    met[0] = all ? 1 : 0;
}

}  // namespace conformance
