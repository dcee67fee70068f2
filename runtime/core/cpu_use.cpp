// SPDX-License-Identifier: Apache-2.0
// DMA_BUF_IOCTL_SYNC around the uses of a buffer by the CPU.
#include "cpu_use.hpp"

#include "buffer_state.hpp"
#include "core_errors.hpp"
#include "device_state.hpp"

#include <system_error>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr const char* call = "ioctl(DMA_BUF_IOCTL_SYNC)";

Error not_synchronised(int error) {
    return make_error<errors::dma_buf_not_synchronised>(std::generic_category().message(error)).from_call(call, error);
}

}  // namespace

Result<void> begin_cpu_use(const BufferState& buffer, platform::os::CpuUse use) {
    const platform::os::DmaBuf* const dma_buf = buffer.dma_buf();
    if (dma_buf == nullptr) return {};
    if (const int error = dma_buf->begin(use); error != 0) return not_synchronised(error);
    return {};
}

void end_cpu_use(const BufferState& buffer, platform::os::CpuUse use) noexcept {
    const platform::os::DmaBuf* const dma_buf = buffer.dma_buf();
    if (dma_buf == nullptr) return;
    if (const int error = dma_buf->end(use); error != 0 && buffer.device->config->log) {
        buffer.device->config->say(Severity::error, text_in_words(not_synchronised(error)));
    }
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
