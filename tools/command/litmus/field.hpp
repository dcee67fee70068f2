// SPDX-License-Identifier: Apache-2.0
// Field: memory of one kind under trial. Each launch runs the same instances on CPU and GPU at the same time, round by
// round, and counts the outcomes.
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
    std::uint32_t blocks = 2;  // of the GPU; all should run at the same time
    std::uint32_t rounds = 4;  // of each launch
    std::uint32_t slots() const noexcept { return blocks * block_threads; }
    std::uint64_t instances() const noexcept { return std::uint64_t{slots()} * rounds; }
};

// A shape, with or without memory orders on each side.
struct Program {
    LitmusShape shape = LitmusShape::message_to_device;
    bool host_ordered = true;
    bool device_ordered = true;
    bool device_narrow = false;
};

// Not movable: its threads and its kernel refer to its members. For one calling thread.
class Field {
public:
    // `clock_khz`: clock of the GPU in kHz, to convert the CPU's times into clocks; `seed`: of all random numbers.
    static Result<std::unique_ptr<Field>> make(Device& device, MemoryKind kind, const FieldSize& size, Crew& crew,
                                               std::uint32_t clock_khz, std::uint64_t seed);
    ~Field();
    Field(const Field&) = delete;
    Field& operator=(const Field&) = delete;

    // Runs one launch, size.instances() instances of the program, and adds its outcomes to `counts`. Errors: those of
    // launches and waits; timed_out where one side did not answer the other. After timed_out the field must not be
    // used.
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
    std::uint32_t piece_;  // slots for each CPU thread
    std::uint32_t round_ = 0;
    bool zeroed_ = true;                      // the cells hold only 0
    Word value_ = 16;                         // of the next launch; this memory has never held it
    std::chrono::nanoseconds sweep_{20'000};  // time that a CPU thread took for its last piece
    MemoryBlock cells_;
    MemoryBlock signals_;
    MemoryBlock seen_;                        // results of the GPU, one byte per instance
    std::vector<std::uint8_t> seen_on_host_;  // results of the CPU, one byte per instance
};

}  // namespace isthmus::tools::litmus
