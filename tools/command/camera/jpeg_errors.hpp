// SPDX-License-Identifier: Apache-2.0
// JpegErrors: ends calls of libjpeg early, without exit() and without an exception through C code.
#pragma once

#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it

#include <jpeglib.h>

#include <type_traits>

namespace isthmus::tools::camera {

// libjpeg's error handler must not return. This one stores the message and jumps back into tried(). Therefore a step,
// and a callback that libjpeg calls, holds no object with a destructor during a call that may fail.
class JpegErrors {
public:
    // Pass the result to libjpeg. Warnings about damage end the step too. This object must not move meanwhile.
    jpeg_error_mgr* manager() noexcept;
    const char* message() const noexcept { return message_; }  // of the step that failed

    // Runs `step`. Returns false where it ended early; message() then has the reason.
    template <class Step>
    bool tried(Step step) {
        static_assert(std::is_trivially_destructible_v<Step>);
        if (setjmp(landing_) != 0) return false;  // NOLINT(cert-err52-cpp): the only way out of libjpeg
        step();
        return true;
    }
    // Ends the step with `message`; for callbacks.
    [[noreturn]] static void give_up(j_common_ptr info, const char* message);

private:
    [[noreturn]] static void error_exit(j_common_ptr info);
    static void emit_message(j_common_ptr info, int level);
    static JpegErrors& of(j_common_ptr info) noexcept;

    jpeg_error_mgr manager_{};  // first member: libjpeg passes its address to the handlers
    std::jmp_buf landing_{};
    char message_[JMSG_LENGTH_MAX] = {};
};

}  // namespace isthmus::tools::camera
