// SPDX-License-Identifier: Apache-2.0
// Field: memory of one kind under trial, and one launch at a time over it: CPU and GPU play the same instances at the
// same time, round by round, and what they saw is counted.
#pragma once

#include "crew.hpp"
#include "litmus_kernel.hpp"
#include "shapes.hpp"
#include "timing.hpp"

#include <isthmus/device.hpp>
#include <isthmus/stream.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace isthmus::tools::litmus {

struct FieldSize {
    std::uint32_t blocks = 2;  // of the GPU; all of them should run at the same time
    std::uint32_t rounds = 4;  // of one launch
    std::uint32_t slots() const noexcept { return blocks * block_threads; }
    std::uint64_t instances() const noexcept { return std::uint64_t{slots()} * rounds; }
};

// What is played: a shape, with orders or without on each side.
struct Program {
    LitmusShape shape = LitmusShape::message_to_device;
    bool host_ordered = true;
    bool device_ordered = true;
    bool device_narrow = false;
};

// Not movable: its threads and its kernel know its members. Used by one thread.
class Field {
public:
    // `clock_khz`: of the GPU, to turn the CPU's times into clocks; `seed`: of all that is drawn.
    static Result<std::unique_ptr<Field>> make(Device& device, MemoryKind kind, const FieldSize& size, Crew& crew,
                                               std::uint32_t clock_khz, std::uint64_t seed);
    ~Field();
    Field(const Field&) = delete;
    Field& operator=(const Field&) = delete;

    // One launch: size.instances() plays of the program, added to `counts`. Errors: those of launches and waits;
    // timed_out where one side waited for the other in vain, which ends the field's use.
    Result<void> play(const Program& program, Counts& counts);

private:
    Field(Device& device, const FieldSize& size, Crew& crew, std::uint32_t clock_khz, std::uint64_t seed);
    Result<void> allocate(MemoryKind kind);
    LaunchPlan plan_launch(const Program& program, const Pace& pace);
    Result<void> play_rounds(const Program& program, const LaunchPlan& plan, std::chrono::nanoseconds late);
    void play_piece(const Program& program, const LaunchPlan& plan, std::uint32_t round, unsigned worker);
    void count_piece(const Program& program, const LaunchPlan& plan, unsigned worker, Counts& counts);
    bool wait_for_progress(std::uint32_t round);
    Word* signal(std::uint32_t place) const noexcept { return static_cast<Word*>(signals_.host) + place; }

    Device& device_;
    const FieldSize size_;
    Crew& crew_;
    const std::uint32_t clock_khz_;
    std::uint64_t random_;
    Timing timing_;
    std::uint32_t piece_;  // slots of one thread of the CPU
    std::uint32_t round_ = 0;
    bool zeroed_ = true;                      // the cells hold nothing but 0
    Word value_ = 16;                         // of the next launch; never seen in this memory before
    std::chrono::nanoseconds sweep_{20'000};  // that a thread of the CPU took for its piece the last time
    MemoryBlock cells_;
    MemoryBlock signals_;
    MemoryBlock seen_;                        // by the GPU, one byte per instance
    std::vector<std::uint8_t> seen_on_host_;  // … by the CPU
};

}  // namespace isthmus::tools::litmus
