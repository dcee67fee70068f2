// SPDX-License-Identifier: Apache-2.0
// The runtime's only interface to a device. Implementations do not validate: the runtime has checked every argument,
// and a Status repeats the driver's answer. Handles are opaque values of the implementation; 0 is never valid. All
// functions may be called from any thread.
#pragma once

#include <isthmus/facts.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <platform/captures.hpp>
#include <platform/modules.hpp>
#include <platform/multicast.hpp>
#include <platform/pools.hpp>
#include <platform/status.hpp>
#include <platform/transfers.hpp>
#include <platform/virtual_memory.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace isthmus::platform {

// Opens memory or an event in another process by the older API (cuIpc…); opaque, never all zero.
using SharedHandle = std::array<unsigned char, 64>;

// One allocation as its driver knows it; release() needs exactly this.
struct Allocation {
    MemoryKind kind = MemoryKind::unknown;
    void* host = nullptr;      // CPU address; nullptr: no CPU access
    std::uint64_t device = 0;  // device address
    std::size_t bytes = 0;
};

// What may access managed memory (cuStreamAttachMemAsync).
enum class Attachment : std::uint8_t { global, host, stream };

enum class CopyDirection : std::uint8_t { host_to_device, device_to_host, device_to_device, host_to_host };

struct PointerFacts {
    MemoryKind kind = MemoryKind::unknown;
    int ordinal = -1;        // the owning device; -1: unknown or host
    std::uint64_t base = 0;  // start of the allocation; 0: not stated
    std::size_t bytes = 0;
    std::uint64_t device = 0;  // the queried address as seen by the device asked; 0: not stated
};

// A dma-buf in the address space of a device.
struct ImportedDmaBuf {
    std::uint64_t device = 0;   // address of the dma-buf's first byte; 0: not mapped
    std::uintptr_t memory = 0;  // the driver's object; 0: none
    explicit operator bool() const noexcept { return memory != 0; }
};

class Memory {
public:
    virtual ~Memory() = default;
    // Kinds: device, pool (ordered on `stream`), managed, pinned, write_combined; the CPU device: all of them as host
    // memory. `attachment` applies to managed only. bytes > 0. On an error `out` is unchanged, or holds what the first
    // of two steps made: then the caller must still call release(). The caller does that, because an undo waits for
    // running kernels, and only the caller knows of services.
    virtual Status allocate(MemoryKind kind, std::size_t bytes, Attachment attachment, StreamHandle stream,
                            Allocation& out) = 0;
    // Undoes allocate(). A pool allocation is freed in the order of `stream`; for other kinds the caller has waited for
    // every use. On an error the memory still exists.
    virtual Status release(const Allocation& allocation, StreamHandle stream) = 0;
    // Makes host memory usable by the device; `device` receives its device address. On an error, `device` 0 means that
    // the memory is registered (a second step failed) and unregister_host() must still be called; otherwise `device` is
    // unchanged.
    virtual Status register_host(void* host, std::size_t bytes, bool read_only, std::uint64_t& device) = 0;
    virtual Status unregister_host(void* host) = 0;
    // The older handle (cuIpc…) of device memory for other processes: of the allocation that begins at `address`.
    virtual Status share(std::uint64_t, SharedHandle&) { return {Code::unsupported, 0, "share"}; }
    // Yields memory of kind imported, size not stated; release() closes it. Opened again, it has the same address, and
    // each open needs its own close.
    virtual Status open_shared(const SharedHandle&, Allocation&) { return {Code::unsupported, 0, "open_shared"}; }
    // A descriptor of a dma-buf over [address, address + bytes), whole pages of one allocation; the caller closes it.
    virtual Status export_dma_buf(std::uint64_t, std::size_t, int&) { return {Code::unsupported, 0, "export_dma_buf"}; }
    // Maps the first `bytes` of the dma-buf for the device. The descriptor stays the caller's, who keeps it open until
    // release_dma_buf(). On an error `out` may hold what the first of two steps made, as allocate() has it.
    virtual Status import_dma_buf(int, std::uint64_t, ImportedDmaBuf&) {
        return {Code::unsupported, 0, "import_dma_buf"};
    }
    // The caller has waited for every use. On an error, `imported` holds what is left.
    virtual Status release_dma_buf(ImportedDmaBuf&) { return {Code::unsupported, 0, "release_dma_buf"}; }
    virtual Status copy(std::uint64_t destination, std::uint64_t source, std::size_t bytes, CopyDirection direction,
                        StreamHandle stream) = 0;
    virtual Status fill(std::uint64_t destination, std::uint8_t value, std::size_t bytes, StreamHandle stream) = 0;
    virtual Status attach(const Allocation& allocation, Attachment attachment, StreamHandle stream) = 0;
    // Facts about an address that this runtime did not allocate. Unknown addresses are ok() with MemoryKind::unknown.
    virtual Status pointer_facts(std::uint64_t address, PointerFacts& out) = 0;
    // Tells a simulator that of the memory allocated or registered at this device address only the first bytes may be
    // accessed from now on; 0: none, because it is kept for a later allocation. With a stream, less than before from
    // behind its work so far. No driver call: a driver learns nothing.
    virtual void lend(std::uint64_t, std::size_t, StreamHandle) noexcept {}
    // The same for memory that is divided: of the part that begins at this device address and has so many bytes, only
    // the first `usable_bytes` may be accessed from now on, and of the rest of the memory nothing but other parts.
    virtual void lend_part(std::uint64_t, std::size_t /*bytes*/, std::size_t /*usable_bytes*/) noexcept {}
    // Whether anybody learns from lend() and lend_part(). Fixed.
    virtual bool lends() const noexcept { return false; }
    // Free and total bytes of the device's own memory, as the driver reports them (unreliable on shared DRAM).
    virtual Status memory_info(std::uint64_t& free_bytes, std::uint64_t& total_bytes) = 0;
};

// Purpose of an event, fixed at creation. `interprocess` measures no time (the driver refuses both).
enum class EventKind : std::uint8_t { plain, timing, interprocess };

struct LaunchRequest {
    const KernelInfo* kernel = nullptr;
    FunctionHandle function = FunctionHandle::none;
    Extent extent;
    const void* pack = nullptr;  // kernel->pack_bytes
    StreamHandle stream = StreamHandle::none;
};

// A stream created by other code.
struct ForeignStream {
    StreamHandle handle = StreamHandle::none;
    std::uint64_t id = 0;  // assigned by the driver; unlike the handle, never reused
};

class Execution {
public:
    virtual ~Execution() = default;
    virtual Status create_stream(int priority, StreamHandle& out) = 0;  // -1 high, 0 low; non-blocking
    virtual Status destroy_stream(StreamHandle stream) = 0;
    // As the driver has it; may be greater than requested if the device has fewer priorities.
    virtual Status stream_priority(StreamHandle, int& out) { return out = 0, Status{}; }
    // Wraps a stream of other code: a CUstream of this device's primary context, or nullptr or CU_STREAM_LEGACY, the
    // legacy default stream. The stream must exist: a driver crashes on a destroyed one. Code::wrong_device: it belongs
    // to another context. Code::unsupported: it cannot be wrapped (the per-thread default stream is a different stream
    // in each thread), or this driver has no foreign streams.
    virtual Status foreign_stream(void*, ForeignStream&) { return {Code::unsupported, 0, "foreign_stream"}; }
    // Undoes one foreign_stream(): until then calls take care of captures that other code may begin on it.
    virtual void forget_foreign_stream() noexcept {}
    // The stream in foreign_stream()'s form; nullptr: none exists.
    virtual void* native_stream(StreamHandle) noexcept { return nullptr; }
    // Calls function(data) once, after the stream's earlier work, on a driver thread (the CPU device: at once); after a
    // sticky error, never. `function` must not call the driver. In a capture: called at every launch of the graph.
    virtual Status call_on_host(StreamHandle stream, void (*function)(void*), void* data) {
        (void)stream;
        return function(data), Status{};
    }
    virtual Status query_stream(StreamHandle stream) = 0;  // Code::not_ready while work remains

    // Calls work(data) once on the calling thread, with the device's context current, and restores the caller's context
    // behind it. The thread's capture mode stays the caller's (ADR 91). If the context cannot be entered, the Status
    // says so, and nothing was called.
    virtual Status call_in_context(void (*work)(void*), void* data) { return work(data), Status{}; }
    // The CPU device: calls work(data), or, on a captured stream, calls it at every launch of the graph, which returns
    // its Status if that is an error. Not called for other devices.
    virtual Status run_work(StreamHandle, Status (*work)(void*), void* data) { return work(data); }
    // What a result code means that other code got from this device's driver or from its runtime library. No driver
    // call. `call` has static storage.
    virtual Status status_of(int code, const char* call) const noexcept {
        return {code == 0 ? Code::ok : Code::driver_error, code, call};
    }

    virtual Status create_event(EventKind kind, EventHandle& out) = 0;
    virtual Status destroy_event(EventHandle event) = 0;
    virtual Status record_event(EventHandle event, StreamHandle stream) = 0;
    virtual Status wait_event(StreamHandle stream, EventHandle event) = 0;
    // An event in the driver's own form, and an event of other code as a handle, for waits and queries alone; nullptr
    // and none: the device has no driver.
    virtual void* native_event(EventHandle) noexcept { return nullptr; }
    virtual EventHandle foreign_event(void*) noexcept { return EventHandle::none; }
    virtual Status query_event(EventHandle event) = 0;  // Code::not_ready while work remains
    virtual Status elapsed_ms(EventHandle begin, EventHandle end, float& milliseconds) = 0;
    // Handle by which another process opens an interprocess event.
    virtual Status share_event(EventHandle, SharedHandle&) { return {Code::unsupported, 0, "share_event"}; }
    // Opens another process's event; destroy_event() closes it. Neither waits for a kernel (observed).
    virtual Status open_event(const SharedHandle&, EventHandle&) { return {Code::unsupported, 0, "open_event"}; }

    // Whether a context exists to which other code may have submitted work. Creates none.
    virtual Status context_in_use(bool& out) { return out = false, Status{}; }
    // Records an event after all work of the device's context, including other code's in this process. That would end a
    // capture open there: Code::capture_error without a driver call while a capture begun through any runtime of this
    // library is open. Code::unsupported: the driver lacks the call (CUDA 12.5).
    virtual Status record_context(EventHandle) { return {Code::unsupported, 0, "record_context"}; }
    // Waits for all that work, without a deadline; captures as above. A capture that would begin meanwhile waits for
    // the end.
    virtual Status synchronize_context() { return {}; }

    // Finds the kernel's code for this device, loading its image once. Code::no_gpu_code explains 209 and 222.
    virtual Status resolve(const KernelInfo& kernel, FunctionHandle& out) = 0;
    // Whether resolve() would succeed without a driver call.
    virtual bool is_resolved(const KernelInfo&) { return true; }
    virtual Status launch(const LaunchRequest& request) = 0;
};

// One device. Facets that a device lacks are null; memory and execution always exist.
class Driver {
public:
    virtual ~Driver() = default;
    // Facts read at opening: identity, and the attributes that decide something.
    virtual const DeviceFacts& facts() const noexcept = 0;
    // Also every other attribute that the driver knows. The first call with `may_ask` makes one driver call per
    // attribute and creates no context; without `may_ask` it returns what is known.
    virtual const DeviceFacts& all_facts([[maybe_unused]] bool may_ask) const noexcept { return facts(); }
    virtual Memory& memory() noexcept = 0;
    virtual Execution& execution() noexcept = 0;
    virtual Pools* pools() noexcept { return nullptr; }
    virtual Transfers* transfers() noexcept { return nullptr; }
    virtual Captures* captures() noexcept { return nullptr; }
    virtual VirtualMemory* virtual_memory() noexcept { return nullptr; }
    virtual Modules* modules() noexcept { return nullptr; }
    virtual Multicast* multicast() noexcept { return nullptr; }  // only together with virtual memory
    // Whether other code destroyed the context that owns this driver's memory and handles (cuDevicePrimaryCtxReset).
    // Then device, managed, pinned and registered memory is gone, and its addresses may be in use by other code. Pool
    // memory survives and must still be released. One driver call; none before the first use, and none after the answer
    // was yes. Creations, frees and destructions detect it too. From then on every call answers Code::device_lost
    // without a driver call, so that nothing is made, freed or destroyed in a later context. Exceptions, which still
    // work: releases of pool memory, Pools::destroy(), unmap, release and free_address of VirtualMemory, and unbind of
    // Multicast.
    virtual bool context_died() noexcept { return false; }
    // Work has finished when a call returns (the CPU device); nothing needs a wait.
    virtual bool synchronous() const noexcept = 0;
    // The typed error for a Status: the call, the driver's name and text for the code, and a remedy.
    virtual Error explain(const Status& status, std::string_view what_was_asked) const = 0;
};

}  // namespace isthmus::platform
