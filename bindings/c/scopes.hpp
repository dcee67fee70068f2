// SPDX-License-Identifier: Apache-2.0
// The handles of scopes: host views, and native scopes.
#pragma once

#include <isthmus/native_work.hpp>

#include "handles.hpp"

#include <cstddef>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

// Owned by the caller's handle and by each tensor that was made of it.
struct isthmus_host_view : isthmus::c::Counted {
    using Reads = isthmus::HostView<const std::byte>;
    using Writes = isthmus::HostView<std::byte>;
    template <class V>
    isthmus_host_view(isthmus_runtime& of, V opened)
        : runtime(of),
          data(const_cast<std::byte*>(opened.data())),
          bytes(opened.size_bytes()),
          writable(std::is_same_v<V, Writes>),
          view(std::in_place_type<V>, std::move(opened)) {}
    isthmus::c::Ref<isthmus_runtime> runtime;
    void* data;
    std::size_t bytes;
    bool writable;
    std::variant<Reads, Writes> view;
};

struct isthmus_native_scope {
    // A use as it was opened: what a tensor of it needs.
    struct Opened {
        isthmus::c::Ref<isthmus_buffer> buffer;
        void* pointer;
        bool writable;
    };
    isthmus_native_scope(isthmus_stream& of, std::vector<Opened> opened, isthmus::detail::OpenedNative claimed)
        : runtime(of.runtime), device(of.device), uses(std::move(opened)), cpp(std::move(claimed)) {}
    isthmus::c::Ref<isthmus_runtime> runtime;
    isthmus_device* device;
    std::vector<Opened> uses;
    isthmus::detail::OpenedNative cpp;  // goes first: it closes
};
