// SPDX-License-Identifier: Apache-2.0
// The suspects of a fault: which buffers the device's work uses that it cannot reach, and what was in flight.
#include "fault_suspects.hpp"

#include "buffer_state.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "far_buffers.hpp"
#include "launch_access.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

constexpr std::size_t most_named = 4;  // of each list: the text is one line of a log

std::string words(const WorkInFlight& work) {
    if (work.name == nullptr) return composed("operation {} of stream {}", work.position, work.stream);
    return composed("'{}' (operation {} of stream {})", work.name, work.position, work.stream);
}

}  // namespace

std::string fault_suspects(Blame blame, const FaultFacts& facts) {
    if (blame == Blame::nobody || (facts.work.empty() && facts.buffers.empty())) return {};
    std::string text;
    const bool about_memory = blame == Blame::memory;
    std::size_t named = 0;
    for (const SuspectBuffer& buffer : facts.buffers) {
        if (!about_memory || named == most_named) break;
        text += composed("{}a buffer of {} bytes, {}, used by {}: {}",
                         named == 0 ? "; it may have been caused by " : ", or by ", buffer.bytes, buffer.memory,
                         words(buffer.last_use), buffer.reason);
        ++named;
    }
    if (about_memory && facts.buffers.size() > named) {
        text += composed(", or by {} more buffers of this kind", facts.buffers.size() - named);
    }
    if (about_memory && named == 0) text += "; each buffer that its work is known to use is within its reach";
    named = 0;
    for (const WorkInFlight& work : facts.work) {
        if (named == most_named) break;
        text += (named == 0 ? "; not known to have ended: " : ", ") + words(work);
        ++named;
    }
    const std::uint64_t more = facts.more_work + (facts.work.size() - named);
    if (more > 0) text += composed(" and {} more", more);
    if (about_memory) {
        text += "; raw views and addresses that launches passed are not recorded";
        if (!facts.all_asked) text += "; not every buffer could be asked";
    }
    return text;
}

void FarBuffers::add(BufferState& buffer, const std::shared_ptr<Books>& books) {
    auto entry = std::make_unique<FarPlace::Entry>();
    entry->books = books;
    const std::lock_guard lock(mutex_);
    entry->place = buffers_.size();
    buffers_.push_back(&buffer);
    buffer.far.entry_ = std::move(entry);
}

// The place is read under the lock: another buffer that leaves may move this one.
void FarBuffers::remove(const FarPlace& leaving) noexcept {
    const std::lock_guard lock(mutex_);
    const std::size_t place = leaving.entry_->place;
    buffers_.back()->far.entry_->place = place;
    buffers_[place] = buffers_.back();
    buffers_.pop_back();
}

FarPlace::~FarPlace() {
    if (entry_) entry_->books->far_buffers.remove(*this);
}

namespace {

WorkInFlight work_at(const StreamState& stream, std::uint64_t position) {
    return {stream.name_of(position), position, stream.id};
}

// The last use by the device's streams that is not known to have ended. Expects the buffer's lock.
WorkInFlight last_use_on(const DeviceState& device, const BufferState& buffer) {
    for (const StreamUse& use : buffer.uses) {
        if (use.stream->device.get() != &device) continue;
        std::uint64_t last = use.last;
        if (buffer.first_use.is(*use.stream)) last = std::max(last, buffer.first_use.position());
        if (!use.stream->reached(last)) return work_at(*use.stream, last);
    }
    return {};
}

}  // namespace

// Of locks, waits for those alone under which no driver is called and no error made: the lists' own.
std::string DeviceState::suspects(int driver_code) {
    const Blame blame = blame_of(driver_code);
    if (blame == Blame::nobody) return {};
    FaultFacts facts;
    std::vector<std::shared_ptr<StreamState>> streams;
    {
        const std::unique_lock lock(streams_mutex_, std::try_to_lock);
        facts.all_asked = lock.owns_lock();
        for (std::size_t at = 0; lock.owns_lock() && at < streams_.size(); ++at) {
            if (std::shared_ptr<StreamState> stream = streams_[at].lock()) streams.push_back(std::move(stream));
        }
    }
    std::vector<WorkInFlight> work;
    for (const std::shared_ptr<StreamState>& stream : streams) {
        std::uint64_t position = stream->issued;
        for (std::size_t newest = 0; newest < most_named && !stream->reached(position); ++newest) {
            work.push_back(work_at(*stream, position--));
        }
        for (; !stream->reached(position) && facts.more_work < 1000; --position) ++facts.more_work;
    }
    std::vector<SuspectBuffer> buffers;
    books->far_buffers.visit([&](BufferState& buffer) {
        WorkInFlight last;
        {
            const std::unique_lock lock(buffer.views, std::try_to_lock);
            facts.all_asked = facts.all_asked && lock.owns_lock();
            if (lock.owns_lock()) last = last_use_on(*this, buffer);
        }
        if (last.position == 0) return;
        if (const AccessAnswer answer = buffer_access(*this, buffer); !answer) {
            buffers.push_back({last, buffer.memory->bytes, std::string(described(buffer).view()), answer.reason});
        }
    });
    facts.work = work;
    facts.buffers = buffers;
    return fault_suspects(blame, facts);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
