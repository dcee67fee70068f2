// SPDX-License-Identifier: Apache-2.0
// Gate: a kernel that waits for the host, so that a scenario knows which work is unfinished.
#pragma once

#include "scenario.hpp"

namespace conformance {

// Declare after what its kernels use: its destructor opens it. Where a kernel would wait forever, because nothing runs
// beside the host, it is open from the beginning.
class Gate {
public:
    explicit Gate(isthmus::Device& device)
        : words_(pinned(device, gate_line * 2, 0)),
          view_(words_.concurrent_on_host().value()),
          holds_(!device.is_cpu() && work_runs_by_itself()) {
        if (!holds_) raise();
    }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;
    ~Gate() { raise(); }

    isthmus::Buffer<std::int32_t>& words() { return words_; }
    bool holds() const { return holds_; }  // later work has not ended
    void raise() {
        __atomic_store_n(view_.data(), 1, __ATOMIC_RELEASE);  // pairs with is_raised() in when_raised
        holds_ = false;
    }
    bool passed() const { return __atomic_load_n(view_.data() + gate_line, __ATOMIC_ACQUIRE) != 0; }

private:
    isthmus::Buffer<std::int32_t> words_;
    isthmus::ConcurrentView<std::int32_t> view_;
    bool holds_;
};

}  // namespace conformance
