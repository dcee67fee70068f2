// SPDX-License-Identifier: Apache-2.0
// PTX text: whatever it is, reading it ends, and what is accepted is well-formed.
#include <program.hpp>

#include "require.hpp"

namespace {

using namespace isthmus::ptx;

void look_at(std::string_view text) {
    Program program(text);
    require(!program.refusal().refused() || program.entries().empty());
    for (const Entry& entry : program.entries()) {
        require(!entry.name.empty());
        std::uint32_t end = 0;
        for (const EntryParameter& parameter : entry.parameters) {
            require(parameter.offset_bytes >= end);
            end = parameter.offset_bytes + parameter.size_bytes;
        }
        require(end <= entry.parameter_bytes);
    }
    if (program.refusal().refused()) return;
    program.place(std::vector<std::uint64_t>(program.variables().size(), 4096));
    for (std::size_t at = 0; at < program.variables().size(); ++at) {
        require(program.content(at).size() <= program.variables()[at].size_bytes);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    look_at({reinterpret_cast<const char*>(data), size});
    return 0;
}
