// FakeDriver: a GPU in a queue. Work given to it runs only when somebody asks an event, every call is written down,
// and the n-th call can be made to fail: what the runtime does around a driver becomes visible, call by call.
#pragma once

#include <platform/driver.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace isthmus::testing {

struct FakeWorld {
    FakeWorld() = default;
    FakeWorld(const FakeWorld&) = delete;
    FakeWorld& operator=(const FakeWorld&) = delete;

    std::vector<std::string> calls;
    int fail_at = 0;  // 1: the first call fails; 0: none
    Code fail_code = Code::driver_error;
    bool sticky = false;             // every later call fails too
    bool stuck = false;              // work never finishes
    std::set<std::uint64_t> memory;  // live allocations by address
    std::set<void*> registrations;
    std::set<std::uintptr_t> streams;
    std::set<std::uintptr_t> events;
    std::map<std::uintptr_t, std::deque<std::function<void()>>> queue;  // by stream
    std::map<std::uintptr_t, std::uintptr_t> pending;                   // event → stream it waits in
    std::map<std::uintptr_t, std::uint64_t> latest_record;
    std::uint64_t records = 0;
    std::uintptr_t next = 1;

    bool failing = false;
    platform::Status call(const std::string& what, const char* name) {
        calls.push_back(what);
        if (fail_at != 0 && static_cast<int>(calls.size()) == fail_at) failing = true;
        if (!failing) return {};
        if (!sticky) failing = false;
        return {fail_code, 999, name};
    }
    std::size_t count(const std::string& prefix) const {
        std::size_t found = 0;
        for (const std::string& made : calls) found += made.rfind(prefix, 0) == 0;
        return found;
    }
    void run_until(std::uintptr_t event) {
        while (!stuck && pending.count(event) != 0) {
            auto& work = queue[pending[event]];
            if (work.empty()) break;
            const std::function<void()> first = std::move(work.front());
            work.pop_front();
            first();
        }
    }
    // What was given up on purpose is nobody's: the world ends here.
    ~FakeWorld() {
        for (const std::uint64_t address : memory) std::free(reinterpret_cast<void*>(address));
    }
    bool clean() const { return memory.empty() && registrations.empty() && streams.empty() && events.empty(); }
};

class FakeDriver final : public platform::Driver, public platform::Memory, public platform::Execution {
public:
    FakeDriver(FakeWorld& world, DeviceFacts facts) : world_(world), facts_(std::move(facts)) {}

    const DeviceFacts& facts() const noexcept override { return facts_; }
    platform::Memory& memory() noexcept override { return *this; }
    platform::Execution& execution() noexcept override { return *this; }
    bool synchronous() const noexcept override { return false; }
    Error explain(const platform::Status& status, std::string_view what) const override {
        return Error(status.code, std::string(what) + " failed", "nothing").from_call(status.call, status.driver_code);
    }

    platform::Status allocate(MemoryKind kind, std::size_t bytes, platform::Attachment, platform::StreamHandle,
                              platform::Allocation& out) override {
        const platform::Status status = world_.call("allocate " + std::string(name(kind)), "allocate");
        if (!status.ok()) return status;
        void* memory = std::malloc(bytes);
        std::memset(memory, 0xEE, bytes);
        out = {kind, kind == MemoryKind::device || kind == MemoryKind::pool ? nullptr : memory,
               reinterpret_cast<std::uintptr_t>(memory), bytes};
        world_.memory.insert(out.device);
        return {};
    }
    platform::Status release(const platform::Allocation& allocation, platform::StreamHandle) override {
        const platform::Status status = world_.call("release " + std::string(name(allocation.kind)), "release");
        if (world_.memory.erase(allocation.device) == 1) std::free(reinterpret_cast<void*>(allocation.device));
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
        world_.registrations.erase(host);
        return world_.call("unregister", "unregister");
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
    platform::Status attach(const platform::Allocation&, platform::Attachment attachment,
                            platform::StreamHandle stream) override {
        return enqueue(attachment == platform::Attachment::stream ? "attach stream" : "attach host", stream, [] {});
    }
    platform::Status pointer_facts(std::uint64_t, platform::PointerFacts&) override {
        return world_.call("pointer", "pointer");
    }
    platform::Status memory_info(std::uint64_t& free_bytes, std::uint64_t& total_bytes) override {
        free_bytes = total_bytes = 0;
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
    platform::Status stream_id(platform::StreamHandle stream, std::uint64_t& id) override {
        id = static_cast<std::uintptr_t>(stream);
        return {};
    }
    platform::Status query_stream(platform::StreamHandle) override { return world_.call("query stream", "query"); }
    platform::Status synchronize_stream(platform::StreamHandle) override { return world_.call("sync", "sync"); }

    platform::Status create_event(bool, platform::EventHandle& out) override {
        const platform::Status status = world_.call("create event", "create_event");
        if (!status.ok()) return status;
        world_.events.insert(world_.next);
        out = platform::EventHandle{world_.next++};
        return {};
    }
    platform::Status destroy_event(platform::EventHandle event) override {
        world_.events.erase(static_cast<std::uintptr_t>(event));
        return world_.call("destroy event", "destroy_event");
    }
    platform::Status record_event(platform::EventHandle event, platform::StreamHandle stream) override {
        const auto handle = static_cast<std::uintptr_t>(event);
        const std::uint64_t record = ++world_.records;  // an event stands for its latest record only
        const platform::Status status = enqueue("record", stream, [this, handle, record] {
            if (world_.latest_record[handle] == record) world_.pending.erase(handle);
        });
        if (status.ok()) {
            world_.pending[handle] = static_cast<std::uintptr_t>(stream);
            world_.latest_record[handle] = record;
        }
        return status;
    }
    platform::Status wait_event(platform::StreamHandle stream, platform::EventHandle event) override {
        const auto handle = static_cast<std::uintptr_t>(event);
        return enqueue("wait", stream, [this, handle] { world_.run_until(handle); });
    }
    platform::Status query_event(platform::EventHandle event) override {
        const platform::Status status = world_.call("query", "query_event");
        if (!status.ok()) return status;
        world_.run_until(static_cast<std::uintptr_t>(event));
        if (world_.pending.count(static_cast<std::uintptr_t>(event)) == 0) return {};
        return {Code::not_ready, 600, "query_event"};
    }
    platform::Status synchronize_event(platform::EventHandle) override { return world_.call("sync event", "sync"); }
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

private:
    platform::Status enqueue(const std::string& what, platform::StreamHandle stream, std::function<void()> work) {
        const platform::Status status = world_.call(what, "enqueue");
        if (status.ok()) world_.queue[static_cast<std::uintptr_t>(stream)].push_back(std::move(work));
        return status;
    }

    FakeWorld& world_;
    DeviceFacts facts_;
};

}  // namespace isthmus::testing
