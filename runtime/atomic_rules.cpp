// When a read-modify-write by CPU and GPU on one object is atomic: both must reach it, and one rule of the libcu++
// memory model must hold for its kind. Each missing leg is its own answer.
#include "atomic_rules.hpp"

#include "access_rules.hpp"

namespace isthmus::rules {

namespace {

using Text = std::string_view;

constexpr Text counters = "use a split counter (one lane per side), or messages by plain loads and stores";

AccessAnswer yes(Text reason) {
    return {Verdict::yes, reason, {}};
}
AccessAnswer no(Text reason, Text remedy) {
    return {Verdict::no, reason, remedy};
}

bool is_cpu(const Capabilities& c) {
    return c.memory == MemoryModel::host;
}

// The first of both legs that is missing, else yes.
AccessAnswer both_sides(const Capabilities& device, MemoryKind kind) {
    if (kind == MemoryKind::write_combined) {
        return no("write-combined memory is for writing by the host only, in no particular order", "use pinned memory");
    }
    const AccessAnswer gpu = device_access(device, kind);
    if (!gpu) return gpu;
    return host_access(device, kind);
}

bool is_integer(AtomicOperation operation) {
    return operation < AtomicOperation::float_add;
}

bool reported(const Capabilities& device, const AtomicQuestion& question) {
    const std::uint32_t bits = device.host_atomics[static_cast<std::size_t>(question.operation)];
    const std::uint32_t width = question.width_bytes == 4 ? atomic_bits::scalar_32 : atomic_bits::scalar_64;
    const std::uint32_t sign = question.is_signed ? atomic_bits::is_signed : atomic_bits::is_unsigned;
    return (bits & width) != 0 && (!is_integer(question.operation) || (bits & sign) != 0);
}

AccessAnswer over_the_link(const Capabilities& device, const AtomicQuestion& question) {
    switch (device.link_atomics) {
        case LinkAtomics::native: return yes("the link carries every atomic operation (attribute 86 is 1)");
        case LinkAtomics::partial:
            if (reported(device, question)) {
                return yes("the driver reports this operation, width and sign for this link (attribute 147 is 1)");
            }
            return no("the link carries only some atomic operations, and the driver does not report this one",
                      counters);
        case LinkAtomics::none: break;
    }
    return no(
        "the link carries no atomic operations (attribute 86 is 0): updates of pinned memory by both sides are lost",
        counters);
}

AccessAnswer on_pageable(const Capabilities& device, bool file_mapped) {
    if (file_mapped && device.translation == Translation::hmm) {
        return no(
            "file-mapped and hugetlbfs memory does not migrate, and without host page tables (attribute 100 is 0) "
            "atomics need that",
            "use anonymous memory, or a split counter");
    }
    return yes("system memory that the GPU reaches coherently (attribute 88 is 1)");
}

}  // namespace

AccessAnswer shared_atomic(const Capabilities& device, const AtomicQuestion& question) {
    const auto operation = static_cast<std::size_t>(question.operation);
    if (operation >= static_cast<std::size_t>(atomic_operation_count)) {
        return no("there is no such operation", "ask about an enumerator of AtomicOperation");
    }
    if (question.width_bytes != 4 && question.width_bytes != 8) {
        return no("only 4 and 8 bytes are lock-free on both sides", counters);
    }
    const AccessAnswer access = both_sides(device, question.kind);
    if (!access) return access;
    if (is_cpu(device)) return yes("both sides are threads of the CPU");
    switch (question.kind) {
        case MemoryKind::host:
        case MemoryKind::host_numa: return on_pageable(device, question.file_mapped);
        case MemoryKind::managed:
        case MemoryKind::managed_pool:
            return yes("managed memory that both sides may touch at the same time (attribute 89 is 1)");
        case MemoryKind::pinned:
        case MemoryKind::registered: return over_the_link(device, question);
        default: return no("no rule of the memory model covers this kind", counters);
    }
}

AccessAnswer shared_load_store(const Capabilities& device, MemoryKind kind, int width_bytes) {
    const bool width =
        width_bytes == 1 || width_bytes == 2 || width_bytes == 4 || width_bytes == 8 || width_bytes == 16;
    if (!width) return no("only 1, 2, 4, 8 and 16 bytes are loaded and stored in one piece", "use an aligned word");
    const AccessAnswer access = both_sides(device, kind);
    if (!access) return access;
    return yes("aligned loads and stores of this width are single-copy atomic on both sides");
}

}  // namespace isthmus::rules
