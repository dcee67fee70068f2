// SPDX-License-Identifier: Apache-2.0
// The facts of a simulated machine, stated by the simulator in place of the operating system.
#include "cuda_device.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace isthmus::platform::cuda {
namespace {

std::optional<std::string> ask(isthmus_sim_fact_fn fact, const char* key) {
    std::string value(4096, '\0');
    const int length = fact(key, value.data(), value.size());
    if (length < 0) return std::nullopt;
    value.resize(std::min(static_cast<std::size_t>(length), value.size() - 1));
    return value;
}

template <class Number>
bool parse(std::string_view text, Number& number) {
    Number parsed{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (error != std::errc() || end != text.data() + text.size()) return false;
    number = parsed;
    return true;
}

// Returns the part before the separator and leaves the part after it in `text`.
std::string_view take(std::string_view& text, char separator) {
    const std::size_t at = text.find(separator);
    const std::string_view part = text.substr(0, at);
    text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
    return part;
}

// Parses "id:cpus:bytes" entries joined by ','.
std::vector<NumaNode> parse_nodes(std::string_view text) {
    std::vector<NumaNode> nodes;
    while (!text.empty()) {
        std::string_view entry = take(text, ',');
        NumaNode node;
        const bool whole = parse(take(entry, ':'), node.id) && parse(take(entry, ':'), node.cpu_count) &&
                           parse(entry, node.memory_bytes);
        if (whole) nodes.push_back(node);
    }
    return nodes;
}

void set_param(MachineFacts& machine, std::string_view key, std::string value) {
    for (auto& [name, old] : machine.nvidia_params) {
        if (name == key) {
            old = std::move(value);
            return;
        }
    }
    machine.nvidia_params.emplace_back(key, std::move(value));
}

}  // namespace

void read_simulated_machine(isthmus_sim_fact_fn fact, MachineFacts& machine) {
    machine.simulated = true;
    // Only parameters that decide something, or that doctor shows.
    for (const std::string_view key : {"CoherentGPUMemoryMode", "ImexChannelCount", "CreateImexChannel0"}) {
        if (auto value = ask(fact, ("nvidia_params." + std::string(key)).c_str())) {
            set_param(machine, key, std::move(*value));
        }
    }
    if (const auto value = ask(fact, "imex_channels_major")) parse(*value, machine.imex_channels_major);
    if (const auto value = ask(fact, "imex_channel_files")) parse(*value, machine.imex_channel_files);
    if (auto value = ask(fact, "addressing_mode")) machine.addressing_mode = std::move(*value);
    if (const auto value = ask(fact, "page_size_bytes")) parse(*value, machine.page_size_bytes);
    if (auto value = ask(fact, "kernel_release")) machine.kernel_release = std::move(*value);
    if (auto value = ask(fact, "cpu_name")) machine.cpu_name = std::move(*value);
    if (const auto value = ask(fact, "numa_nodes")) machine.numa_nodes = parse_nodes(*value);
    for (NumaNode& node : machine.numa_nodes) {
        if (auto cpus = ask(fact, ("numa_cpus." + std::to_string(node.id)).c_str())) node.cpus = std::move(*cpus);
    }
}

std::optional<PciPlace> read_simulated_pci(isthmus_sim_fact_fn fact, int ordinal) {
    const std::optional<std::string> value = ask(fact, ("pci." + std::to_string(ordinal)).c_str());
    if (!value) return std::nullopt;
    std::string_view rest = *value;
    PciPlace place;
    const bool whole = parse(take(rest, ':'), place.speed_mt_per_s) && parse(take(rest, ':'), place.lanes) &&
                       parse(take(rest, ':'), place.max_speed_mt_per_s) && parse(take(rest, ':'), place.max_lanes) &&
                       parse(take(rest, ':'), place.numa_node);
    if (!whole) return std::nullopt;
    place.near_cpus = std::string(rest);
    return place;
}

}  // namespace isthmus::platform::cuda
