// SPDX-License-Identifier: Apache-2.0
// Keeps the log's lines in a ring of fixed size, and gives them to memory, files and callbacks.
#include "logs.hpp"

#include "call.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <list>
#include <mutex>
#include <string>
#include <vector>

namespace isthmus::sim {

std::atomic<bool> log_is_waiting{false};

namespace {

// Documented: 25600 bytes in all.
constexpr std::size_t line_bytes = 256, most_lines = 100;
constexpr const char* lost_lines = "[CUDA][W] earlier lines of this log are lost\n";
constexpr const char* left_lines = "[CUDA][W] earlier lines do not fit into the buffer\n";

struct Line {
    char text[line_bytes];  // without its end of line
    std::size_t size;
    std::size_t message;  // where it begins, behind the stamps: callbacks get it alone (observed: 580, H200)
};

// A signal handler may have stopped the thread that holds it: whoever waits too long goes without.
class Spin {
public:
    bool try_for_long() noexcept {
        for (int looks = 0; looks < 10000; ++looks) {
            if (!held_.test_and_set(std::memory_order_acquire)) return true;
        }
        return false;
    }
    void lock() noexcept {
        while (held_.test_and_set(std::memory_order_acquire)) ::usleep(10);
    }
    void unlock() noexcept { held_.clear(std::memory_order_release); }

private:
    std::atomic_flag held_ = ATOMIC_FLAG_INIT;
};

Spin spin;  // guards the two below
std::array<Line, most_lines> lines;
unsigned next_line = 0;  // the number of the next line; the ring has those before it
std::atomic<unsigned> callback_count{0};

unsigned oldest() {
    return next_line > most_lines ? next_line - static_cast<unsigned>(most_lines) : 0;
}

// Observed (580, H200): the time of day, with milliseconds, and the thread stand before each line. Assumed: UTC.
void add(const char* text) noexcept {
    timespec now = {};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const long second = now.tv_sec % 86400;
    if (!spin.try_for_long()) return;
    Line& line = lines[next_line % most_lines];
    const auto kept = [](int size) {
        return std::min(static_cast<std::size_t>(std::max(size, 0)), sizeof line.text - 1);
    };
    line.message = kept(std::snprintf(line.text, sizeof line.text, "[%02ld:%02ld:%02ld.%03ld][%lu][CUDA][E] ",
                                      second / 3600, second / 60 % 60, second % 60, now.tv_nsec / 1000000,
                                      static_cast<unsigned long>(::pthread_self())));
    const std::size_t room = sizeof line.text - line.message;
    line.size = line.message + std::min(kept(std::snprintf(line.text + line.message, room, "%s", text)), room - 1);
    ++next_line;
    spin.unlock();
    if (callback_count.load(std::memory_order_relaxed) != 0) log_is_waiting.store(true, std::memory_order_release);
}

// The lines from `begin` on, each with its end; `begin` becomes the number behind them. `lost`: some were overwritten.
std::vector<std::string> lines_from(unsigned& begin, bool& lost, bool with_stamps = true) {
    std::vector<std::string> found;
    spin.lock();
    lost = begin < oldest();
    for (unsigned at = std::max(begin, oldest()); at < next_line; ++at) {
        const Line& line = lines[at % most_lines];
        const std::size_t first = with_stamps ? 0 : line.message;
        found.emplace_back(line.text + first, line.size - first);
        found.back() += '\n';
    }
    begin = next_line;
    spin.unlock();
    return found;
}

struct Callback {
    LogCallback function;
    void* data;
    unsigned next;  // line
};
// Held while callbacks run, so that none runs once it is unregistered; they may register and unregister others.
std::recursive_mutex callbacks_mutex;
std::list<Callback> callbacks;

bool is_registered(const Callback* one) {
    return std::any_of(callbacks.begin(), callbacks.end(), [&](const Callback& known) { return &known == one; });
}

// Body: Result(std::vector<std::string>&&, bool lost), for the lines from the iterator on, or all.
template <class Body>
Result call_for_lines(CallId id, unsigned* iterator, Body&& body) {
    return call_without_driver(id, [&]() -> Result {
        unsigned begin = iterator ? *iterator : 0;
        bool lost = false;
        std::vector<std::string> found = lines_from(begin, lost);
        const Result code = body(std::move(found), lost && iterator);
        if (code == result::ok && iterator) *iterator = begin;
        return code;
    });
}

// Documented: the newest lines that fit, behind a line that says so.
Result fill(const std::vector<std::string>& found, bool lost, char* buffer, std::size_t* size) {
    if (!buffer || !size || *size == 0) return result::invalid_value;
    const std::size_t room = *size - 1;
    std::size_t needed = lost ? std::strlen(lost_lines) : 0;
    for (const std::string& line : found) needed += line.size();
    std::string out = lost ? lost_lines : "";
    std::size_t first = 0;
    if (needed > room) {
        out = left_lines;
        std::size_t taken = out.size();
        first = found.size();
        while (first > 0 && taken + found[first - 1].size() <= room) taken += found[--first].size();
        if (first == found.size()) {
            *size = 0;
            buffer[0] = '\0';
            log_line("Provided buffer is not large enough to write any logs to");  // the driver's words (580)
            return result::invalid_value;
        }
    }
    for (std::size_t at = first; at < found.size(); ++at) out += found[at];
    std::memcpy(buffer, out.c_str(), out.size() + 1);
    *size = out.size();
    return result::ok;
}

Result write_file(const std::vector<std::string>& found, bool lost, const char* path) {
    if (!path) return result::invalid_value;
    const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {  // observed (580, H200), with these words
        log_line((std::string("Unable to open file at ") + path + " for dumping logs").c_str());
        return result::invalid_value;
    }
    std::string all = lost ? lost_lines : "";
    for (const std::string& line : found) all += line;
    std::size_t written = 0;
    while (written < all.size()) {
        const ssize_t now = ::write(file, all.data() + written, all.size() - written);
        if (now < 0 && errno == EINTR) continue;
        if (now <= 0) break;
        written += static_cast<std::size_t>(now);
    }
    ::close(file);
    return written == all.size() ? result::ok : result::invalid_value;
}

}  // namespace

void log_answer(CallId id, int code) noexcept {
    char text[128];  // the driver's words (580, H200)
    std::snprintf(text, sizeof text, "Returning %d (%s) from %s", code, name_of_result(code), name(id));
    add(text);
}

void log_line(const char* text) noexcept {
    add(text);
}

void deliver_log() {
    const std::lock_guard lock(callbacks_mutex);
    log_is_waiting.store(false, std::memory_order_relaxed);
    std::vector<Callback*> all;
    for (Callback& one : callbacks) all.push_back(&one);
    for (Callback* const one : all) {
        if (!is_registered(one)) continue;  // an earlier callback unregistered it
        bool lost = false;
        for (std::string& line : lines_from(one->next, lost, false)) {
            line.pop_back();
            constexpr int error = 0;
            one->function(one->data, error, line.data(), line.size());
            if (!is_registered(one)) break;
        }
    }
}

extern "C" {

Result cuLogsRegisterCallback(LogCallback function, void* data, LogHandle** handle) {
    return call_without_driver(CallId::cuLogsRegisterCallback, [&]() -> Result {
        if (!function) return result::invalid_value;
        const std::lock_guard lock(callbacks_mutex);
        spin.lock();
        callbacks.push_back({function, data, next_line});
        spin.unlock();
        callback_count.fetch_add(1, std::memory_order_relaxed);
        if (handle) *handle = reinterpret_cast<LogHandle*>(&callbacks.back());
        return result::ok;
    });
}

Result cuLogsUnregisterCallback(LogHandle* handle) {
    return call_without_driver(CallId::cuLogsUnregisterCallback, [&]() -> Result {
        const std::lock_guard lock(callbacks_mutex);
        for (auto one = callbacks.begin(); one != callbacks.end(); ++one) {
            if (&*one != reinterpret_cast<Callback*>(handle)) continue;
            callbacks.erase(one);
            callback_count.fetch_sub(1, std::memory_order_relaxed);
            return result::ok;
        }
        // Observed (580): a callback that is no longer one crashes the driver.
        die_like_the_driver("cuLogsUnregisterCallback of what is no callback, or no longer one");
    });
}

// Observed (580): flags of these calls are not looked at.
Result cuLogsCurrent(unsigned* iterator, unsigned) {
    return call_without_driver(CallId::cuLogsCurrent, [&]() -> Result {
        if (!iterator) return result::invalid_value;
        spin.lock();
        *iterator = next_line;
        spin.unlock();
        return result::ok;
    });
}

Result cuLogsDumpToFile(unsigned* iterator, const char* path, unsigned) {
    return call_for_lines(CallId::cuLogsDumpToFile, iterator, [&](const std::vector<std::string>& found, bool lost) {
        return write_file(found, lost, path);
    });
}

Result cuLogsDumpToMemory(unsigned* iterator, char* buffer, std::size_t* size, unsigned) {
    return call_for_lines(CallId::cuLogsDumpToMemory, iterator, [&](const std::vector<std::string>& found, bool lost) {
        return fill(found, lost, buffer, size);
    });
}
}

}  // namespace isthmus::sim
