// SPDX-License-Identifier: Apache-2.0
// ExportFinding: the result of trying to export a GPU's memory to other processes. Made by probe_export(), taken by
// RuntimeOptions. It confirms or withdraws what an attribute says, and never adds anything.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/memory_place.hpp>
#include <isthmus/uuid.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace isthmus {
inline namespace v0 {

// The steps of the trial, in order.
enum class ExportStep : std::uint8_t {
    create,         // cuMemCreate
    export_handle,  // cuMemExportToShareableHandle
    import_handle,  // cuMemImportFromShareableHandle, in the same process
    compare,        // the imported memory is memory of this device
    survive,        // the trial process crashed or hung, at an unknown step
};
inline constexpr int export_step_count = 5;
ISTHMUS_API std::string_view name(ExportStep step) noexcept;

// Valid for one device, driver, user and environment. A channel file that appears or disappears, another container, or
// a daemon that ends makes it stale, without any sign. Make it again in each process, or when the process starts.
struct ExportFinding {
    Uuid device;
    int driver_version = 0;                // MachineFacts::driver_version at the time of the trial
    bool simulated = false;                // made on a simulated machine: says nothing about a real one
    ExportKinds kind = ExportKinds::none;  // posix_fd or fabric
    bool works = false;                    // all steps worked; otherwise the members below describe the failure
    ExportStep failed = ExportStep::create;
    int driver_code = 0;  // CUresult; 0: no call failed
    std::string call;
    std::string message;  // of the error
};

}  // namespace v0
}  // namespace isthmus
