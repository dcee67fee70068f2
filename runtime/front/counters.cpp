// SPDX-License-Identifier: Apache-2.0
// Counters: what the runtime's books and devices have counted, and its text.
#include <isthmus/counters.hpp>

#include "counter_list.hpp"

namespace isthmus {
inline namespace v0 {

std::string prometheus_text(const std::vector<Counter>& counters) {
    std::string text;
    std::string_view last;
    for (const Counter& counter : counters) {
        if (counter.name != last) {
            text.append("# HELP ").append(counter.name).append(" ").append(counter.help).append("\n# TYPE ");
            text.append(counter.name).append(counter.falls ? " gauge\n" : " counter\n");
            last = counter.name;
        }
        text.append(counter.name);
        if (counter.device >= 0) text.append("{device=\"").append(std::to_string(counter.device)).append("\"}");
        text.append(" ").append(std::to_string(counter.value)).append("\n");
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

}  // namespace

std::vector<Counter> list_counters(const Books& books, const std::vector<std::shared_ptr<DeviceState>>& devices) {
    std::vector<Counter> all;
    const auto add = [&](std::string_view name, std::string_view help, std::uint64_t value) {
        all.push_back({name, help, value});
    };
    const auto read = [](const std::atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
    const LaunchBooks& launches = books.launches;
    // The ended ones first: a stream that ends meanwhile is missing once, and not counted twice.
    std::uint64_t operations = read(launches.ended_operations);
    for (const std::shared_ptr<DeviceState>& device : devices) operations += operations_of(*device);
    add("isthmus_operations_total", "Operations given to streams: launches, copies, fills, and the runtime's own.",
        operations);
    add("isthmus_uploads_total", "Copies of the content of buffers and arguments to the device's side.",
        read(launches.uploads));
    add("isthmus_uploaded_bytes_total", "Their bytes.", read(launches.uploaded_bytes));
    add("isthmus_downloads_total", "Copies of the content of buffers and arguments to the host's side.",
        read(launches.downloads));
    add("isthmus_downloaded_bytes_total", "Their bytes.", read(launches.downloaded_bytes));
    add("isthmus_waits_total", "Waits of the host for work of a stream.", read(launches.waits));
    add("isthmus_waited_nanoseconds_total", "The time of these waits.", read(launches.waited_ns));
    add("isthmus_fences_total", "Events that the runtime recorded behind a stream's work by itself.",
        read(launches.fences));
    add("isthmus_refused_launches_total", "Launches that ended with an error.", read(launches.refused_launches));
    add("isthmus_refused_views_total", "Host views that ended with an error instead of opening.",
        read(launches.refused_views));
    add("isthmus_budget_refusals_total", "Allocations that were refused because the system would lack the memory.",
        read(launches.budget_refusals));
    add("isthmus_unverified_arguments_total", "Launch arguments that passed although they could not be judged.",
        read(launches.unverified_arguments));
    add("isthmus_warnings_total", "Warnings about launch arguments.", read(launches.warnings_given));
    add("isthmus_staged_launches_total", "Launches that copied arguments around their kernel.",
        read(launches.staged_launches));
    add("isthmus_prefetches_total", "Prefetches of managed memory before launches.", read(launches.prefetches));
    add("isthmus_failed_hints_total", "Prefetches that the driver refused.", read(launches.failed_hints));
    add("isthmus_order_violations_total", "Arguments used on a stream before they were ordered there.",
        books.order ? books.order->violations() : 0);
    struct Of {
        std::string_view name, help;
        std::uint64_t (*value)(const PieceCache::Usage&);
        bool falls;
    };
    constexpr Of kept[] = {
        {"isthmus_kept_bytes", "Released memory that is kept for later allocations.",
         [](const PieceCache::Usage& usage) { return usage.bytes; }, true},
        {"isthmus_cache_hits_total", "Allocations that kept memory served.",
         [](const PieceCache::Usage& usage) { return usage.taken; }, false},
        {"isthmus_cache_misses_total", "Allocations that asked the driver or the system.",
         [](const PieceCache::Usage& usage) { return usage.missed; }, false},
    };
    for (const Of& one : kept) {
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
