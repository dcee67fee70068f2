// SPDX-License-Identifier: Apache-2.0
// Fills Api from an opened library: first by cuGetProcAddress, which chooses the variant by version, then by exported
// name, for libraries older than cuGetProcAddress.
#include "api.hpp"

#include "composed.hpp"
#include "cuda_errors.hpp"
#include "errors.hpp"
#include "version_text.hpp"

namespace isthmus::platform::cuda {
namespace {

constexpr bool required = true;
constexpr bool optional = false;

// cuGetProcAddress answers 1 if the requested version is newer than the driver, and 0 with NULL for an unknown name
// (observed on driver 580): both mean "absent".
class Lookup {
public:
    Lookup(const os::SharedLibrary& library, int driver_version)
        : library_(library),
          driver_version_(driver_version),
          since_12_(reinterpret_cast<Since12>(library.symbol("cuGetProcAddress_v2"))),
          since_11_3_(reinterpret_cast<Since11_3>(library.symbol("cuGetProcAddress"))) {}

    void* find(const char* symbol, const char* exported, int version) const {
        if (version > driver_version_) return nullptr;
        void* found = nullptr;
        int status = proc_address::found;
        if (since_12_) {
            if (since_12_(symbol, &found, version, proc_address::flags_default, &status) != result::success) {
                found = nullptr;
            }
        } else if (since_11_3_) {
            if (since_11_3_(symbol, &found, version, proc_address::flags_default) != result::success) found = nullptr;
        }
        return found ? found : library_.symbol(exported);
    }

private:
    using Since12 = CUresult (*)(const char*, void**, int, unsigned long long, CUdriverProcAddressQueryResult*);
    using Since11_3 = CUresult (*)(const char*, void**, int, unsigned long long);
    const os::SharedLibrary& library_;
    int driver_version_;
    Since12 since_12_;
    Since11_3 since_11_3_;
};

Error missing(const char* function, int version, int driver_version) {
    const std::string driver = version_text(driver_version);
    const std::string needed = version_text(version);
    if (version > driver_version) return make_error<errors::driver_older_than_function>(driver, function, needed);
    return make_error<errors::driver_lacks_own_function>(driver, function, needed);
}

}  // namespace

Result<int> ask_version(const os::SharedLibrary& library) {
    const auto get_version = reinterpret_cast<CUresult (*)(int*)>(library.symbol("cuDriverGetVersion"));
    if (!get_version) {
        return make_error<errors::library_is_no_driver>(library.path());
    }
    int version = 0;
    const CUresult code = get_version(&version);
    if (code != result::success) {
        InitFacts facts;
        facts.library_path = library.path();
        return explain_init(code, facts).from_call("cuDriverGetVersion", code);
    }
    return version;
}

Result<Api> load_api(const os::SharedLibrary& library, int driver_version) {
    Api api;
    api.driver_version = driver_version;
    const Lookup lookup(library, api.driver_version);
    // Of several missing functions, names the one that needs the newest driver: one upgrade then provides all.
    const char* absent = nullptr;
    int absent_version = 0;
#define X(member, symbol, exported, version, need, parameters)                                       \
    api.member = reinterpret_cast<CUresult(*) parameters>(lookup.find(#symbol, #exported, version)); \
    if (!api.member && (need) && version > absent_version) {                                         \
        absent = #exported;                                                                          \
        absent_version = version;                                                                    \
    }
#include "functions.def"
#undef X
    if (absent) return missing(absent, absent_version, api.driver_version);
    return api;
}

}  // namespace isthmus::platform::cuda
