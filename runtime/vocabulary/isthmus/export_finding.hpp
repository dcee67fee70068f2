// ExportFinding: what a try showed of handing a GPU's memory to other processes. probe_export() makes findings, and
// RuntimeOptions takes them; they confirm what an attribute says or take it away, and never add.
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/memory_place.hpp>
#include <isthmus/uuid.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace isthmus::inline v0 {

// The steps of a try, in their order.
enum class ExportStep : std::uint8_t {
    create,         // cuMemCreate
    export_handle,  // cuMemExportToShareableHandle
    import_handle,  // cuMemImportFromShareableHandle, in the same process
    compare,        // what came back is memory of this device
    survive,        // the process that tried crashed or hung, nobody knows where
};
inline constexpr int export_step_count = 5;
ISTHMUS_API std::string_view name(ExportStep step) noexcept;

// Holds for one device, driver and user in the surroundings it was made in: a channel file that comes or goes, another
// container or a daemon that ends make it old, and nothing tells. Make it anew in each process, or at its start.
struct ExportFinding {
    Uuid device;
    int driver_version = 0;                // as MachineFacts::driver_version when it was tried
    bool simulated = false;                // made on a simulated machine: says nothing about a real one
    ExportKinds kind = ExportKinds::none;  // posix_fd or fabric
    bool works = false;                    // all steps did; else:
    ExportStep failed = ExportStep::create;
    int driver_code = 0;  // CUresult; 0: no call failed
    std::string call;
    std::string message;  // of the error
};

}  // namespace isthmus::inline v0
