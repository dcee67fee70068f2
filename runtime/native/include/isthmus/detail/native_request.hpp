// SPDX-License-Identifier: Apache-2.0
// Work of other code without its types: what the typed part gives to the library, and what it gets back.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/result.hpp>
#include <isthmus/stream.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

namespace isthmus {
inline namespace v0 {
namespace detail {

// As an argument in a kernel's pack: the runtime fills in the address for the device.
struct NativeView {
    void* data = nullptr;
};

struct NativeOutcome {
    bool called = false;
    bool of_driver = true;  // `code` is a CUresult or cudaError_t
    int code = 0;
    std::optional<Error> error;
    std::exception_ptr thrown;
    bool ok() const noexcept { return code == 0 && !error && thrown == nullptr; }
};

// A copy of the work, which a graph of the CPU device calls at each launch.
class ISTHMUS_API KeptWork {
public:
    KeptWork() = default;
    KeptWork(const KeptWork&) = delete;
    KeptWork& operator=(const KeptWork&) = delete;
    virtual ~KeptWork();
    virtual void run(NativeOutcome& out) = 0;
    const char* name = "";
    DeviceState* device = nullptr;
};

// One call without its types.
struct NativeRequest {
    const char* name;
    const LaunchArgument* arguments;
    const ParameterInfo* parameters;
    NativeView* views;
    std::uint32_t count;
    void (*call)(void* work, void* cu_stream, const NativeView* views, NativeOutcome& out) = nullptr;
    std::shared_ptr<KeptWork> (*keep)(void* work, const NativeView* views) = nullptr;  // nullptr: it cannot be copied
    void* work = nullptr;
    NativeOutcome* outcome = nullptr;
};
ISTHMUS_API Result<std::uint64_t> enqueue_native(const Stream& on, const NativeRequest& request);

struct NativeScopeState;
// A native scope without its types. Movable; the destructor closes it.
class ISTHMUS_API OpenedNative {
public:
    explicit OpenedNative(std::unique_ptr<NativeScopeState> state) noexcept;
    OpenedNative(OpenedNative&& other) noexcept;
    OpenedNative& operator=(OpenedNative&& other) noexcept;
    ~OpenedNative();
    void* stream() const noexcept;
    Result<std::uint64_t> close();

private:
    void drop() noexcept;
    std::unique_ptr<NativeScopeState> state_;
};
ISTHMUS_API Result<OpenedNative> open_native_scope(const Stream& on, const NativeRequest& request);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
