// SPDX-License-Identifier: Apache-2.0
// Devices: what they say of themselves, and their streams.
#include <isthmus/device.hpp>

#include "calls.hpp"
#include "handles.hpp"

#include <memory>

using namespace isthmus;

namespace {

// nullptr: no such feature.
const Capability* capability(const isthmus_device* device, int32_t feature) noexcept {
    if (device == nullptr || feature < 0 || feature >= feature_count) return nullptr;
    return &device->cpp->capabilities().feature(static_cast<Feature>(feature));
}

}  // namespace

const char* isthmus_device_name(const isthmus_device* device) {
    return device == nullptr ? "" : device->name.c_str();
}
int32_t isthmus_device_is_cpu(const isthmus_device* device) {
    return device != nullptr && device->cpp->is_cpu() ? 1 : 0;
}
int32_t isthmus_device_ordinal(const isthmus_device* device) {
    return device == nullptr ? -1 : c::answered(-1, [&] { return device->cpp->facts().ordinal; });
}
size_t isthmus_device_index(const isthmus_device* device) {
    return device == nullptr ? 0 : device->cpp->index();
}
int32_t isthmus_device_model(const isthmus_device* device) {
    return device == nullptr ? ISTHMUS_MODEL_CPU : static_cast<int32_t>(device->cpp->capabilities().model);
}
int32_t isthmus_device_healthy(const isthmus_device* device) {
    return device != nullptr && device->cpp->healthy() ? 1 : 0;
}
int32_t isthmus_device_has(const isthmus_device* device, int32_t feature) {
    const Capability* const known = capability(device, feature);
    return known != nullptr && *known ? 1 : 0;
}
const char* isthmus_device_why(const isthmus_device* device, int32_t feature) {
    const Capability* const known = capability(device, feature);
    return known == nullptr ? "this version knows no feature of this number" : known->reason.c_str();
}
int32_t isthmus_device_feature_state(const isthmus_device* device, int32_t feature) {
    const Capability* const known = capability(device, feature);
    return known == nullptr ? ISTHMUS_STATE_NO : static_cast<int32_t>(known->state);
}
int32_t isthmus_device_feature_origin(const isthmus_device* device, int32_t feature) {
    const Capability* const known = capability(device, feature);
    return known == nullptr ? ISTHMUS_ORIGIN_ABSENT : static_cast<int32_t>(known->origin);
}
const char* isthmus_device_profile_date(const isthmus_device* device) {
    return device == nullptr ? nullptr : device->profile_date;
}

isthmus_stream* isthmus_device_stream(isthmus_device* device) {
    if (device == nullptr) return nullptr;
    return c::answered<isthmus_stream*>(nullptr, [&] { return new isthmus_stream(*device, device->cpp->stream()); });
}

isthmus_code isthmus_device_wrap_stream(isthmus_device* device, void* cu_stream, isthmus_stream** stream,
                                        isthmus_error** error) {
    return c::guarded("isthmus_device_wrap_stream", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"device", device}, {"stream", stream}}));
        return c::make_handle(stream, device->cpp->wrap_stream(cu_stream), *device);
    });
}

isthmus_code isthmus_device_create_stream(isthmus_device* device, int32_t priority, isthmus_stream** stream,
                                          isthmus_error** error) {
    return c::guarded("isthmus_device_create_stream", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"device", device}, {"stream", stream}}));
        return c::make_handle(stream, device->cpp->create_stream({.priority = priority}), *device);
    });
}

isthmus_code isthmus_device_synchronize(isthmus_device* device, int64_t wait_ns, isthmus_error** error) {
    return c::guarded("isthmus_device_synchronize", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"device", device}}));
        ISTHMUS_TRY(const Wait wait, call.wait(wait_ns));
        return device->cpp->synchronize(wait);
    });
}
