// SPDX-License-Identifier: Apache-2.0
// PngErrors: ends calls of libpng early, without exit() and without an exception through C code.
#pragma once

#include <csetjmp>
#include <cstdio>
#include <type_traits>

#include <png.h>

namespace isthmus::tools::camera {

inline constexpr png_uint_32 max_png_side = 0x7fffffff;  // limit of the format; frames have smaller limits

// libpng's error handler must not return. This one stores the message and jumps back into tried(). Therefore a step,
// and a callback that libpng calls, holds no object with a destructor during a call that may fail.
class PngErrors {
public:
    const char* message() const noexcept { return message_; }  // of the step that failed

    // Runs `step`. Returns false where it ended early; message() then has the reason.
    template <class Step>
    bool tried(Step step) {
        static_assert(std::is_trivially_destructible_v<Step>);
        if (setjmp(landing_) != 0) return false;  // NOLINT(cert-err52-cpp): the only way out of libpng
        step();
        return true;
    }
    // The handlers for png_create_…_struct; pass a pointer to this object before them.
    [[noreturn]] static void error(png_structp png, png_const_charp message) {
        PngErrors& self = *static_cast<PngErrors*>(png_get_error_ptr(png));
        std::snprintf(self.message_, sizeof self.message_, "%s", message);
        std::longjmp(self.landing_, 1);  // NOLINT(cert-err52-cpp): jumps over C frames only
    }
    static void warning(png_structp, png_const_charp) {}

private:
    std::jmp_buf landing_{};
    char message_[128] = {};
};

}  // namespace isthmus::tools::camera
