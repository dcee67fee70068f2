// SPDX-License-Identifier: Apache-2.0
// Decoded programs: one operation for each instruction, with the function that executes it for a warp's lanes.
#pragma once

#include "program.hpp"
#include "syntax.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::ptx {

inline constexpr std::uint32_t lanes = 32;
using LaneMask = std::uint32_t;
// A register of all lanes. Narrow values are zero-extended.
using Row = std::array<std::uint64_t, lanes>;

struct Warp;
struct Op;
// Executes an operation for the lanes of the mask, which is not empty.
using Run = void (*)(Warp& warp, const Op& op, LaneMask mask);

// CUDA C++ Programming Guide, technical specifications: of a thread, and of a launch.
inline constexpr std::uint32_t most_local_bytes = 512 << 10, most_parameter_bytes = 32764;

enum class OpKind : std::uint8_t {
    plain,
    may_fault,  // a fault ends the execution after it
    branch,
    branch_table,
    call,
    call_indirect,
    return_,
    exit,
    warp_sync,     // waits for the lanes of a mask, then runs
    barrier,       // waits for threads of the block, then runs
    cluster_wait,  // waits for the threads of the cluster
    may_wait,      // runs; Warp::waits: then others run first
    pause,
};

// The place of an operand: a row of the frame, or, if negative, row ~place of the function's constants.
using Place = std::int32_t;

struct Op {
    Run run = nullptr;
    OpKind kind = OpKind::plain;
    bool guard_negated = false;
    bool flag = false;       // meaning by operation
    std::uint8_t bytes = 0;  // of an access, or of one element
    std::uint8_t count = 1;  // elements of a vector
    Space space = Space::generic;
    std::uint8_t mode = 0;    // comparison, rounding or kind of atomic, by operation
    std::int32_t guard = -1;  // predicate; -1: none
    Place d = 0, a = 0, b = 0, c = 0;
    std::int32_t p = -1, q = -1;  // predicates: a result or a source; -1: none
    std::uint64_t value = 0;      // offset of an address, target, or masks, by operation
    std::uint64_t value2 = 0;
    std::uint32_t extra = 0;  // index into FunctionCode::extra
    std::uint32_t slot = 0;   // of the cached window of memory
    std::uint32_t line = 0;
    SourceLine source;
};

// A parameter in a frame's local memory.
struct LocalPlace {
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
};
// The caller's side of a call.
struct CallSite {
    std::vector<LocalPlace> arguments, results;
};

struct Symbol {
    enum class Kind : std::uint8_t { variable, function, shared, refused } kind = Kind::variable;
    std::uint32_t index = 0;   // of the variable, function or refusal; shared memory: 1: it is dynamic
    std::uint64_t offset = 0;  // in shared memory
    std::uint32_t bytes = 0;   // of static shared memory
};

struct Relocation {
    std::uint32_t constant = 0;  // row of the constants
    Symbol symbol;
    std::int64_t offset = 0;
};

enum class Intrinsic : std::uint8_t { none, vprintf, assertfail, set_condition, malloc, free, missing };

struct FunctionCode {
    std::string name;
    bool is_entry = false;
    bool has_body = false;
    Intrinsic intrinsic = Intrinsic::none;
    std::vector<Op> ops;
    std::vector<Row> constants;
    std::vector<std::int32_t> extra;
    std::uint32_t rows = 0;
    std::uint32_t predicates = 0;
    std::uint32_t local_bytes = 0;  // of a frame, with its parameters
    std::uint32_t declared_local_bytes = 0;
    std::vector<LocalPlace> returns, parameters;
    std::vector<Type> parameter_types;
    std::vector<CallSite> sites;
    std::vector<std::uint32_t> calls;  // functions
    std::uint32_t own_shared_bytes = 0;
    std::uint32_t registers = 0;                              // estimated, without what it calls
    std::map<std::uint64_t, std::uint32_t> shared_variables;  // of the module, that it names: bytes by offset
    bool calls_indirectly = false;
    bool takes_stack = false;  // it has alloca
    std::vector<Relocation> relocations;
    Refusal refusal;
};

// The windows of generic addresses. No process has memory at such addresses on 64-bit processors with 48 or 57 bits.
inline constexpr std::uint64_t window_mask = 0xff00'0000'0000'0000, shared_window = 0xfe00'0000'0000'0000,
                               local_window = 0xfd00'0000'0000'0000, param_window = 0xfc00'0000'0000'0000,
                               grid_window = 0xfb00'0000'0000'0000, function_window = 0xfa00'0000'0000'0000;
// The shared memory that CUDA reserves for itself: its bytes, in front of the block's own (observed: H100, 580), and
// where the part begins that cooperative groups of several warps take (288 bytes at least, as their header says).
inline constexpr std::uint32_t reserved_shared_bytes = 1024, reserved_for_groups = 512;
inline constexpr std::string_view reserved_shared_names = "%reserved_smem_offset_";
// Addresses of shared memory in a cluster: the bits from here on are the block's rank + 1; 0: the own block.
inline constexpr std::uint32_t cluster_shift = 24;

struct ProgramCode {
    Refusal refusal;
    Refusal fault;
    std::string undefined_variable;
    std::uint32_t target = 0;
    std::vector<Entry> entries;
    std::vector<std::uint32_t> entry_functions;
    std::vector<GlobalVariable> variables;
    std::vector<FunctionCode> functions;
    std::map<std::string, Symbol, std::less<>> symbols;
    std::vector<Refusal> refused_names;    // of symbols whose declaration cannot be honoured
    std::vector<std::uint64_t> addresses;  // of the variables
    std::map<std::uint32_t, std::string> files;
    std::uint32_t memory_slots = 0;
    bool reads_reserved_shared = false;  // where the reserved shared memory lies; others do not write to it
    // Initial contents, by variable: bytes, and where symbols go.
    struct Content {
        std::vector<std::byte> bytes;
        struct Place {
            std::uint64_t at = 0;
            Symbol symbol;
            std::int64_t offset = 0;
            std::uint64_t mask = 0;  // the byte that is stored, in an element of so many bytes; 0: all 8
            std::uint32_t bytes = 8;
        };
        std::vector<Place> symbols;
    };
    std::vector<Content> contents;
    std::uint32_t local_bytes_needed = 0;  // of a thread

    std::uint64_t address_of(const Symbol& symbol) const noexcept;
    void note_use(const Symbol& symbol);
    void note_fault(std::string what, std::uint32_t line) {
        if (!fault.refused()) fault = {std::move(what), line};
    }
};

}  // namespace isthmus::ptx
