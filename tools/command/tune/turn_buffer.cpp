// SPDX-License-Identifier: Apache-2.0
// Takes and times turns. The host uses one thread, as a program does that has no reason to use more.
#include "turn_buffer.hpp"

#include "host_passes.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace isthmus::tools::tune {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

Result<void> done(const Result<LaunchReport>& report) {
    if (!report) return report.error();
    return {};
}

}  // namespace

SharedUse use_of(const Way& way) noexcept {
    SharedUse use;
    use.kind = way.kind;
    use.placement.locality = way.locality;
    if (way.kind == MemoryKind::write_combined) {
        use.host = Use::writes_once;
        use.device = Use::reads_often;
    }
    return use;
}

SharedUse use_of(Role device, int passes) noexcept {
    SharedUse use;
    use.device_passes = passes;
    switch (device) {
        case Role::reads:
            use.host = Use::writes_once;
            use.device = Use::reads_once;
            break;
        case Role::writes:
            use.host = Use::reads_once;
            use.device = Use::writes_once;
            break;
        case Role::reads_and_writes: break;
    }
    return use;
}

TurnBuffer::TurnBuffer(Device& device, Buffer<Lane> lanes, Buffer<std::uint64_t> sum, bool host_reads)
    : device_(&device), lanes_(std::move(lanes)), sum_(std::move(sum)), host_reads_(host_reads) {}

Result<TurnBuffer> TurnBuffer::make(Device& device, const SharedUse& use, std::size_t bytes) {
    Result<Buffer<Lane>> lanes = device.allocate_shared<Lane>(bytes / sizeof(Lane), use);
    if (!lanes) return std::move(lanes).error();
    Result<Buffer<std::uint64_t>> sum = device.allocate<std::uint64_t>(1);
    if (!sum) return std::move(sum).error();
    const bool host_reads = lanes->host_kind() != MemoryKind::write_combined;
    TurnBuffer made(device, std::move(lanes).value(), std::move(sum).value(), host_reads);
    if (Result<void> taken = made.first_turns(); !taken) return std::move(taken).error();
    return made;
}

Result<void> TurnBuffer::first_turns() {
    if (Result<void> wrote = write_on_host(salt_); !wrote) return wrote;
    if (Result<void> ran = launch(Role::reads, 0); !ran) return ran;
    device_was_last_ = true;
    if (!host_reads_) return device_->stream().synchronize();
    if (Result<void> ran = launch(Role::reads_and_writes, 5); !ran) return ran;
    if (Result<void> right = check(salt_ + 5, salt_); !right) return right;
    if (Result<void> ran = launch(Role::writes, 7); !ran) return ran;
    device_was_last_ = false;
    return check(7, 7);
}

// Every lane: memory that loses bytes is of no use, however fast it is.
Result<void> TurnBuffer::check(std::uint64_t plus, std::uint64_t high) {
    const auto view = std::as_const(lanes_).read_on_host();
    if (!view) return view.error();
    for (std::size_t at = 0; at < view->size(); ++at) {
        if ((*view)[at].low == at + plus && (*view)[at].high == high) continue;
        return Error(Code::driver_error, "the host does not read what the device wrote");
    }
    return {};
}

Result<void> TurnBuffer::launch(Role device, std::uint64_t salt) {
    Stream& stream = device_->stream();
    const std::uint64_t threads = std::min<std::uint64_t>(lanes_.size(), most_threads);
    const auto extent = static_cast<std::uint32_t>(threads);
    switch (device) {
        case Role::reads:
            return done(stream.launch(tune_read, extent, sum_, std::as_const(lanes_), threads, ~std::uint64_t{0} - 1));
        case Role::writes: return done(stream.launch(tune_write, extent, lanes_, threads, salt));
        default: return done(stream.launch(tune_update, extent, lanes_, threads, salt));
    }
}

Result<void> TurnBuffer::write_on_host(std::uint64_t salt) {
    const auto view = lanes_.write_on_host();
    if (!view) return view.error();
    write_lanes(view->span(), salt);
    return {};
}

Result<void> TurnBuffer::read_on_host() {
    const auto view = std::as_const(lanes_).read_on_host();
    if (!view) return view.error();
    read_lanes(view->span());
    return {};
}

Result<void> TurnBuffer::back_to_host() {
    if (!device_was_last_) return {};
    device_was_last_ = false;
    return host_reads_ ? read_on_host() : write_on_host(salt_);
}

Result<double> TurnBuffer::turn(Role device, int passes) {
    ++salt_;
    if (device == Role::writes) {
        if (Result<void> back = back_to_host(); !back) return std::move(back).error();
    }
    const auto begin = Clock::now();
    if (device != Role::writes) {
        if (Result<void> wrote = write_on_host(salt_); !wrote) return std::move(wrote).error();
    }
    for (int pass = 0; pass < passes; ++pass) {
        if (Result<void> ran = launch(device, salt_); !ran) return std::move(ran).error();
    }
    const bool reads = device == Role::reads;
    device_was_last_ = reads;
    if (Result<void> ended = reads ? device_->stream().synchronize() : read_on_host(); !ended) {
        return std::move(ended).error();
    }
    return seconds_since(begin);
}

Result<double> TurnBuffer::host(Role host) {
    ++salt_;
    if (Result<void> back = back_to_host(); !back) return std::move(back).error();
    if (host == Role::reads) {
        const auto view = std::as_const(lanes_).read_on_host();
        if (!view) return view.error();
        const auto begin = Clock::now();
        read_lanes(view->span());
        return seconds_since(begin);
    }
    const auto view = host == Role::writes ? lanes_.write_on_host() : lanes_.read_write_on_host();
    if (!view) return view.error();
    const auto begin = Clock::now();
    host == Role::writes ? write_lanes(view->span(), salt_) : update_lanes(view->span(), salt_);
    return seconds_since(begin);
}

}  // namespace isthmus::tools::tune
