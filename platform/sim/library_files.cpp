// SPDX-License-Identifier: Apache-2.0
// Modules and libraries from files: read, and loaded as their bytes are.
#include "call.hpp"
#include "module.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <span>
#include <string>

namespace isthmus::sim {
std::optional<std::string> read_file(const char* path) {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    std::string bytes;
    char part[16384];
    ssize_t got = 0;
    while ((got = ::read(file, part, sizeof part)) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0) bytes.append(part, static_cast<std::size_t>(got));
    }
    ::close(file);
    return got < 0 ? std::nullopt : std::optional(std::move(bytes));
}

namespace {

// Load: Result(const void* image); counted as a call of its own, too.
template <class Load>
Result load_file(CallId id, const void* out, const char* path, Load&& load) {
    return call(id, [&](Driver&) -> Result {
        if (!out || !path) return result::invalid_value;
        const std::optional<std::string> bytes = read_file(path);
        if (!bytes) return result::file_not_found;
        // An image states its own length, and loading it trusts that: the file must have all of it.
        const images::ImageContents contents = images::read_image(std::as_bytes(std::span(*bytes)));
        const bool is_binary =
            contents.format == images::ImageFormat::cubin || contents.format == images::ImageFormat::fatbin;
        return is_binary && !contents.damage.empty() ? result::invalid_image : load(bytes->c_str());
    });
}

}  // namespace

extern "C" {

Result cuLibraryLoadFromFile(Module** library, const char* path, int* jit_options, void** jit_values,
                             unsigned jit_count, int* options, void** values, unsigned count) {
    return load_file(CallId::cuLibraryLoadFromFile, library, path, [&](const void* image) {
        return cuLibraryLoadData(library, image, jit_options, jit_values, jit_count, options, values, count);
    });
}

Result cuModuleLoad(Module** module, const char* path) {
    return load_file(CallId::cuModuleLoad, module, path,
                     [&](const void* image) { return cuModuleLoadData(module, image); });
}
}

}  // namespace isthmus::sim
