// SPDX-License-Identifier: Apache-2.0
// Records which errors of the catalogue a test program causes, in the file that ISTHMUS_ERRORS_SEEN names: one byte per
// id, at 1000 × letter + number, 1 where it occurred. All tests of a run share the file. Recording makes no system
// call, so tests that count them are unaffected. tools/scripts/error-catalogue reads it.
#include <string_view>

#include <cstddef>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace isthmus {
inline namespace v0 {
namespace detail {
// Weak: some tests link nothing that makes errors.
[[gnu::weak, gnu::visibility("default")]] void watch_errors(void (*watcher)(std::string_view id)) noexcept;
}  // namespace detail
}  // namespace v0
}  // namespace isthmus

namespace {

constexpr std::size_t letters = 26;
constexpr std::size_t numbers = 1000;
char* seen = nullptr;

void note(std::string_view id) {
    if (id.size() != 4 || id[0] < 'A' || id[0] > 'Z') return;
    std::size_t number = 0;
    for (const char digit : id.substr(1)) number = number * 10 + static_cast<std::size_t>(digit - '0');
    if (number < numbers) seen[static_cast<std::size_t>(id[0] - 'A') * numbers + number] = 1;
}

[[maybe_unused]] const bool noting = [] {
    const char* const path = std::getenv("ISTHMUS_ERRORS_SEEN");
    if (path == nullptr || isthmus::detail::watch_errors == nullptr) return false;
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || ftruncate(file, letters * numbers) != 0) std::abort();
    void* const mapped = mmap(nullptr, letters * numbers, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) std::abort();
    seen = static_cast<char*>(mapped);
    isthmus::detail::watch_errors(note);
    return true;
}();

}  // namespace
