// SPDX-License-Identifier: Apache-2.0
// ModuleState: one loaded image, its kernels and variables, and who still uses them.
#pragma once

#include <isthmus/module.hpp>
#include <isthmus/result.hpp>
#include <isthmus/wait.hpp>

#include <platform/driver.hpp>

#include "device_state.hpp"
#include "module_image.hpp"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

class ModuleState;
struct StreamState;

// Dynamic shared memory that launches of one entry may ask for now.
struct AllowedShared {
    std::mutex mutex;
    std::uint32_t bytes = 0;  // guarded by mutex
};

// What running stand-ins use. Outlives the module if one of them hangs.
struct ModuleFunctions {
    std::vector<StandIn> stand_ins;                                     // constant
    std::vector<std::pair<std::string, void*>> variables;               // for stand-ins; constant once loaded
    std::map<std::string, std::unique_ptr<ModuleKernelState>> kernels;  // by entry and signature; the module's mutex
    std::map<std::string, AllowedShared> allowed_shared;                // by entry; the module's mutex
};

// One kernel with one signature. Lives as long as its module; handles of users hold the module.
struct ModuleKernelState {
    ModuleState* module = nullptr;
    const ModuleFunctions* functions = nullptr;
    const KernelInfo* info = nullptr;  // of the runtime's KernelDescriptions
    platform::FunctionHandle function = platform::FunctionHandle::none;
    platform::FunctionLimits limits;
    const StandIn* stand_in = nullptr;
    ParameterCheck check = ParameterCheck::none;
    bool own_layout = false;
    std::uint8_t item_rank = 1;
    std::uint32_t pack_offset = 0;
    AllowedShared* allowed_shared = nullptr;  // of the entry; nullptr: no driver has to be told
};
// KernelInfo::twin of every kernel of a module.
void run_module_twin(const Extent& extent, std::uint64_t first, std::uint64_t last, const void* pack);
// StandInEntry::run.
void run_simulated(void* self, const Extent& grid, const Extent& block, std::uint32_t shared_bytes,
                   void* const* parameters);

// Thread-safe.
class ModuleState : public std::enable_shared_from_this<ModuleState> {
public:
    // Loads the image, whose contents were read and found whole. `name` is for messages: "module 'scale.ptx'".
    static Result<std::shared_ptr<ModuleState>> load(const std::shared_ptr<DeviceState>& device, std::string name,
                                                     std::span<const std::byte> image, images::ImageContents contents,
                                                     const ModuleOptions& options);
    ~ModuleState();
    ModuleState(const ModuleState&) = delete;
    ModuleState& operator=(const ModuleState&) = delete;

    const std::shared_ptr<DeviceState> device;
    const std::string name;
    const images::ImageContents contents;  // names and sizes, not the image
    platform::Modules* modules() const noexcept { return device->driver->modules(); }

    Result<const ModuleKernelState*> kernel(const std::string& entry, const ModuleSignature& signature);
    // `on`: the device's public handle, which adopts the variable's memory.
    Result<TypedBuffer<std::byte>*> global(const std::string& variable, std::size_t element_bytes, Device& on);
    // On the CPU device, where variables are host memory: makes all of them, as zeros.
    Result<void> make_variables(Device& on);
    Result<void> release(Wait wait);

    // While this lives, the module is not unloaded. Empty: it was released.
    class Launch {
    public:
        explicit Launch(ModuleState& module) : module_(module), open_(module.begin_launch()) {}
        Launch(const Launch&) = delete;
        Launch& operator=(const Launch&) = delete;
        ~Launch() {
            if (open_) module_.end_launch(stream_);
        }
        explicit operator bool() const noexcept { return open_; }
        // The module stays loaded until what the stream has been given when this ends has ended.
        void on(StreamState& stream) noexcept { stream_ = &stream; }
        // For a graph that records the launch.
        std::shared_ptr<void> token() { return module_.token(); }

    private:
        ModuleState& module_;
        StreamState* stream_ = nullptr;
        const bool open_;
    };

private:
    struct Token;
    struct Use {
        std::shared_ptr<StreamState> stream;
        std::uint64_t position;
    };
    ModuleState(std::shared_ptr<DeviceState> owner, std::string named, images::ImageContents read,
                const ModuleOptions& options);
    Result<void> load_image(std::span<const std::byte> image, const ModuleOptions& options);
    Result<void> find_variables();
    Error refused(const platform::Status& status, std::string_view what, const std::string& log) const;
    Result<void> check_parameters(const std::string& entry, const ModuleSignature& signature,
                                  ModuleKernelState& kernel) const;
    Result<void> take_stand_in(const std::string& entry, const ModuleSignature& signature, ModuleKernelState& kernel);
    Result<void> find_function(const std::string& entry, ModuleKernelState& kernel);
    Result<std::uint64_t> address_of(const std::string& variable, std::size_t& bytes);
    bool begin_launch();
    void end_launch(StreamState* stream);
    void note(StreamState& stream, std::uint64_t position);
    std::shared_ptr<void> token();
    Result<void> wait_for_launches(const Wait& wait);
    Result<void> unload_now();
    static void end_when_allowed(ModuleState* module);
    bool put_off_end();

    std::shared_ptr<ModuleFunctions> functions_;
    platform::ModuleHandle handle_ = platform::ModuleHandle::none;
    std::mutex mutex_;  // guards what follows, and ModuleFunctions::kernels
    std::condition_variable launched_;
    bool released_ = false;
    int launching_ = 0;
    std::vector<Use> uses_;  // the last launch on each stream
    std::weak_ptr<void> token_;
    std::map<std::string, Buffer<std::byte>> globals_;
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
