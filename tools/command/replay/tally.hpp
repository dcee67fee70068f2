// SPDX-License-Identifier: Apache-2.0
// Tally: an observer that adds up what happens while a recording is played. DeviceGate: keeps a stream's work from
// ending before the host waits for something.
#pragma once

#include "outcome.hpp"

#include <isthmus/observer.hpp>
#include <isthmus/result.hpp>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace isthmus::tools::replay {

// Every kernel may take arbitrarily long: so work counts as running until the host waits. Each piece of work stands
// behind a host function that stops at the gate; the first wait lets all through that were given before it.
// Thread-safe.
class DeviceGate {
public:
    // The number that pass() is called with, on the driver's thread.
    std::uint64_t give();
    // Returns when the gate was opened behind this number, and after some seconds anyway: the driver may wait by
    // itself.
    void pass(std::uint64_t number) noexcept;
    void open() noexcept;

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    std::uint64_t given_ = 0;
    std::uint64_t passing_ = 0;
};

// Thread-safe. Lives longer than the runtime.
class Tally {
public:
    explicit Tally(DeviceGate& gate);
    Tally(const Tally&) = delete;
    Tally& operator=(const Tally&) = delete;

    const ObserverCallbacks* callbacks() const noexcept { return &callbacks_; }
    // The call that is played from here on, for the waits within it.
    void begin_call(std::string_view name);
    // From here on nothing is counted.
    void stop();
    void add_to(Outcome& outcome) const;

private:
    void begin(Span span, std::string_view name);
    void mark(Mark mark, std::string_view name, const ObservedFacts& facts);

    DeviceGate& gate_;
    ObserverCallbacks callbacks_;
    mutable std::mutex mutex_;
    bool counts_ = true;
    std::string call_;
    std::map<std::tuple<bool, std::string, std::string>, Copied> copies_;
    std::map<std::pair<std::string, std::string>, std::uint64_t> waits_;
    std::uint64_t attaches_ = 0;
    std::uint64_t prefetches_ = 0;
};

}  // namespace isthmus::tools::replay
