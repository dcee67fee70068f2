// SPDX-License-Identifier: Apache-2.0
// Counters: what the runtime's books and devices have counted, and its text.
#include <isthmus/counters.hpp>

#include "counter_list.hpp"

#include <array>
#include <charconv>
#include <initializer_list>
#include <iterator>
#include <string_view>

namespace isthmus {
inline namespace v0 {

namespace {
// Out of line: the text has many pieces.
[[gnu::noinline]] void append(std::string& text, std::initializer_list<std::string_view> pieces) {
    for (const std::string_view piece : pieces) text.append(piece);
}
}  // namespace

std::string prometheus_text(const std::vector<Counter>& counters) {
    std::string text;
    std::string_view last;
    std::array<char, 24> digits{};
    const auto decimal = [&](auto value) -> std::string_view {
        return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
    };
    for (const Counter& counter : counters) {
        if (counter.name != last) {
            append(text, {"# HELP ", counter.name, " ", counter.help, "\n# TYPE ", counter.name,
                          counter.falls ? " gauge\n" : " counter\n"});
            last = counter.name;
        }
        append(text, {counter.name});
        if (counter.device >= 0) append(text, {"{device=\"", decimal(counter.device), "\"}"});
        append(text, {" ", decimal(counter.value), "\n"});
    }
    return text;
}

namespace detail {
namespace {

// The operations that streams of the device were given; of its live streams.
std::uint64_t operations_of(DeviceState& device) {
    std::uint64_t sum = 0;
    for (const std::shared_ptr<StreamState>& stream : device.live_streams()) sum += stream->issued;
    return sum;
}

struct OfBooks {
    std::string_view name, help;
    std::atomic<std::uint64_t> LaunchBooks::*value;
};
constexpr OfBooks of_books[] = {
    {"isthmus_uploads_total", "Copies of the content of buffers and arguments to the device's side.",
     &LaunchBooks::uploads},
    {"isthmus_uploaded_bytes_total", "Their bytes.", &LaunchBooks::uploaded_bytes},
    {"isthmus_downloads_total", "Copies of the content of buffers and arguments to the host's side.",
     &LaunchBooks::downloads},
    {"isthmus_downloaded_bytes_total", "Their bytes.", &LaunchBooks::downloaded_bytes},
    {"isthmus_waits_total", "Waits of the host for work of a stream.", &LaunchBooks::waits},
    {"isthmus_waited_nanoseconds_total", "The time of these waits.", &LaunchBooks::waited_ns},
    {"isthmus_fences_total", "Events that the runtime recorded behind a stream's work by itself.",
     &LaunchBooks::fences},
    {"isthmus_refused_launches_total", "Launches that ended with an error.", &LaunchBooks::refused_launches},
    {"isthmus_refused_views_total", "Host views that ended with an error instead of opening.",
     &LaunchBooks::refused_views},
    {"isthmus_budget_refusals_total", "Allocations that were refused because the system would lack the memory.",
     &LaunchBooks::budget_refusals},
    {"isthmus_unverified_arguments_total", "Launch arguments that passed although they could not be judged.",
     &LaunchBooks::unverified_arguments},
    {"isthmus_warnings_total", "Warnings about launch arguments.", &LaunchBooks::warnings_given},
    {"isthmus_staged_launches_total", "Launches that copied arguments around their kernel.",
     &LaunchBooks::staged_launches},
    {"isthmus_prefetches_total", "Prefetches of managed memory before launches.", &LaunchBooks::prefetches},
    {"isthmus_failed_hints_total", "Prefetches that the driver refused.", &LaunchBooks::failed_hints},
};

struct OfDevice {
    std::string_view name, help;
    std::uint64_t (*value)(const PieceCache::Usage&);
    bool falls;
};
constexpr OfDevice of_device[] = {
    {"isthmus_kept_bytes", "Released memory that is kept for later allocations.",
     [](const PieceCache::Usage& usage) { return usage.bytes; }, true},
    {"isthmus_cache_hits_total", "Allocations that kept memory served.",
     [](const PieceCache::Usage& usage) { return usage.taken; }, false},
    {"isthmus_cache_misses_total", "Allocations that asked the driver or the system.",
     [](const PieceCache::Usage& usage) { return usage.missed; }, false},
};

}  // namespace

std::vector<Counter> list_counters(const Books& books, const std::vector<std::shared_ptr<DeviceState>>& devices) {
    std::vector<Counter> all;
    all.reserve(2 + std::size(of_books) + std::size(of_device) * devices.size());
    // The ended ones first: a stream that ends meanwhile is missing once, and not counted twice.
    std::uint64_t operations = books.launches.ended_operations.load(std::memory_order_relaxed);
    for (const std::shared_ptr<DeviceState>& device : devices) operations += operations_of(*device);
    all.push_back({"isthmus_operations_total",
                   "Operations given to streams: launches, copies, fills, and the runtime's own.", operations});
    for (const OfBooks& one : of_books) {
        all.push_back({one.name, one.help, (books.launches.*one.value).load(std::memory_order_relaxed)});
    }
    all.push_back({"isthmus_order_violations_total", "Arguments used on a stream before they were ordered there.",
                   books.order ? books.order->violations() : 0});
    for (const OfDevice& one : of_device) {
        for (const std::shared_ptr<DeviceState>& device : devices) {
            all.push_back(
                {one.name, one.help, one.value(device->cache.usage()), one.falls, static_cast<int>(device->index)});
        }
    }
    return all;
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
