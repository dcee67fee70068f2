// SPDX-License-Identifier: Apache-2.0
// Runs the rows one after the other: each with its orders, then its control without them.
#include "trials.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace isthmus::tools::litmus {
namespace {

using Clock = std::chrono::steady_clock;

// The end of a phase: a count of instances or a duration.
struct Measure {
    std::uint64_t instances = 0;  // 0: `time` decides
    std::chrono::duration<double> time{0};
};

constexpr auto between_reports = std::chrono::seconds(1);

Result<void> play_phase(Field& field, const Program& program, const Measure& measure, Counts& counts, double& seconds,
                        const std::function<void()>& report) {
    const auto begin = Clock::now();
    auto reported = begin;
    for (;;) {
        Result<void> played = field.play(program, counts);
        const auto now = Clock::now();
        seconds = std::chrono::duration<double>(now - begin).count();
        if (!played) return played;
        if (measure.instances != 0 ? total(counts) >= measure.instances : now - begin >= measure.time) return {};
        if (now - reported < between_reports) continue;
        reported = now;
        report();
    }
}

Program program_of(const Row& row, const Request& request) {
    Program program;
    program.shape = row.shape;
    if (row.role != Role::mutant) return program;
    if (const Mutant* const mutant = find_mutant(request.mutant)) {
        program.host_ordered = mutant->host_ordered;
        program.device_ordered = mutant->device_ordered;
        program.device_narrow = mutant->device_narrow;
    }
    return program;
}

Result<void> play_row(Field& field, const Request& request, const Measure& measure, Row& row,
                      const std::function<void()>& report) {
    const Program program = program_of(row, request);
    if (Result<void> played = play_phase(field, program, measure, row.seen, row.seconds, report); !played)
        return played;
    report();
    if (row.role != Role::test) return {};
    const Measure control{measure.instances == 0 ? 0 : control_instances(measure.instances), measure.time / 4};
    const Program without_orders{row.shape, false, false, false};
    double seconds = 0;
    return play_phase(field, without_orders, control, row.control, seconds, report);
}

// The first launch loads the kernel and measures the CPU's speed, so that no row includes this time.
Result<std::unique_ptr<Field>> make_field(Device& device, MemoryKind kind, const FieldSize& size, Crew& crew,
                                          std::uint32_t clock_khz, std::uint64_t seed) {
    Result<std::unique_ptr<Field>> made = Field::make(device, kind, size, crew, clock_khz, seed);
    if (!made) return made;
    Counts unused{};
    if (Result<void> played = (*made)->play({LitmusShape::store_buffering, true, true, false}, unused); !played) {
        return std::move(played).error();
    }
    return made;
}

void end_row(Row& row, const Result<void>& played) {
    row.ending = played ? Ending::finished : played.code() == Code::timed_out ? Ending::stalled : Ending::failed;
    if (!played) row.trouble = played.error().message();
}

}  // namespace

Setting setting_for(const DeviceFacts& device, const MachineFacts& machine, const Request& request,
                    unsigned processors) {
    constexpr int clock_rate = 13;
    constexpr int multiprocessors = 16;
    Setting setting;
    setting.clock_khz = static_cast<std::uint32_t>(std::max(device.attribute(clock_rate).value_or(1'000'000), 1000));
    if (machine.simulated) {
        setting.threads = request.threads != 0 ? request.threads : 1;
        return setting;
    }
    setting.threads = request.threads != 0 ? request.threads : std::clamp(processors - 1, 1u, 8u);
    // Two blocks for each multiprocessor run at the same time on every GPU, and keep a link busy.
    setting.size.blocks =
        static_cast<std::uint32_t>(std::clamp(2 * device.attribute(multiprocessors).value_or(8), 2, 512));
    setting.size.rounds = 16;
    return setting;
}

void run_trials(Device& device, const Request& request, const Setting& setting, std::vector<Row>& rows,
                const std::function<void(std::size_t index)>& report) {
    Crew crew(setting.threads);
    Measure measure{request.instances, std::chrono::duration<double>(request.seconds / 1.25 / double(rows.size()))};
    std::unique_ptr<Field> field;
    for (std::size_t at = 0; at < rows.size(); ++at) {
        Row& row = rows[at];
        if (!field || rows[at - 1].kind != row.kind) {
            field.reset();
            FieldSize size = setting.size;
            // Pages that migrate back and forth make a launch long: fewer rounds let it end near its time.
            if (row.kind == MemoryKind::managed && size.rounds > 2) size.rounds = 2;
            Result<std::unique_ptr<Field>> made =
                make_field(device, row.kind, size, crew, setting.clock_khz, request.seed + at);
            if (!made) {
                end_row(row, std::move(made).error());
                report(at);
                continue;
            }
            field = std::move(*made);
        }
        const Result<void> played = play_row(*field, request, measure, row, [&] { report(at); });
        end_row(row, played);
        report(at);
        if (!played) field.reset();  // the next row makes a new field, if the device still answers
    }
}

}  // namespace isthmus::tools::litmus
