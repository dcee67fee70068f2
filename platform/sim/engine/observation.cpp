// SPDX-License-Identifier: Apache-2.0
// Tracks the work whose end the host has observed. Where CPU and GPU may not access managed memory at the same time,
// the driver returns access when the host observes the end of the GPU work, not when the work ends.
#include "core.hpp"

#include <algorithm>

namespace isthmus::sim::engine {

namespace {

Mark* find_mark(std::vector<Mark>& marks, const Mark& like) {
    for (Mark& mark : marks) {
        if (mark.stream == like.stream && mark.device == like.device) return &mark;
    }
    return nullptr;
}

void raise(std::vector<Mark>& marks, const Mark& mark) {
    if (Mark* known = find_mark(marks, mark)) {
        known->sequence = std::max(known->sequence, mark.sequence);
    } else {
        marks.push_back(mark);
    }
}

}  // namespace

void Core::issue(Work& work, int device) {
    if (!options.track_observation) return;
    const Mark mark{work.stream, device, ++last_sequence};
    raise(work.marks, mark);
    raise(unobserved, mark);
}

// Marks that were observed meanwhile are dropped, so that they do not accumulate.
void Core::merge_marks(const Work& before, Work& after) {
    for (const Mark& mark : before.marks) {
        if (find_mark(unobserved, mark)) raise(after.marks, mark);
    }
}

void Core::observe(const Work& work) {
    for (const Mark& mark : work.marks) {
        Mark* last = find_mark(unobserved, mark);
        if (last && last->sequence <= mark.sequence) unobserved.erase(unobserved.begin() + (last - unobserved.data()));
    }
}

void Core::observe_device(int device, std::uint64_t up_to_sequence) {
    std::erase_if(unobserved,
                  [&](const Mark& mark) { return mark.device == device && mark.sequence <= up_to_sequence; });
}

bool Engine::has_unobserved_work(int device) const {
    Core::Lock lock(*core_);
    return std::any_of(core_->unobserved.begin(), core_->unobserved.end(),
                       [&](const Mark& mark) { return mark.device == device; });
}

bool Engine::has_unobserved_work(StreamId stream) const {
    Core::Lock lock(*core_);
    return std::any_of(core_->unobserved.begin(), core_->unobserved.end(),
                       [&](const Mark& mark) { return mark.stream == stream; });
}

}  // namespace isthmus::sim::engine
