// SPDX-License-Identifier: Apache-2.0
// Each figure is repeated within its share of the time, after a repeat that is not counted.
#include "figures.hpp"

#include "host_passes.hpp"
#include "plan.hpp"
#include "statistics.hpp"
#include "turn_buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace isthmus::tools::tune {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;

double now() {
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Seconds per `bytes` as GB/s.
Sample speed_of(const Sample& seconds, double bytes) {
    const auto speed = [bytes](double time) { return time > 0 ? bytes / 1e9 / time : 0; };
    return {speed(seconds.median), speed(seconds.high), speed(seconds.low), seconds.count};
}

// Seconds that action() takes; it returns a Result.
template <class Action>
Result<double> timed(Action&& action) {
    const double begin = now();
    if (auto done = action(); !done) return std::move(done).error();
    return now() - begin;
}

const char* words_of(CopyPath path) {
    switch (path) {
        case CopyPath::on_host: return "by the CPU";
        case CopyPath::driver: return "by the driver";
        case CopyPath::between_devices: return "between devices";
        case CopyPath::bounce_up:
        case CopyPath::bounce_down: return "through bounce buffers";
        case CopyPath::refuse: break;
    }
    return "refused";
}

class Figures {
public:
    Figures(Runtime& runtime, Device& device, const FigureRequest& request)
        : runtime_(runtime),
          device_(device),
          request_(request),
          begin_(now()),
          slot_(std::max((request.until - begin_) / 60, 1e-3)),
          large_(std::clamp<std::size_t>(request.largest, 64, 64 * MiB)),
          middle_(std::min<std::size_t>(large_, 16 * MiB)) {}

    std::vector<Figure> all() {
        hand_overs();
        copies();
        for (const Way& way : request_.ways) allocation(way);
        for (const Way& way : request_.ways) first_touch(way);
        for (const Way& way : request_.ways) host_passes(way);
        nodes();
        both_at_once();
        return std::move(figures_);
    }

private:
    // One figure: `repeat` returns the seconds of one repeat. A figure that fails is left out.
    template <class Repeat>
    void take(std::string subject, std::string text, std::string_view kind, std::size_t bytes, const char* unit,
              Repeat&& repeat) {
        constexpr int most_repeats = 51, least_repeats = 3;
        if (now() >= request_.until) return;
        const double share = (now() - begin_) / std::max(request_.until - begin_, 1e-9);
        if (request_.progress) request_.progress(std::min(share, 1.0), fmt::format("figures: {}", subject));
        const double first = now();
        if (const Result<double> warm = repeat(); !warm) return;
        const double cost = now() - first;
        std::vector<double> times;
        const double end = now() + slot_;
        while (static_cast<int>(times.size()) < most_repeats && now() + cost < request_.until) {
            if (now() >= end && static_cast<int>(times.size()) >= least_repeats) break;
            const Result<double> seconds = repeat();
            if (!seconds) return;
            times.push_back(*seconds);
        }
        const Sample sample = sample_of(std::move(times));
        if (sample.count == 0) return;
        const bool is_speed = std::string_view(unit) == "GB/s";
        figures_.push_back({std::move(subject), std::move(text), std::string(kind), bytes,
                            is_speed ? speed_of(sample, static_cast<double>(bytes)) : sample, unit});
    }

    Result<void> launch_write(Buffer<Lane>& lanes) {
        const std::uint64_t threads = std::min<std::uint64_t>(lanes.size(), most_threads);
        const Result<LaunchReport> ran =
            device_.stream().launch(tune_write, static_cast<std::uint32_t>(threads), lanes, threads, std::uint64_t{1});
        if (!ran) return ran.error();
        return {};
    }
    Result<void> wait() { return device_.stream().synchronize(); }
    Result<void> write_on_host(Buffer<Lane>& lanes) {
        const auto view = lanes.write_on_host();
        if (!view) return view.error();
        write_lanes(view->span(), 3);
        return {};
    }

    void hand_overs() {
        Result<Buffer<Lane>> small = device_.allocate<Lane>(4);
        if (small) {
            const auto launch = [&] { return launch_write(*small); };
            const auto round_trip = [&] { return launch().ok() ? wait() : launch(); };
            take("hand-over", "launch of a kernel, with the wait for it", "", 0, "s",
                 [&] { return timed(round_trip); });
            take("hand-over", "launch of a kernel alone", "", 0, "s", [&] {
                Result<double> seconds = timed(launch);
                if (Result<void> waited = wait(); !waited) return Result<double>(std::move(waited).error());
                return seconds;
            });
        }
        for (const Way& way : request_.ways) {
            Result<Buffer<Lane>> lanes = device_.allocate_shared<Lane>(4 * KiB / sizeof(Lane), use_of(way));
            if (!lanes || !write_on_host(*lanes)) continue;
            take("hand-over", "host view opened and closed, with nothing in flight", name(way.kind), 4 * KiB, "s",
                 [&] { return timed([&] { return lanes->write_on_host(); }); });
            if (way.kind == MemoryKind::managed) {
                for (const std::size_t bytes : {64 * KiB, middle_}) managed_hand_over(way, bytes);
            }
        }
        Result<Buffer<Lane>> there = device_.allocate<Lane>(4), here = device_.allocate<Lane>(4, MemoryKind::pinned);
        if (!there || !here) return;
        const auto copy = [&] {
            Result<void> copied = device_.stream().copy(*there, *here);
            return copied ? wait() : copied;
        };
        take("hand-over", "copy to the device, with the wait for it", "pinned", 4 * sizeof(Lane), "s",
             [&] { return timed(copy); });
    }

    void managed_hand_over(const Way& way, std::size_t bytes) {
        Result<Buffer<Lane>> lanes = device_.allocate_shared<Lane>(bytes / sizeof(Lane), use_of(way));
        if (!lanes) return;
        const bool attaches = lanes->path() == LaunchPath::attach;
        const auto to_device = [&]() -> Result<void> {
            const Result<HintReport> report = device_.stream().prefetch(*lanes);
            if (!report) return report.error();
            if (report->outcome == HintOutcome::unsupported) return Error(Code::unsupported, "no such hint here");
            return wait();
        };
        take("hand-over", attaches ? "attached to the stream" : "prefetched to the device", "managed", bytes, "s", [&] {
            if (Result<void> wrote = write_on_host(*lanes); !wrote) return Result<double>(std::move(wrote).error());
            return timed(to_device);
        });
    }

    void copies() {
        const std::size_t count = large_ / sizeof(Lane);
        Result<Buffer<Lane>> there = device_.allocate<Lane>(count);
        if (!there || !launch_write(*there)) return;
        const auto speed = [&](const char* direction, MemoryKind kind, Buffer<Lane>& to, const Buffer<Lane>& from) {
            const std::string text =
                fmt::format("{}, {}", direction, words_of(device_.stream().explain_copy(to, from).path));
            take("copies", text, name(kind), large_, "GB/s", [&] {
                return timed([&] {
                    Result<void> copied = device_.stream().copy(to, from);
                    return copied ? wait() : copied;
                });
            });
        };
        for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::host}) {
            Result<Buffer<Lane>> here = device_.allocate<Lane>(count, kind);
            if (!here || !write_on_host(*here)) continue;
            speed("host to device", kind, *there, *here);
            speed("device to host", kind, *here, *there);
        }
        Result<Buffer<Lane>> other = device_.allocate<Lane>(count);
        if (other) speed("device to device", MemoryKind::device, *other, *there);
    }

    void allocation(const Way& way) {
        for (const std::size_t bytes : {64 * KiB, middle_}) {
            take("allocation", "allocate and release", name(way.kind), bytes, "s", [&] {
                return timed([&]() -> Result<void> {
                    Result<Buffer<Lane>> lanes = device_.allocate_shared<Lane>(bytes / sizeof(Lane), use_of(way));
                    if (!lanes) return std::move(lanes).error();
                    return lanes->release();
                });
            });
        }
    }

    void first_touch(const Way& way) {
        const auto fresh = [&] { return device_.allocate_shared<Lane>(middle_ / sizeof(Lane), use_of(way)); };
        if (way.kind != MemoryKind::device) {
            take("first touch", "first writes of the host", name(way.kind), middle_, "s", [&]() -> Result<double> {
                Result<Buffer<Lane>> lanes = fresh();
                if (!lanes) return std::move(lanes).error();
                return timed([&] { return write_on_host(*lanes); });
            });
        }
        take("first touch", "first writes of the device", name(way.kind), middle_, "s", [&]() -> Result<double> {
            Result<Buffer<Lane>> lanes = fresh();
            if (!lanes) return std::move(lanes).error();
            return timed([&] {
                Result<void> ran = launch_write(*lanes);
                return ran ? wait() : ran;
            });
        });
    }

    void host_passes(const Way& way) {
        if (way.kind == MemoryKind::device || way.locality == Locality::unbound) return;
        const bool combined = way.kind == MemoryKind::write_combined;
        const std::size_t bytes = combined ? std::min(middle_, MiB) : middle_;  // reads of it are slow
        Result<Buffer<Lane>> lanes = device_.allocate_shared<Lane>(bytes / sizeof(Lane), use_of(way));
        if (!lanes || !write_on_host(*lanes)) return;
        take("CPU", "writes of one thread", name(way.kind), bytes, "GB/s",
             [&] { return timed([&] { return write_on_host(*lanes); }); });
        take("CPU", "reads of one thread", name(way.kind), bytes, "GB/s", [&] {
            return timed([&]() -> Result<void> {
                const auto view = std::as_const(*lanes).read_on_host();
                if (!view) return view.error();
                read_lanes(view->span());
                return {};
            });
        });
    }

    // The seconds of one pass of the device.
    static Result<double> pass_of(TurnBuffer& buffer, Role role) {
        constexpr int passes = 8;
        Result<double> one = buffer.turn(role, 1);
        if (!one) return one;
        Result<double> many = buffer.turn(role, 1 + passes);
        if (!many) return many;
        return std::max(*many - *one, 0.0) / passes;
    }

    void nodes() {
        const int near = device_.capabilities().host_numa_node;
        for (const NumaNode& node : runtime_.machine().numa_nodes) {
            if (node.cpu_count == 0 || node.memory_bytes == 0) continue;
            SharedUse use = use_of(Way{device_.is_cpu() ? MemoryKind::host : MemoryKind::registered, Locality::node});
            use.placement.node = node.id;
            use.placement.strict = true;
            Result<TurnBuffer> buffer = TurnBuffer::make(device_, use, middle_);
            if (!buffer) continue;
            const char* const place = near < 0 ? "" : node.id == near ? ", near the device" : ", far from the device";
            const std::string_view kind = name(*use.kind);
            take("NUMA", fmt::format("node {}{}: reads of the device", node.id, place), kind, middle_, "GB/s",
                 [&] { return pass_of(*buffer, Role::reads); });
            take("NUMA", fmt::format("node {}{}: writes of the device", node.id, place), kind, middle_, "GB/s",
                 [&] { return pass_of(*buffer, Role::writes); });
            take("NUMA", fmt::format("node {}{}: reads of one CPU thread", node.id, place), kind, middle_, "GB/s",
                 [&] { return buffer->host(Role::reads); });
        }
    }

    // The CPU reads one buffer while the device goes over another; both lie in the same host memory.
    void both_at_once() {
        if (device_.is_cpu()) return;
        const Way way{MemoryKind::pinned, Locality::anywhere};
        if (std::find(request_.ways.begin(), request_.ways.end(), way) == request_.ways.end()) return;
        const std::size_t count = middle_ / sizeof(Lane);
        Result<Buffer<Lane>> of_device = device_.allocate_shared<Lane>(count, use_of(way));
        Result<Buffer<Lane>> of_host = device_.allocate_shared<Lane>(count, use_of(way));
        if (!of_device || !of_host || !write_on_host(*of_host) || !write_on_host(*of_device)) return;
        constexpr int passes = 16;
        const auto device_passes = [&]() -> Result<void> {
            for (int pass = 0; pass < passes; ++pass) {
                if (Result<void> ran = launch_write(*of_device); !ran) return ran;
            }
            return {};
        };
        const auto host_pass = [&]() -> Result<void> {
            const auto view = std::as_const(*of_host).read_on_host();
            if (!view) return view.error();
            read_lanes(view->span());
            return {};
        };
        take("both at once", "reads of one CPU thread, the device idle", "pinned", middle_, "GB/s",
             [&] { return timed(host_pass); });
        take("both at once", "writes of the device, the CPU idle", "pinned", passes * middle_, "GB/s", [&] {
            return timed([&] {
                Result<void> ran = device_passes();
                return ran ? wait() : ran;
            });
        });
        take("both at once", "reads of one CPU thread while the device writes", "pinned", middle_, "GB/s",
             [&]() -> Result<double> {
                 if (Result<void> ran = device_passes(); !ran) return std::move(ran).error();
                 Result<double> seconds = timed(host_pass);
                 if (Result<void> waited = wait(); !waited) return std::move(waited).error();
                 return seconds;
             });
        take("both at once", "writes of the device while a CPU thread reads", "pinned", passes * middle_, "GB/s", [&] {
            return timed([&]() -> Result<void> {
                if (Result<void> ran = device_passes(); !ran) return ran;
                for (bool finished = false; !finished;) {
                    if (Result<void> read = host_pass(); !read) return read;
                    const Result<bool> asked = device_.stream().finished();
                    if (!asked) return asked.error();
                    finished = *asked;
                }
                return {};
            });
        });
    }

    Runtime& runtime_;
    Device& device_;
    const FigureRequest& request_;
    const double begin_;
    const double slot_;  // seconds of one figure
    const std::size_t large_;
    const std::size_t middle_;
    std::vector<Figure> figures_;
};

const char* words_of(Role role) {
    switch (role) {
        case Role::reads: return "reads of the device";
        case Role::writes: return "writes of the device";
        default: return "updates of the device";
    }
}

std::string kind_of(const Way& way) {
    std::string text(name(way.kind));
    if (way.locality != Locality::anywhere) text += fmt::format(", {}", name(way.locality));
    return text;
}

}  // namespace

std::vector<Figure> bandwidth_figures(const std::vector<TurnSample>& turns) {
    std::vector<Figure> figures;
    for (const TurnSample& one : turns) {
        if (one.passes != 1) continue;
        const TurnSample* many = nullptr;
        for (const TurnSample& other : turns) {
            const bool alike = other.way == one.way && other.device == one.device && other.bytes == one.bytes;
            if (alike && other.passes > 1 && (many == nullptr || other.passes > many->passes)) many = &other;
        }
        if (many == nullptr) continue;
        const double passes = many->passes - 1;
        const auto pass = [passes](double end, double begin) { return std::max(end - begin, 0.0) / passes; };
        Sample seconds{pass(many->seconds.median, one.seconds.median), pass(many->seconds.low, one.seconds.high),
                       pass(many->seconds.high, one.seconds.low), std::min(one.seconds.count, many->seconds.count)};
        if (seconds.median <= 0 || seconds.low <= 0) continue;  // lost in the spread of the repeats
        figures.push_back({"bandwidth", words_of(one.device), kind_of(one.way), one.bytes,
                           speed_of(seconds, static_cast<double>(one.bytes)), "GB/s"});
    }
    return figures;
}

std::vector<Figure> latency_figures(const std::vector<TurnSample>& turns) {
    std::vector<Figure> figures;
    std::size_t least = most_bytes;
    for (const TurnSample& turn : turns) least = std::min(least, turn.bytes);
    for (const TurnSample& turn : turns) {
        if (turn.passes != 1 || turn.bytes != least) continue;
        figures.push_back({"latency", fmt::format("a turn with {}", words_of(turn.device)), kind_of(turn.way),
                           turn.bytes, turn.seconds, "s"});
    }
    return figures;
}

std::vector<Figure> measure_figures(Runtime& runtime, Device& device, const FigureRequest& request) {
    return Figures(runtime, device, request).all();
}

}  // namespace isthmus::tools::tune
