// SPDX-License-Identifier: Apache-2.0
// Opens a shared library by name; on failure keeps the loader's own text.
#include <platform/os.hpp>

#include "os_errors.hpp"

#include <dlfcn.h>
#include <link.h>

namespace isthmus::platform::os {

Result<SharedLibrary> SharedLibrary::open(const std::string& file) {
    if (file.empty()) return make_error<errors::shared_library_without_name>();
    ::dlerror();  // clears an earlier error of this thread
    // RTLD_NOW: a library that cannot be bound fails here and not during a call.
    void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char* said = ::dlerror();
        return make_error<errors::shared_library_not_opened>(file, said ? said : "the loader did not say why")
            .from_call("dlopen", 0);
    }
    SharedLibrary library;
    library.handle_ = handle;
    return library;
}

void* SharedLibrary::symbol(const char* name) const noexcept {
    return handle_ ? ::dlsym(handle_, name) : nullptr;
}

std::string SharedLibrary::path() const {
    link_map* map = nullptr;
    if (!handle_ || ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name) return {};
    return map->l_name;
}

}  // namespace isthmus::platform::os
