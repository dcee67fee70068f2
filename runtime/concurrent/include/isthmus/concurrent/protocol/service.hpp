// SPDX-License-Identifier: Apache-2.0
// A server that answers requests until it is told to stop, and its client: two rings and a handshake for the end, with
// loads and stores only.
#pragma once

#include <isthmus/concurrent/protocol/ring.hpp>

#include <cstdint>

namespace isthmus {
inline namespace v0 {
namespace protocol {

enum class ServiceCommand : std::uint32_t {
    run,
    finish,   // answer the requests sent before this command, then end
    abandon,  // end as soon as possible; unanswered requests are lost
};
enum class ServiceState : std::uint32_t {
    idle,  // not yet started
    running,
    ended,
    broken,  // ended, because a counter or a stamp of the client was impossible
};

// Command and state each have one writer, and so each a line.
template <class Cell>
struct ServicePlace {
    Cell command;  // written by the client
    Cell state;    // written by the server
    RingPlace<Cell> requests;
    RingPlace<Cell> replies;
};

// The device's side: one thread. Polls while no request is there; ends when told to.
template <class Atomics>
class ServiceServer {
public:
    using Cell = typename Atomics::Cell;
    ISTHMUS_KERNEL_FUNCTION ServiceServer(const Atomics& atomics, const ServicePlace<Cell>& place)
        : atomics_(atomics),
          command_(place.command),
          state_(place.state),
          requests_(atomics, place.requests),
          replies_(atomics, place.replies) {
        atomics_.store_release(state_, static_cast<std::uint32_t>(ServiceState::running));
    }

    // Waits for the next request. false: the service is over, return from the kernel.
    ISTHMUS_KERNEL_FUNCTION bool receive(std::uint32_t* request, Publishes publishes = Publishes::all_memory) {
        return until_received([&] { return requests_.try_receive(request, publishes); });
    }
    // The same for as many as are there, at most Most (RingConsumer::try_receive_some).
    template <std::uint32_t Words, std::uint32_t Most>
    ISTHMUS_KERNEL_FUNCTION bool receive_some(std::uint32_t (&requests)[Most][Words], std::uint32_t& received,
                                              Publishes publishes = Publishes::all_memory) {
        return until_received([&] { return requests_.try_receive_some(requests, received, publishes); });
    }
    // Waits for room. false: the service is over, return from the kernel.
    ISTHMUS_KERNEL_FUNCTION bool reply(const std::uint32_t* message, Publishes publishes = Publishes::all_memory) {
        for (std::uint32_t looks = 0;; ++looks) {
            const RingStatus status = replies_.try_send(message, publishes);
            if (status == RingStatus::done) return true;
            if (status == RingStatus::broken) return end(ServiceState::broken);
            // A client that sent `finish` takes replies until the end.
            if ((looks + 1) % Atomics::looks_between_commands == 0 && commanded() == ServiceCommand::abandon) {
                return end(ServiceState::ended);
            }
            atomics_.pause(looks);
        }
    }
    ISTHMUS_KERNEL_FUNCTION RingConsumer<Atomics>& requests() { return requests_; }
    ISTHMUS_KERNEL_FUNCTION RingProducer<Atomics>& replies() { return replies_; }
    // Pairs with the release in ServiceClient::command().
    ISTHMUS_KERNEL_FUNCTION ServiceCommand commanded() const {
        return static_cast<ServiceCommand>(atomics_.load_acquire(command_));
    }
    // Announces that no more messages come; receive() and reply() do this when they answer false.
    ISTHMUS_KERNEL_FUNCTION bool end(ServiceState how) {
        // Pairs with the acquire in ServiceClient::state(): every reply, and every other write, comes before.
        atomics_.store_release(state_, static_cast<std::uint32_t>(how));
        return false;
    }

private:
    template <class Try>
    ISTHMUS_KERNEL_FUNCTION bool until_received(Try attempt) {
        for (std::uint32_t looks = 0;; ++looks) {
            RingStatus status = attempt();
            if (status == RingStatus::wait && (looks + 1) % Atomics::looks_between_commands == 0) {
                const ServiceCommand command = commanded();
                if (command == ServiceCommand::abandon) return end(ServiceState::ended);
                if (command == ServiceCommand::finish) {
                    // Requests sent before the command are visible now, though the first look may have missed them.
                    status = attempt();
                    if (status == RingStatus::wait) return end(ServiceState::ended);
                }
            }
            if (status == RingStatus::done) return true;
            if (status == RingStatus::broken) return end(ServiceState::broken);
            atomics_.pause(looks);
        }
    }

    Atomics atomics_;
    Cell command_;
    Cell state_;
    RingConsumer<Atomics> requests_;
    RingProducer<Atomics> replies_;
};

// The host's side: one thread at a time. Never waits.
template <class Atomics>
class ServiceClient {
public:
    using Cell = typename Atomics::Cell;
    ISTHMUS_KERNEL_FUNCTION ServiceClient(const Atomics& atomics, const ServicePlace<Cell>& place)
        : atomics_(atomics),
          command_(place.command),
          state_(place.state),
          requests_(atomics, place.requests),
          replies_(atomics, place.replies) {}

    // The server sees the request and all writes before it.
    ISTHMUS_KERNEL_FUNCTION RingStatus try_send(const std::uint32_t* request) { return requests_.try_send(request); }
    ISTHMUS_KERNEL_FUNCTION RingStatus try_receive(std::uint32_t* reply) { return replies_.try_receive(reply); }
    ISTHMUS_KERNEL_FUNCTION void command(ServiceCommand command) {
        // Pairs with the acquire in ServiceServer::commanded(): every request was written before.
        atomics_.store_release(command_, static_cast<std::uint32_t>(command));
    }
    // Resets the state and the command for the next server. Call it before that server starts and while none runs: only
    // then may this side write both words.
    ISTHMUS_KERNEL_FUNCTION void renew() {
        atomics_.store_release(state_, static_cast<std::uint32_t>(ServiceState::idle));
        command(ServiceCommand::run);
    }
    // After `ended`, try_receive() answers the remaining replies, and no further one ever comes.
    ISTHMUS_KERNEL_FUNCTION ServiceState state() const {
        return static_cast<ServiceState>(atomics_.load_acquire(state_));
    }
    ISTHMUS_KERNEL_FUNCTION RingProducer<Atomics>& requests() { return requests_; }
    ISTHMUS_KERNEL_FUNCTION RingConsumer<Atomics>& replies() { return replies_; }

private:
    Atomics atomics_;
    Cell command_;
    Cell state_;
    RingProducer<Atomics> requests_;
    RingConsumer<Atomics> replies_;
};

}  // namespace protocol
}  // namespace v0
}  // namespace isthmus
