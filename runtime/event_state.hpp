// EventState: a driver event and the stream position that it stands behind.
#pragma once

#include <platform/driver.hpp>

#include <cstdint>
#include <memory>
#include <mutex>

namespace isthmus::inline v0::detail {

struct DeviceState;
struct StreamState;

struct EventState {
    EventState(std::shared_ptr<DeviceState> owner, platform::EventHandle made, bool with_timing)
        : device(std::move(owner)), handle(made), timing(with_timing) {}
    ~EventState();

    const std::shared_ptr<DeviceState> device;
    const platform::EventHandle handle;
    const bool timing;

    std::mutex mutex;                     // guards what follows
    std::shared_ptr<StreamState> stream;  // of the last record; empty: never recorded, hence complete
    std::uint64_t position = 0;
};

}  // namespace isthmus::inline v0::detail
