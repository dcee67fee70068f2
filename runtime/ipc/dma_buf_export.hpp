// SPDX-License-Identifier: Apache-2.0
// Memory of this runtime as a dma-buf for other drivers.
#pragma once

#include <isthmus/file_descriptor.hpp>
#include <isthmus/ipc/shared_memory.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceState;

// Error: unsupported, with what works instead.
Result<void> may_export_dma_buf(const DeviceState& device, MemoryKind kind);
// A close-on-exec descriptor of whole pages of memory that was made to be exported. Errors: those of export_dma_buf().
Result<FileDescriptor> dma_buf_of(DeviceState& device, MemoryKind kind, std::uint64_t address, std::uint64_t bytes);
// Pinned memory of its own: uncached, zeroed, whole pages. Errors: those of create_exportable().
Result<MadeExportable> make_pinned_dma_buf(const std::shared_ptr<DeviceState>& owner, std::size_t bytes);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
