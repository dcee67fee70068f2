// The one interface that the runtime speaks to a device, in our own words. Implementations are dumb: the runtime
// has validated every argument, and a Status repeats what the driver said. Handles are opaque values of the
// implementation; 0 is never a valid handle. All functions may be called from any thread.
#pragma once

#include <isthmus/facts.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include <platform/captures.hpp>
#include <platform/multicast.hpp>
#include <platform/pools.hpp>
#include <platform/status.hpp>
#include <platform/transfers.hpp>
#include <platform/virtual_memory.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace isthmus::platform {

// What opens memory or an event in another process, the older way; opaque, never all zero.
using SharedHandle = std::array<unsigned char, 64>;

// One piece of memory as its driver sees it: release() needs exactly this.
struct Allocation {
    MemoryKind kind = MemoryKind::unknown;
    void* host = nullptr;      // where the CPU finds it; nullptr: it may not look
    std::uint64_t device = 0;  // where the device finds it
    std::size_t bytes = 0;
};

// Who may touch managed memory (cuStreamAttachMemAsync).
enum class Attachment : std::uint8_t { global, host, stream };

enum class CopyDirection : std::uint8_t { host_to_device, device_to_host, device_to_device, host_to_host };

struct PointerFacts {
    MemoryKind kind = MemoryKind::unknown;
    int ordinal = -1;        // the device it belongs to; -1: unknown or host
    std::uint64_t base = 0;  // start of the allocation; 0: not stated
    std::size_t bytes = 0;
    std::uint64_t device = 0;  // where the device asked finds the very address; 0: not stated
};

class Memory {
public:
    virtual ~Memory() = default;
    // Kinds: device, pool (ordered on `stream`), managed, pinned, write_combined; the CPU device: all of them as
    // host memory. `attachment` matters for managed only. bytes > 0. On an error `out` is as it was, or what the first
    // of two steps made: then release() is still to be called. The caller does, because undoing waits for kernels that
    // run, and only the caller knows of services.
    virtual Status allocate(MemoryKind kind, std::size_t bytes, Attachment attachment, StreamHandle stream,
                            Allocation& out) = 0;
    // Undoes allocate(). A pool allocation is freed in the order of `stream`; for the other kinds the caller has
    // waited for every use. On an error the memory is still there.
    virtual Status release(const Allocation& allocation, StreamHandle stream) = 0;
    // Makes host memory usable by the device; `device` receives its address there. On an error `device` is 0 where the
    // memory is registered all the same (a second step failed) and unregister_host() is still to be called; else it is
    // as it was.
    virtual Status register_host(void* host, std::size_t bytes, bool read_only, std::uint64_t& device) = 0;
    virtual Status unregister_host(void* host) = 0;
    // What another process opens memory of kind device by, the older way: the allocation that begins at `address`.
    virtual Status share(std::uint64_t, SharedHandle&) { return {Code::unsupported, 0, "share"}; }
    // Gives memory of kind imported, without its size, which release() closes. Opened again it is at the same address,
    // and closed as often.
    virtual Status open_shared(const SharedHandle&, Allocation&) { return {Code::unsupported, 0, "open_shared"}; }
    virtual Status copy(std::uint64_t destination, std::uint64_t source, std::size_t bytes, CopyDirection direction,
                        StreamHandle stream) = 0;
    virtual Status fill(std::uint64_t destination, std::uint8_t value, std::size_t bytes, StreamHandle stream) = 0;
    virtual Status attach(const Allocation& allocation, Attachment attachment, StreamHandle stream) = 0;
    // What the driver knows of an address that this runtime did not allocate. Unknown addresses are ok() with
    // MemoryKind::unknown.
    virtual Status pointer_facts(std::uint64_t address, PointerFacts& out) = 0;
    // Free and total bytes of the device's own memory, as the driver says (unreliable on shared DRAM).
    virtual Status memory_info(std::uint64_t& free_bytes, std::uint64_t& total_bytes) = 0;
};

// What an event is for; one kind never becomes another. `interprocess` measures no time (the driver refuses both).
enum class EventKind : std::uint8_t { plain, timing, interprocess };

struct LaunchRequest {
    const KernelInfo* kernel = nullptr;
    FunctionHandle function = FunctionHandle::none;
    Extent extent;
    const void* pack = nullptr;  // kernel->pack_bytes
    StreamHandle stream = StreamHandle::none;
};

// A stream that somebody else made.
struct ForeignStream {
    StreamHandle handle = StreamHandle::none;
    std::uint64_t id = 0;  // the driver's; unlike the handle, never reused
};

class Execution {
public:
    virtual ~Execution() = default;
    virtual Status create_stream(int priority, StreamHandle& out) = 0;  // -1 high, 0 low; never blocking
    virtual Status destroy_stream(StreamHandle stream) = 0;
    // As the driver has it; greater than asked for where the device has fewer of them.
    virtual Status stream_priority(StreamHandle, int& out) { return out = 0, Status{}; }
    // The driver's own stream: a CUstream of this device's primary context, or nullptr or CU_STREAM_LEGACY, the legacy
    // default stream. It exists, because a driver answers for a destroyed one with a crash. Code::wrong_device: it
    // belongs to another context; Code::unsupported: it cannot be wrapped (the per-thread default stream is as many
    // streams as there are threads), or this driver knows no streams of others.
    virtual Status foreign_stream(void*, ForeignStream&) { return {Code::unsupported, 0, "foreign_stream"}; }
    // Undoes one foreign_stream(): until then calls take care of captures that other code may begin on it.
    virtual void forget_foreign_stream() noexcept {}
    // What foreign_stream() takes; nullptr: there is no such thing.
    virtual void* native_stream(StreamHandle) noexcept { return nullptr; }
    // Calls function(data) once, behind what the stream was given, on a thread of the driver's (the CPU device: at
    // once), or, after a sticky error, never. It may call no driver. In a capture: at every launch of the graph.
    virtual Status call_on_host(StreamHandle stream, void (*function)(void*), void* data) {
        (void)stream;
        return function(data), Status{};
    }
    virtual Status query_stream(StreamHandle stream) = 0;  // Code::not_ready while work remains

    virtual Status create_event(EventKind kind, EventHandle& out) = 0;
    virtual Status destroy_event(EventHandle event) = 0;
    virtual Status record_event(EventHandle event, StreamHandle stream) = 0;
    virtual Status wait_event(StreamHandle stream, EventHandle event) = 0;
    virtual Status query_event(EventHandle event) = 0;  // Code::not_ready while work remains
    virtual Status elapsed_ms(EventHandle begin, EventHandle end, float& milliseconds) = 0;
    // What another process opens an interprocess event by.
    virtual Status share_event(EventHandle, SharedHandle&) { return {Code::unsupported, 0, "share_event"}; }
    // An event of another process, which destroy_event() lets go of. Neither waits for a kernel (observed).
    virtual Status open_event(const SharedHandle&, EventHandle&) { return {Code::unsupported, 0, "open_event"}; }

    // Is there a context that other code may have given work to? Creates none.
    virtual Status context_in_use(bool& out) { return out = false, Status{}; }
    // Records an event behind all that the device's context was given, by other code of the process too. A capture that
    // is open there would end: Code::capture_error without a driver call while one is that began through any runtime
    // of this library. Code::unsupported: the driver lacks the call (CUDA 12.5).
    virtual Status record_context(EventHandle) { return {Code::unsupported, 0, "record_context"}; }
    // Waits for all that, without a deadline; captures as above. One that would begin meanwhile waits for the end.
    virtual Status synchronize_context() { return {}; }

    // Finds the kernel's code for this device, loading its image once. Code::no_gpu_code explains 209 and 222.
    virtual Status resolve(const KernelInfo& kernel, FunctionHandle& out) = 0;
    // Would resolve() find it without asking the driver?
    virtual bool is_resolved(const KernelInfo&) { return true; }
    virtual Status launch(const LaunchRequest& request) = 0;
};

// One device. Facets that a device lacks are null; memory and execution are always there.
class Driver {
public:
    virtual ~Driver() = default;
    // What opening asked: who it is, and the attributes that decide something.
    virtual const DeviceFacts& facts() const noexcept = 0;
    // … and every other attribute that the driver knows. The first call that may ask makes a driver call for each, and
    // no context; without that it answers what is known.
    virtual const DeviceFacts& all_facts([[maybe_unused]] bool may_ask) const noexcept { return facts(); }
    virtual Memory& memory() noexcept = 0;
    virtual Execution& execution() noexcept = 0;
    virtual Pools* pools() noexcept { return nullptr; }
    virtual Transfers* transfers() noexcept { return nullptr; }
    virtual Captures* captures() noexcept { return nullptr; }
    virtual VirtualMemory* virtual_memory() noexcept { return nullptr; }
    virtual Multicast* multicast() noexcept { return nullptr; }  // only beside virtual memory
    // Was the context that owns this driver's memory and handles destroyed behind its back (a foreign
    // cuDevicePrimaryCtxReset)? Then device, managed, pinned and registered memory is gone, and its addresses may be
    // somebody else's by now; pool memory survives and is still to be released. One driver call, none before the
    // first use and none once the answer was yes. Noticed by creations, frees and destructions themselves, too; from
    // then on every call answers Code::device_lost without a driver call, so that nothing is made, freed or destroyed
    // in a context that came afterwards; only releases of pool memory, Pools::destroy(), unmap, release and
    // free_address of VirtualMemory, and unbind of Multicast still do their work.
    virtual bool context_died() noexcept { return false; }
    // Work is finished when a call returns (the CPU device): nothing has to be waited for.
    virtual bool synchronous() const noexcept = 0;
    // The typed error for a Status: names the call, the driver's own name and text for the code, and a remedy.
    virtual Error explain(const Status& status, std::string_view what_was_asked) const = 0;
};

}  // namespace isthmus::platform
