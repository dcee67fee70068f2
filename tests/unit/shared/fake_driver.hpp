// SPDX-License-Identifier: Apache-2.0
// FakeDriver: a GPU as a queue, whose work runs only when an event is queried. Every call is recorded, and the n-th
// call can be made to fail, so tests see the runtime's driver calls one by one.
#pragma once

#include <platform/driver.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::testing {

struct FakeWorld {
    FakeWorld() = default;
    FakeWorld(const FakeWorld&) = delete;
    FakeWorld& operator=(const FakeWorld&) = delete;

    std::vector<std::string> calls;
    int fail_at = 0;  // 1: the first call fails; 0: none
    Code fail_code = Code::driver_error;
    int fail_driver_code = 999;
    bool sticky = false;                     // every later call fails too
    bool stuck = false;                      // work never finishes
    std::set<std::uintptr_t> stuck_streams;  // on these streams only
    std::set<std::uint64_t> memory;          // live allocations by address
    std::set<void*> registrations;
    std::set<std::uintptr_t> streams;
    std::set<std::uintptr_t> events;
    std::map<std::uintptr_t, std::deque<std::function<void()>>> queue;  // by stream
    std::map<std::uintptr_t, std::uintptr_t> pending;                   // event → stream it waits in
    std::map<std::uintptr_t, std::uint64_t> latest_record;
    std::uint64_t records = 0;
    std::set<std::uint64_t> ended_records;
    std::uintptr_t next = 1;
    // Threads may make and destroy events at the same time; for every other call there is one thread at a time.
    std::recursive_mutex events_mutex;

    std::function<void(const std::string&)> inside;  // called within every call: what a signal handler does there

    bool failing = false;
    platform::Status call(const std::string& what, const char* name) {
        calls.push_back(what);
        if (inside) inside(what);
        if (fail_at != 0 && static_cast<int>(calls.size()) == fail_at) failing = true;
        if (!failing) return {};
        if (!sticky) failing = false;
        return {fail_code, fail_driver_code, name};
    }
    std::size_t count(const std::string& prefix) const {
        std::size_t found = 0;
        for (const std::string& made : calls) found += made.rfind(prefix, 0) == 0;
        return found;
    }
    void run_until(std::uintptr_t event) {
        while (!stuck && pending.count(event) != 0) {
            auto& work = queue[pending[event]];
            if (work.empty() || stuck_streams.count(pending[event]) != 0) break;
            const std::function<void()> first = std::move(work.front());
            work.pop_front();
            first();
        }
    }
    void run_until_recorded(std::uintptr_t stream, std::uint64_t record) {
        while (!stuck && ended_records.count(record) == 0 && !queue[stream].empty()) {
            const std::function<void()> first = std::move(queue[stream].front());
            queue[stream].pop_front();
            first();
        }
    }
    // Memory that begins 256 bytes behind a page: no driver promises a coarser alignment.
    static std::uint64_t new_memory(std::size_t bytes) {
        constexpr std::size_t page = 4096;
        void* const pages = std::aligned_alloc(page, (256 + bytes + page - 1) / page * page);
        return reinterpret_cast<std::uintptr_t>(pages) + 256;
    }
    static void free_memory(std::uint64_t address) { std::free(reinterpret_cast<void*>(address - 256)); }
    // Frees what the runtime abandoned on purpose.
    ~FakeWorld() { forget_memory(); }
    void forget_memory() {
        for (const std::uint64_t address : memory) free_memory(address);
        memory.clear();
        registrations.clear();
    }
    // Pools, captures and graphs. Work for a capturing stream is kept for its graph instead of the queue.
    using Work = std::vector<std::function<void()>>;
    struct Pool {
        MemoryKind kind;
        std::uint64_t threshold;
        platform::PoolUsage usage;
        std::set<int> peers;
    };
    std::map<std::uintptr_t, Pool> pools;
    std::map<std::uint64_t, std::pair<std::uintptr_t, std::size_t>> pool_memory;  // address → pool, bytes
    std::map<std::uintptr_t, Work> capturing;                                     // by stream
    std::set<std::uintptr_t> lost_captures;  // set by tests: end_capture() reports them lost
    int failing_releases = 0;                // so many calls do nothing
    int failing_ends = 0;                    // so many calls leave the capture open
    std::map<std::uintptr_t, Work> graphs;
    std::map<std::uintptr_t, Work> instances;
    std::set<int> reachable = {0, 1};                  // devices that others can be given access to
    std::set<int> peers;                               // devices whose memory this one was given access to
    std::uintptr_t released_on = 0;                    // the stream of the last release
    std::uint64_t attached = 0;                        // the address of the last attach()
    std::uint64_t free_bytes = 0, total_bytes = 0;     // the answer of memory_info(); 0: unknown
    bool hints = true;                                 // false: prefetch and advise answer Code::unsupported
    bool batches = false;                              // of hints
    std::optional<platform::AdviceFacts> advice;       // in force; none: the driver tells none
    bool died = false;                                 // the answer of context_died()
    bool others_work = false;                          // the answer of context_in_use()
    bool synchronous = false;                          // of devices that are opened from then on
    std::pair<std::uint64_t, std::size_t> prefetched;  // the last one
    std::function<void(std::uint64_t, platform::PointerFacts&)> foreign;  // the driver's facts about an address
    bool has_pools = true, has_transfers = true, has_captures = true;
    bool names_nodes = false;                           // a captured kernel is a node with a name
    platform::VirtualMemory* virtual_memory = nullptr;  // supplied by the test
    platform::Multicast* multicast = nullptr;
    std::function<platform::Status(platform::Allocation&)> open_shared;  // opens a legacy IPC handle
    bool imports_dma_bufs = false, exports_dma_bufs = false;
    std::set<std::uintptr_t> imports;                               // of dma-bufs, alive
    std::map<std::uint64_t, std::pair<void*, std::size_t>> mapped;  // of those, by device address
    std::pair<std::uint64_t, std::size_t> exported;                 // the last range

    bool clean() const {
        return memory.empty() && registrations.empty() && streams.empty() && events.empty() && pools.empty() &&
               capturing.empty() && graphs.empty() && instances.empty();
    }
};

class FakeDriver final : public platform::Driver,
                         public platform::Memory,
                         public platform::Execution,
                         public platform::Pools,
                         public platform::Transfers,
                         public platform::Captures {
public:
    FakeDriver(FakeWorld& world, DeviceFacts facts) : world_(world), facts_(std::move(facts)) {}

    const DeviceFacts& facts() const noexcept override { return facts_; }
    platform::Memory& memory() noexcept override { return *this; }
    platform::Execution& execution() noexcept override { return *this; }
    platform::Pools* pools() noexcept override { return world_.has_pools ? this : nullptr; }
    platform::Transfers* transfers() noexcept override { return world_.has_transfers ? this : nullptr; }
    platform::Captures* captures() noexcept override { return world_.has_captures ? this : nullptr; }
    platform::VirtualMemory* virtual_memory() noexcept override { return world_.virtual_memory; }
    platform::Multicast* multicast() noexcept override { return world_.multicast; }
    bool context_died() noexcept override { return world_.died; }
    bool synchronous() const noexcept override { return world_.synchronous; }
    platform::Status context_in_use(bool& out) override { return out = world_.others_work, platform::Status{}; }
    platform::Status record_context(platform::EventHandle event) override {
        return record_event(event, platform::StreamHandle::none);
    }
    Error explain(const platform::Status& status, std::string_view what) const override {
        return Error(status.code, std::string(what) + " failed", "nothing").from_call(status.call, status.driver_code);
    }

    platform::Status allocate(MemoryKind kind, std::size_t bytes, platform::Attachment, platform::StreamHandle,
                              platform::Allocation& out) override {
        const platform::Status status = world_.call("allocate " + std::string(name(kind)), "allocate");
        if (!status.ok()) return status;
        void* memory = reinterpret_cast<void*>(FakeWorld::new_memory(bytes));
        std::memset(memory, 0xEE, bytes);
        out = {kind, kind == MemoryKind::device || kind == MemoryKind::pool ? nullptr : memory,
               reinterpret_cast<std::uintptr_t>(memory), bytes};
        world_.memory.insert(out.device);
        return {};
    }
    platform::Status release(const platform::Allocation& allocation, platform::StreamHandle stream) override {
        world_.released_on = static_cast<std::uintptr_t>(stream);
        if (world_.failing_releases > 0) {
            --world_.failing_releases;
            return {Code::driver_error, 999, "release"};
        }
        const platform::Status status = world_.call("release " + std::string(name(allocation.kind)), "release");
        if (!status.ok()) return status;
        if (world_.memory.erase(allocation.device) == 1) {
            const std::shared_ptr<void> freed(nullptr, [at = allocation.device](void*) { FakeWorld::free_memory(at); });
            const bool ordered = allocation.kind == MemoryKind::pool || allocation.kind == MemoryKind::managed_pool;
            if (ordered) world_.queue[static_cast<std::uintptr_t>(stream)].push_back([freed] {});
        }
        if (const auto found = world_.pool_memory.find(allocation.device); found != world_.pool_memory.end()) {
            const auto pool = world_.pools.find(found->second.first);
            if (pool != world_.pools.end()) pool->second.usage.used_bytes -= found->second.second;
            world_.pool_memory.erase(found);
        }
        return status;
    }
    platform::Status register_host(void* host, std::size_t, bool, std::uint64_t& device) override {
        const platform::Status status = world_.call("register", "register");
        if (!status.ok()) return status;
        world_.registrations.insert(host);
        device = reinterpret_cast<std::uintptr_t>(host);
        return {};
    }
    platform::Status unregister_host(void* host) override {
        const platform::Status status = world_.call("unregister", "unregister");
        if (status.ok()) world_.registrations.erase(host);
        return status;
    }
    platform::Status open_shared(const platform::SharedHandle& handle, platform::Allocation& out) override {
        return world_.open_shared ? world_.open_shared(out) : platform::Memory::open_shared(handle, out);
    }
    platform::Status export_dma_buf(std::uint64_t address, std::size_t bytes, int& out) override {
        if (!world_.exports_dma_bufs) return platform::Memory::export_dma_buf(address, bytes, out);
        const platform::Status status = world_.call("export dma-buf", "export_dma_buf");
        if (!status.ok()) return status;
        world_.exported = {address, bytes};
        out = ::memfd_create("dma-buf", MFD_CLOEXEC);
        return {};
    }
    // In two steps, each of which a test can plan to fail.
    platform::Status import_dma_buf(int descriptor, std::uint64_t bytes, platform::ImportedDmaBuf& out) override {
        if (!world_.imports_dma_bufs) return platform::Memory::import_dma_buf(descriptor, bytes, out);
        platform::Status status = world_.call("import", "import_dma_buf");
        if (!status.ok()) return status;
        out.memory = world_.next++;
        world_.imports.insert(out.memory);
        status = world_.call("map import", "map_dma_buf");
        if (!status.ok()) return status;
        void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        out.device = reinterpret_cast<std::uintptr_t>(at);
        world_.mapped[out.device] = {at, bytes};
        return {};
    }
    platform::Status release_dma_buf(platform::ImportedDmaBuf& imported) override {
        if (imported.device != 0) {
            const platform::Status status = world_.call("unmap import", "unmap_dma_buf");
            if (!status.ok()) return status;
            const auto found = world_.mapped.find(imported.device);
            (void)::munmap(found->second.first, found->second.second);
            world_.mapped.erase(found);
            imported.device = 0;
        }
        const platform::Status status = world_.call("end import", "release_dma_buf");
        if (status.ok()) world_.imports.erase(std::exchange(imported.memory, 0));
        return status;
    }
    platform::Status copy(std::uint64_t to, std::uint64_t from, std::size_t bytes, platform::CopyDirection direction,
                          platform::StreamHandle stream) override {
        static const char* const names[] = {"copy up", "copy down", "copy device", "copy host"};
        return enqueue(names[static_cast<int>(direction)], stream,
                       [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes); });
    }
    platform::Status fill(std::uint64_t to, std::uint8_t value, std::size_t bytes,
                          platform::StreamHandle stream) override {
        return enqueue("fill", stream, [=] { std::memset(reinterpret_cast<void*>(to), value, bytes); });
    }
    platform::Status attach(const platform::Allocation& allocation, platform::Attachment attachment,
                            platform::StreamHandle stream) override {
        world_.attached = allocation.device;
        return enqueue(attachment == platform::Attachment::stream ? "attach stream" : "attach host", stream, [] {});
    }
    platform::Status pointer_facts(std::uint64_t address, platform::PointerFacts& out) override {
        const platform::Status status = world_.call("pointer", "pointer");
        if (status.ok() && world_.foreign) world_.foreign(address, out);
        return status;
    }
    platform::Status memory_info(std::uint64_t& free_bytes, std::uint64_t& total_bytes) override {
        free_bytes = world_.free_bytes;
        total_bytes = world_.total_bytes;
        return world_.call("info", "info");
    }

    platform::Status create_stream(int, platform::StreamHandle& out) override {
        const platform::Status status = world_.call("create stream", "create_stream");
        if (!status.ok()) return status;
        world_.streams.insert(world_.next);
        out = platform::StreamHandle{world_.next++};
        return {};
    }
    platform::Status destroy_stream(platform::StreamHandle stream) override {
        world_.streams.erase(static_cast<std::uintptr_t>(stream));
        return world_.call("destroy stream", "destroy_stream");
    }
    platform::Status query_stream(platform::StreamHandle stream) override {
        const platform::Status status = world_.call("query stream", "query");
        if (!status.ok()) return status;
        auto& work = world_.queue[static_cast<std::uintptr_t>(stream)];
        while (!world_.stuck && !work.empty()) {
            const std::function<void()> first = std::move(work.front());
            work.pop_front();
            first();
        }
        if (work.empty()) return {};
        return {Code::not_ready, 600, "query"};
    }

    platform::Status create_event(platform::EventKind kind, platform::EventHandle& out) override {
        static const char* const names[] = {"create event", "create event with timing", "create event for others"};
        const std::lock_guard lock(world_.events_mutex);
        const platform::Status status = world_.call(names[static_cast<int>(kind)], "create_event");
        if (!status.ok()) return status;
        world_.events.insert(world_.next);
        out = platform::EventHandle{world_.next++};
        return {};
    }
    platform::Status destroy_event(platform::EventHandle event) override {
        const std::lock_guard lock(world_.events_mutex);
        world_.events.erase(static_cast<std::uintptr_t>(event));
        return world_.call("destroy event", "destroy_event");
    }
    platform::Status record_event(platform::EventHandle event, platform::StreamHandle stream) override {
        const auto handle = static_cast<std::uintptr_t>(event);
        const std::uint64_t record = ++world_.records;  // an event stands for its latest record only
        const platform::Status status = enqueue("record", stream, [this, handle, record] {
            world_.ended_records.insert(record);
            if (world_.latest_record[handle] == record) world_.pending.erase(handle);
        });
        if (status.ok() && world_.capturing.count(static_cast<std::uintptr_t>(stream)) == 0) {
            world_.pending[handle] = static_cast<std::uintptr_t>(stream);
            world_.latest_record[handle] = record;
        }
        return status;
    }
    platform::Status wait_event(platform::StreamHandle stream, platform::EventHandle event) override {
        const auto handle = static_cast<std::uintptr_t>(event);
        const auto pending = world_.pending.find(handle);
        if (pending == world_.pending.end()) return enqueue("wait", stream, [] {});
        // Waits for the record that is current now, even if the event is recorded again before the stream gets here.
        return enqueue("wait", stream, [this, on = pending->second, record = world_.latest_record[handle]] {
            world_.run_until_recorded(on, record);
        });
    }
    platform::Status query_event(platform::EventHandle event) override {
        const platform::Status status = world_.call("query", "query_event");
        if (!status.ok()) return status;
        world_.run_until(static_cast<std::uintptr_t>(event));
        if (world_.pending.count(static_cast<std::uintptr_t>(event)) == 0) return {};
        return {Code::not_ready, 600, "query_event"};
    }
    platform::Status share_event(platform::EventHandle event, platform::SharedHandle& out) override {
        out[0] = static_cast<unsigned char>(static_cast<std::uintptr_t>(event) | 1);
        return world_.call("share event", "share_event");
    }
    platform::Status open_event(const platform::SharedHandle&, platform::EventHandle& out) override {
        const platform::Status status = world_.call("open event", "open_event");
        if (!status.ok()) return status;
        world_.events.insert(world_.next);
        out = platform::EventHandle{world_.next++};
        return {};
    }
    platform::Status elapsed_ms(platform::EventHandle, platform::EventHandle, float& milliseconds) override {
        milliseconds = 1.0F;
        return world_.call("elapsed", "elapsed");
    }

    platform::Status resolve(const KernelInfo& kernel, platform::FunctionHandle& out) override {
        out = platform::FunctionHandle{reinterpret_cast<std::uintptr_t>(&kernel)};
        return world_.call("resolve", "resolve");
    }
    platform::Status launch(const platform::LaunchRequest& request) override {
        const auto* bytes = static_cast<const unsigned char*>(request.pack);
        std::vector<unsigned char> pack(bytes, bytes + request.kernel->pack_bytes);
        const std::uint64_t last = request.kernel->rank == 2 ? request.extent.y : request.extent.x;
        return enqueue(
            "launch " + std::string(request.kernel->name), request.stream,
            [=, extent = request.extent, kernel = request.kernel] { kernel->twin(extent, 0, last, pack.data()); });
    }

    platform::Status create(const platform::PoolRequest& request, platform::PoolHandle& out) override {
        const platform::Status status = world_.call("create pool", "create_pool");
        if (!status.ok()) return status;
        world_.pools[world_.next] = {request.kind, request.release_threshold_bytes, {}, {}};
        out = platform::PoolHandle{world_.next++};
        return {};
    }
    platform::Status destroy(platform::PoolHandle pool) override {
        world_.pools.erase(static_cast<std::uintptr_t>(pool));
        return world_.call("destroy pool", "destroy_pool");
    }
    platform::Status allocate(platform::PoolHandle handle, std::size_t bytes, platform::StreamHandle stream,
                              platform::Allocation& out) override {
        const auto found = world_.pools.find(static_cast<std::uintptr_t>(handle));
        if (found == world_.pools.end()) return {Code::invalid_handle, 400, "allocate"};
        const platform::Status status = allocate(found->second.kind, bytes, platform::Attachment::global, stream, out);
        if (!status.ok()) return status;
        platform::PoolUsage& usage = found->second.usage;
        world_.pool_memory[out.device] = {found->first, bytes};
        usage.used_bytes += bytes;
        usage.used_high_bytes = std::max(usage.used_high_bytes, usage.used_bytes);
        usage.reserved_bytes = std::max(usage.reserved_bytes, usage.used_bytes);
        usage.reserved_high_bytes = std::max(usage.reserved_high_bytes, usage.reserved_bytes);
        return {};
    }
    platform::Status trim(platform::PoolHandle pool, std::size_t keep_bytes) override {
        return on_pool("trim pool", pool, [&](FakeWorld::Pool& of) {
            const std::uint64_t least = std::max<std::uint64_t>(keep_bytes, of.usage.used_bytes);
            of.usage.reserved_bytes = std::min(of.usage.reserved_bytes, least);
        });
    }
    platform::Status usage(platform::PoolHandle pool, platform::PoolUsage& out) override {
        return on_pool("pool usage", pool, [&](FakeWorld::Pool& of) { out = of.usage; });
    }
    platform::Status reset_high_marks(platform::PoolHandle pool) override {
        return on_pool("reset high marks", pool, [](FakeWorld::Pool& of) {
            of.usage.used_high_bytes = of.usage.used_bytes;
            of.usage.reserved_high_bytes = of.usage.reserved_bytes;
        });
    }
    platform::Status set_release_threshold(platform::PoolHandle pool, std::uint64_t bytes) override {
        return on_pool("pool threshold", pool, [&](FakeWorld::Pool& of) { of.threshold = bytes; });
    }
    platform::Status set_access(platform::PoolHandle pool, int ordinal, bool allowed) override {
        return on_pool("pool access", pool, [&](FakeWorld::Pool& of) {
            if (allowed) of.peers.insert(ordinal);
            if (!allowed) of.peers.erase(ordinal);
        });
    }

    platform::Status copy_shaped(const platform::CopySide& to, const platform::CopySide& from,
                                 const platform::CopyExtent& extent, platform::StreamHandle stream) override {
        return enqueue("copy shaped", stream, [=] { copy_rows(to, from, extent); });
    }
    platform::Status copy_between(std::uint64_t to, int, std::uint64_t from, int, std::size_t bytes,
                                  platform::StreamHandle stream) override {
        return enqueue("copy between", stream, [=] {
            copy_rows({to, false, 0, 0}, {from, false, 0, 0}, {bytes, 1, 1});
        });
    }
    platform::Status copy_shaped_between(const platform::CopySide& to, int, const platform::CopySide& from, int,
                                         const platform::CopyExtent& extent, platform::StreamHandle stream) override {
        return enqueue("copy shaped between", stream, [=] { copy_rows(to, from, extent); });
    }
    platform::Status fill_elements(std::uint64_t to, std::uint32_t value, std::size_t element_bytes, std::size_t count,
                                   platform::StreamHandle stream) override {
        return enqueue("fill elements", stream, [=] {
            fill_rows({to, false, 0, 0}, value, element_bytes, {count * element_bytes, 1, 1});
        });
    }
    platform::Status fill_shaped(const platform::CopySide& to, std::uint32_t value, std::size_t element_bytes,
                                 const platform::CopyExtent& extent, platform::StreamHandle stream) override {
        return enqueue("fill shaped", stream, [=] { fill_rows(to, value, element_bytes, extent); });
    }
    platform::Status prefetch(std::uint64_t address, std::size_t bytes, const platform::Place& place,
                              platform::StreamHandle stream) override {
        if (!world_.hints) return {Code::unsupported, 801, "prefetch"};
        world_.prefetched = {address, bytes};
        return enqueue(place.ordinal >= 0 ? "prefetch up" : "prefetch down", stream, [] {});
    }
    platform::Status advise(std::uint64_t, std::size_t, platform::Advice advice, const platform::Place&) override {
        if (!world_.hints) return {Code::unsupported, 801, "advise"};
        return world_.call("advise " + std::to_string(static_cast<int>(advice)), "advise");
    }
    platform::Status prefetch_batch(const platform::HintedRange*, std::size_t count,
                                    platform::StreamHandle stream) override {
        if (!world_.batches) return {Code::unsupported, 0, "prefetch_batch"};
        return enqueue(("prefetch batch of " + std::to_string(count)).c_str(), stream, [] {});
    }
    platform::Status discard_batch(const platform::HintedRange*, std::size_t count, bool prefetch,
                                   platform::StreamHandle stream) override {
        if (!world_.batches) return {Code::unsupported, 0, "discard_batch"};
        return enqueue(((prefetch ? "discard and prefetch " : "discard batch of ") + std::to_string(count)).c_str(),
                       stream, [] {});
    }
    platform::Status advice(std::uint64_t, std::size_t, platform::AdviceFacts& out) override {
        if (!world_.advice) return {Code::unsupported, 0, "advice"};
        out = *world_.advice;
        return {};
    }
    platform::Status can_reach(int other_ordinal, bool& out) override {
        out = other_ordinal != facts_.ordinal && world_.reachable.count(other_ordinal) != 0;
        return world_.call("can reach", "can_reach");
    }
    platform::Status set_peer_access(int other_ordinal, bool allowed) override {
        const platform::Status status = world_.call(allowed ? "peer on" : "peer off", "set_peer_access");
        if (!status.ok()) return status;
        if (allowed) world_.peers.insert(other_ordinal);
        if (!allowed) world_.peers.erase(other_ordinal);
        return {};
    }

    platform::Status begin(platform::StreamHandle stream) override {
        const platform::Status status = world_.call("begin capture", "begin");
        if (status.ok()) world_.capturing[static_cast<std::uintptr_t>(stream)];
        return status;
    }
    platform::Status end(platform::StreamHandle stream, platform::GraphHandle& out) override {
        const auto handle = static_cast<std::uintptr_t>(stream);
        const platform::Status status = world_.call("end capture", "end");
        const auto found = world_.capturing.find(handle);
        if (found == world_.capturing.end()) return {Code::driver_error, 401, "end"};
        if (world_.failing_ends > 0) {
            --world_.failing_ends;
            return {Code::driver_error, 999, "end"};
        }
        FakeWorld::Work work = std::move(found->second);
        world_.capturing.erase(found);
        if (world_.lost_captures.erase(handle) != 0) return {Code::capture_error, 901, "end"};
        if (!status.ok()) return status;
        world_.graphs[world_.next] = std::move(work);
        out = platform::GraphHandle{world_.next++};
        return {};
    }
    platform::Status info(platform::StreamHandle stream, platform::CaptureState& out, std::uint64_t& id) override {
        const platform::Status status = state(stream, out);
        id = out == platform::CaptureState::open ? static_cast<std::uint64_t>(stream) : 0;
        return status;
    }
    platform::Status last_node(platform::StreamHandle, platform::NodeHandle& out) override {
        if (!world_.names_nodes) return {Code::unsupported, 0, "last_node"};
        out = platform::NodeHandle{world_.next++};
        return {};
    }
    platform::Status resolve_for_nodes(const KernelInfo&, platform::FunctionHandle&) override {
        return {Code::unsupported, 0, "resolve_for_nodes"};
    }
    platform::Status set_kernel_arguments(platform::GraphInstanceHandle, platform::NodeHandle,
                                          const platform::LaunchRequest&) override {
        return {Code::unsupported, 0, "set_kernel_arguments"};
    }
    platform::Status update(platform::GraphInstanceHandle, platform::GraphHandle, const char*& why) override {
        why = "";
        return {Code::unsupported, 0, "update"};
    }
    platform::Status state(platform::StreamHandle stream, platform::CaptureState& out) override {
        const auto handle = static_cast<std::uintptr_t>(stream);
        out = platform::CaptureState::none;
        if (world_.capturing.count(handle) != 0) out = platform::CaptureState::open;
        if (world_.lost_captures.count(handle) != 0) out = platform::CaptureState::lost;
        return world_.call("capture state", "state");
    }
    platform::Status append(platform::StreamHandle, platform::GraphHandle) override {
        return world_.call("append", "append");
    }
    platform::Status instantiate(platform::GraphHandle graph, platform::GraphInstanceHandle& out) override {
        const platform::Status status = world_.call("instantiate", "instantiate");
        if (!status.ok()) return status;
        const auto found = world_.graphs.find(static_cast<std::uintptr_t>(graph));
        if (found == world_.graphs.end()) return {Code::invalid_handle, 400, "instantiate"};
        world_.instances[world_.next] = found->second;
        out = platform::GraphInstanceHandle{world_.next++};
        return {};
    }
    platform::Status launch(platform::GraphInstanceHandle instance, platform::StreamHandle stream) override {
        const auto found = world_.instances.find(static_cast<std::uintptr_t>(instance));
        if (found == world_.instances.end()) return {Code::invalid_handle, 400, "launch"};
        return enqueue("launch graph", stream, [work = found->second] {
            for (const std::function<void()>& one : work) one();
        });
    }
    platform::Status destroy(platform::GraphHandle graph) override {
        world_.graphs.erase(static_cast<std::uintptr_t>(graph));
        return world_.call("destroy graph", "destroy_graph");
    }
    platform::Status destroy(platform::GraphInstanceHandle instance) override {
        world_.instances.erase(static_cast<std::uintptr_t>(instance));
        return world_.call("destroy instance", "destroy_instance");
    }

private:
    template <class F>
    platform::Status on_pool(const char* what, platform::PoolHandle pool, F change) {
        const platform::Status status = world_.call(what, what);
        if (!status.ok()) return status;
        const auto found = world_.pools.find(static_cast<std::uintptr_t>(pool));
        if (found == world_.pools.end()) return {Code::invalid_handle, 400, what};
        change(found->second);
        return {};
    }
    static unsigned char* row_of(const platform::CopySide& side, std::size_t slice, std::size_t row) {
        return reinterpret_cast<unsigned char*>(side.address) + (slice * side.slice_rows + row) * side.row_pitch_bytes;
    }
    static void copy_rows(const platform::CopySide& to, const platform::CopySide& from,
                          const platform::CopyExtent& extent) {
        for (std::size_t at = 0; at < extent.rows * extent.slices; ++at) {
            const std::size_t slice = at / extent.rows, row = at % extent.rows;
            std::memmove(row_of(to, slice, row), row_of(from, slice, row), extent.width_bytes);
        }
    }
    static void fill_rows(const platform::CopySide& to, std::uint32_t value, std::size_t element_bytes,
                          const platform::CopyExtent& extent) {
        for (std::size_t at = 0; at < extent.rows * extent.slices; ++at) {
            unsigned char* row = row_of(to, at / extent.rows, at % extent.rows);
            for (std::size_t x = 0; x + element_bytes <= extent.width_bytes; x += element_bytes) {
                std::memcpy(row + x, &value, element_bytes);  // little-endian: the low bytes come first
            }
        }
    }
    platform::Status enqueue(const std::string& what, platform::StreamHandle stream, std::function<void()> work) {
        const platform::Status status = world_.call(what, "enqueue");
        if (!status.ok()) return status;
        const auto handle = static_cast<std::uintptr_t>(stream);
        if (const auto capture = world_.capturing.find(handle); capture != world_.capturing.end()) {
            capture->second.push_back(std::move(work));
        } else {
            world_.queue[handle].push_back(std::move(work));
        }
        return status;
    }

    FakeWorld& world_;
    DeviceFacts facts_;
};

}  // namespace isthmus::testing
