// SPDX-License-Identifier: Apache-2.0
// Buffers that other drivers take as dma-bufs.
#include <isthmus/device.hpp>
#include <isthmus/ipc/shared_memory.hpp>

#include "calls.hpp"
#include "handles.hpp"

using namespace isthmus;

namespace {

Result<ExportableOptions> options_of(const c::Call& call, const isthmus_exportable_options* from) {
    constexpr isthmus_exportable_options otherwise = ISTHMUS_EXPORTABLE_OPTIONS_INIT;
    ISTHMUS_TRY(const isthmus_exportable_options given,
                c::read_struct(call, "options", from, sizeof(isthmus_exportable_options), otherwise));
    ExportableOptions options;
    ISTHMUS_TRY(options.seen_by, call.enumerator<SeenBy>("options.seen_by", given.seen_by, 2));
    if (given.reserved != 0) return call.refuse("options.reserved", "is not 0", "leave it 0");
    options.dma_buf = true;
    return options;
}

}  // namespace

isthmus_code isthmus_device_allocate_exportable(isthmus_device* device, uint64_t bytes,
                                                const isthmus_exportable_options* options, isthmus_buffer** buffer,
                                                isthmus_error** error) {
    return c::guarded("isthmus_device_allocate_exportable", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"device", device}, {"buffer", buffer}}));
        ISTHMUS_TRY(const ExportableOptions asked, options_of(call, options));
        ISTHMUS_TRY(detail::MadeExportable made, detail::create_exportable(*device->cpp, bytes, 1, asked));
        auto handle = std::make_unique<isthmus_buffer>(*device, Buffer<std::byte>(std::move(made.state)));
        handle->exportable = std::move(made.memory);
        *buffer = handle.release();
        return {};
    });
}

isthmus_code isthmus_buffer_export_dma_buf(const isthmus_buffer* buffer, int* fd, isthmus_error** error) {
    return c::guarded("isthmus_buffer_export_dma_buf", error, [&](const c::Call& call) -> Result<void> {
        ISTHMUS_TRY(call.needs({{"buffer", buffer}, {"fd", fd}}));
        ISTHMUS_TRY(FileDescriptor file,
                    buffer->exportable ? detail::export_as_dma_buf(buffer->cpp.state().get(), buffer->exportable.get())
                                       : export_dma_buf(buffer->cpp));
        *fd = file.release();
        return {};
    });
}
