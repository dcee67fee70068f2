// SPDX-License-Identifier: Apache-2.0
// What connections, senders and receivers of isthmus_ucx.h share.
#pragma once

#include <isthmus/ucx.hpp>
#include <isthmus_ucx.h>

#include "calls.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

struct isthmus_ucx_connection {
    explicit isthmus_ucx_connection(isthmus::ucx::Connection made) : cpp(std::move(made)) {}
    std::optional<isthmus::ucx::Connection> cpp;  // until a sender or a receiver takes it
};

namespace isthmus::c {

inline Result<ucx::Connection> taken(const Call& call, isthmus_ucx_connection& connection) {
    std::optional<ucx::Connection> had = std::exchange(connection.cpp, std::nullopt);
    if (had) return std::move(*had);
    return Error(Code::invalid_handle, std::string(call.name) + ": the connection was taken before",
                 "connect or accept again");
}

// How long a step may wait.
inline Result<std::chrono::nanoseconds> step_time(const Call& call, std::int64_t wait_ns) {
    if (wait_ns == ISTHMUS_WAIT_DEFAULT) return std::chrono::nanoseconds(std::chrono::milliseconds(50));
    ISTHMUS_TRY(call.wait(wait_ns));
    return std::chrono::nanoseconds(wait_ns);
}

// This library uses the handles of libisthmus-c, which may have changed between versions.
Result<void> same_version(const Call& call);

// Writes what the caller's struct, which begins with `size`, has room for.
template <class S>
Result<void> write_struct(const Call& call, const char* argument, S* to, S from) {
    ISTHMUS_TRY(call.needs({{argument, to}}));
    if (to->size < sizeof from.size || to->size > 4096) {
        return call.refuse(argument, "has a `size` of " + std::to_string(to->size),
                           "initialise the struct with its _INIT macro");
    }
    from.size = to->size;
    std::memset(to, 0, from.size);
    std::memcpy(to, &from, from.size < sizeof from ? from.size : sizeof from);
    return {};
}

}  // namespace isthmus::c
