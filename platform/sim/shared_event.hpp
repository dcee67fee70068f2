// SPDX-License-Identifier: Apache-2.0
// The state of an interprocess event, in memory shared by its processes: the count of records, and which of them were
// reached.
#pragma once

#include "types.hpp"

#include <cstdint>
#include <memory>

namespace isthmus::sim {

class SharedEvent {
public:
    static std::shared_ptr<SharedEvent> create();                            // nullptr: the system has none
    static std::shared_ptr<SharedEvent> open(const ShareableBytes& handle);  // nullptr: gone, or no such handle
    static bool is_one(const ShareableBytes& handle);                        // checks its form only
    static bool of_this_process(const ShareableBytes& handle);
    ~SharedEvent();
    SharedEvent(const SharedEvent&) = delete;
    SharedEvent& operator=(const SharedEvent&) = delete;

    ShareableBytes handle() const;
    // Records are counted from 1 over all processes; 0: never recorded. A wait takes the last record.
    std::uint64_t last_record() const;
    std::uint64_t begin_record();
    void reach(std::uint64_t record);
    bool reached(std::uint64_t record) const;

private:
    struct State;
    SharedEvent(int file, std::uint64_t nonce, State* state) : file_(file), nonce_(nonce), state_(state) {}
    static std::shared_ptr<SharedEvent> over(int file, std::uint64_t nonce);
    int file_;
    std::uint64_t nonce_;
    State* state_;
};

}  // namespace isthmus::sim
