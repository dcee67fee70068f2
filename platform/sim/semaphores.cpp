// SPDX-License-Identifier: Apache-2.0
// External semaphores: imported, signalled and waited for in stream order, destroyed.
#include "semaphores.hpp"

#include "access.hpp"
#include "call.hpp"

#include <driver_abi/sim_semaphore.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace isthmus::sim {
namespace {

// CUexternalSemaphoreHandleType
constexpr int opaque_descriptor = 1, sci_sync = 6, timeline_descriptor = 9, last_type = 10;

// Runs on a worker, and on the caller's thread in seeded order. A lost device ends the wait.
Result wait(Driver& d, int device, SemaphoreWord& word, std::uint64_t value) {
    constexpr int spins = 200;
    constexpr auto pause = std::chrono::microseconds(50);
    for (int looks = 0;; ++looks) {
        bool taken = false;
        if (!word.take(value, taken)) return result::unknown;
        if (taken || d.engine().device_code(device) != result::ok) return result::ok;
        if (looks < spins) {
            std::this_thread::yield();
            continue;
        }
        if (looks == spins && d.seeded) {
            say("a wait for a semaphore runs on the thread that made the call, as all work in seeded order: only "
                "another thread or process can signal it");
        }
        std::this_thread::sleep_for(pause);
    }
}

Result signal(SemaphoreWord& word, std::uint64_t value) {
    bool was_ahead = false;
    if (!word.signal(value, was_ahead)) return result::unknown;
    if (was_ahead) say("a semaphore is signalled that was signalled already, or has a larger value");
    return result::ok;
}

Result check_description(const Driver& d, const Context& context, const SemaphoreDescription& from) {
    if (from.flags != 0 || from.type < opaque_descriptor || from.type > last_type) return result::invalid_value;
    if (from.type == sci_sync) say("cuImportExternalSemaphore: semaphores of NvSciSync are not modelled");
    if (from.type != opaque_descriptor && from.type != timeline_descriptor) return result::not_supported;
    const bool timeline = from.type == timeline_descriptor;
    if (timeline && d.fact(context.device, attribute::timeline_semaphores) <= 0) return result::not_supported;
    return timeline && from.handle.descriptor < 0 ? result::invalid_value : result::ok;  // observed (580, H200)
}

Result import(Driver& d, Context& context, Semaphore** out, const SemaphoreDescription& from) {
    if (const Result code = check_description(d, context, from)) return code;
    const int file = from.handle.descriptor;
    const unsigned kind =
        from.type == timeline_descriptor ? isthmus_sim_semaphore_timeline : isthmus_sim_semaphore_binary;
    std::shared_ptr<SemaphoreWord> word = SemaphoreWord::open(file, kind);
    if (!word) {
        say("cuImportExternalSemaphore: the descriptor is no semaphore of this kind; the simulator takes files laid "
            "out "
            "as in driver_abi/sim_semaphore.h");
        return result::unknown;  // observed (580, H200)
    }
    ::close(file);  // documented: from here on it is the driver's
    const std::lock_guard lock(d.mutex);
    *out = d.semaphores.create();
    **out = {std::move(word), &context};
    return result::ok;
}

Result submit(CallId id, Semaphore* const* semaphores, const SemaphoreParameters* parameters, unsigned count,
              Stream* handle, bool waits) {
    return call(id, [&](Driver& d) -> Result {
        StreamTarget stream;
        if (const Result code = resolve_for_work(d, handle, stream)) return code;
        SemaphoreSet set;
        set.waits = waits;
        {
            const std::lock_guard lock(d.mutex);
            // Observed (580, H200) for signals; assumed for waits.
            if (count == 0) return result::invalid_value;
            if (semaphores && parameters && !semaphores[0]) die_like_the_driver("a call for a semaphore that is null");
            if (const Result code = check_semaphores(d, stream.context, semaphores, parameters, count, set))
                return code;
        }
        return d.engine().submit(stream.id, semaphore_operation(d, std::move(set)));
    });
}

}  // namespace

std::shared_ptr<SemaphoreWord> SemaphoreWord::open(int file, unsigned kind) {
    struct stat facts = {};
    isthmus_sim_semaphore found = {};
    const auto bytes = static_cast<ssize_t>(sizeof(found));
    if (::fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode) || ::pread(file, &found, sizeof(found), 0) != bytes) {
        return nullptr;
    }
    if (found.magic != ISTHMUS_SIM_SEMAPHORE_MAGIC || found.kind != kind) return nullptr;
    void* const at = ::mmap(nullptr, sizeof(found), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at != MAP_FAILED ? std::make_shared<SemaphoreWord>(static_cast<isthmus_sim_semaphore*>(at)) : nullptr;
}

SemaphoreWord::~SemaphoreWord() {
    ::munmap(mapped_, sizeof(*mapped_));
}

bool SemaphoreWord::signal(std::uint64_t value, bool& was_ahead) noexcept {
    std::uintptr_t fault = 0;
    return Protection::run_guarded(
        [&] {
            const bool binary = mapped_->kind == isthmus_sim_semaphore_binary;
            // Pairs with the acquire of a waiter, here or in another process.
            const auto before = __atomic_exchange_n(&mapped_->value, binary ? 1 : value, __ATOMIC_ACQ_REL);
            was_ahead = binary ? before != 0 : before > value;
        },
        fault);
}

bool SemaphoreWord::take(std::uint64_t value, bool& taken) noexcept {
    std::uintptr_t fault = 0;
    return Protection::run_guarded(
        [&] {
            if (mapped_->kind == isthmus_sim_semaphore_timeline) {
                taken = __atomic_load_n(&mapped_->value, __ATOMIC_ACQUIRE) >= value;
                return;
            }
            std::uint64_t signalled = 1;  // each signal ends one wait
            taken = __atomic_compare_exchange_n(&mapped_->value, &signalled, std::uint64_t{0}, false, __ATOMIC_ACQUIRE,
                                                __ATOMIC_RELAXED);
        },
        fault);
}

Result check_semaphores(const Driver& d, const Context* context, Semaphore* const* semaphores,
                        const SemaphoreParameters* parameters, unsigned count, SemaphoreSet& out) {
    if (count != 0 && (!semaphores || !parameters)) return result::invalid_value;
    for (unsigned i = 0; i < count; ++i) {
        const Semaphore* const one = semaphores[i];
        if (!d.semaphores.alive(one)) return lost_or_unknown(d.semaphores, one);
        if (!context) context = one->context;
        if (one->context != context) return result::invalid_handle;  // assumed, as for events
        if (parameters[i].flags != 0) return result::invalid_value;  // documented: 0
        out.context = one->context;
        out.words.push_back(one->word);
        out.semaphores.push_back(semaphores[i]);
        out.parameters.push_back(parameters[i]);
    }
    return result::ok;
}

engine::Operation semaphore_operation(Driver& d, SemaphoreSet&& set) {
    engine::Operation operation;
    operation.kind = set.waits ? engine::Kind::semaphore_wait : engine::Kind::semaphore_signal;
    operation.label = set.waits ? "a wait for semaphores" : "a signal of semaphores";
    const int device = operation.device = set.context ? set.context->device : 0;
    const auto kept = std::make_shared<const SemaphoreSet>(std::move(set));
    operation.details = kept;
    operation.body = [&d, kept, device]() -> int {
        for (std::size_t i = 0; i < kept->words.size(); ++i) {
            const std::uint64_t value = kept->parameters[i].value;
            if (!kept->words[i]) {
                say("a node of an external semaphore that is null does nothing here; a real driver leaves this "
                    "undefined");
                continue;
            }
            const Result code = kept->waits ? wait(d, device, *kept->words[i], value) : signal(*kept->words[i], value);
            if (code != result::ok) return code;
        }
        return result::ok;
    };
    return operation;
}

void lose_semaphores(Driver& d, const Context* context) {
    for (Semaphore* semaphore : d.semaphores.all()) {
        if (semaphore->context == context) d.semaphores.lose(semaphore);
    }
}

extern "C" {

Result cuImportExternalSemaphore(Semaphore** semaphore, const SemaphoreDescription* from) {
    return call_in_context(CallId::cuImportExternalSemaphore, [&](Driver& d, Context& context) -> Result {
        return semaphore && from ? import(d, context, semaphore, *from) : result::invalid_value;
    });
}

Result cuSignalExternalSemaphoresAsync(Semaphore* const* semaphores, const SemaphoreParameters* parameters,
                                       unsigned count, Stream* stream) {
    return submit(CallId::cuSignalExternalSemaphoresAsync, semaphores, parameters, count, stream, false);
}

Result cuWaitExternalSemaphoresAsync(Semaphore* const* semaphores, const SemaphoreParameters* parameters,
                                     unsigned count, Stream* stream) {
    return submit(CallId::cuWaitExternalSemaphoresAsync, semaphores, parameters, count, stream, true);
}

Result cuDestroyExternalSemaphore(Semaphore* semaphore) {
    return call(CallId::cuDestroyExternalSemaphore, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        if (!semaphore) return result::invalid_value;  // observed (580, H200)
        if (!d.semaphores.alive(semaphore)) return lost_or_unknown(d.semaphores, semaphore);
        d.semaphores.destroy(semaphore);
        return result::ok;
    });
}
}

}  // namespace isthmus::sim
