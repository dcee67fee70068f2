// SPDX-License-Identifier: Apache-2.0
// A few functions of isthmus for torch_native.py, without types: one shared buffer, one stream, one native scope.
#include <isthmus/isthmus.hpp>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>

namespace {

using Scope = isthmus::NativeScope<isthmus::NativeUse<float>>;

struct Session {
    isthmus::Runtime runtime = isthmus::Runtime::open().value();
    isthmus::Device& device = runtime.default_device();
    isthmus::Stream stream = device.create_stream().value();
    isthmus::Buffer<float> buffer;
    std::optional<Scope> scope;
};

int told(const isthmus::Error& error) {
    std::fprintf(stderr, "%s\n", error.text().c_str());
    return static_cast<int>(error.code());
}

}  // namespace

extern "C" {

// `kind`: a MemoryKind, or −1 for the one that isthmus chooses.
__attribute__((visibility("default"))) void* session_open(std::size_t count, int kind) {
    auto session = std::make_unique<Session>();
    isthmus::SharedUse use;
    if (kind >= 0) use.kind = static_cast<isthmus::MemoryKind>(kind);
    auto made = session->device.allocate_shared<float>(count, use);
    if (!made) return told(made.error()), nullptr;
    session->buffer = std::move(made).value();
    return session.release();
}
__attribute__((visibility("default"))) void session_close(void* session) {
    delete static_cast<Session*>(session);
}
__attribute__((visibility("default"))) int session_device(void* session) {
    return static_cast<Session*>(session)->device.facts().ordinal;
}
__attribute__((visibility("default"))) int session_write(void* session, float first, float step) {
    auto view = static_cast<Session*>(session)->buffer.write_on_host();
    if (!view) return told(view.error());
    for (std::size_t i = 0; i < view->size(); ++i) (*view)[i] = first + step * static_cast<float>(i % 1000);
    return 0;
}
__attribute__((visibility("default"))) int session_read(void* session, float* to) {
    const auto view = static_cast<Session*>(session)->buffer.read_on_host();
    if (!view) return told(view.error());
    for (std::size_t i = 0; i < view->size(); ++i) to[i] = (*view)[i];
    return 0;
}
// Opens the scope, and gives the CUstream and the device pointer.
__attribute__((visibility("default"))) int session_begin(void* session, void** cu_stream, void** data) {
    auto& one = *static_cast<Session*>(session);
    auto scope = one.stream.open_native_scope("torch", isthmus::updates(one.buffer));
    if (!scope) return told(scope.error());
    one.scope.emplace(std::move(scope).value());
    *cu_stream = one.scope->stream();
    *data = one.scope->get<0>();
    return 0;
}
__attribute__((visibility("default"))) int session_end(void* session) {
    auto& one = *static_cast<Session*>(session);
    const auto closed = one.scope->close();
    one.scope.reset();
    return closed ? 0 : told(closed.error());
}

}  // extern "C"
