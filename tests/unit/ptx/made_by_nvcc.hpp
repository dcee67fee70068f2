// SPDX-License-Identifier: Apache-2.0
// PTX of nvcc, from files of this folder.
#pragma once

#include "ptx_machine.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace isthmus::ptx::test {

inline std::string made_by_nvcc(const std::string& name) {
    std::ifstream file(ISTHMUS_PTX_FOLDER "/" + name + ".ptx");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_FALSE(text.str().empty()) << name;
    return text.str();
}

inline ExecutionShape blocks_of(std::uint32_t grid, std::uint32_t block) {
    ExecutionShape out;
    out.grid.x = grid;
    out.block.x = block;
    return out;
}

}  // namespace isthmus::ptx::test
