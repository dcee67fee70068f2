// SPDX-License-Identifier: Apache-2.0
// Whether a read-modify-write by CPU and GPU on one object is atomic: both must reach the object, and one rule of the
// libcu++ memory model must hold for its kind. Each condition that fails has an answer of its own.
#include "atomic_rules.hpp"

#include "access_rules.hpp"
#include "litmus_rules.hpp"

namespace isthmus::rules {

namespace {

using Text = std::string_view;

constexpr Text counters = "use a sharded counter (one lane per side), or messages by plain loads and stores";

AccessAnswer yes(Text reason) {
    return {Verdict::yes, reason, {}};
}
AccessAnswer no(Text reason, Text remedy) {
    return {Verdict::no, reason, remedy};
}

bool is_cpu(const Capabilities& c) {
    return c.memory == MemoryModel::host;
}

AccessAnswer misaligned() {
    return no("the address is not a multiple of the width: a misaligned word may be torn in two",
              "align the word to its size");
}
AccessAnswer io() {
    return no("it is, or may be, registered memory of a device (IOMEMORY), for which no atomicity is promised",
              "use pinned memory");
}
bool is_misaligned(std::uint64_t address, int width_bytes) {
    return address % static_cast<std::uint64_t>(width_bytes) != 0;
}

// Conditions on the word itself, for every kind of memory.
AccessAnswer lawful_word(const AtomicQuestion& question) {
    const auto operation = static_cast<std::size_t>(question.operation);
    if (operation >= static_cast<std::size_t>(atomic_operation_count)) {
        return no("there is no such operation", "ask about an enumerator of AtomicOperation");
    }
    if (question.width_bytes != 4 && question.width_bytes != 8) {
        return no("only 4 and 8 bytes are lock-free on both sides", counters);
    }
    if (is_misaligned(question.address, question.width_bytes)) return misaligned();
    if (question.io_memory) return io();
    return yes("the word is lawful");
}

// The first side that cannot access the memory, otherwise yes.
AccessAnswer both_sides(const Capabilities& device, MemoryKind kind) {
    if (kind == MemoryKind::write_combined) {
        return no("write-combined memory is for writing by the host only, in no particular order", "use pinned memory");
    }
    const AccessAnswer gpu = device_access(device, kind);
    if (!gpu) return gpu;
    return host_access(device, kind);
}

static_assert(static_cast<std::uint32_t>(AtomicSet::compare_exchange) ==
                  1u << static_cast<int>(AtomicOperation::compare_exchange) &&
              static_cast<std::uint32_t>(AtomicSet::bit_and) == 1u << static_cast<int>(AtomicOperation::bit_and) &&
              static_cast<std::uint32_t>(AtomicSet::float_add) == 1u << static_cast<int>(AtomicOperation::float_add));

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
            "use anonymous memory in a Buffer, or a sharded counter");
    }
    return yes("system memory that the GPU reaches coherently (attribute 88 is 1)");
}

}  // namespace

AccessAnswer shared_atomic(const Capabilities& device, const AtomicQuestion& question) {
    if (const AccessAnswer word = lawful_word(question); !word) return word;
    const AccessAnswer access = both_sides(device, question.kind);
    if (!access) return access;
    if (is_cpu(device)) return yes("both sides are threads of the CPU");
    if (const AccessAnswer trials = update_trials(device, question.kind); !trials) return trials;
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

AccessAnswer kernel_atomic(const Capabilities& device, const AtomicQuestion& question, bool own) {
    const bool of_gpu = question.kind == MemoryKind::device || question.kind == MemoryKind::pool ||
                        question.kind == MemoryKind::graph || question.kind == MemoryKind::vmm ||
                        question.kind == MemoryKind::imported;
    if (is_cpu(device) || !of_gpu) return shared_atomic(device, question);
    if (const AccessAnswer word = lawful_word(question); !word) return word;
    if (own) return yes("the device's own memory, which only its threads update");
    return no("it is another device's memory, and which atomics the link between the two carries is not known",
              "allocate it on the launch device, and add up");
}

AccessAnswer shared_load_store(const Capabilities& device, const LoadStoreQuestion& question) {
    const int width = question.width_bytes;
    if (width != 1 && width != 2 && width != 4 && width != 8 && width != 16) {
        return no("only 1, 2, 4, 8 and 16 bytes are loaded and stored indivisibly", "use an aligned word");
    }
    if (width == 16 && !question.host_has_16) {
        return no("this CPU does not promise to load and store 16 bytes indivisibly", "use words of 8 bytes");
    }
    if (is_misaligned(question.address, width)) return misaligned();
    if (question.io_memory) return io();
    const AccessAnswer access = both_sides(device, question.kind);
    if (!access) return access;
    if (const AccessAnswer trials = load_store_trials(device, question.kind, question.width_bytes); !trials)
        return trials;
    return yes("aligned loads and stores of this width are single-copy atomic on both sides");
}

namespace {

template <class Ask>
AccessAnswer each_of(AtomicQuestion question, AtomicSet operations, Ask ask) {
    AccessAnswer answer = yes("nothing but loads and stores is asked for");
    for (int operation = 0; operation < atomic_operation_count; ++operation) {
        if ((static_cast<std::uint32_t>(operations) >> operation & 1u) == 0) continue;
        question.operation = static_cast<AtomicOperation>(operation);
        answer = ask(question);
        if (!answer) {
            answer.part = operation;
            return answer;
        }
    }
    return answer;
}

}  // namespace

AccessAnswer shared_atomics(const Capabilities& device, AtomicQuestion question, AtomicSet operations) {
    return each_of(question, operations, [&](const AtomicQuestion& one) { return shared_atomic(device, one); });
}

AccessAnswer kernel_atomics(const Capabilities& device, AtomicQuestion question, AtomicSet operations, bool own) {
    return each_of(question, operations, [&](const AtomicQuestion& one) { return kernel_atomic(device, one, own); });
}

GrantedAtomics::GrantedAtomics(const Capabilities& device) {
    for (int kind = 0; kind < memory_kind_count; ++kind) {
        for (const int width : {4, 8}) {
            for (const bool is_signed : {false, true}) {
                AtomicSet& set =
                    sets_[static_cast<std::size_t>(kind)][place(static_cast<std::uint32_t>(width), is_signed)];
                for (int operation = 0; operation < atomic_operation_count; ++operation) {
                    const AtomicQuestion question{static_cast<MemoryKind>(kind),
                                                  static_cast<AtomicOperation>(operation), width, is_signed, true};
                    if (kernel_atomic(device, question, true)) set = set | static_cast<AtomicSet>(1u << operation);
                }
            }
        }
    }
}

}  // namespace isthmus::rules
