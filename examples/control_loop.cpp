// SPDX-License-Identifier: Apache-2.0
// A control loop in the shape of ros2_control: a hardware interface that is read and written, and a controller that is
// configured, activated and updated at a period. Between configure and activate the loop is rehearsed; while it is
// active, it is sealed.
#include <isthmus/isthmus.hpp>

#include "control.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <thread>
#include <utility>

namespace {

using namespace std::chrono_literals;
using isthmus::Result;

constexpr std::size_t joints = 7;
constexpr std::chrono::nanoseconds period = 1ms;
constexpr int turns = 500;
constexpr int settled = 250;                             // the counts are those from this turn on
constexpr std::chrono::nanoseconds answer_within = 30s;  // a few periods, where no simulator and no emulator answers
constexpr float target = 1.0f;

// Stands for the motors: each moves as its command says. read() and write() copy, as drivers of a bus do.
class Arm {
public:
    void read(std::span<float> positions, std::span<float> velocities) const {
        std::copy_n(position_, joints, positions.begin());
        std::copy_n(velocity_, joints, velocities.begin());
    }
    void write(std::span<const float> commands) {
        constexpr float seconds = 1e-3f;
        for (std::size_t joint = 0; joint < joints; ++joint) {
            velocity_[joint] += commands[joint] * seconds;
            position_[joint] += velocity_[joint] * seconds;
        }
    }
    float position(std::size_t joint) const { return position_[joint]; }

private:
    float position_[joints] = {};
    float velocity_[joints] = {};
};

class Controller {
public:
    explicit Controller(isthmus::Runtime& runtime)
        : runtime_(runtime), device_(runtime.default_device()), stream_(device_.stream()) {}

    // Everything that a turn uses.
    Result<void> on_configure() {
        const isthmus::SharedUse use{.prefer = isthmus::Prefer::latency};
        for (std::optional<isthmus::Buffer<float>>* const buffer : {&positions_, &velocities_, &commands_}) {
            auto made = device_.allocate_shared<float>(joints, use);
            if (!made) return std::move(made).error();
            *buffer = std::move(made).value();
        }
        return {};
    }

    // Turns on a copy of the arm, until they are steady. Then nothing may be allocated.
    Result<void> on_activate(const Arm& arm) {
        Arm rehearsed = arm;
        const auto rehearsal = isthmus::rehearse([&] { return update(rehearsed); });
        if (!rehearsal) return rehearsal.error();
        auto seal = runtime_.seal();
        if (!seal) return std::move(seal).error();
        seal_ = std::move(seal).value();
        return {};
    }

    Result<void> update(Arm& arm) {
        {
            auto positions = positions_->write_on_host();
            if (!positions) return std::move(positions).error();
            auto velocities = velocities_->write_on_host();
            if (!velocities) return std::move(velocities).error();
            arm.read(*positions, *velocities);
        }
        auto launched = stream_.launch(control, joints, *commands_, *positions_, *velocities_, target, 400.0f, 40.0f);
        if (!launched) return std::move(launched).error();
        // A GPU that hangs must not hold the arm: a turn without an answer fails.
        auto commands = commands_->read_on_host(isthmus::Wait::at_most(answer_within));
        if (!commands) return std::move(commands).error();
        arm.write(*commands);
        return {};
    }

    std::uint64_t refused() const { return seal_ ? seal_->count() : 0; }
    void on_deactivate() { seal_.reset(); }

private:
    isthmus::Runtime& runtime_;
    isthmus::Device& device_;
    isthmus::Stream& stream_;
    std::optional<isthmus::Buffer<float>> positions_;
    std::optional<isthmus::Buffer<float>> velocities_;
    std::optional<isthmus::Buffer<float>> commands_;
    std::optional<isthmus::Seal> seal_;
};

// Ctrl-C ends the loop behind its turn: the arm is written once more, and the seal ends.
volatile std::sig_atomic_t interrupted = 0;
void interrupt(int) {
    interrupted = 1;
}

int failed(const char* what, const isthmus::Error& error) {
    std::fprintf(stderr, "%s: %s\n", what, error.text().c_str());
    return EXIT_FAILURE;
}

}  // namespace

int main() {
    std::signal(SIGINT, interrupt);
    isthmus::Runtime runtime = isthmus::Runtime::open().value();
    Arm arm;
    Controller controller(runtime);
    if (auto configured = controller.on_configure(); !configured) return failed("configure", configured.error());
    if (auto active = controller.on_activate(arm); !active) return failed("activate", active.error());

    std::puts("the loop runs");
    std::fflush(stdout);
    isthmus::ThreadCounts before = isthmus::thread_counts().value();
    auto next = std::chrono::steady_clock::now();
    int late = 0;
    int turn = 0;
    for (; turn < turns && interrupted == 0; ++turn) {
        if (turn == settled) before = isthmus::thread_counts().value();
        if (auto updated = controller.update(arm); !updated) return failed("update", updated.error());
        next += period;
        late += std::chrono::steady_clock::now() > next ? 1 : 0;
        std::this_thread::sleep_until(next);
    }
    const isthmus::ThreadCounts counts = isthmus::thread_counts().value() - before;
    const std::uint64_t refused = controller.refused();
    controller.on_deactivate();

    // Each turn sleeps once: further voluntary switches are waits for the device.
    std::printf(
        "%d turns, %d late; %llu calls refused; from turn %d on: %ld page faults, %ld voluntary and %ld "
        "involuntary switches\n",
        turn, late, static_cast<unsigned long long>(refused), settled < turn ? settled : 0,
        static_cast<long>(counts.minor_faults + counts.major_faults), static_cast<long>(counts.voluntary_switches),
        static_cast<long>(counts.involuntary_switches));
    if (turn < turns) return refused == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    for (std::size_t joint = 0; joint < joints; ++joint) {
        if (std::fabs(arm.position(joint) - target) > 0.02f) {
            std::printf("joint %zu is at %g\n", joint, static_cast<double>(arm.position(joint)));
            return EXIT_FAILURE;
        }
    }
    return refused == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
