// What a run of trials found, for people: a table with a line per row, and what follows from it.
#include "report.hpp"

#include "table_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace isthmus::tools::litmus {
namespace {

std::string count_text(std::uint64_t count) {
    if (count < 1'000'000) return fmt::format("{}", count);
    return fmt::format("{:.3g} M", static_cast<double>(count) / 1e6);
}

std::string rate_text(std::uint64_t seen, std::uint64_t tried) {
    return tried == 0 ? "-" : fmt::format("{:.2g}", static_cast<double>(seen) / static_cast<double>(tried));
}

std::string speed_text(const Row& row) {
    return row.seconds <= 0 ? "-" : fmt::format("{:.3g} M/s", static_cast<double>(total(row.seen)) / row.seconds / 1e6);
}

std::string answer_text(const Row& row) {
    const Answer answer = answer_of(row);
    std::string text(name(answer));
    const std::uint64_t weak = count(row.shape, row.seen, Outcome::weak);
    if (answer == Answer::lost_as_expected) {
        text += fmt::format(": {:.2g} %", 100.0 * static_cast<double>(weak) / static_cast<double>(total(row.seen)));
    }
    if (row.ending != Ending::finished) text += fmt::format(" ({})", name(row.ending));
    return text;
}

Section table_of(const std::vector<Row>& rows) {
    Section table;
    table.title = "Trials";
    table.header = {"memory", "shape", "answer", "instances", "weak", "rate below", "interleaved", "control", "speed"};
    for (const Row& row : rows) {
        const std::uint64_t tried = total(row.seen);
        const std::uint64_t weak = count(row.shape, row.seen, Outcome::weak);
        table.rows.push_back({std::string(name(row.kind)), std::string(name(row.shape)), answer_text(row),
                              count_text(tried), count_text(weak), fmt::format("{:.2g}", upper_bound(weak, tried)),
                              rate_text(count(row.shape, row.seen, Outcome::interleaved), tried),
                              rate_text(count(row.shape, row.control, Outcome::weak), total(row.control)),
                              speed_text(row)});
    }
    return table;
}

void add_remarks(const Report& report, std::string& text) {
    for (const Row& row : report.rows) {
        if (answer_of(row) == Answer::forbidden_seen) {
            text += fmt::format("{}, {}: {}; the guards of this machine grant too much\n", name(row.kind),
                                name(row.shape), weak_means(row.shape));
        }
        if (!row.trouble.empty()) text += fmt::format("{}, {}: {}\n", name(row.kind), name(row.shape), row.trouble);
    }
    for (const std::string& kind : report.left_out) text += "left out: " + kind + "\n";
    if (!report.end.empty()) text += "the trials " + report.end + "; rows that were not played are incomplete\n";
}

}  // namespace

std::string as_text(const Report& report, std::size_t width) {
    std::string text = fmt::format("device   {}\ndriver   CUDA {}.{}{}\n", report.device, report.driver_version / 1000,
                                   report.driver_version % 1000 / 10, report.simulated ? " (simulated)" : "");
    if (!report.applicable) {
        return text +
               "\nnot applicable: on a CPU device both sides are threads of the CPU, and launches are over when "
               "they return\n";
    }
    if (!report.mutant.empty()) text += fmt::format("mutant   {}\n", report.mutant);
    text += fmt::format("threads  {} of the CPU\nseed     {}\n\n", report.threads, report.seed);
    text += tools::as_text({table_of(report.rows)}, std::max<std::size_t>(width, 120));
    text += fmt::format("\n{}\n", summary(report));
    if (report.simulated) {
        text += "a simulated machine proves nothing about order: both sides are threads of this CPU\n";
    }
    add_remarks(report, text);
    return text;
}

}  // namespace isthmus::tools::litmus
