// SPDX-License-Identifier: Apache-2.0
// libisthmus-c-camera: the kernels of <isthmus/kernels/camera.hpp>, for programs that name kernels at run time.
#include <isthmus/c_kernels.hpp>
#include <isthmus/kernels/camera.hpp>

#include <utility>

using namespace isthmus;

isthmus_code isthmus_camera_register_kernels(isthmus_error** error) {
    const auto registered = [error](const char* name, const KernelInfo& kernel) {
        constexpr auto abi = std::uint32_t{ISTHMUS_VERSION_MINOR + 1000u * ISTHMUS_VERSION_MAJOR};
        return isthmus_kernel_register(name, &kernel, sizeof(KernelInfo), abi, error);
    };
    for (const auto& [name, kernel] : {
             std::pair{"camera.copy_luma", &kernels::copy_luma.info()},
             {"camera.frame_response", &kernels::frame_response.info()},
             {"camera.row_corners", &kernels::row_corners.info()},
             {"camera.join_corners", &kernels::join_corners.info()},
             {"camera.to_gray", &kernels::to_gray.info()},
             {"camera.smooth", &kernels::smooth.info()},
             {"camera.gradients", &kernels::gradients.info()},
             {"camera.corner_response", &kernels::corner_response.info()},
             {"camera.mark_corners", &kernels::mark_corners.info()},
             {"camera.count_corners", &kernels::count_corners.info()},
             {"camera.place_corners", &kernels::place_corners.info()},
             {"camera.list_corners", &kernels::list_corners.info()},
         }) {
        if (const isthmus_code code = registered(name, *kernel); code != ISTHMUS_OK) return code;
    }
    return ISTHMUS_OK;
}
