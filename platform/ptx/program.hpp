// SPDX-License-Identifier: Apache-2.0
// A checked PTX program: what it declares, and whether its entries can run here. This room knows nothing of its user:
// text comes in, and memory is reached through the interface in execution.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::ptx {

// Why a text, or a function of it, cannot run.
struct Refusal {
    std::string what;        // the instruction or directive, and what is wrong with it; empty: nothing is
    std::uint32_t line = 0;  // of the PTX text
    bool refused() const noexcept { return !what.empty(); }
};

struct EntryParameter {
    std::uint32_t offset_bytes = 0;
    std::uint32_t size_bytes = 0;
};

struct Entry {
    std::string name;
    std::vector<EntryParameter> parameters;
    std::uint32_t parameter_bytes = 0;
    std::uint32_t shared_bytes = 0;         // where dynamic shared memory begins: behind all that is reserved or static
    std::uint32_t static_shared_bytes = 0;  // of the variables that the entry and what it calls name
    std::uint32_t local_bytes = 0;          // of the .local variables of it and of its deepest call
    std::uint32_t most_threads = 0;         // of a block, by .maxntid or .reqntid; 0: not stated
    std::array<std::uint32_t, 3> required_threads = {};  // the block, by .reqntid; 0: not stated
    std::array<std::uint32_t, 3> required_cluster = {};  // blocks of a cluster, by .reqnctapercluster; 0: not stated
    bool explicit_cluster = false;          // by .explicitcluster: a launch must state a cluster, if the entry does not
    std::uint32_t most_cluster_blocks = 0;  // by .maxclusterrank; 0: not stated
    // Of a thread: an estimate (register_estimate.hpp) with what it calls, within .maxnreg, .maxntid and .minnctapersm.
    std::uint32_t registers = 0;
    bool uses_heap = false;  // it or what it calls by name calls malloc() or free()
    // Of the entry, or of a function that it may call.
    Refusal refusal;
};

// A variable in global or constant memory. Its place is decided by the program's user.
struct GlobalVariable {
    std::string name;
    std::uint64_t size_bytes = 0;
    std::uint32_t alignment_bytes = 1;
    bool is_constant = false;
    bool is_extern = false;   // defined elsewhere: it needs a place, but has no content
    bool is_managed = false;  // .attribute(.managed): it lies in managed memory
};

struct ProgramCode;

// Immutable after place(): entries may run on several threads at a time.
class Program {
public:
    // Never fails: a text that cannot be read has a refusal, and no entries.
    explicit Program(std::string_view text);
    ~Program();
    Program(Program&&) noexcept;
    Program& operator=(Program&&) noexcept;

    const Refusal& refusal() const noexcept;
    // What an assembler refuses, too, by its words: names that nothing or two things declare, registers of another type
    // or size, a rounding mode that is missing. Other wrong text may have none.
    const Refusal& fault() const noexcept;
    // A variable that is used, and declared with .extern alone; empty: there is none.
    const std::string& undefined_variable() const noexcept;
    std::uint32_t target() const noexcept;  // the compute capability × 10 of .target
    const std::vector<Entry>& entries() const noexcept;
    const Entry* entry(std::string_view name) const noexcept;
    const std::vector<GlobalVariable>& variables() const noexcept;

    // States where each variable lies, by its place in variables(). Call it once, before the first execution.
    void place(const std::vector<std::uint64_t>& addresses);
    // The first content of a variable, for its place; requires place(). Empty: zeros.
    std::vector<std::byte> content(std::size_t variable) const;

    const ProgramCode& code() const noexcept { return *code_; }

private:
    std::unique_ptr<ProgramCode> code_;
};

}  // namespace isthmus::ptx
