// SPDX-License-Identifier: Apache-2.0
// Reads the simulator's counts.
#include "simulation.hpp"

#include <driver_abi/sim_statistics.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>

namespace isthmus::tools::simulate {
namespace {

constexpr int not_supported = 801;

// The text up to its end or the array's: the file may be damaged.
template <std::size_t size>
std::string text_of(const char (&text)[size]) {
    return std::string(text, ::strnlen(text, size));
}

template <std::size_t size>
std::vector<Counted> counted(const isthmus_sim_calls (&places)[size]) {
    std::vector<Counted> all;
    for (const isthmus_sim_calls& place : places) {
        if (place.count > 0) all.push_back({text_of(place.name), place.count});
    }
    std::stable_sort(all.begin(), all.end(), [](const Counted& a, const Counted& b) { return a.count > b.count; });
    return all;
}

std::vector<Answer> answers_of(const isthmus_sim_statistics& file) {
    std::vector<Answer> all;
    for (const isthmus_sim_answers& place : file.answers) {
        const std::uint64_t index = (place.key >> 32) - 1;
        if (place.key == 0 || place.count == 0 || index >= std::size(file.calls)) continue;
        all.push_back({text_of(file.calls[index].name), static_cast<int>(place.key & 0xffffffffu), place.count});
    }
    for (const isthmus_sim_calls& place : file.refused) {
        if (place.count > 0) all.push_back({text_of(place.name), not_supported, place.count});
    }
    std::sort(all.begin(), all.end(),
              [](const Answer& a, const Answer& b) { return a.call != b.call ? a.call < b.call : a.code < b.code; });
    return all;
}

std::vector<Copied> copies_of(const isthmus_sim_statistics& file) {
    constexpr std::array<std::string_view, 3> places = {"host", "device", "managed"};
    std::vector<Copied> all;
    for (std::size_t from = 0; from < places.size(); ++from) {
        for (std::size_t to = 0; to < places.size(); ++to) {
            const isthmus_sim_amount& amount = file.copies[from][to];
            if (amount.count > 0) all.push_back({places[from], places[to], amount.count, amount.bytes});
        }
    }
    return all;
}

}  // namespace

int Ending::exit_code() const noexcept {
    if (!problem.empty()) return 1;
    return signal != 0 ? 128 + signal : status;
}

std::string Ending::text() const {
    if (!problem.empty()) return problem;
    if (signal != 0) return fmt::format("ended by signal {} ({})", signal, ::strsignal(signal));
    return fmt::format("exit code {}", status);
}

std::uint64_t Counts::all_calls() const noexcept {
    return std::accumulate(calls.begin(), calls.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Counted& one) { return sum + one.count; });
}

std::uint64_t Counts::copied_bytes() const noexcept {
    return std::accumulate(copies.begin(), copies.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Copied& one) { return sum + one.bytes; });
}

std::uint64_t Counts::refused() const noexcept {
    return std::accumulate(refusals.begin(), refusals.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Answer& one) { return sum + one.count; });
}

bool is_about_the_simulator(std::string_view message) noexcept {
    return message.find("not modelled") != std::string_view::npos ||
           message.find("no kernel with a registered CPU twin") != std::string_view::npos ||
           message.find("no function stands in") != std::string_view::npos;
}

std::string without_addresses(std::string_view message) {
    std::string out;
    for (std::size_t at = 0; at < message.size();) {
        const bool begins = message.substr(at, 2) == "0x";
        out += begins ? std::string("0x…") : std::string(1, message[at]);
        at += begins ? 2 : 1;
        while (begins && at < message.size() && std::isxdigit(static_cast<unsigned char>(message[at])) != 0) ++at;
    }
    return out;
}

std::optional<Counts> read_counts(std::string_view bytes) {
    if (bytes.empty()) return Counts{};
    if (bytes.size() != sizeof(isthmus_sim_statistics)) return std::nullopt;
    const auto file = std::make_unique<isthmus_sim_statistics>();
    std::memcpy(file.get(), bytes.data(), sizeof *file);
    if (file->magic != ISTHMUS_SIM_STATISTICS_MAGIC || file->size_bytes != sizeof *file) return std::nullopt;
    Counts counts;
    counts.processes = file->processes;
    counts.kernels = file->kernels;
    counts.kernels_from_ptx = file->kernels_from_ptx;
    counts.fills = file->fills.count;
    counts.filled_bytes = file->fills.bytes;
    counts.calls = counted(file->calls);
    counts.refusals = answers_of(*file);
    counts.copies = copies_of(*file);
    counts.unsupported = counted(file->refused);
    counts.dropped = file->dropped;
    for (const isthmus_sim_fault& fault : file->faults) {
        if (fault.key != 0) counts.faults.push_back({static_cast<int>(fault.key), fault.count});
    }
    std::sort(counts.faults.begin(), counts.faults.end(),
              [](const Fault& a, const Fault& b) { return a.code < b.code; });
    for (const isthmus_sim_message& message : file->messages) {
        if (message.key == 0 || message.written == 0) continue;
        std::string text = text_of(message.text);
        const bool is_ours = is_about_the_simulator(text);
        (is_ours ? counts.unsupported : counts.caught).push_back({std::move(text), message.count});
    }
    for (const Counted& one : counts.unsupported) {
        if (one.name == "cuGetExportTable") counts.asks_for_private_tables = true;
    }
    std::sort(counts.caught.begin(), counts.caught.end(),
              [](const Counted& a, const Counted& b) { return a.name < b.name; });
    return counts;
}

std::vector<std::string> notes_of(const Counts& counts) {
    std::vector<std::string> notes;
    if (counts.processes == 0) {
        notes.emplace_back(
            "the program made no call of the simulated driver: it does not use libcuda.so.1, opens another one by its "
            "path, or ended before");
    }
    if (counts.asks_for_private_tables) {
        notes.emplace_back(
            "the program uses the CUDA runtime library (libcudart), which needs private tables of NVIDIA's driver "
            "(cuGetExportTable): only programs on the driver API (cu…) can be simulated");
    }
    if (counts.dropped > 0) {
        notes.push_back(fmt::format("{} events found no place in the counts", counts.dropped));
    }
    return notes;
}

}  // namespace isthmus::tools::simulate
