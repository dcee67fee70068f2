// SPDX-License-Identifier: Apache-2.0
// Checks atomics of launches and of the host against the rules, and reports the condition that is not met.
#include "atomic_guard.hpp"

#include "access_rules.hpp"
#include "atomic_rules.hpp"
#include "buffer_state.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "kernel_argument.hpp"
#include "launch_access.hpp"
#include "launch_errors.hpp"
#include "launch_judge.hpp"
#include "sharing_rules.hpp"

#include <isthmus/atomic_pair.hpp>
#include <platform/os.hpp>

#include <string>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using rules::AtomicQuestion;

bool is_pageable(MemoryKind kind) {
    return kind == MemoryKind::host || kind == MemoryKind::host_numa;
}

bool is_of_file(BufferState& buffer) {
    return buffer.memory.of_file([&] {
        return platform::os::may_be_file_mapped(reinterpret_cast<std::uintptr_t>(buffer.memory->host),
                                                buffer.memory->bytes);
    });
}

// Mapped memory on the host follows the rule for pinned memory.
MemoryKind kind_by_place(MemoryKind kind, bool on_host) {
    return kind == MemoryKind::vmm && on_host ? MemoryKind::pinned : kind;
}

AtomicQuestion question_of(const AtomicWish& wish, MemoryKind kind, std::uint64_t address) {
    AtomicQuestion question;
    question.kind = kind;
    question.width_bytes = static_cast<int>(wish.width_bytes);
    question.is_signed = wish.is_signed;
    question.address = address;
    return question;
}

// "adding to signed words of 4 bytes in pinned memory of H200"
std::string in_words(const AtomicWish& wish, int operation, std::string_view memory) {
    const std::string what =
        operation < 0 ? "atomics" : composed("atomic {}", name(static_cast<AtomicOperation>(operation)));
    const bool is_float = operation == static_cast<int>(AtomicOperation::float_add);
    std::string words = " words";
    if (!is_float) words = (wish.is_signed ? " signed" : " unsigned") + words;
    return composed("{} on{} of {} bytes in {}", what, words, wish.width_bytes, memory);
}

// The error code: misaligned word, a side without access, or the rule.
Code code_of(const Capabilities& device, const AtomicQuestion& question, const AccessAnswer& answer) {
    if (answer.verdict == Verdict::not_verified) return Code::unverified;
    if (question.address % static_cast<std::uint64_t>(question.width_bytes) != 0) return Code::invalid_argument;
    const bool both = rules::device_access(device, question.kind) && rules::host_access(device, question.kind);
    return both ? Code::unsupported : Code::not_accessible;
}

// The remedy on this machine (G2): a memory kind in which these updates are atomic, otherwise a way without atomics.
std::string what_works(const Capabilities& device, const AtomicQuestion& question, AtomicSet operations) {
    for (const MemoryKind kind : {MemoryKind::managed, MemoryKind::pinned, MemoryKind::host}) {
        AtomicQuestion other = question;
        other.kind = kind;
        other.address = 0;
        other.file_mapped = false;
        other.io_memory = false;
        if (kind == question.kind || !rules::shared_atomics(device, other, operations)) continue;
        return composed(
            "ask allocate_shared for {} memory (.kind = MemoryKind::{}), where this is atomic, or count in a "
            "ShardedCounter",
            name(kind), name(kind));
    }
    return "count in a ShardedCounter (one lane per side), or send messages by plain loads and stores";
}

Error refusal(const Capabilities& device, const AtomicQuestion& question, const AccessAnswer& answer,
              const std::string& what, AtomicSet operations) {
    const Code code = code_of(device, question, answer);
    const bool of_memory = (code == Code::unsupported && !question.file_mapped) || code == Code::not_accessible;
    return make_error_as<errors::atomics_refused>(
        code, what, answer.reason, of_memory ? what_works(device, question, operations) : std::string(answer.remedy));
}

// For the CPU device and memory of a GPU, that GPU's link decides.
const Capabilities& deciding_capabilities(const DeviceState& device, const DeviceState* owner) {
    return device.synchronous && owner != nullptr ? owner->capabilities : device.capabilities;
}

// Mapped memory belongs to the device on which it lies, not to the device that reserved the addresses.
bool is_own(const DeviceState& device, const BufferState& buffer, const LaunchArgument& given,
            const ParameterInfo& parameter) {
    if (buffer.memory->host != nullptr || !is_mapped(buffer)) return buffer.device.get() == &device;
    const std::uint64_t first = buffer.memory->device_address + (given.is_part ? given.first_byte : 0);
    const std::uint64_t bytes = given.is_part ? raw_bytes(given, parameter) : buffer.memory->bytes;
    const int lies = device.books->mapped.over(first, bytes, device.index).lies;
    return lies == static_cast<int>(device.index);
}

Result<void> check_buffer(const DeviceState& device, const KernelInfo& kernel, std::uint32_t at,
                          const LaunchArgument& given, const AtomicWish& wish) {
    BufferState& buffer = **given.buffer;
    if (kernel.parameter[at].own_device) {
        if (buffer.device.get() == &device) return {};
        return make_error<errors::argument_of_one_device_only>(argument_text(kernel, at), named(device));
    }
    if (given.is_part ? given.raw_count == 0 : buffer.memory->bytes == 0) return {};
    const bool own = is_own(device, buffer, given, kernel.parameter[at]);
    const MemoryKind kind = kind_by_place(buffer.memory->kind, buffer.memory->host != nullptr);
    if (own && !buffer.memory->io_memory &&
        device.atomics.all_of(wish.operations, kind, wish.width_bytes, wish.is_signed) &&
        buffer.memory->device_address % wish.width_bytes == 0) {
        return {};
    }
    // On the CPU device a staged buffer is its host side, which the launch uses exclusively.
    if (device.synchronous && buffer.staged()) return {};
    const Capabilities& decides = deciding_capabilities(device, buffer.device.get());
    AtomicQuestion question = question_of(wish, kind, buffer_address(device, buffer));
    question.io_memory = buffer.memory->io_memory;
    if (is_pageable(buffer.memory->kind) && decides.translation == Translation::hmm)
        question.file_mapped = is_of_file(buffer);
    const AccessAnswer answer = rules::kernel_atomics(decides, question, wish.operations, own);
    if (answer) return {};
    return refusal(
        decides, question, answer,
        composed("{} asks for {}", argument_text(kernel, at), in_words(wish, answer.part, described(buffer))),
        wish.operations);
}

Result<void> check_raw(const DeviceState& device, const KernelInfo& kernel, std::uint32_t at,
                       const LaunchArgument& given, const AtomicWish& wish) {
    if (given.raw_count == 0) return {};
    const auto address = reinterpret_cast<std::uintptr_t>(given.raw);
    const Provenance memory = provenance_of(device, address);
    bool own = memory.owner.get() == &device;
    if (kernel.parameter[at].own_device) {
        if (own) return {};
        return make_error<errors::argument_of_one_device_only>(argument_text(kernel, at), named(device));
    }
    const Capabilities& decides = deciding_capabilities(device, memory.owner.get());
    MemoryKind kind = memory.kind;
    if (is_mapped(device, memory, address)) {
        // The device that reserved the addresses need not be the one whose memory is mapped there.
        const std::uint64_t bytes = raw_bytes(given, kernel.parameter[at]);
        const int lies = device.books->mapped.over(address, bytes, device.index).lies;
        kind = kind_by_place(kind, lies == rules::RangeFacts::on_host);
        own = lies == static_cast<int>(device.index);
    }
    AtomicQuestion question = question_of(wish, kind, address);
    if (is_pageable(memory.kind) && decides.translation == Translation::hmm) {
        question.file_mapped = platform::os::may_be_file_mapped(address, given.raw_count * wish.width_bytes);
    }
    AccessAnswer answer = rules::kernel_atomics(decides, question, wish.operations, own);
    // The driver does not report whether memory registered by other code is I/O memory: examine the mapping.
    if (answer && memory.foreign && memory.kind == MemoryKind::pinned && !device.synchronous) {
        const void* const first = given.raw;
        const platform::os::MappingFacts mapping =
            platform::os::mapping_facts(first, given.raw_count * wish.width_bytes);
        question.io_memory = !mapping.known || !mapping.mapped || mapping.device_mapping;
        answer = rules::kernel_atomics(decides, question, wish.operations, own);
    }
    if (answer) return {};
    return refusal(
        decides, question, answer,
        composed("{} asks for {}", argument_text(kernel, at), in_words(wish, answer.part, described(memory))),
        wish.operations);
}

}  // namespace

Result<void> check_kernel_atomics(const DeviceState& device, const KernelInfo& kernel, std::uint32_t argument,
                                  const LaunchArgument& given) {
    const ParameterInfo& parameter = kernel.parameter[argument];
    const AtomicWish wish{parameter.atomics, parameter.element_bytes, parameter.is_signed};
    if (given.buffer == nullptr) return check_raw(device, kernel, argument, given, wish);
    if (*given.buffer == nullptr) return {};  // judge_one() refuses it
    return check_buffer(device, kernel, argument, given, wish);
}

namespace {

// Linux reports FEAT_LSE2 as the hardware capability USCAT.
#if defined(__aarch64__)
bool cpu_has_pairs() noexcept {
    constexpr unsigned long uscat = 1ul << 25;
    return (getauxval(AT_HWCAP) & uscat) != 0;
}
#elif defined(__x86_64__)
bool cpu_has_pairs() noexcept {
    return __builtin_cpu_supports("avx") != 0;
}
#endif

}  // namespace

Result<void> check_host_atomics(BufferState& buffer, const AtomicWish& wish) {
    const bool updates_nothing = wish.operations == AtomicSet::load_store;
    if ((updates_nothing && wish.width_bytes < 16) || buffer.memory->bytes == 0) return {};
    const Capabilities& decides = buffer.device->capabilities;
    const Words memory = described(buffer);
    AtomicQuestion question =
        question_of(wish, buffer.memory->kind, reinterpret_cast<std::uintptr_t>(buffer.memory->host));
    question.io_memory = buffer.memory->io_memory;
    const AccessAnswer together = buffer.concurrent_access();
    if (!together) {
        const Code code = together.verdict == Verdict::not_verified ? Code::unverified : Code::not_accessible;
        return make_error_as<errors::atomics_refused>(
            code, in_words(wish, -1, memory), together.reason,
            updates_nothing ? std::string(together.remedy) : what_works(decides, question, wish.operations));
    }
    if (is_pageable(buffer.memory->kind) && decides.translation == Translation::hmm)
        question.file_mapped = is_of_file(buffer);
    const rules::LoadStoreQuestion whole{buffer.memory->kind, question.width_bytes, question.io_memory,
                                         question.address, host_has_pairs()};
    const AccessAnswer answer = updates_nothing ? rules::shared_load_store(decides, whole)
                                                : rules::shared_atomics(decides, question, wish.operations);
    if (answer) return {};
    if (updates_nothing) {
        return make_error_as<errors::atomics_refused>(code_of(decides, question, answer), in_words(wish, -1, memory),
                                                      answer.reason, answer.remedy);
    }
    return refusal(decides, question, answer, in_words(wish, answer.part, memory), wish.operations);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus

namespace isthmus {
inline namespace v0 {

bool host_has_pairs() noexcept {
    return detail::cpu_has_pairs();
}

}  // namespace v0
}  // namespace isthmus
