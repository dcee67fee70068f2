// SPDX-License-Identifier: Apache-2.0
// The result of `isthmus latency`, as text, as JSON and as a page.
#pragma once

#include "camera/summary.hpp"
#include "load.hpp"
#include "plan.hpp"
#include "sealed.hpp"
#include "tally.hpp"
#include "text/table_text.hpp"

#include <isthmus/real_time.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace isthmus::tools::latency {

// Why a run ended before its last turn.
struct Trouble {
    std::string code;  // "timed_out", as Code has it, or "wrong_answer"
    std::string id{};  // of the error catalogue; empty: not one of the library's
    std::string text;  // the whole line, with the code
};

// What was done for the loop's thread, and what was refused.
struct Prepared {
    int priority = 0;         // of SCHED_FIFO; 0: as before
    std::vector<int> cpus{};  // empty: as before
    bool locked = false;      // the process's memory, and the stack is there
    bool sealed = false;
    std::vector<std::string> refused{};  // the errors' texts
};

struct RunReport {
    RunPlan plan;
    std::string kind{};    // of the shared buffer's memory
    std::string path{};    // how the device uses it
    std::string reason{};  // why it is of that kind
    Prepared prepared{};
    std::uint64_t warm_up = 0;  // turns before those that count
    std::uint64_t planned = 0;
    std::uint64_t skipped = 0;
    std::uint64_t slept = 0;
    std::shared_ptr<const Tally> tally{};  // never empty in a report
    std::optional<ThreadCounts> counts{};  // of the loop's thread, during the turns that count
    std::optional<SealedCounts> sealed{};  // where the run was sealed
    std::vector<LoadReport> loads{};
    std::optional<Trouble> trouble{};

    // Late and skipped turns.
    std::uint64_t missed() const noexcept { return tally->late() + skipped; }
    // Voluntary switches beyond the loop's own sleeps: waits in the library or the driver.
    std::int64_t other_switches() const noexcept;
};

struct Report {
    camera::RanOn where{};
    int driver_version = 0;
    Request request{};
    std::vector<RunReport> runs{};
    std::vector<std::string> left_out{};  // kinds that this device cannot use so, each with the reason
    int signal = 0;                       // that ended the runs; 0: none
};

std::string as_text(const Report& report, const TextStyle& style = {});
std::string as_json(const Report& report);
// One file without scripts and without links to elsewhere; well-formed XML.
std::string html_page(const Report& report);
// The command's exit code: missed deadlines are results, and no failure.
int exit_code(const Report& report) noexcept;

// Texts that text and page share: "fixed at 1 kHz" and the like.
std::string loop_words(const Request& request);
std::string prepared_words(const RunReport& run);
std::string events_words(const RunReport& run);
std::string load_words(const LoadReport& load);
std::string nanoseconds_words(std::uint64_t time_ns);  // "3.2 us"

}  // namespace isthmus::tools::latency
