// SPDX-License-Identifier: Apache-2.0
// Interprocess events in a memory file.
#include "shared_event.hpp"

#include "memory_file.hpp"
#include "named_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

namespace isthmus::sim {
namespace {

constexpr char event_magic[8] = "simipce";
constexpr std::uint64_t slots = 128;  // records in flight at a time; a process further behind waits for a later record

}  // namespace

struct SharedEvent::State {
    std::atomic<std::uint64_t> records;
    std::atomic<std::uint64_t> reached[slots];
    std::atomic<std::uint64_t>& of(std::uint64_t record) { return reached[record % slots]; }
};

std::shared_ptr<SharedEvent> SharedEvent::over(int file, std::uint64_t nonce) {
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(State) <= 4096);
    void* const memory =
        ::mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, memory_file_offset_bytes);
    if (memory == MAP_FAILED) {
        ::close(file);
        return nullptr;
    }
    return std::shared_ptr<SharedEvent>(new SharedEvent(file, nonce, static_cast<State*>(memory)));
}

std::shared_ptr<SharedEvent> SharedEvent::create() {
    MemoryFileHeader header;
    header.bytes = sizeof(State);
    const int file = create_memory_file(header);  // zeros: never recorded
    return file < 0 ? nullptr : over(file, header.nonce);
}

std::shared_ptr<SharedEvent> SharedEvent::open(const ShareableBytes& handle) {
    FileName name;
    if (!read_name(handle, event_magic, name)) return nullptr;
    const int file = open_named_file(name);
    MemoryFileHeader header;
    if (read_memory_file(file, header) && header.nonce == name.nonce) return over(file, name.nonce);
    if (file >= 0) ::close(file);
    return nullptr;
}

bool SharedEvent::is_one(const ShareableBytes& handle) {
    FileName name;
    return read_name(handle, event_magic, name);
}

bool SharedEvent::of_this_process(const ShareableBytes& handle) {
    FileName name;
    return read_name(handle, event_magic, name) && name.process == ::getpid();
}

SharedEvent::~SharedEvent() {
    ::munmap(state_, sizeof(State));
    ::close(file_);
}

ShareableBytes SharedEvent::handle() const {
    return name_file(event_magic, file_, nonce_);
}

std::uint64_t SharedEvent::last_record() const {
    return state_->records.load(std::memory_order_acquire);  // pairs with begin_record
}

std::uint64_t SharedEvent::begin_record() {
    return state_->records.fetch_add(1, std::memory_order_acq_rel) + 1;
}

void SharedEvent::reach(std::uint64_t record) {
    std::atomic<std::uint64_t>& reached = state_->of(record);
    std::uint64_t before = reached.load(std::memory_order_relaxed);
    while (before < record && !reached.compare_exchange_weak(before, record, std::memory_order_release)) {
    }  // release: pairs with reached()
}

bool SharedEvent::reached(std::uint64_t record) const {
    return state_->of(record).load(std::memory_order_acquire) >= record;  // pairs with reach()
}

}  // namespace isthmus::sim
