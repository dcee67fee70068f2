// SPDX-License-Identifier: Apache-2.0
// When a read-modify-write by CPU and GPU is atomic: the five rules of the memory model, for every combination.
#include "some_devices.hpp"

#include <access_rules.hpp>
#include <atomic_rules.hpp>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using namespace some_devices;
using K = MemoryKind;
using Op = AtomicOperation;

HostAtomics some_operations() {
    HostAtomics atomics{};
    atomics[static_cast<std::size_t>(Op::add)] = atomic_bits::is_unsigned | atomic_bits::scalar_32;
    atomics[static_cast<std::size_t>(Op::compare_exchange)] =
        atomic_bits::is_unsigned | atomic_bits::is_signed | atomic_bits::scalar_32 | atomic_bits::scalar_64;
    atomics[static_cast<std::size_t>(Op::float_add)] = atomic_bits::scalar_32;
    return atomics;
}

// The documented rules, by the raw attributes.
bool lawful(unsigned bits, const AtomicQuestion& q) {
    if (q.width_bytes != 4 && q.width_bytes != 8) return false;
    switch (q.kind) {
        case K::host:
        case K::host_numa: return bit(bits, 88) && (bit(bits, 100) || !q.file_mapped);  // rule 1
        case K::managed:
        case K::managed_pool: return bit(bits, 83) && bit(bits, 89);  // rule 2
        case K::pinned:
        case K::registered:  // rule 3
            if (!bit(bits, 41) || (q.kind == K::registered && !bit(bits, 99))) return false;
            if (!bit(bits, 147)) return bit(bits, 86);
            if (q.operation == Op::add) return q.width_bytes == 4 && !q.is_signed;
            if (q.operation == Op::compare_exchange) return true;
            return q.operation == Op::float_add && q.width_bytes == 4;
        default: return false;
    }
}

TEST(Atomics, AreGrantedExactlyWhereARuleHolds) {  // keeps G1, G2, G3
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits, some_operations());
        for_every_kind([&](K kind) {
            for (int operation = 0; operation < atomic_operation_count; ++operation) {
                for (const int width : {4, 8}) {
                    for (const bool flag : {false, true}) {
                        const AtomicQuestion q{kind, static_cast<Op>(operation), width, flag, flag};
                        ASSERT_EQ(static_cast<bool>(shared_atomic(c, q)), lawful(bits, q))
                            << bits << " " << name(kind) << " " << name(q.operation) << " " << width << " " << flag;
                    }
                }
            }
        });
    }
}

TEST(Atomics, AnswersOfTheKnownMachines) {  // keeps D1: the answer beside raw attribute 86
    const auto granted = [](const char* machine, K kind) {
        return static_cast<bool>(shared_atomic(of_machine(machine), {.kind = kind}));
    };
    EXPECT_FALSE(granted("h200", K::pinned)) << "46 % of additions were lost there";
    EXPECT_TRUE(granted("h200", K::managed)) << "none were lost there, although attribute 86 is 0";
    EXPECT_FALSE(granted("h200", K::host));
    EXPECT_TRUE(granted("rtx-hmm", K::host));
    EXPECT_FALSE(granted("rtx-hmm", K::pinned));
    for (const K kind : {K::host, K::pinned, K::managed}) {
        EXPECT_FALSE(granted("orin", kind)) << name(kind);
        EXPECT_FALSE(kind != K::host && granted("rtx-wsl2", kind)) << name(kind);
        EXPECT_TRUE(granted("thor", kind)) << name(kind);
        EXPECT_TRUE(granted("gb10", kind)) << name(kind);
        EXPECT_TRUE(granted("gh200-cdmm", kind)) << name(kind);
    }
}

TEST(Atomics, OddWidthsAreRefused) {  // keeps G7
    for (const int width : {-4, 0, 1, 2, 3, 5, 12, 16, 32}) {
        EXPECT_FALSE(shared_atomic(of_machine("gh200-numa"), {.kind = K::pinned, .width_bytes = width})) << width;
        EXPECT_FALSE(shared_atomic(cpu(), {.kind = K::host, .width_bytes = width})) << width;
    }
    EXPECT_FALSE(shared_atomic(cpu(), {.kind = K::host, .operation = static_cast<Op>(99)}));
}

TEST(Atomics, WriteCombinedMemoryIsRefusedEverywhere) {  // keeps G7
    for (const char* machine : gpu_machines) {
        EXPECT_FALSE(shared_atomic(of_machine(machine), {.kind = K::write_combined})) << machine;
        EXPECT_FALSE(shared_load_store(of_machine(machine), K::write_combined, 4)) << machine;
    }
    EXPECT_FALSE(shared_atomic(cpu(), {.kind = K::write_combined}));
}

TEST(Atomics, FileMappedMemoryIsRefusedWhereTheKernelMigrates) {  // keeps G7
    EXPECT_FALSE(shared_atomic(of_machine("rtx-hmm"), {.kind = K::host, .file_mapped = true}));
    EXPECT_TRUE(shared_atomic(of_machine("rtx-hmm"), {.kind = K::host, .file_mapped = false}));
    EXPECT_TRUE(shared_atomic(of_machine("thor"), {.kind = K::host, .file_mapped = true}));
}

TEST(Atomics, MisalignedWordsAndIoMemoryAreRefusedEverywhere) {  // keeps G7
    const auto refused_beside_success = [](const Capabilities& c, K kind) {
        for (const int width : {4, 8}) {
            AtomicQuestion q{.kind = kind, .width_bytes = width, .address = 4096};
            const bool lawful = static_cast<bool>(shared_atomic(c, q));
            for (std::uint64_t off = 1; off < static_cast<std::uint64_t>(width); ++off) {
                q.address = 4096 + off;
                EXPECT_FALSE(shared_atomic(c, q)) << off;
                EXPECT_FALSE(kernel_atomic(c, q, true)) << off;
                EXPECT_NE(shared_atomic(c, q).reason.find("multiple of the width"), std::string::npos);
                EXPECT_FALSE(shared_load_store(c, {.kind = kind, .width_bytes = width, .address = q.address})) << off;
            }
            q.address = 4096 + static_cast<std::uint64_t>(width);
            EXPECT_EQ(static_cast<bool>(shared_atomic(c, q)), lawful);
            q.io_memory = true;
            EXPECT_FALSE(shared_atomic(c, q));
            EXPECT_NE(shared_atomic(c, q).reason.find("IOMEMORY"), std::string::npos);
            EXPECT_FALSE(kernel_atomic(c, q, true));
            EXPECT_FALSE(shared_load_store(c, {.kind = kind, .width_bytes = width, .io_memory = true}));
        }
    };
    for (const char* machine : gpu_machines) {
        const Capabilities known = of_machine(machine);
        for_every_kind([&](K kind) { refused_beside_success(known, kind); });
    }
    for_every_kind([&](K kind) { refused_beside_success(cpu(), kind); });
}

TEST(Atomics, OfAKernelAloneAreLawfulInItsDevicesOwnMemoryToo) {  // keeps G2, G3
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits, some_operations());
        for_every_kind([&](K kind) {
            const bool of_gpu =
                kind == K::device || kind == K::pool || kind == K::graph || kind == K::vmm || kind == K::imported;
            for (int operation = 0; operation < atomic_operation_count; ++operation) {
                for (const int width : {4, 8, 16}) {
                    for (const bool flag : {false, true}) {
                        const AtomicQuestion q{kind, static_cast<Op>(operation), width, flag, flag};
                        const bool shared = lawful(bits, q);
                        ASSERT_EQ(static_cast<bool>(kernel_atomic(c, q, true)), shared || (of_gpu && width != 16))
                            << bits << " " << name(kind) << " " << name(q.operation) << " " << width << " " << flag;
                        ASSERT_EQ(static_cast<bool>(kernel_atomic(c, q, false)), shared)
                            << "several GPUs: nobody says which atomics their link carries";
                    }
                }
            }
        });
    }
    EXPECT_FALSE(kernel_atomic(of_machine("h200"), {.kind = K::pinned}, true)) << "also where the GPU is alone";
    EXPECT_FALSE(kernel_atomic(of_machine("orin"), {.kind = K::managed}, true));
}

TEST(Atomics, OfASetAreAskedOneByOne) {  // keeps G3
    using enum AtomicSet;
    // The link reports additions of unsigned words of 32 bits and every compare and exchange.
    unsigned partial = 0;
    for (std::size_t i = 0; i < deciding.size(); ++i) {
        if (deciding[i] == 41 || deciding[i] == 147) partial |= 1u << i;
    }
    const Capabilities c = of_bits(partial, some_operations());
    const AtomicQuestion unsigned_word{.kind = K::pinned};
    const AtomicQuestion signed_word{.kind = K::pinned, .is_signed = true};
    EXPECT_TRUE(shared_atomics(c, unsigned_word, add | compare_exchange));
    EXPECT_FALSE(shared_atomics(c, signed_word, add | compare_exchange));
    EXPECT_TRUE(shared_atomics(c, signed_word, compare_exchange));
    const AccessAnswer answer = shared_atomics(c, unsigned_word, add | bit_or | compare_exchange);
    EXPECT_FALSE(answer);
    EXPECT_EQ(answer.part, static_cast<int>(Op::bit_or)) << "says which one";
    EXPECT_TRUE(shared_atomics(c, {.kind = K::device}, load_store)) << "asks for nothing";
    EXPECT_TRUE(kernel_atomics(c, {.kind = K::device}, all, true));
    EXPECT_FALSE(kernel_atomics(c, {.kind = K::device}, all, false));
    for (const char* machine : gpu_machines) {
        const Capabilities known = of_machine(machine);
        for (int operation = 0; operation < atomic_operation_count; ++operation) {
            for_every_kind([&](K kind) {
                const AtomicQuestion q{kind, static_cast<Op>(operation)};
                const auto alone = static_cast<AtomicSet>(1u << operation);
                EXPECT_EQ(static_cast<bool>(shared_atomics(known, q, alone)),
                          static_cast<bool>(shared_atomic(known, q)));
                for (const bool own : {false, true}) {  // g++ 13 at -O3 miscompiled this (-fno-unswitch-loops)
                    EXPECT_EQ(static_cast<bool>(kernel_atomics(known, q, alone, own)),
                              static_cast<bool>(kernel_atomic(known, q, own)))
                        << machine << ' ' << name(kind);
                }
            });
        }
    }
}

TEST(Atomics, EachMissingLegIsItsOwnAnswer) {  // keeps G2
    const auto reason = [](const char* machine, K kind) {
        return std::string(shared_atomic(of_machine(machine), {.kind = kind}).reason);
    };
    EXPECT_NE(reason("h200", K::host).find("88"), std::string::npos) << "the GPU's access is missing";
    EXPECT_NE(reason("orin", K::managed).find("89"), std::string::npos) << "the CPU's access is missing";
    EXPECT_NE(reason("h200", K::pinned).find("86"), std::string::npos) << "the link's rule is missing";
    EXPECT_NE(reason("h200", K::device), reason("h200", K::pinned));
    for (const char* machine : gpu_machines) {
        const Capabilities c = of_machine(machine);
        for_every_kind([&](K kind) {
            const AccessAnswer answer = shared_atomic(c, {.kind = kind});
            EXPECT_FALSE(answer.reason.empty());
            EXPECT_EQ(answer.remedy.empty(), answer.verdict == Verdict::yes);
        });
    }
}

TEST(Atomics, UnknownProvenanceIsNotVerified) {  // keeps A9
    for (const K kind : {K::unknown, K::vmm}) {
        EXPECT_EQ(shared_atomic(of_machine("thor"), {.kind = kind}).verdict, Verdict::not_verified);
    }
    EXPECT_EQ(shared_atomic(of_machine("thor"), {.kind = K::imported}).verdict, Verdict::no) << "no CPU reaches it";
}

TEST(Atomics, OnTheCpuDeviceBothSidesAreThreads) {
    EXPECT_TRUE(shared_atomic(cpu(), {.kind = K::host}));
    EXPECT_TRUE(shared_atomic(cpu(), {.kind = K::host, .operation = Op::float_add, .width_bytes = 8}));
}

TEST(LoadsAndStores, WorkWhereverBothSidesReachTheMemory) {  // keeps G10 (what a mailbox stands on)
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits);
        for_every_kind([&](K kind) {
            const bool both = host_access(c, kind) && device_access(c, kind) && kind != K::write_combined;
            for (const int width : {1, 2, 4, 8, 16}) {
                ASSERT_EQ(static_cast<bool>(shared_load_store(c, kind, width)), both) << name(kind) << " " << bits;
            }
            EXPECT_FALSE(shared_load_store(c, kind, 3));
            EXPECT_FALSE(shared_load_store(c, {.kind = kind, .width_bytes = 16, .host_has_16 = false}));
            EXPECT_EQ(static_cast<bool>(shared_load_store(c, {.kind = kind, .width_bytes = 8, .host_has_16 = false})),
                      both);
        });
    }
    for (const char* machine : gpu_machines) {
        EXPECT_TRUE(shared_load_store(of_machine(machine), K::pinned, 8)) << machine;
    }
}

}  // namespace
