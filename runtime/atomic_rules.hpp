// capabilities × kind × operation × width → verdict. Pure. Access never implies atomics.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/memory_kind.hpp>

namespace isthmus::rules {

struct AtomicQuestion {
    MemoryKind kind = MemoryKind::unknown;
    AtomicOperation operation = AtomicOperation::add;
    int width_bytes = 4;  // 4, 8 or 16
    bool is_signed = false;
    bool file_mapped = false;  // or hugetlbfs: not lawful where translation is HMM
};

// Is a read-modify-write by CPU and GPU on one object atomic at system scope?
AccessAnswer shared_atomic(const Capabilities& device, const AtomicQuestion& question);
// Are aligned plain loads and stores of this width by both sides single-copy atomic?
AccessAnswer shared_load_store(const Capabilities& device, MemoryKind kind, int width_bytes);

}  // namespace isthmus::rules
