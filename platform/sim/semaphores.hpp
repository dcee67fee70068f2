// SPDX-License-Identifier: Apache-2.0
// External semaphores: a word that another driver's work signals or waits for, in a file that both map.
#pragma once

#include "driver.hpp"
#include "semaphore_types.hpp"

#include <memory>
#include <vector>

struct isthmus_sim_semaphore;

namespace isthmus::sim {

// The word of one semaphore, mapped as long as anything uses it.
class SemaphoreWord {
public:
    // nullptr: the file is none of that kind (isthmus_sim_semaphore_binary or _timeline). It stays the caller's.
    static std::shared_ptr<SemaphoreWord> open(int file, unsigned kind);
    explicit SemaphoreWord(isthmus_sim_semaphore* mapped) : mapped_(mapped) {}
    ~SemaphoreWord();
    SemaphoreWord(const SemaphoreWord&) = delete;
    SemaphoreWord& operator=(const SemaphoreWord&) = delete;

    // Both return false where the file does not have its bytes any more.
    bool signal(std::uint64_t value, bool& was_ahead) noexcept;  // was_ahead: it was signalled, or had a larger value
    bool take(std::uint64_t value, bool& taken) noexcept;        // taken: the wait is over

private:
    isthmus_sim_semaphore* mapped_;
};

struct Semaphore {
    std::shared_ptr<SemaphoreWord> word;
    Context* context = nullptr;
};

// What an operation signals or waits for: `details` of the operation, which keeps the words.
struct SemaphoreSet {
    bool waits = false;
    Context* context = nullptr;
    std::vector<std::shared_ptr<SemaphoreWord>> words;
    mutable std::vector<Semaphore*> semaphores;  // documented: a query returns the node's own arrays
    std::vector<SemaphoreParameters> parameters;
};

// All functions below require the driver's mutex.

// 0, or why these are no semaphores of one context. `context`: null for that of the first.
Result check_semaphores(const Driver& d, const Context* context, Semaphore* const* semaphores,
                        const SemaphoreParameters* parameters, unsigned count, SemaphoreSet& out);
engine::Operation semaphore_operation(Driver& d, SemaphoreSet&& set);
void lose_semaphores(Driver& d, const Context* context);

}  // namespace isthmus::sim
