// SPDX-License-Identifier: Apache-2.0
// Objects of the program that graphs keep alive.
#pragma once

#include "driver.hpp"

#include <map>
#include <memory>

namespace isthmus::sim {

struct UserObject {
    HostFunction destroy = nullptr;
    void* pointer = nullptr;
    std::uint64_t references = 0;
};

// The references of one state of a graph. Copies of the graph (clones, instances, launches) share them, so an object
// lives as long as the last of these.
class UserReferences {
public:
    // Takes references of its own. Requires the driver's mutex.
    UserReferences(Driver& d, std::map<UserObject*, std::uint64_t> held);
    ~UserReferences();  // locks the driver's mutex
    UserReferences(const UserReferences&) = delete;
    UserReferences& operator=(const UserReferences&) = delete;
    const std::map<UserObject*, std::uint64_t>& held() const noexcept { return held_; }

private:
    Driver& d_;
    std::map<UserObject*, std::uint64_t> held_;
};

}  // namespace isthmus::sim
