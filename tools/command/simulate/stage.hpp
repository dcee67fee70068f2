// SPDX-License-Identifier: Apache-2.0
// What a program finds in place of the driver: a folder with libcuda.so.1 and the file of counts, and the variables
// that name them.
#pragma once

#include "simulation.hpp"

#include <string>

namespace isthmus::tools::simulate {

// A temporary folder, removed with the object. Throws Failure.
class Stage {
public:
    // `simulator`: the path of the simulator's libcuda.so.1.
    explicit Stage(std::string simulator);
    ~Stage();
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    // Sets the variables of this process, which its children inherit, and empties the counts. `machine`: a name, or a
    // record's absolute path.
    void set(const std::string& machine, bool strict, bool uninitialised) const;
    // Nothing, after a line on standard error: the file is damaged, or cannot be read.
    std::optional<Counts> counts() const;

private:
    std::string simulator_, folder_;
};

// `value` of a variable like LD_LIBRARY_PATH, with `folder` before it.
std::string with_folder_first(const std::string& folder, const char* value);

}  // namespace isthmus::tools::simulate
