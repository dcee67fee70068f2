// SPDX-License-Identifier: Apache-2.0
// TurnBuffer: one shared buffer and the turns that are timed over it, by the public interface alone.
#pragma once

#include "measurements.hpp"
#include "tune_kernels.hpp"

#include <isthmus/buffer.hpp>
#include <isthmus/device.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstddef>
#include <cstdint>

namespace isthmus::tools::tune {

// The use under which memory of this way is allocated: for every role that is lawful with it.
SharedUse use_of(const Way& way) noexcept;
// The use that a program would declare whose turns are of this role, with this number of passes.
SharedUse use_of(Role device, int passes) noexcept;

// Movable. For one thread. The device must outlive it.
class TurnBuffer {
public:
    // Allocates the buffer and takes a turn of each kind without timing it, so that first touches, kernels that are
    // loaded and copies that are prepared are part of no time. `bytes`: a multiple of 16. Errors: those of
    // allocate_shared(), launches and views; driver_error where the device's and the host's bytes do not agree.
    static Result<TurnBuffer> make(Device& device, const SharedUse& use, std::size_t bytes);

    // The seconds of a turn (measurements.hpp), and of one pass of the host.
    Result<double> turn(Role device, int passes);
    Result<double> host(Role host);

    const Buffer<Lane>& buffer() const noexcept { return lanes_; }

private:
    TurnBuffer(Device& device, Buffer<Lane> lanes, Buffer<std::uint64_t> sum, bool host_reads);
    Result<void> first_turns();
    Result<void> check(std::uint64_t plus, std::uint64_t high);
    Result<void> launch(Role device, std::uint64_t salt);
    Result<void> write_on_host(std::uint64_t salt);
    Result<void> read_on_host();
    Result<void> back_to_host();  // after a turn that ended with the device

    Device* device_;
    Buffer<Lane> lanes_;
    Buffer<std::uint64_t> sum_;
    bool host_reads_;
    bool device_was_last_ = false;
    std::uint64_t salt_ = 1;
};

}  // namespace isthmus::tools::tune
