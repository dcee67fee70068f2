// SPDX-License-Identifier: Apache-2.0
// Loaded images and the functions in them. A library (context-independent) is a module, a kernel a function.
#pragma once

#include "twins.hpp"
#include "types.hpp"

#include <map>
#include <string>

namespace isthmus::sim {

struct Function {
    const Twin* twin = nullptr;
    Module* module = nullptr;
    std::map<int, int> set_attributes;
};

struct Module {
    ImageName image;
    std::map<std::string, Function*> functions;
    Context* context = nullptr;  // nullptr: a library
};

}  // namespace isthmus::sim
