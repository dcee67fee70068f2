// SPDX-License-Identifier: Apache-2.0
// An index outside a view ends the kernel: on the CPU device and on simulated GPUs with a line that names kernel,
// argument, index and size. Each try is a process of its own.
#include "scenario.hpp"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <unistd.h>
#include <sys/wait.h>

namespace conformance {
namespace {

// Runs add_one over `items` of a buffer of 64 on the device of this place.
void run(std::size_t place, std::size_t items) {
    Runtime own = Runtime::open().value();
    Device& device = *own.device(place).value();
    SharedUse use;
    use.kind = MemoryKind::pinned;
    Buffer<std::int32_t> data = device.allocate_shared<std::int32_t>(64, use).value();
    for (std::int32_t& value : data.write_on_host().value()) value = 0;
    (void)device.stream().launch(add_one, items, data).value();
    device.synchronize().value();
    std::_Exit(data.read_on_host().value()[63] == 1 ? 0 : 1);
}
bool trapped(int status) {
    return WIFSIGNALED(status) && (WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGTRAP);
}

// The runtimes are opened in the children: after fork() the parent's is of no use there. keeps L15
TEST(Bounds, AnIndexOutsideItsViewIsNamedBeforeTheProcessEnds) {
    const std::size_t devices = [] {
        // Counted in a child, too: a parent that opened the driver could not let its children use it.
        const pid_t child = fork();
        if (child == 0) {
            Runtime own = Runtime::open().value();
            std::_Exit(own.machine().simulated || own.device_count() == 1 ? static_cast<int>(own.device_count()) : 0);
        }
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        return static_cast<std::size_t>(WEXITSTATUS(status));
    }();
    if (devices == 0) GTEST_SKIP() << "GPU code is checked where its build asks for it, and traps without a line";
    for (std::size_t place = 0; place < devices; ++place) {
        SCOPED_TRACE(place);
        EXPECT_EXIT(
            run(place, 65), trapped,
            "isthmus: kernel 'add_one': index 64 is outside argument 'data' \\(number 1\\), which has 64 elements");
        EXPECT_EXIT(run(place, 64), ::testing::ExitedWithCode(0), "^$");
    }
}

// keeps L15, L16
TEST(Bounds, AnIndexOutsideItsViewIsNamedByWhicheverThreadMeetsIt) {
    const auto run_large = [](std::size_t items) {
        RuntimeOptions options;
        options.use_cuda = false;
        options.cpu_threads = 3;
        Runtime own = Runtime::open(options).value();
        Buffer<std::int32_t> data = own.cpu().allocate_shared<std::int32_t>(100003).value();
        (void)own.cpu().stream().launch(add_one, items, data).value();
        std::_Exit(0);
    };
    EXPECT_EXIT(run_large(100004), trapped,
                "isthmus: kernel 'add_one': index 100003 is outside argument 'data' \\(number 1\\)");
    EXPECT_EXIT(run_large(100003), ::testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace conformance
