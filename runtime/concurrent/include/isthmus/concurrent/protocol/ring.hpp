// SPDX-License-Identifier: Apache-2.0
// A ring of messages from one producer to one consumer, on either side of the link. Every word of a message carries the
// message's number, so that one load of the words tells whether they have arrived. Loads and stores only.
#pragma once

#include <isthmus/detail/host_device.hpp>

#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace protocol {

// Words per line. Each line has one writer, and lines are 128 bytes apart: closer lines cause contention between the
// two sides' caches (2.8 times slower on one machine; 128 bytes removed it).
inline constexpr std::uint32_t line_words = 32;

// Stamped words from one slot to the next. An even number, so that two words of a message are one access of 16 bytes.
ISTHMUS_KERNEL_FUNCTION constexpr std::uint32_t slot_stride(std::uint32_t slot_words) {
    return slot_words + (slot_words > 1 ? slot_words % 2 : 0);
}

// Stamped words per line: of 64 bits each.
inline constexpr std::uint32_t line_stamped = line_words / 2;

// The spread (RingPlace) of a ring whose consumer asks for many messages at once over a link: one that never lets two
// of `most_at_once` messages in a row share a line. A thread's loads from one line are serialised, those from different
// lines overlap (H200: sixteen loads take 13.5 µs from one line, 2.7 from sixteen).
ISTHMUS_KERNEL_FUNCTION constexpr std::uint32_t spread_for(std::uint32_t capacity, std::uint32_t slot_words) {
    constexpr std::uint32_t most_at_once = 32;
    const std::uint32_t stride = slot_stride(slot_words);
    if (stride >= line_stamped) return 0;  // each message has lines of its own anyway
    std::uint32_t spread = 0;
    for (std::uint32_t lines = 1; lines < capacity; lines *= 2, ++spread) {
        const bool fits = std::uint64_t{capacity / lines} * stride <= line_stamped;
        if (fits && lines >= most_at_once) break;
    }
    return spread;
}

// Location of a ring; all zero before the first message. Stamped words lie from `slots`, which is on a 16-byte
// boundary: slot by slot, or, with a spread, each slot on the line behind the previous slot's, around 2^spread lines of
// 128 bytes, from a 128-byte boundary. The low half is a word of the message; the high half is its stamp: the message's
// number + 1, modulo 2^32. Both halves are stored and loaded indivisibly, so no word needs ordering against another.
template <class Cell>
struct RingPlace {
    Cell published;  // number of messages published, modulo 2^32; only the next producer reads it, to continue
    Cell consumed;   // number of messages consumed; the producer reads it when it knows of no free slot
    Cell slots;
    std::uint32_t capacity;    // messages; a power of two, at most 2^31
    std::uint32_t slot_words;  // per message
    std::uint32_t spread = 0;  // log2 of the number of lines that messages in a row lie on; 0: slot by slot

    // Which stamped word, counted from `slots`, word `word` of message number `number` is.
    ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t stamped_word(std::uint32_t number, std::uint32_t word) const {
        const std::uint32_t slot = number & (capacity - 1);
        const std::uint32_t stride = slot_stride(slot_words);
        if (spread == 0) return std::uint64_t{slot} * stride + word;
        const std::uint32_t line = slot & ((1u << spread) - 1);
        return std::uint64_t{line} * line_stamped + (slot >> spread) * stride + word;
    }
};
// Stamped words that the slots of a ring occupy.
ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t stamped_words(std::uint32_t capacity, std::uint32_t slot_words,
                                                              std::uint32_t spread) {
    return spread == 0 ? std::uint64_t{capacity} * slot_stride(slot_words) : std::uint64_t{line_stamped} << spread;
}

enum class RingStatus : std::uint32_t {
    done,
    wait,    // full, or empty: try again later
    broken,  // a counter or a stamp is impossible: memory was overwritten, and nothing in the ring can be trusted
};

// What becomes visible to the consumer of a message.
enum class Publishes : std::uint32_t {
    message_only,  // the content only; other writes of the producer become visible at some later time
    all_memory,    // also all earlier writes of the producer's thread; on a GPU this costs a round trip over the link
};

// The sending end. One thread at a time. The caller owns the place and keeps it valid.
template <class Atomics>
class RingProducer {
public:
    using Cell = typename Atomics::Cell;
    // Continues where the last producer on this place stopped.
    ISTHMUS_KERNEL_FUNCTION RingProducer(const Atomics& atomics, const RingPlace<Cell>& place)
        : atomics_(atomics),
          place_(place),
          next_(atomics_.load_relaxed(place.published)),
          seen_(next_ - place.capacity) {}

    // Is there room for `wanted` messages? Loads the consumer's counter only where its last known value does not
    // suffice.
    ISTHMUS_KERNEL_FUNCTION RingStatus room(std::uint32_t wanted = 1) {
        if (place_.capacity - (next_ - seen_) >= wanted) return RingStatus::done;
        // Relaxed: the consumer stored the counter after it had read the stamps, and no later store here can undo that.
        const std::uint32_t consumed = atomics_.load_relaxed(place_.consumed);
        if (next_ - consumed > place_.capacity) return RingStatus::broken;
        seen_ = consumed;
        return place_.capacity - (next_ - seen_) >= wanted ? RingStatus::done : RingStatus::wait;
    }
    // Stores word `word` of the message `ahead` places behind the next one; room() has granted that many. Store each
    // word once: the consumer may take the message as soon as all its words are there. Publishes the message only.
    ISTHMUS_KERNEL_FUNCTION void write(std::uint32_t ahead, std::uint32_t word, std::uint32_t value) {
        atomics_.store_stamped_relaxed(cell(ahead, word), stamped(ahead, value));
    }
    // Call when all words of these messages are written: advances past them.
    ISTHMUS_KERNEL_FUNCTION void publish(std::uint32_t messages = 1) {
        next_ += messages;
        atomics_.store_relaxed(place_.published, next_);
    }

    // Sends one message of slot_words words.
    ISTHMUS_KERNEL_FUNCTION RingStatus try_send(const std::uint32_t* message,
                                                Publishes publishes = Publishes::all_memory) {
        const RingStatus status = room();
        if (status != RingStatus::done) return status;
        // The last word is stored first: its release then waits for earlier writes, and not for the rest of the
        // message.
        const std::uint32_t last = place_.slot_words - 1;
        if (publishes == Publishes::all_memory) {
            // Pairs with the acquire in RingConsumer::try_receive().
            atomics_.store_stamped_release(cell(0, last), stamped(0, message[last]));
        } else {
            write(0, last, message[last]);
        }
        for (std::uint32_t word = 0; word < last; ++word) write(0, word, message[word]);
        publish();
        return RingStatus::done;
    }
    // Messages published so far, modulo 2^32.
    ISTHMUS_KERNEL_FUNCTION std::uint32_t count() const { return next_; }

private:
    ISTHMUS_KERNEL_FUNCTION Cell cell(std::uint32_t ahead, std::uint32_t word) const {
        return Atomics::stamped_cell(place_.slots, place_.stamped_word(next_ + ahead, word));
    }
    ISTHMUS_KERNEL_FUNCTION std::uint64_t stamped(std::uint32_t ahead, std::uint32_t value) const {
        const std::uint32_t stamp = next_ + ahead + 1;
        return (std::uint64_t{stamp} << 32) | value;
    }
    Atomics atomics_;
    RingPlace<Cell> place_;
    std::uint32_t next_;
    std::uint32_t seen_;  // last known value of the consumer's counter
};

// The receiving end. One thread at a time.
template <class Atomics>
class RingConsumer {
public:
    using Cell = typename Atomics::Cell;
    // Continues where the last consumer on this place stopped.
    ISTHMUS_KERNEL_FUNCTION RingConsumer(const Atomics& atomics, const RingPlace<Cell>& place)
        : atomics_(atomics), place_(place), next_(atomics_.load_relaxed(place.consumed)), seen_(next_) {}

    // Takes the next message of slot_words words; without one, the content of `message` is unspecified. message_only
    // needs no ordered loads, which saves a GPU a fifth of each poll over a link.
    ISTHMUS_KERNEL_FUNCTION RingStatus try_receive(std::uint32_t* message,
                                                   Publishes publishes = Publishes::all_memory) {
        const RingStatus status = look(0, message, publishes);
        if (status == RingStatus::done) free();
        return status;
    }
    // Takes up to `most` messages, and issues the loads of all words before it examines the first: over a link, the
    // latencies of the lines overlap. `messages` has most × slot_words words, where slot_words is Words. all_memory
    // costs one more access over the link, if there were messages.
    template <std::uint32_t Words, std::uint32_t Most>
    ISTHMUS_KERNEL_FUNCTION RingStatus try_receive_some(std::uint32_t (&messages)[Most][Words], std::uint32_t& received,
                                                        Publishes publishes = Publishes::all_memory) {
        std::uint64_t cells[Most][Words];
        received = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (std::uint32_t at = 0; at < Most; ++at) {
            std::uint32_t word = 0;
            for (; word + 1 < Words; word += 2) {
                std::uint64_t pair[2];
                atomics_.load_stamped_pair_relaxed(cell(at, word), pair);
                cells[at][word] = pair[0];
                cells[at][word + 1] = pair[1];
            }
            if (word < Words) cells[at][word] = atomics_.load_stamped_relaxed(cell(at, word));
        }
        RingStatus status = RingStatus::done;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (std::uint32_t at = 0; at < Most; ++at) {
            for (std::uint32_t word = 0; word < Words; ++word) {
                // At and beyond the capacity, a slot holds a message of the lap before, and the answer is `wait`.
                if (status == RingStatus::done) status = judge(at, cells[at][word]);
                messages[at][word] = static_cast<std::uint32_t>(cells[at][word]);
            }
            if (status == RingStatus::done) received = at + 1;
        }
        // Messages before an invalid stamp are still delivered; the next call meets that stamp again.
        if (received == 0) return status;
        if (publishes == Publishes::all_memory) {
            (void)atomics_.load_stamped_acquire(cell(received - 1, place_.slot_words - 1));
        }
        free(received);
        return RingStatus::done;
    }

    // Are `wanted` messages there (at most the capacity)? read() has to come before free().
    ISTHMUS_KERNEL_FUNCTION RingStatus available(std::uint32_t wanted = 1) {
        while (seen_ - next_ < wanted) {
            const RingStatus status = look(seen_ - next_, nullptr, Publishes::all_memory);
            if (status != RingStatus::done) return status;
            ++seen_;
        }
        return RingStatus::done;
    }
    ISTHMUS_KERNEL_FUNCTION std::uint32_t ready() const {
        return seen_ - next_;
    }  // number that available() last found
    ISTHMUS_KERNEL_FUNCTION std::uint32_t read(std::uint32_t ahead, std::uint32_t word) const {
        return static_cast<std::uint32_t>(atomics_.load_stamped_relaxed(cell(ahead, word)));
    }
    ISTHMUS_KERNEL_FUNCTION void free(std::uint32_t messages = 1) {
        next_ += messages;
        if (seen_ - next_ > place_.capacity) seen_ = next_;
        // Relaxed, so that the store waits for nothing: the stamps already show that all words were read.
        atomics_.store_relaxed(place_.consumed, next_);
    }
    ISTHMUS_KERNEL_FUNCTION std::uint32_t count() const {
        return next_;
    }

private:
    // Words loaded together. More words would cost more in registers than they save in time.
    static constexpr std::uint32_t words_at_once = 16;

    // Has the message `ahead` places behind the next one arrived? Copies its words, unless `message` is nullptr.
    ISTHMUS_KERNEL_FUNCTION RingStatus look(std::uint32_t ahead, std::uint32_t* message, Publishes publishes) const {
        const std::uint32_t words = place_.slot_words;
        for (std::uint32_t first = 0; first < words; first += words_at_once) {
            std::uint64_t cells[words_at_once];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
            for (std::uint32_t at = 0; at < words_at_once; at += 2) {
                const std::uint32_t word = first + at;
                std::uint64_t pair[2] = {0, 0};
                // The acquire of the last word pairs with the release in RingProducer::try_send(): no access behind
                // this look is reordered before it.
                const bool ordered = publishes == Publishes::all_memory && word + 2 >= words;
                if (word + 1 < words) {
                    ordered ? atomics_.load_stamped_pair_acquire(cell(ahead, word), pair)
                            : atomics_.load_stamped_pair_relaxed(cell(ahead, word), pair);
                } else if (word < words) {
                    pair[0] = ordered ? atomics_.load_stamped_acquire(cell(ahead, word))
                                      : atomics_.load_stamped_relaxed(cell(ahead, word));
                }
                cells[at] = pair[0];
                cells[at + 1] = pair[1];
            }
            RingStatus status = RingStatus::done;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
            for (std::uint32_t at = 0; at < words_at_once; ++at) {
                if (first + at >= words) continue;
                if (status == RingStatus::done) status = judge(ahead, cells[at]);
                if (message != nullptr) message[first + at] = static_cast<std::uint32_t>(cells[at]);
            }
            if (status != RingStatus::done) return status;
        }
        return RingStatus::done;
    }
    // Is the stamp of this message (done), of the lap before, or 0 in the first lap (wait), or of neither (broken)?
    ISTHMUS_KERNEL_FUNCTION RingStatus judge(std::uint32_t ahead, std::uint64_t stamped) const {
        const std::uint32_t number = next_ + ahead;
        const auto stamp = static_cast<std::uint32_t>(stamped >> 32);
        if (stamp == number + 1) return RingStatus::done;
        const bool before = stamp == number + 1 - place_.capacity || (stamp == 0 && number < place_.capacity);
        return before ? RingStatus::wait : RingStatus::broken;
    }
    ISTHMUS_KERNEL_FUNCTION Cell cell(std::uint32_t ahead, std::uint32_t word) const {
        return Atomics::stamped_cell(place_.slots, place_.stamped_word(next_ + ahead, word));
    }
    Atomics atomics_;
    RingPlace<Cell> place_;
    std::uint32_t next_;
    std::uint32_t seen_;  // how far available() has found messages
};

}  // namespace protocol
}  // namespace v0
}  // namespace isthmus
