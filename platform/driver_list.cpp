// SPDX-License-Identifier: Apache-2.0
// The only file that knows which backends exist.
#include <platform/detect.hpp>
#include <platform/driver_list.hpp>
#include <platform/os.hpp>

#include "cpu/cpu_driver.hpp"
#include "cuda/cuda_driver.hpp"
#include "platform_errors.hpp"

namespace isthmus::platform {

DriverSet open_drivers(const DriverOptions& options) {
    DriverSet set;
    set.machine = os::machine_facts();
    if (options.use_cuda) {
        Result<cuda::OpenedDevices> opened =
            cuda::open_devices(options.cuda_library, set.machine, deciding_attributes());
        if (opened.ok()) {
            set.drivers = std::move(opened->drivers);
            set.found = std::move(opened->found);
            set.cuda_absence = std::move(opened->absence);
        } else {
            set.cuda_absence = std::move(opened).error();
        }
    } else {
        set.cuda_absence = make_error<errors::cuda_not_asked_for>();
    }
    set.drivers.push_back(cpu::open_device(set.machine, options.cpu_threads));
    set.found.emplace_back();
    return set;
}

}  // namespace isthmus::platform
