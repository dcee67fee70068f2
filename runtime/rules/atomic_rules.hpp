// SPDX-License-Identifier: Apache-2.0
// capabilities × kind × operation × width → verdict. Pure. Access never implies atomics.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/atomic_set.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace isthmus::rules {

struct AtomicQuestion {
    MemoryKind kind = MemoryKind::unknown;
    AtomicOperation operation = AtomicOperation::add;
    int width_bytes = 4;  // 4, 8 or 16
    bool is_signed = false;
    bool file_mapped = false;   // or hugetlbfs, or unknown: not lawful where translation is HMM
    bool io_memory = false;     // registered device memory (CU_MEMHOSTREGISTER_IOMEMORY)
    std::uint64_t address = 0;  // of the word, or of the first element of an array; 0: aligned
};

// Is a read-modify-write by CPU and GPU on one object atomic at system scope?
AccessAnswer shared_atomic(const Capabilities& device, const AtomicQuestion& question);
// Is a read-modify-write by the threads of a kernel atomic at system scope, whatever other agents do? Yes where
// shared_atomic() says yes, and in the device's own memory, which no other agent updates. `own`: the device allocated
// the memory. Mapped memory (vmm) means the device's own; mapped memory on the host is asked about as pinned, which the
// device reaches over the same link. Memory that CPU and GPU use by turns, and memory behind a link without atomics, is
// refused even if only the GPU uses it: operations at system scope are not guaranteed to be atomic there.
AccessAnswer kernel_atomic(const Capabilities& device, const AtomicQuestion& question, bool own);

struct LoadStoreQuestion {
    MemoryKind kind = MemoryKind::unknown;
    int width_bytes = 4;
    bool io_memory = false;
    std::uint64_t address = 0;
    bool host_has_16 = true;  // the CPU loads and stores 16 bytes indivisibly (host_has_pairs())
};
// Are aligned plain loads and stores of this width by both sides single-copy atomic?
AccessAnswer shared_load_store(const Capabilities& device, const LoadStoreQuestion& question);
inline AccessAnswer shared_load_store(const Capabilities& device, MemoryKind kind, int width_bytes) {
    return shared_load_store(device, {.kind = kind, .width_bytes = width_bytes});
}

// Checks the operations of a set one by one (AtomicSet's bit n is AtomicOperation n): the first refusal, otherwise yes.
// Ignores `question.operation`.
AccessAnswer shared_atomics(const Capabilities& device, AtomicQuestion question, AtomicSet operations);
AccessAnswer kernel_atomics(const Capabilities& device, AtomicQuestion question, AtomicSet operations, bool own);

// The operations that kernels may always use in memory that their device allocated, for the check at each launch. Per
// kind, width and sign the operations as an AtomicSet, computed once per device. Pageable memory is treated as
// file-mapped.
class GrantedAtomics {
public:
    explicit GrantedAtomics(const Capabilities& device);
    bool all_of(AtomicSet operations, MemoryKind kind, std::uint32_t width_bytes, bool is_signed) const noexcept {
        const bool known = static_cast<std::size_t>(kind) < sets_.size() && (width_bytes == 4 || width_bytes == 8);
        return known && contains(sets_[static_cast<std::size_t>(kind)][place(width_bytes, is_signed)], operations);
    }

private:
    static std::size_t place(std::uint32_t width_bytes, bool is_signed) noexcept {
        return (width_bytes == 8 ? 2u : 0u) + (is_signed ? 1u : 0u);
    }
    std::array<std::array<AtomicSet, 4>, memory_kind_count> sets_{};
};

}  // namespace isthmus::rules
