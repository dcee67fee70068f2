// SPDX-License-Identifier: Apache-2.0
// The settings of core dumps, for all contexts. No dump is ever written: they are only told.
#include "call.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string>

namespace isthmus::sim {
namespace {

// CUcoredumpSettings; 2: trigger_host, 3: lightweight
constexpr int on_exception = 1, user_trigger = 4, file = 5, pipe = 6, contents = 7;
constexpr std::size_t name_bytes = 1024;

struct CoredumpSettings {
    std::array<bool, 4> flags = {false, true, false, false};  // documented; by identifier, from on_exception
    std::string file, pipe;                                   // observed (580, H200): empty
    std::uint32_t contents = 0;
};

std::mutex guard;

CoredumpSettings& of_process() {
    static auto* const settings = new CoredumpSettings;
    return *settings;
}

bool is_flag(int id) {
    return id >= on_exception && id <= user_trigger;
}

bool is_name(int id) {
    return id == file || id == pipe;
}

std::size_t bytes_of(int id) {
    return is_flag(id) ? sizeof(bool) : is_name(id) ? name_bytes : sizeof(std::uint32_t);
}

// Observed (580, H200): the size of a flag and of the contents is exact, a name has at most 1024 bytes; 1 otherwise.
bool size_is_right(int id, std::size_t bytes) {
    return is_name(id) ? bytes <= name_bytes : bytes == bytes_of(id);
}

std::string default_pipe() {
    char host[256] = {};
    (void)::gethostname(host, sizeof(host) - 1);
    return std::string("corepipe_") + host + "_" + std::to_string(::getpid());
}

Result get(const CoredumpSettings& from, int id, void* value, std::size_t* bytes) {
    if (!bytes || id < on_exception || id > contents) return result::invalid_value;
    if (!value) {
        *bytes = bytes_of(id);
        return result::ok;
    }
    if (is_name(id) ? *bytes < name_bytes : *bytes != bytes_of(id)) return result::invalid_value;
    if (is_flag(id)) {
        std::memcpy(value, &from.flags[static_cast<std::size_t>(id - on_exception)], sizeof(bool));
    } else if (is_name(id)) {
        const std::string& name = id == file ? from.file : from.pipe;
        std::memcpy(value, name.c_str(), name.size() + 1);
    } else {
        std::memcpy(value, &from.contents, sizeof(from.contents));
    }
    return result::ok;
}

Result set(CoredumpSettings& to, int id, const void* value, const std::size_t* bytes) {
    if (!value || !bytes || id < on_exception || id > contents || !size_is_right(id, *bytes)) {
        return result::invalid_value;
    }
    if (is_flag(id)) {
        to.flags[static_cast<std::size_t>(id - on_exception)] = *static_cast<const unsigned char*>(value) != 0;
        // Observed (580, H200): the pipe has a name from here on.
        if (id == user_trigger && to.flags[user_trigger - on_exception] && to.pipe.empty()) to.pipe = default_pipe();
    } else if (is_name(id)) {
        const auto* const text = static_cast<const char*>(value);
        (id == file ? to.file : to.pipe).assign(text, ::strnlen(text, std::min(*bytes, name_bytes - 1)));
    } else {
        std::memcpy(&to.contents, value, sizeof(to.contents));
    }
    return result::ok;
}

}  // namespace

extern "C" {

// Observed (580, H200): both answer before cuInit, too.
Result cuCoredumpGetAttributeGlobal(int id, void* value, std::size_t* bytes) {
    return call_without_driver(CallId::cuCoredumpGetAttributeGlobal, [&] {
        const std::lock_guard lock(guard);
        return get(of_process(), id, value, bytes);
    });
}

Result cuCoredumpSetAttributeGlobal(int id, void* value, std::size_t* bytes) {
    return call_without_driver(CallId::cuCoredumpSetAttributeGlobal, [&]() -> Result {
        const std::lock_guard lock(guard);
        CoredumpSettings& settings = of_process();
        // Observed (580, H200): the name of a pipe that is open stays.
        if (id == pipe && settings.flags[user_trigger - on_exception]) return result::not_supported;
        return set(settings, id, value, bytes);
    });
}
}

}  // namespace isthmus::sim
