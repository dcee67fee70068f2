// SPDX-License-Identifier: Apache-2.0
// Shared libraries with kernels of one name that are opened, closed and opened again while a runtime lives: each runs
// its own kernel, also at the addresses of one that was closed before.
#include <isthmus/isthmus.hpp>

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <string>

namespace {

using namespace isthmus;

class Plugin {
public:
    Plugin(const char* path, int mode) : handle_(dlopen(path, RTLD_NOW | mode)) {}
    Plugin(const Plugin&) = delete;
    Plugin& operator=(const Plugin&) = delete;
    ~Plugin() {
        if (handle_ != nullptr) dlclose(handle_);
    }
    bool open() const { return handle_ != nullptr; }
    const void* kernel() const { return function<const void*()>("address_of_scale")(); }
    int launch(Stream& stream, Buffer<std::int32_t>& data) const {
        return function<int(Stream&, Buffer<std::int32_t>&)>("launch_scale")(stream, data);
    }

private:
    template <class Function>
    Function* function(const char* name) const {
        return reinterpret_cast<Function*>(dlsym(handle_, name));
    }
    void* handle_;
};

bool is_loaded(const char* path) {
    void* const handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (handle != nullptr) dlclose(handle);
    return handle != nullptr;
}

constexpr const char* two = SCALE_BY_2;
constexpr const char* three = SCALE_BY_3;

// Where the compiler links libstdc++ into the libraries (g++ 13 on a machine with a GPU), its unique symbols keep them.
bool stays_loaded() {
    return __GNUC__ > 12 && is_loaded(two);
}

void expect_own_kernel(Device& device, const Plugin& plugin, std::int32_t factor) {
    ASSERT_TRUE(plugin.open()) << dlerror();
    Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(100).value();
    for (std::int32_t& value : data.write_on_host().value()) value = 5;
    for (int launch = 0; launch < 2; ++launch) ASSERT_EQ(plugin.launch(device.stream(), data), 0);
    EXPECT_EQ(data.read_on_host().value()[99], (5 * factor + factor) * factor + factor);
}

// keeps W9
TEST(ClosedLibrary, EachLibraryRunsItsOwnKernelInEveryOrder) {
    Runtime runtime = Runtime::open().value();
    for (std::size_t at = 0; at < runtime.device_count(); ++at) {
        Device& device = *runtime.device(at).value();
        SCOPED_TRACE(std::string(device.name()));
        for (const int mode : {RTLD_LOCAL, RTLD_GLOBAL}) {
            SCOPED_TRACE(mode == RTLD_GLOBAL ? "RTLD_GLOBAL" : "RTLD_LOCAL");
            for (const bool swapped : {false, true}) {
                const Plugin first(swapped ? three : two, mode);
                const Plugin second(swapped ? two : three, mode);
                expect_own_kernel(device, first, swapped ? 3 : 2);
                expect_own_kernel(device, second, swapped ? 2 : 3);
                expect_own_kernel(device, first, swapped ? 3 : 2);
            }
        }
    }
}

// keeps W9
TEST(ClosedLibrary, AKernelAtTheAddressOfAClosedOneIsAnotherKernel) {
    Runtime runtime = Runtime::open().value();
    std::map<const void*, std::int32_t> last;  // by the address of the kernel: whose kernel lay there
    int replaced = 0;
    for (int turn = 0; turn < 8; ++turn) {
        const std::int32_t factor = turn % 2 == 0 ? 2 : 3;
        const Plugin plugin(factor == 2 ? two : three, RTLD_LOCAL);
        ASSERT_TRUE(plugin.open()) << dlerror();
        std::int32_t& before = last[plugin.kernel()];
        replaced += before != 0 && before != factor;
        before = factor;
        for (std::size_t at = 0; at < runtime.device_count(); ++at) {
            Device& device = *runtime.device(at).value();
            SCOPED_TRACE(std::string(device.name()));
            expect_own_kernel(device, plugin, factor);
        }
    }
    if (stays_loaded()) GTEST_SKIP() << "this machine's compiler makes libraries that dlclose() does not unload";
    EXPECT_FALSE(is_loaded(two));
    EXPECT_FALSE(is_loaded(three));
    if (replaced == 0) GTEST_SKIP() << "the loader gave every library an address of its own";
}

// Waits for the stream as other code does, so that the runtime's order checker does not see the wait.
bool wait_behind_the_runtime(const Device& device, const Stream& stream) {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return false;
    const auto call = [&](const char* name, auto... arguments) {
        auto* const function = reinterpret_cast<int (*)(decltype(arguments)...)>(dlsym(library, name));
        return function != nullptr && function(arguments...) == 0;
    };
    void* context = nullptr;
    const bool current =
        call("cuDevicePrimaryCtxRetain", &context, device.facts().ordinal) && call("cuCtxPushCurrent_v2", context);
    const bool waited = current && call("cuStreamSynchronize", stream.native_handle().value());
    if (current) call("cuCtxPopCurrent_v2", &context);
    call("cuDevicePrimaryCtxRelease_v2", device.facts().ordinal);
    dlclose(library);
    return waited;
}

TEST(ClosedLibrary, AMessageNamesAKernelWhoseLibraryIsGone) {
    RuntimeOptions options;
    options.order_check = OrderCheck::refuse;
    Runtime runtime = Runtime::open(options).value();
    int tried = 0;
    for (std::size_t at = 0; at < runtime.device_count(); ++at) {
        Device& device = *runtime.device(at).value();
        if (&device == &runtime.cpu()) continue;  // its work is done when a launch returns
        SCOPED_TRACE(std::string(device.name()));
        Buffer<std::int32_t> data = device.allocate<std::int32_t>(100).value();
        Stream other = device.create_stream().value();
        {
            const Plugin plugin(two, RTLD_LOCAL);
            ASSERT_TRUE(plugin.open()) << dlerror();
            ASSERT_EQ(plugin.launch(device.stream(), data), 0);
            ASSERT_TRUE(wait_behind_the_runtime(device, device.stream()));
        }
        if (stays_loaded()) GTEST_SKIP() << "this machine's compiler makes libraries that dlclose() does not unload";
        ASSERT_FALSE(is_loaded(two));
        const Result<void> unordered = other.fill(data, 0);
        ASSERT_FALSE(unordered.ok());
        EXPECT_EQ(unordered.error().code(), Code::not_ordered);
        EXPECT_NE(unordered.error().message().find("kernel 'scale', argument 'data'"), std::string_view::npos)
            << unordered.error().text();
        ++tried;
    }
    if (tried == 0) GTEST_SKIP() << "there is no GPU, real or simulated";
}

}  // namespace
