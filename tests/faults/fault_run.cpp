// SPDX-License-Identifier: Apache-2.0
// main() of the scenarios: an ordinary run, or (ISTHMUS_FAULT_RUN) a run under planned faults that is judged
// afterwards.
//
// A fault run plays one scenario: --gtest_filter names it, and --gtest_catch_exceptions=0 lets a failed call end it.
// ISTHMUS_FAULT_DRIVER is a plan for the simulator, ISTHMUS_FAULT_SYSTEM one for the preloaded module that fails system
// calls. Both count calls from the opened runtime, or with ISTHMUS_FAULT_FROM=start from the beginning. The last line
// of the output gives the outcome, for tests/faults/run_faults.
#include "conformance.hpp"

#include <driver_abi/sim_control.h>

#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>

namespace conformance {
namespace {

// Exit codes that tests/faults/run_faults understands; it also understands signals.
enum Outcome : int { good = 0, wrong_value = 1, leak = 3, unexplained_error = 4, no_harness = 5 };

template <class Function>
Function find(void* library, const char* name) {
    return reinterpret_cast<Function>(dlsym(library, name));
}

// Functions of the simulator and of the preloaded module. Either may be missing: real drivers plan no faults, and
// ordinary runs preload nothing.
struct Harness {
    isthmus_sim_fault_plan_fn plan_driver = nullptr;
    isthmus_sim_fault_at_fn fault_at = nullptr;
    isthmus_sim_live_fn live = nullptr;
    isthmus_sim_call_count_fn count = nullptr;
    isthmus_sim_reset_counts_fn reset_counts = nullptr;
    int (*plan_system)(const char*) = find<int (*)(const char*)>(RTLD_DEFAULT, "failing_system_plan");
    long (*system_calls)() = find<long (*)()>(RTLD_DEFAULT, "failing_system_calls");
    const char* (*system_failed)() = find<const char* (*)()>(RTLD_DEFAULT, "failing_system_failed");
    long (*system_mapped_bytes)() = find<long (*)()>(RTLD_DEFAULT, "failing_system_mapped_bytes");

    // Call after the runtime has opened the simulator: it is found by the driver's own library name, and stays loaded.
    void find_simulator() {
        void* library = live != nullptr ? nullptr : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        if (library == nullptr) return;
        plan_driver = find<isthmus_sim_fault_plan_fn>(library, "isthmus_sim_fault_plan");
        fault_at = find<isthmus_sim_fault_at_fn>(library, "isthmus_sim_fault_at");
        live = find<isthmus_sim_live_fn>(library, "isthmus_sim_live");
        count = find<isthmus_sim_call_count_fn>(library, "isthmus_sim_call_count");
        reset_counts = find<isthmus_sim_reset_counts_fn>(library, "isthmus_sim_reset_counts");
    }
    const char* system_fault() const { return system_failed != nullptr ? system_failed() : nullptr; }
};

Harness& harness() {
    static Harness instance;
    return instance;
}

const char* environment(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? "" : text;
}

bool is_fault_run() noexcept {
    static const bool answer = *environment("ISTHMUS_FAULT_RUN") != 0;
    return answer;
}

bool explains_itself(const isthmus::Error& error) {
    return error.code() != isthmus::Code::ok && !error.message().empty() && !error.remedy().empty();
}

long open_files() {
    DIR* directory = opendir("/proc/self/fd");
    if (directory == nullptr) return -1;
    long count = 0;
    while (readdir(directory) != nullptr) ++count;
    closedir(directory);
    return count;
}

// The number of failed calls among these: each failed release leaves one object with the driver, and so does a failed
// switch to the context for the release.
long failed(std::initializer_list<std::string_view> calls) {
    long count = 0;
    for (std::uint64_t at = 0; const char* name = harness().fault_at(at); ++at) {
        const std::string_view made = name;
        count += std::any_of(calls.begin(), calls.end(),
                             [&](std::string_view call) { return made.find(call) != std::string_view::npos; });
    }
    return count;
}
long failed_undos() {
    return failed({"Free", "Destroy", "Unload", "Unregister", "Release", "Unmap", "CtxPush", "CtxPop"});
}

// Describes what is still alive in the simulator; empty: nothing beyond what failed releases explain.
std::string left_in_simulator() {
    if (harness().live == nullptr) return {};
    long sum = 0;
    std::string words;
    for (const char* what : {"contexts", "streams", "events", "modules", "pools", "graphs", "allocations", "mappings",
                             "physical", "reservations"}) {
        auto left = static_cast<long>(harness().live(what));
        // A graph's memory is freed with the graph, which is counted already.
        if (std::string_view(what) == "allocations" && harness().live("graphs") > 0) {
            left -= static_cast<long>(harness().live("graph"));
        }
        // A mapping that could not be unmapped counts as an allocation, and keeps its memory and its addresses.
        for (const char* held : {"allocations", "physical", "reservations"}) {
            if (std::string_view(what) == held) left -= std::min(left, static_cast<long>(harness().live("mappings")));
        }
        sum += left;
        if (left != 0) words += " " + std::string(what) + "=" + std::to_string(left);
    }
    return sum > failed_undos() ? words : std::string();
}

// Every call fails for good, or every cuEvent call, without which the end of a use cannot be seen.
bool driver_is_silent() {
    const std::string_view plan = environment("ISTHMUS_FAULT_DRIVER");
    const bool silent = plan.find("call=") == std::string_view::npos || plan.find("call=cuEvent") == 0;
    return silent && plan.find("persistent") != std::string_view::npos;
}

// After a sticky error, or where every call fails, the driver releases nothing and running work cannot be seen: what
// the driver holds is kept until the process ends.
bool driver_gave_up() {
    const std::string_view plan = environment("ISTHMUS_FAULT_DRIVER");
    if (plan.find("sticky") != std::string_view::npos) return true;
    if (driver_is_silent()) return true;
    for (std::size_t at = 0; at < runtime().device_count(); ++at) {
        if (!runtime().device(at).value()->healthy()) return true;
    }
    return false;
}

const char* first_driver_fault() {
    return harness().fault_at != nullptr ? harness().fault_at(0) : nullptr;
}

// ISTHMUS_FAULT_NAMES: prints how often each function was called, so that each can be planned to fail for good.
void say_called_functions() {
    std::string_view names = environment("ISTHMUS_FAULT_NAMES");
    while (harness().count != nullptr && !names.empty()) {
        const std::string name(names.substr(0, names.find(',')));
        names.remove_prefix(std::min(names.size(), name.size() + 1));
        if (harness().count(name.c_str()) > 0) std::printf("fault-function: %s\n", name.c_str());
    }
}

void arm() {
    const char* driver = environment("ISTHMUS_FAULT_DRIVER");
    if (harness().reset_counts != nullptr) harness().reset_counts();
    if (harness().plan_driver != nullptr) (void)harness().plan_driver(driver);
    if (harness().plan_system != nullptr) (void)harness().plan_system(environment("ISTHMUS_FAULT_SYSTEM"));
}

// Runs the scenario; `ending` describes how it ended.
Outcome play(std::string& ending) {
    try {
        const int failed = RUN_ALL_TESTS();
        ending = failed != 0 ? "wrong" : "passed";
        return failed != 0 ? wrong_value : good;
    } catch (const ScenarioEnded&) {
        ending = "ended";
    } catch (const isthmus::BadResult& thrown) {
        ending = std::string(isthmus::name(thrown.error().code()));
        if (!fault_happened()) {
            std::printf("failed without a fault: %s\n", thrown.what());
            return wrong_value;
        }
        if (!explains_itself(thrown.error())) {
            std::printf("an error that explains nothing: %s\n", thrown.what());
            return unexplained_error;
        }
    }
    // A failed expectation is no answer to a fault: an unexpected error would have ended the scenario.
    const auto* unit = testing::UnitTest::GetInstance();
    return unit->ad_hoc_test_result().Failed() ||
                   (unit->current_test_info() != nullptr && unit->current_test_info()->result()->Failed())
               ? wrong_value
               : good;
}

int run_under_faults() {
    const bool from_start = std::string_view(environment("ISTHMUS_FAULT_FROM")) == "start";
    const long files_before = open_files();
    if (from_start) {
        setenv("ISTHMUS_SIM_FAULTS", environment("ISTHMUS_FAULT_DRIVER"), 1);
        arm();
    }
    Outcome outcome = good;
    std::string ending;
    (void)runtime();
    harness().find_simulator();
    if (!from_start) {
        arm();
    }
    outcome = play(ending);
    const bool gave_up = driver_gave_up();
    close_runtime();
    const long calls = driver_calls() < 0 ? 0 : driver_calls();  // −1: no driver was opened
    say_called_functions();
    const long system_calls = harness().system_calls != nullptr ? harness().system_calls() : 0;
    const std::string system_fault = harness().system_fault() != nullptr ? harness().system_fault() : "";
    if (harness().plan_driver != nullptr) (void)harness().plan_driver("");
    if (harness().plan_system != nullptr) (void)harness().plan_system("");
    std::string left = gave_up ? std::string() : left_in_simulator();
    // The simulator's library stays open. It keeps no files except those of exportable memory; its mappings for pinned
    // memory are in its ledger.
    const long held_files =
        harness().live != nullptr
            ? static_cast<long>(harness().live("physical") - harness().live("multicast"))  // one file each
            : 0;
    const long new_files = open_files() - files_before;
    // Interprocess events have one file, too, and a driver that gave up destroys none. An allocation that was not freed
    // and an exportable multicast object may have one.
    const long held_by_handles = harness().live == nullptr
                                     ? 0
                                     : static_cast<long>(harness().live("allocations") + harness().live("multicast") +
                                                         (gave_up ? harness().live("events") : 0));
    if (new_files != 0 && (new_files < held_files || new_files > held_files + held_by_handles))
        left += " files=" + std::to_string(new_files);
    // Unreleased memory stays mapped on purpose, because the device may still write to it. So does plain host memory
    // while the end of a kernel cannot be queried.
    const bool kept =
        driver_is_silent() || (harness().live != nullptr &&
                               (harness().live("allocations") > 0 || failed({"cuMemHostUnregister", "CtxPush"}) > 0));
    if (!kept && harness().system_mapped_bytes != nullptr && harness().system_mapped_bytes() != 0) {
        left += " mapped_bytes=" + std::to_string(harness().system_mapped_bytes());
    }
    if (outcome == good && !left.empty()) outcome = leak;
    const char* driver_fault = first_driver_fault();
    std::printf("fault-run: driver=%ld system=%ld fault=%s ending=%s left=[%s]\n", calls, system_calls,
                driver_fault != nullptr ? driver_fault : system_fault.c_str(), ending.c_str(),
                left.empty() ? "" : left.c_str() + 1);
    std::fflush(stdout);
    return outcome;
}

}  // namespace

bool fault_happened() noexcept {
    return is_fault_run() && (first_driver_fault() != nullptr || harness().system_fault() != nullptr);
}

int rounds(int asked) noexcept {
    return is_fault_run() ? 1 + asked / 1000 : asked;
}

testing::AssertionResult detail::judge(const isthmus::Error* answer, isthmus::Code wanted) {
    const isthmus::Code code = answer == nullptr ? isthmus::Code::ok : answer->code();
    if (code == wanted) return testing::AssertionSuccess();
    if (answer != nullptr && fault_happened()) throw isthmus::BadResult(*answer);
    return testing::AssertionFailure() << (answer == nullptr ? "it worked" : answer->text());
}

testing::AssertionResult unless_fault(bool holds) {
    if (holds) return testing::AssertionSuccess();
    if (fault_happened()) throw ScenarioEnded{};
    return testing::AssertionFailure();
}

}  // namespace conformance

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    if (conformance::is_fault_run()) return conformance::run_under_faults();
    const int result = RUN_ALL_TESTS();
    conformance::close_runtime();
    return result;
}
