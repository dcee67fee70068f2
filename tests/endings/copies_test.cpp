// SPDX-License-Identifier: Apache-2.0
// Two copies of the library in one process, each in a module of its own that shows nothing else, beside other code that
// uses the driver: all go on working, and the caller's current context is the same after every call. keeps R7
#include "copies.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

std::string module_file;  // from the command line

// Direct calls of the driver, as other code makes them.
class Driver {
public:
    Driver() {
        const char* const named = std::getenv("ISTHMUS_CUDA_LIBRARY");
        library_ = ::dlopen(named != nullptr && *named != 0 ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (library_ == nullptr || call("cuInit", 0U) != 0) return;
        if (call("cuDeviceGetCount", &devices_) != 0) devices_ = 0;
    }
    int devices() const { return devices_; }
    template <class... A>
    int call(const char* name, A... arguments) const {
        const auto function = reinterpret_cast<int (*)(A...)>(::dlsym(library_, name));
        return function == nullptr ? -1 : function(arguments...);
    }
    void* current() const {
        void* context = nullptr;
        EXPECT_EQ(call("cuCtxGetCurrent", &context), 0);
        return context;
    }

private:
    void* library_ = nullptr;
    int devices_ = 0;
};

const Driver& driver() {
    static const Driver instance;
    return instance;
}

// The context that must be current on this thread after every call.
thread_local void* expected_current = nullptr;
thread_local std::vector<std::string> changed_by;
thread_local long calls_made = 0;

void look_at_current(const char* call) {
    ++calls_made;
    void* const now = driver().current();
    if (now == expected_current) return;
    changed_by.emplace_back(call);
    (void)driver().call("cuCtxSetCurrent", expected_current);
}

class Copy {
public:
    explicit Copy(const std::string& file) : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (handle_ == nullptr) {
            ADD_FAILURE() << ::dlerror();
            return;
        }
        find(open_, "isthmus_test_open");
        find(steps_, "isthmus_test_steps");
        find(step_, "isthmus_test_step");
        find(alone_, "isthmus_test_alone");
        find(close_, "isthmus_test_close");
    }
    void* address() const { return reinterpret_cast<void*>(open_); }
    // A driver may be too old for the library, which then offers its CPU device only.
    bool has_gpu() {
        std::array<char, 1024> text{};
        const int opened = open_(look_at_current, text.data(), text.size());
        EXPECT_GE(opened, 0) << text.data();
        close();
        return opened == 0;
    }
    void open() {
        std::array<char, 1024> text{};
        EXPECT_EQ(open_(look_at_current, text.data(), text.size()), 0) << text.data();
    }
    int steps() const { return steps_(); }
    bool alone(int which) const { return alone_(which) != 0; }
    void step(int which) const {
        std::array<char, 1024> text{};
        EXPECT_EQ(step_(which, text.data(), text.size()), 0) << "step " << which << ": " << text.data();
    }
    void close() const { (void)close_(); }
    void unload() { EXPECT_EQ(::dlclose(handle_), 0); }

private:
    template <class Function>
    void find(Function& function, const char* name) {
        function = reinterpret_cast<Function>(::dlsym(handle_, name));
        EXPECT_NE(function, nullptr) << name;
    }
    void* handle_;
    isthmus_test_open_fn open_ = nullptr;
    isthmus_test_steps_fn steps_ = nullptr;
    isthmus_test_step_fn step_ = nullptr;
    isthmus_test_alone_fn alone_ = nullptr;
    isthmus_test_close_fn close_ = nullptr;
};

// A copy of the module under another file name, which the loader treats as another library.
class SecondFile {
public:
    SecondFile() {
        std::string pattern = std::filesystem::temp_directory_path() / "isthmus-copy-XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) return;
        directory_ = pattern;
        std::filesystem::copy_file(module_file, path());
    }
    SecondFile(const SecondFile&) = delete;
    SecondFile& operator=(const SecondFile&) = delete;
    ~SecondFile() {
        std::error_code ignored;
        if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
    }
    std::string path() const { return directory_ + "/another.so"; }

private:
    std::string directory_;
};

// Memory of other code, filled and read back by plain driver calls in the current context.
class OtherCode {
public:
    OtherCode() {
        EXPECT_EQ(driver().call("cuMemAlloc_v2", &address_, bytes), 0);
        fill(1);
    }
    OtherCode(const OtherCode&) = delete;
    OtherCode& operator=(const OtherCode&) = delete;
    ~OtherCode() { EXPECT_EQ(driver().call("cuMemFree_v2", address_), 0); }
    void fill(unsigned char value) {
        value_ = value;
        EXPECT_EQ(driver().call("cuMemsetD8_v2", address_, value, bytes), 0);
    }
    void expect_kept() const {
        std::vector<unsigned char> seen(bytes, 0);
        EXPECT_EQ(driver().call("cuMemcpyDtoH_v2", static_cast<void*>(seen.data()), address_, bytes), 0);
        EXPECT_EQ(std::count(seen.begin(), seen.end(), value_), static_cast<std::ptrdiff_t>(bytes));
    }

private:
    static constexpr std::size_t bytes = 4096;
    unsigned long long address_ = 0;
    unsigned char value_ = 0;
};

void expect_unchanged() {
    EXPECT_GT(calls_made, 0);
    EXPECT_TRUE(changed_by.empty()) << "the current context is another one after " << changed_by.front() << " and "
                                    << changed_by.size() - 1 << " more calls";
    calls_made = 0;
    changed_by.clear();
}

void play_both(Copy& first, Copy& second, OtherCode* other) {
    first.open();
    second.open();
    for (int step = 0; step < first.steps(); ++step) {
        first.step(step);
        if (other != nullptr) other->expect_kept();
        second.step(step);
        if (other != nullptr) other->fill(static_cast<unsigned char>(step + 2));
    }
    first.close();
    for (int step = 0; step < second.steps(); ++step) second.step(step);
    second.close();
    if (other != nullptr) other->expect_kept();
    expect_unchanged();
}

class Copies : public testing::Test {
protected:
    void SetUp() override {
        if (driver().devices() == 0) GTEST_SKIP() << "no GPU: there is no driver to share";
        second_file_.emplace();
        first_.emplace(module_file);
        second_.emplace(second_file_->path());
        ASSERT_NE(first_->address(), second_->address()) << "one copy";
        if (!first_->has_gpu()) GTEST_SKIP() << "no GPU that the library uses";
        calls_made = 0;
    }
    std::optional<SecondFile> second_file_;
    std::optional<Copy> first_, second_;
};

// keeps R7
TEST_F(Copies, WorkWhereTheCallerHasNoContext) {
    expected_current = nullptr;
    ASSERT_EQ(driver().call("cuCtxSetCurrent", expected_current), 0);
    play_both(*first_, *second_, nullptr);
}

// keeps R7: of every device, and one of the caller's own making
TEST_F(Copies, WorkBesideOtherCodeWhateverContextItHas) {
    for (int device = 0; device < driver().devices(); ++device) {
        ASSERT_EQ(driver().call("cuDevicePrimaryCtxRetain", &expected_current, device), 0);
        ASSERT_EQ(driver().call("cuCtxPushCurrent_v2", expected_current), 0);
        {
            OtherCode other;
            play_both(*first_, *second_, &other);
        }
        void* popped = nullptr;
        ASSERT_EQ(driver().call("cuCtxPopCurrent_v2", &popped), 0);
        EXPECT_EQ(popped, expected_current);
        EXPECT_EQ(driver().call("cuDevicePrimaryCtxRelease_v2", device), 0);
    }
    ASSERT_EQ(driver().call("cuCtxCreate_v2", &expected_current, 0U, 0), 0);
    {
        OtherCode other;
        play_both(*first_, *second_, &other);
    }
    EXPECT_EQ(driver().call("cuCtxDestroy_v2", expected_current), 0);
    expected_current = nullptr;
    EXPECT_EQ(driver().current(), nullptr);
}

// keeps R7: each on a thread of its own
TEST_F(Copies, WorkAtTheSameTime) {
    std::mutex capturing;  // see isthmus_test_alone_fn
    const auto play = [&capturing](Copy& copy) {
        expected_current = nullptr;
        copy.open();
        for (int round = 0; round < 2; ++round) {
            for (int step = 0; step < copy.steps(); ++step) {
                std::unique_lock<std::mutex> lock(capturing, std::defer_lock);
                if (copy.alone(step)) lock.lock();
                copy.step(step);
            }
        }
        copy.close();
        expect_unchanged();
    };
    std::thread first([&] { play(*first_); });
    std::thread second([&] { play(*second_); });
    first.join();
    second.join();
}

// keeps R7: what one copy kept with the driver goes with it, and the other one's stays
TEST_F(Copies, OneIsUnloadedAndTheOtherGoesOn) {
    expected_current = nullptr;
    ASSERT_EQ(driver().call("cuCtxSetCurrent", expected_current), 0);
    first_->open();
    second_->open();
    for (int step = 0; step < first_->steps(); ++step) first_->step(step);
    first_->close();
    first_->unload();
    for (int step = 0; step < second_->steps(); ++step) second_->step(step);
    second_->close();
    expect_unchanged();
}

}  // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    if (argc != 2) {
        std::fputs("usage: test_copies MODULE\n", stderr);
        return 2;
    }
    module_file = argv[1];
    return RUN_ALL_TESTS();
}
