// SPDX-License-Identifier: Apache-2.0
// The devices that the process sees.
#include "visible_devices.hpp"

#include "types.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace isthmus::sim {
namespace {

using platform::machines::DeviceRecord;

// "GPU-8f1c0a52-..." in small letters
std::string uuid_text(const DeviceRecord& device) {
    std::string text = "gpu-";
    if (!device.facts.uuid) return text;
    for (std::size_t i = 0; i < 16; ++i) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(device.facts.uuid.bytes[i]));
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += digits;
    }
    return text;
}

std::array<int, 3> bus_place(const DeviceRecord& device) {
    return {device.facts.attribute(attribute::pci_domain).value_or(0),
            device.facts.attribute(attribute::pci_bus).value_or(0),
            device.facts.attribute(attribute::pci_device).value_or(0)};
}

std::string_view without_blanks(std::string_view word) {
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    return word;
}

// The place in `numbered` of the device that the word names.
std::optional<std::size_t> place_of(const std::vector<DeviceRecord>& devices, const std::vector<int>& numbered,
                                    std::string_view word) {
    std::string wanted(word);
    char* end = nullptr;
    const long number = std::strtol(wanted.c_str(), &end, 0);
    if (!wanted.empty() && *end == '\0') {
        const bool there = number >= 0 && static_cast<std::size_t>(number) < numbered.size();
        return there ? std::optional(static_cast<std::size_t>(number)) : std::nullopt;
    }
    std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    constexpr std::string_view prefix = "gpu-";
    if (wanted.size() <= prefix.size() || wanted.compare(0, prefix.size(), prefix) != 0) return std::nullopt;
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < numbered.size(); ++i) {
        const DeviceRecord& device = devices[static_cast<std::size_t>(numbered[i])];
        if (uuid_text(device).compare(0, wanted.size(), wanted) != 0) continue;
        if (found) return std::nullopt;  // ambiguous
        found = i;
    }
    return found;
}

}  // namespace

std::optional<std::vector<int>> visible_devices(const std::vector<DeviceRecord>& devices, const char* visible,
                                                const char* order) {
    const std::string_view wanted_order = order ? order : "FASTEST_FIRST";
    if (wanted_order != "FASTEST_FIRST" && wanted_order != "PCI_BUS_ID") return std::nullopt;
    std::vector<int> numbered(devices.size());
    std::iota(numbered.begin(), numbered.end(), 0);
    if (wanted_order == "PCI_BUS_ID") {
        std::stable_sort(numbered.begin(), numbered.end(), [&](int a, int b) {
            return bus_place(devices[static_cast<std::size_t>(a)]) < bus_place(devices[static_cast<std::size_t>(b)]);
        });
    }
    if (!visible) return numbered;
    std::vector<int> kept;
    std::string_view rest = visible;
    for (bool more = !rest.empty(); more;) {
        const std::size_t at = rest.find(',');
        const std::optional<std::size_t> place = place_of(devices, numbered, without_blanks(rest.substr(0, at)));
        if (!place) break;
        if (std::find(kept.begin(), kept.end(), numbered[*place]) != kept.end()) return std::nullopt;
        kept.push_back(numbered[*place]);
        more = at != std::string_view::npos;
        if (more) rest.remove_prefix(at + 1);
    }
    return kept;
}

void keep_devices(platform::machines::MachineRecord& record, const std::vector<int>& kept) {
    std::vector<int> number_now(record.devices.size(), -1);
    for (std::size_t i = 0; i < kept.size(); ++i) number_now[static_cast<std::size_t>(kept[i])] = static_cast<int>(i);
    std::vector<DeviceRecord> devices;
    for (const int old : kept) {
        DeviceRecord device = record.devices[static_cast<std::size_t>(old)];
        device.facts.ordinal = static_cast<int>(devices.size());
        const auto is_hidden = [&](const platform::machines::PeerRecord& peer) {
            return peer.ordinal < 0 || peer.ordinal >= static_cast<int>(number_now.size()) ||
                   number_now[static_cast<std::size_t>(peer.ordinal)] < 0;
        };
        device.peers.erase(std::remove_if(device.peers.begin(), device.peers.end(), is_hidden), device.peers.end());
        for (platform::machines::PeerRecord& peer : device.peers) {
            peer.ordinal = number_now[static_cast<std::size_t>(peer.ordinal)];
        }
        devices.push_back(std::move(device));
    }
    record.devices = std::move(devices);
}

}  // namespace isthmus::sim
