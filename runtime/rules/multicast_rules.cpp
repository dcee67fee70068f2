// SPDX-License-Identifier: Apache-2.0
// Decisions about multicast objects.
#include "multicast_rules.hpp"

#include <algorithm>

namespace isthmus::rules {
namespace {

constexpr MappingAnswer fine{};
constexpr std::string_view instead = "write to the memory of each device, or copy between them";

MappingAnswer no(Code code, std::string_view reason, std::string_view remedy) noexcept {
    return {code, reason, remedy};
}

bool fits(std::size_t offset, std::size_t bytes, std::size_t all) noexcept {
    return bytes <= all && offset <= all - bytes;
}

}  // namespace

MappingAnswer may_join(const Capabilities& device, bool has_functions) {
    if (device.memory == MemoryModel::host) {
        return no(Code::unsupported, "the CPU device takes no part in multicast: it joins GPUs over NVLink switches",
                  "name GPUs only");
    }
    if (!device.has(Feature::multicast)) {
        return no(Code::unsupported, device.feature(Feature::multicast).reason, instead);
    }
    if (!has_functions) {
        return no(Code::unsupported, "this driver lacks functions that multicast objects need (CUDA 12.1)",
                  "update the driver");
    }
    return fine;
}

MappingAnswer may_make_team(const Capabilities& device, const TeamWish& wish, std::size_t joining_here) {
    if (wish.bytes == 0) {
        return no(Code::invalid_argument, "0 bytes were asked for", "ask for at least one byte");
    }
    if (wish.devices < 2) {
        return no(Code::invalid_argument, "a multicast object stands for memory of two devices or more",
                  "name how many devices will be added; one reaches its own memory without it");
    }
    if (includes(wish.exports, ExportKinds::posix_fd) && !device.has(Feature::export_posix_fd)) {
        return no(Code::unsupported, device.feature(Feature::export_posix_fd).reason,
                  "make it without ExportKinds::posix_fd");
    }
    if (includes(wish.exports, ExportKinds::fabric) && !device.has(Feature::export_fabric)) {
        return no(Code::unsupported, device.feature(Feature::export_fabric).reason,
                  "make it without ExportKinds::fabric");
    }
    if (wish.exports == ExportKinds::none && wish.devices > joining_here) {
        return no(Code::unsupported,
                  "more devices were asked for than take part here, and without ExportKinds no other process adds any",
                  "ask for as many as take part, or make it exportable for the processes of the others");
    }
    return fine;
}

MappingAnswer may_add(const TeamFacts& team, bool joined_before) noexcept {
    if (joined_before) return no(Code::invalid_argument, "this device was added before", "add each device once");
    if (team.joined < team.size) return fine;
    return no(Code::invalid_argument, "all devices that it was made for were added",
              "make the group for as many devices as will be added");
}

MappingAnswer may_complete(const TeamFacts& team, std::size_t elsewhere) noexcept {
    if (elsewhere > 0 && !team.shared) {
        return no(Code::invalid_argument, "no other process knows this group: it was made without ExportKinds",
                  "add every device here, or make the group exportable");
    }
    const std::size_t missing = team.size - team.joined;
    if (elsewhere == missing) return fine;
    if (elsewhere > missing) {
        return no(Code::invalid_argument, "more devices would have been added than the group was made for",
                  "count the devices that other processes added, without those of this one");
    }
    return no(Code::not_ready, "not all devices were added, and the driver would wait for them in every bind and map",
              "add the missing devices, or say how many other processes have added");
}

MappingAnswer may_bind(const BindWish& wish, std::span<const MappedSpan> bound) noexcept {
    if (!wish.same_runtime) {
        return no(Code::wrong_device, "the memory belongs to another runtime", "create it with a device of this one");
    }
    if (wish.on_host) {
        return no(Code::unsupported, "memory on the host is not bound: a multicast object stands for memory of GPUs",
                  "create the memory with MemoryPlace::Where::device");
    }
    if (!wish.joined) {
        return no(Code::wrong_device, "the device whose memory it is was not added to the group",
                  "bind memory of the devices that were added");
    }
    if (wish.team_shared && !wish.memory_shared) {
        return no(Code::unsupported, "what is bound to an exportable object has to be exportable, too",
                  "create the memory with PhysicalOptions::exports");
    }
    const bool whole = wish.granularity != 0 && wish.offset % wish.granularity == 0 &&
                       wish.memory_offset % wish.granularity == 0 && wish.bytes % wish.granularity == 0 &&
                       wish.address % wish.granularity == 0;
    if (wish.bytes == 0 || !whole) {
        return no(Code::invalid_argument, "offsets, size and address are not multiples of the granularity",
                  "round them: multicast_granularity() tells it, and PhysicalMemory may be created as large");
    }
    if (!fits(wish.offset, wish.bytes, wish.team_bytes) || !fits(wish.memory_offset, wish.bytes, wish.memory_bytes)) {
        return no(Code::invalid_argument, "the range reaches beyond the object or the memory",
                  "make the group as large as the memory that will be bound");
    }
    const bool taken = std::any_of(bound.begin(), bound.end(), [&](const MappedSpan& other) {
        return other.offset < wish.offset + wish.bytes && wish.offset < other.offset + other.bytes;
    });
    if (!taken) return fine;
    return no(Code::in_use, "memory of this device is bound there already", "unbind it first, or take another offset");
}

MappingAnswer may_map_team(std::uint64_t address, std::size_t granularity) noexcept {
    if (granularity != 0 && address % granularity == 0) return fine;
    return no(Code::invalid_argument, "the address is no multiple of the object's granularity",
              "reserve with that alignment (multicast_granularity()), and map at a multiple of it");
}

MappingAnswer may_multimem(bool joined, int compute_major) noexcept {
    if (!joined) {
        return no(Code::wrong_device, "the device was not added to the group", "let in devices that were added");
    }
    if (compute_major >= 9) return fine;
    return no(Code::unsupported, "multimem instructions, for which these addresses are, need compute capability 9.0",
              instead);
}

}  // namespace isthmus::rules
