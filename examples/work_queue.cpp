// SPDX-License-Identifier: Apache-2.0
// Tasks that CPU and GPU take from one queue: through one shared number of the next task where the machine lets both
// update it, otherwise in shares that are assigned beforehand.
#include <isthmus/isthmus.hpp>

#include "shared_counts.hpp"

#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr std::uint32_t tasks = 100000;
constexpr std::size_t workers = 256;  // threads of the GPU

// A side that finishes early takes more tasks. Each side keeps its own results until both are done.
isthmus::Result<std::uint32_t> from_one_queue(isthmus::Device& device, isthmus::Stream& stream,
                                              isthmus::Buffer<std::uint64_t>& on_gpu,
                                              std::vector<std::uint64_t>& on_cpu) {
    // Memory in which both may add to one word, or an error with the reason.
    auto next = device.allocate_shared<std::uint32_t>(32, {.updates = isthmus::AtomicSet::add});
    if (!next) return std::move(next).error();
    for (std::uint32_t& word : next->write_on_host().value()) word = 0;
    auto queue = next->atomics_on_host<isthmus::AtomicSet::add>();
    if (!queue) return std::move(queue).error();
    auto launched = stream.launch(work_off, workers, *next, tasks, on_gpu);
    if (!launched) return std::move(launched).error();
    std::uint32_t done = 0;
    for (;; ++done) {
        const std::uint64_t task = (*queue)[0].add_relaxed(1);
        if (task >= tasks) return done;
        on_cpu[task] = task * task;
    }
}

std::uint32_t in_shares(isthmus::Stream& stream, isthmus::Buffer<std::uint64_t>& on_gpu,
                        std::vector<std::uint64_t>& on_cpu) {
    constexpr std::uint32_t first = tasks / 4;  // the CPU's
    stream.launch(work_share, tasks - first, first, on_gpu).value();
    for (std::uint64_t task = 0; task < first; ++task) on_cpu[task] = task * task;
    return first;
}

}  // namespace

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    isthmus::Stream& stream = device.stream();
    auto on_gpu = device.allocate_shared<std::uint64_t>(tasks, {.host = isthmus::Use::reads_once}).value();
    for (std::uint64_t& result : on_gpu.write_on_host().value()) result = 0;
    std::vector<std::uint64_t> on_cpu(tasks, 0);

    auto queued = from_one_queue(device, stream, on_gpu, on_cpu);
    if (!queued) std::printf("not from one queue: %s\n", std::string(queued.error().text()).c_str());
    const std::uint32_t done = queued ? *queued : in_shares(stream, on_gpu, on_cpu);

    auto results = on_gpu.read_on_host().value();  // waits for the kernel
    std::uint32_t right = 0;
    for (std::uint64_t task = 0; task < tasks; ++task) right += results[task] + on_cpu[task] == task * task ? 1u : 0u;
    std::printf("%s: %u tasks %s, %u of them done by the CPU\n", std::string(device.name()).c_str(), tasks,
                queued ? "from one queue" : "in shares", done);
    return right == tasks ? 0 : 1;
}
