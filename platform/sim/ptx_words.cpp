// SPDX-License-Identifier: Apache-2.0
#include "ptx_words.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

namespace isthmus::sim {
namespace {

// Of PTX ISA 9.0, chapter 9, with those of earlier versions; sorted.
constexpr std::string_view instructions[] = {"_warpsync",
                                             "abs",
                                             "activemask",
                                             "add",
                                             "addc",
                                             "alloca",
                                             "and",
                                             "applypriority",
                                             "atom",
                                             "bar",
                                             "barrier",
                                             "bfe",
                                             "bfi",
                                             "bfind",
                                             "bmsk",
                                             "bra",
                                             "brev",
                                             "brkpt",
                                             "brx",
                                             "call",
                                             "clusterlaunchcontrol",
                                             "clz",
                                             "cnot",
                                             "copysign",
                                             "cos",
                                             "cp",
                                             "createpolicy",
                                             "cvt",
                                             "cvta",
                                             "discard",
                                             "div",
                                             "dp2a",
                                             "dp4a",
                                             "elect",
                                             "ex2",
                                             "exit",
                                             "fence",
                                             "fma",
                                             "fns",
                                             "getctarank",
                                             "griddepcontrol",
                                             "isspacep",
                                             "istypep",
                                             "ld",
                                             "ldmatrix",
                                             "ldu",
                                             "lg2",
                                             "lop3",
                                             "mad",
                                             "mad24",
                                             "madc",
                                             "mapa",
                                             "match",
                                             "max",
                                             "mbarrier",
                                             "membar",
                                             "min",
                                             "mma",
                                             "mov",
                                             "movmatrix",
                                             "mul",
                                             "mul24",
                                             "multimem",
                                             "nanosleep",
                                             "neg",
                                             "not",
                                             "or",
                                             "pmevent",
                                             "popc",
                                             "prefetch",
                                             "prefetchu",
                                             "prmt",
                                             "rcp",
                                             "red",
                                             "redux",
                                             "rem",
                                             "ret",
                                             "rsqrt",
                                             "sad",
                                             "selp",
                                             "set",
                                             "setmaxnreg",
                                             "setp",
                                             "shf",
                                             "shfl",
                                             "shl",
                                             "shr",
                                             "sin",
                                             "slct",
                                             "sqrt",
                                             "st",
                                             "stackrestore",
                                             "stacksave",
                                             "stmatrix",
                                             "sub",
                                             "subc",
                                             "suld",
                                             "suq",
                                             "sured",
                                             "sust",
                                             "szext",
                                             "tanh",
                                             "tcgen05",
                                             "tensormap",
                                             "testp",
                                             "tex",
                                             "tld4",
                                             "trap",
                                             "txq",
                                             "vabsdiff",
                                             "vabsdiff2",
                                             "vabsdiff4",
                                             "vadd",
                                             "vadd2",
                                             "vadd4",
                                             "vavrg2",
                                             "vavrg4",
                                             "vmad",
                                             "vmax",
                                             "vmax2",
                                             "vmax4",
                                             "vmin",
                                             "vmin2",
                                             "vmin4",
                                             "vote",
                                             "vset",
                                             "vset2",
                                             "vset4",
                                             "vshl",
                                             "vshr",
                                             "vsub",
                                             "vsub2",
                                             "vsub4",
                                             "wgmma",
                                             "wmma",
                                             "xor"};
static_assert(std::is_sorted(std::begin(instructions), std::end(instructions)));

bool space(char c) {
    return std::isspace(static_cast<unsigned char>(c)) != 0;
}
bool of_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && space(text.front())) text.remove_prefix(1);
    while (!text.empty() && space(text.back())) text.remove_suffix(1);
    return text;
}

// Without labels and the predicate.
std::string_view instruction_in(std::string_view statement) {
    for (;;) {
        statement = trimmed(statement);
        const auto end = std::find_if_not(statement.begin(), statement.end(), of_name);
        const std::string_view rest = trimmed(statement.substr(static_cast<std::size_t>(end - statement.begin())));
        if (rest.empty() || rest.front() != ':' || end == statement.begin()) break;
        statement = rest.substr(1);
    }
    if (!statement.empty() && statement.front() == '@') {
        const auto end = std::find_if(statement.begin(), statement.end(), space);
        statement = trimmed(statement.substr(static_cast<std::size_t>(end - statement.begin())));
    }
    return statement;
}

std::string_view name_at(std::string_view text) {
    return text.substr(0, static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), of_name) - text.begin()));
}

// The function that a header declares or defines; empty: it is no function's.
std::string_view function_in(std::string_view header) {
    constexpr std::string_view word = ".func";
    const std::size_t at = header.find(word);
    if (at == std::string_view::npos) return {};
    header = trimmed(header.substr(at + word.size()));
    if (header.starts_with('(')) header = trimmed(header.substr(std::min(header.find(')'), header.size() - 1) + 1));
    return name_at(header);
}

// CUDA C++ Programming Guide: those of the driver, and the device runtime, which a linker may have added.
bool provided(std::string_view function) {
    constexpr std::string_view names[] = {"vprintf", "__assertfail", "malloc", "free"};
    return std::find(std::begin(names), std::end(names), function) != std::end(names) || function.starts_with("cuda") ||
           function.starts_with("__cuda");
}

// Statements of a text, without its comments and quotes.
class Reader {
public:
    std::string read(std::string_view text) {
        for (std::size_t at = 0; at < text.size() && error_.empty(); ++at) {
            const std::string_view rest = text.substr(at);
            if (rest.starts_with("//")) {
                at += std::min(rest.find('\n'), rest.size()) - 1;
            } else if (rest.starts_with("/*")) {
                const std::size_t end = std::min(rest.find("*/", 2), rest.size());
                line_ += static_cast<unsigned>(std::count(rest.begin(), rest.begin() + static_cast<long>(end), '\n'));
                at += end + 1;
            } else if (rest.front() == '"') {
                at += std::min(rest.find('"', 1), rest.size() - 1);
            } else {
                character(rest.front());
            }
        }
        if (error_.empty() && depth_ != 0) fail("syntax error", "missing '}'");
        for (const std::string& function : outside_) {
            const bool missing = called_.count(function) != 0 && defined_.count(function) == 0 && !provided(function);
            if (error_.empty() && missing) error_ = "fatal   : Unresolved extern function '" + function + "'";
        }
        return error_;
    }

private:
    void character(char c) {
        if (c == '\n') ++line_;
        const std::string_view now = trimmed(statement_);
        if (c == '\n' && (now.starts_with(".loc") || now.starts_with(".file"))) return statement_.clear();
        if (c == '{') return open(instruction_in(now));
        if (c == '}') return close();
        if (c == ';' && operands_ == 0) return end();
        // A statement begins with its first word, and has one character for each run of white space: what trimmed()
        // passes over does not grow with the text.
        if (statement_.empty()) first_line_ = line_;
        if (space(c) && (statement_.empty() || space(statement_.back()))) return;
        statement_ += c;
    }
    // A brace opens operands or values inside a statement, and a scope elsewhere.
    void open(std::string_view before) {
        if (depth_ == 0) defined_.emplace(function_in(before));
        ++depth_;
        const bool body = before.empty() || (before.front() == '.' && before.find('=') == std::string_view::npos);
        if (operands_ != 0 || !body) {
            ++operands_;
        } else {
            statement_.clear();
        }
    }
    void close() {
        if (depth_ == 0) return fail("syntax error", "'}'");
        --depth_;
        if (operands_ != 0) {
            --operands_;
        } else {
            end();
        }
    }
    void end() {
        const std::string_view statement = instruction_in(statement_);
        const bool word =
            depth_ != 0 && !statement.empty() &&
            (std::isalpha(static_cast<unsigned char>(statement.front())) != 0 || statement.front() == '_');
        if (word) {
            const std::string_view name = name_at(statement);
            if (!std::binary_search(std::begin(instructions), std::end(instructions), name)) {
                fail("Not a name of any known instruction", "'" + std::string(name) + "'");
            }
            if (name == "call") call(statement);
        } else if (depth_ == 0 && statement.find(".extern") != std::string_view::npos) {
            outside_.emplace(function_in(statement));
        }
        statement_.clear();
    }
    void call(std::string_view statement) {
        while (!statement.empty()) {
            const std::string_view name = name_at(statement);
            if (!name.empty()) called_.emplace(name);
            statement.remove_prefix(std::max<std::size_t>(name.size(), 1));
        }
    }
    void fail(std::string_view what, std::string_view which) {
        error_ = "line " + std::to_string(first_line_) + "; error   : " + std::string(what) + ": " + std::string(which);
    }

    std::string statement_, error_;
    std::set<std::string> outside_, defined_, called_;  // names of functions, and of other operands of calls
    unsigned line_ = 1, first_line_ = 1;
    int depth_ = 0, operands_ = 0;
};

}  // namespace

std::string ptx_error(std::string_view text) {
    return Reader().read(text);
}

}  // namespace isthmus::sim
