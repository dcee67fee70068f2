// SPDX-License-Identifier: Apache-2.0
// Handles libjpeg's errors and warnings.
#include "jpeg_errors.hpp"

#include <jerror.h>

namespace isthmus::tools::camera {

static_assert(std::is_standard_layout_v<JpegErrors>, "the address of manager_ is that of the object");

JpegErrors& JpegErrors::of(j_common_ptr info) noexcept {
    return *reinterpret_cast<JpegErrors*>(info->err);
}

jpeg_error_mgr* JpegErrors::manager() noexcept {
    jpeg_std_error(&manager_);
    manager_.error_exit = &error_exit;
    manager_.emit_message = &emit_message;
    manager_.output_message = [](j_common_ptr) {};
    return &manager_;
}

void JpegErrors::error_exit(j_common_ptr info) {
    JpegErrors& self = of(info);
    self.manager_.format_message(info, self.message_);
    std::longjmp(self.landing_, 1);  // NOLINT(cert-err52-cpp): jumps over C frames only
}

void JpegErrors::give_up(j_common_ptr info, const char* message) {
    JpegErrors& self = of(info);
    std::snprintf(self.message_, sizeof self.message_, "%s", message);
    std::longjmp(self.landing_, 1);  // NOLINT(cert-err52-cpp): jumps over C frames only
}

// A damaged picture has corners that the scene does not have, so it is refused. These three warnings change no pixel,
// and cameras write such files.
void JpegErrors::emit_message(j_common_ptr info, int level) {
    if (level >= 0) return;  // trace messages
    switch (info->err->msg_code) {
        case JWRN_EXTRANEOUS_DATA:
        case JWRN_JFIF_MAJOR:
        case JWRN_ADOBE_XFORM: return;
        default: error_exit(info);
    }
}

}  // namespace isthmus::tools::camera
