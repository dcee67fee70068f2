// SPDX-License-Identifier: Apache-2.0
// The suspects of a fault: which buffers the device's work uses that it cannot reach, and what was in flight.
#include "fault_suspects.hpp"

#include "buffer_state.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "far_buffers.hpp"
#include "launch_access.hpp"
#include "short_name.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// What an error and its line in the log have room for beside the driver's sentence and the remedy.
constexpr std::size_t most_bytes = 704;
constexpr std::size_t kept_for_the_count = 56;  // of the buffers that are not named
constexpr std::size_t kept_for_the_end = 140;   // the count of other work, and the sentences behind it

using Suspect = TextOf<640>;
void append(Suspect& text, const WorkInFlight& work) {
    if (work.name != nullptr) text.append("'").append(short_name(work.name)).append("' (");
    text.append(worded("operation {} of stream {}", work.position, work.stream));
    if (work.name != nullptr) text.append(")");
}

// true: the suspect has room beside the others.
bool took(Suspects& text, const Suspect& suspect, std::size_t kept) {
    if (text.view().size() + suspect.view().size() > most_bytes - kept) return false;
    text.append(suspect);
    return true;
}

// The elements of a list that have room in an array: the first ones. The others are counted.
template <class T, std::size_t room>
struct First {
    std::array<T, room> kept{};
    std::size_t count = 0;
    std::uint64_t more = 0;
    void add(const T& one) {
        if (count == room) {
            ++more;
        } else {
            kept[count++] = one;
        }
    }
};

}  // namespace

Suspects fault_suspects(Blame blame, const FaultFacts& facts) {
    Suspects text;
    if (blame == Blame::nobody || (facts.work.empty() && facts.buffers.empty())) return text;
    const bool about_memory = blame == Blame::memory;
    std::size_t count = 0;
    for (const SuspectBuffer& buffer : facts.buffers) {
        if (!about_memory || count == most_buffers_named) break;
        Suspect suspect;
        suspect.append(count == 0 ? "; it may have been caused by " : ", or by ")
            .append(worded("a buffer of {} bytes, ", buffer.bytes))
            .append(buffer.memory)
            .append(", used by ");
        append(suspect, buffer.last_use);
        suspect.append(": ").append(buffer.reason);
        if (!took(text, suspect, kept_for_the_count + kept_for_the_end)) break;
        ++count;
    }
    const std::uint64_t other_buffers = facts.more_buffers + (facts.buffers.size() - count);
    if (about_memory && other_buffers > 0) text.append(worded(", or by {} more buffers of this kind", other_buffers));
    if (about_memory && facts.buffers.empty() && facts.more_buffers == 0)
        text.append("; each buffer that its work is known to use is within its reach");
    count = 0;
    for (const WorkInFlight& work : facts.work) {
        if (count == most_work_named) break;
        Suspect suspect;
        append(suspect.append(count == 0 ? "; not known to have ended: " : ", "), work);
        if (!took(text, suspect, kept_for_the_end)) break;
        ++count;
    }
    const std::uint64_t more = facts.more_work + (facts.work.size() - count);
    if (more > 0) text.append(worded(count == 0 ? "; not known to have ended: {} operations" : " and {} more", more));
    if (about_memory) {
        text.append("; raw views and addresses that launches passed are not recorded");
        if (!facts.all_asked) text.append("; not every buffer could be asked");
    }
    return text;
}

void FarBuffers::add(BufferState& buffer, const std::shared_ptr<Books>& books) {
    if (generation_ != process::generation()) return;
    auto entry = std::make_unique<FarPlace::Entry>();
    entry->books = books;
    const std::lock_guard lock(mutex_);
    entry->place = buffers_.size();
    buffers_.push_back(&buffer);
    buffer.make_extras().far.entry_ = std::move(entry);
}

// The place is read under the lock: another buffer that leaves may move this one.
void FarBuffers::remove(const FarPlace& leaving) noexcept {
    if (generation_ != process::generation()) return;
    const std::lock_guard lock(mutex_);
    const std::size_t place = leaving.entry_->place;
    buffers_.back()->make_extras().far.entry_->place = place;
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
    for (const StreamUse& use : buffer.uses()) {
        if (use.stream->device.get() != &device) continue;
        std::uint64_t last = use.last;
        if (buffer.first_use.is(*use.stream)) last = std::max(last, buffer.first_use.position());
        if (!use.stream->reached(last)) return work_at(*use.stream, last);
    }
    return {};
}

}  // namespace

// Of locks, waits for those alone under which no driver is called and no error made: the lists' own. Streams that end
// meanwhile may be left out.
Suspects DeviceState::suspects(int driver_code) {
    const Blame blame = blame_of(driver_code);
    if (blame == Blame::nobody) return {};
    FaultFacts facts;
    First<WorkInFlight, most_work_named> work;
    for (std::size_t at = 0;; ++at) {
        std::shared_ptr<StreamState> stream;  // ends without the lock
        {
            const std::unique_lock lock(streams_mutex_, std::try_to_lock);
            facts.all_asked = lock.owns_lock();
            if (!lock.owns_lock() || at >= streams_.size()) break;
            stream = streams_[at].lock();
        }
        if (stream == nullptr) continue;
        std::uint64_t position = stream->issued;
        for (std::size_t newest = 0; newest < most_work_named && !stream->reached(position); ++newest) {
            work.add(work_at(*stream, position--));
        }
        for (; !stream->reached(position) && facts.more_work < 1000; --position) ++facts.more_work;
    }
    First<SuspectBuffer, most_buffers_named> buffers;
    books->far_buffers.visit([&](BufferState& buffer) {
        WorkInFlight last;
        {
            const std::unique_lock lock(buffer.views, std::try_to_lock);
            facts.all_asked = facts.all_asked && lock.owns_lock();
            if (lock.owns_lock()) last = last_use_on(*this, buffer);
        }
        if (last.position == 0) return;
        if (const AccessAnswer answer = buffer_access(*this, buffer); !answer) {
            buffers.add({last, buffer.memory->bytes, described(buffer), answer.reason});
        }
    });
    facts.work = {work.kept.data(), work.count};
    facts.more_work += work.more;
    facts.buffers = {buffers.kept.data(), buffers.count};
    facts.more_buffers = buffers.more;
    return fault_suspects(blame, facts);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
