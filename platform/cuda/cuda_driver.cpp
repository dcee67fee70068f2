// One CUDA device behind platform::Driver: its facts, its memory, its execution, its explanations.
#include "cuda_device.hpp"

#include "cuda_execution.hpp"
#include "cuda_memory.hpp"

namespace isthmus::platform::cuda {
namespace {

// Destruction runs upwards: modules are unloaded before the primary context is given back.
class CudaDriver final : public Driver {
public:
    CudaDriver(std::shared_ptr<const Library> library, DeviceFacts facts, CUdevice device)
        : facts_(std::move(facts)), context_(std::move(library), device), memory_(context_), execution_(context_) {}

    const DeviceFacts& facts() const noexcept override { return facts_; }
    Memory& memory() noexcept override { return memory_; }
    Execution& execution() noexcept override { return execution_; }
    bool synchronous() const noexcept override { return false; }

    Error explain(const Status& status, std::string_view what_was_asked) const override {
        const char* text = nullptr;
        if (status.driver_code != 0 && status.code != Code::forked) {
            (void)context_.api().get_error_string(status.driver_code, &text);
        }
        return explain_status(status, what_was_asked, text ? text : "");
    }

private:
    DeviceFacts facts_;
    DeviceContext context_;
    CudaMemory memory_;
    CudaExecution execution_;
};

}  // namespace

std::unique_ptr<Driver> make_device(std::shared_ptr<const Library> library, DeviceFacts facts, CUdevice device) {
    return std::make_unique<CudaDriver>(std::move(library), std::move(facts), device);
}

}  // namespace isthmus::platform::cuda
