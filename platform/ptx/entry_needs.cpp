// SPDX-License-Identifier: Apache-2.0
// Follows the calls of entries.
#include "entry_needs.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace isthmus::ptx {
namespace {

// Of local memory, where the depth of calls is not known, or what alloca takes.
constexpr std::uint32_t recursion_bytes = 16384;

class EntryNeeds {
public:
    EntryNeeds(ProgramCode& out, const std::vector<const FunctionSyntax*>& bodies) : out_(out), bodies_(bodies) {}

    // The refusals of what an entry calls, and the local memory of its deepest call.
    void inspect(std::size_t entry) {
        visited_.assign(out_.functions.size(), false);
        depth_.assign(out_.functions.size(), 0);
        declared_depth_.assign(out_.functions.size(), 0);
        done_.assign(out_.functions.size(), false);
        unbounded_ = uses_heap_ = calls_ = false;
        registers_ = 0;
        shared_variables_.clear();
        own_shared_bytes_ = 0;
        const std::uint32_t bytes = depth_of(out_.entry_functions[entry], out_.entries[entry].refusal, 0);
        for (const auto& [offset, size] : shared_variables_) own_shared_bytes_ += size;
        out_.entries[entry].static_shared_bytes = own_shared_bytes_;
        out_.entries[entry].uses_heap = uses_heap_;
        out_.entries[entry].registers = bounded_registers(*bodies_[out_.entry_functions[entry]]);
        out_.entries[entry].local_bytes = declared_depth_[out_.entry_functions[entry]];
        const std::uint64_t needed = std::uint64_t{bytes} + (unbounded_ ? recursion_bytes : 0);
        Refusal& refusal = out_.entries[entry].refusal;
        if (needed > most_local_bytes && !refusal.refused()) {
            refusal = {"local memory of more than 512 KiB, with what it calls",
                       bodies_[out_.entry_functions[entry]]->line};
        }
        if (refusal.refused()) return;
        out_.local_bytes_needed = std::max(out_.local_bytes_needed, static_cast<std::uint32_t>(needed));
    }

private:
    // What ptxas takes besides, and at least for code with calls: as for the kernels of the tests.
    std::uint32_t bounded_registers(const FunctionSyntax& body) const {
        constexpr std::uint64_t beside = 4, with_calls = 24, most_of_thread = 255, of_multiprocessor = 65536;
        const auto product = [](const std::array<std::uint64_t, 3>& of) { return of[0] * of[1] * of[2]; };
        std::uint64_t out = registers_ + beside;
        if (calls_) out = std::max(out + beside, with_calls);
        std::uint64_t most = most_of_thread;
        const std::uint64_t stated =
            product(body.required_threads) != 0 ? product(body.required_threads) : product(body.most_threads);
        if (stated != 0) {
            const std::uint64_t threads = (stated + lanes - 1) / lanes * lanes;
            const std::uint64_t blocks = std::max<std::uint64_t>(body.least_blocks, 1);
            most = std::min(most, std::max<std::uint64_t>(of_multiprocessor / threads / blocks / 8 * 8, 16));
        }
        if (body.most_registers != 0) most = std::min(most, body.most_registers);
        return static_cast<std::uint32_t>(std::min((out + 1) / 2 * 2, most));
    }
    std::uint32_t depth_of(std::uint32_t function, Refusal& refusal, int nesting) {
        const FunctionCode& code = out_.functions[function];
        if (done_[function]) return depth_[function];
        if (visited_[function] || nesting > 1000) {
            unbounded_ = true;
            return 0;
        }
        visited_[function] = true;
        if (code.refusal.refused() && !refusal.refused()) refusal = code.refusal;
        unbounded_ = unbounded_ || code.calls_indirectly || code.takes_stack;
        registers_ = std::max(registers_, code.registers);
        calls_ = calls_ || code.calls_indirectly || !code.calls.empty();
        uses_heap_ = uses_heap_ || code.intrinsic == Intrinsic::malloc || code.intrinsic == Intrinsic::free;
        own_shared_bytes_ += code.own_shared_bytes;
        shared_variables_.insert(code.shared_variables.begin(), code.shared_variables.end());
        std::uint32_t deepest = 0, declared = 0;
        for (const std::uint32_t called : code.calls) {
            deepest = std::max(deepest, depth_of(called, refusal, nesting + 1));
            declared = std::max(declared, declared_depth_[called]);
        }
        done_[function] = true;
        declared_depth_[function] = code.declared_local_bytes + declared;
        return depth_[function] = code.local_bytes + deepest;
    }

    ProgramCode& out_;
    const std::vector<const FunctionSyntax*>& bodies_;
    std::vector<bool> visited_, done_;
    std::vector<std::uint32_t> depth_, declared_depth_;
    bool unbounded_ = false, uses_heap_ = false, calls_ = false;
    std::uint32_t registers_ = 0;
    std::uint32_t own_shared_bytes_ = 0;
    std::map<std::uint64_t, std::uint32_t> shared_variables_;
};

}  // namespace

void note_needs(ProgramCode& program, const std::vector<const FunctionSyntax*>& bodies) {
    EntryNeeds needs(program, bodies);
    for (std::size_t entry = 0; entry < program.entries.size(); ++entry) needs.inspect(entry);
}

}  // namespace isthmus::ptx
