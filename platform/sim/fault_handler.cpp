// SPDX-License-Identifier: Apache-2.0
// Faults of GPU workers and of CPU threads. In the handler: no allocation, no stdio, no locks.
#include "fault_handler.hpp"

#include "protection.hpp"
#include "statistics.hpp"

#include <csetjmp>
#include <csignal>
#include <cstring>
#include <unistd.h>

#include <array>
#include <atomic>

namespace isthmus::sim {
namespace {

struct Landing {
    sigjmp_buf point;
    std::uintptr_t fault = 0;
};
// initial-exec: in a signal handler, reading the variable must not allocate the thread's block.
__attribute__((tls_model("initial-exec"))) thread_local Landing* landing = nullptr;

// Written under the lock of Protection's callers, read by the handler: `begin` is stored last and cleared first.
struct Slot {
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uintptr_t> end{0};
    std::atomic<int> device{0};
    std::atomic<Why> why{Why::device_memory};
};
std::array<Slot, 4096> slots;
std::atomic<std::size_t> slots_in_use{0};  // all taken slots are before this index; most programs use few

struct sigaction previous_segv;
struct sigaction previous_bus;

// Text in a buffer on the stack.
struct Line {
    char text[512];
    std::size_t size = 0;
    void add(const char* words) {
        const std::size_t more = std::strlen(words);
        if (size + more > sizeof(text)) return;
        std::memcpy(text + size, words, more);
        size += more;
    }
    void add_hex(std::uintptr_t value) {
        char digits[2 * sizeof(value) + 3] = "0x";
        std::size_t count = 2;
        bool begun = false;
        for (int shift = 8 * sizeof(value) - 4; shift >= 0; shift -= 4) {
            const unsigned digit = value >> shift & 15;
            begun = begun || digit != 0 || shift == 0;
            if (begun) digits[count++] = "0123456789abcdef"[digit];
        }
        digits[count] = 0;
        add(digits);
    }
};

const Slot* find_slot(std::uintptr_t address) {
    const std::size_t in_use = slots_in_use.load(std::memory_order_acquire);  // pairs with describe_closed_memory
    for (std::size_t i = 0; i < in_use; ++i) {
        const Slot& slot = slots[i];
        const std::uintptr_t begin = slot.begin.load(std::memory_order_acquire);  // pairs with describe_closed_memory
        if (begin != 0 && address >= begin && address < slot.end.load(std::memory_order_relaxed)) return &slot;
    }
    return nullptr;
}

constexpr const char* prefix = "isthmus simulator: ";

const char* reason_of(Why why) {
    switch (why) {
        case Why::device_memory: return "the CPU touched device memory";
        case Why::no_access: return "the CPU touched memory without access";
        case Why::released: return "the CPU touched released memory";
        default: return "the CPU touched managed memory";
    }
}

void explain(std::uintptr_t address) {
    const Slot* slot = find_slot(address);
    if (!slot) return;
    Line line;
    line.add(prefix);
    line.add("the CPU touched ");
    line.add_hex(address);
    char device[2] = {static_cast<char>('0' + slot->device.load(std::memory_order_relaxed) % 10), 0};
    if (slot->why.load(std::memory_order_relaxed) == Why::device_memory) {
        line.add(", memory of device ");
        line.add(device);
        line.add(" that no CPU can reach on this machine; copy it, or allocate memory that both can reach\n");
    } else if (slot->why.load(std::memory_order_relaxed) == Why::no_access) {
        line.add(", which is mapped without access for anybody: cuMemSetAccess gives it\n");
    } else if (slot->why.load(std::memory_order_relaxed) == Why::released) {
        line.add(", memory that was released: its program keeps it for a later allocation\n");
    } else {
        line.add(", managed memory, before work of device ");
        line.add(device);
        line.add(
            " was synchronised; CONCURRENT_MANAGED_ACCESS is 0 there: synchronise first, attach the memory to a "
            "stream or the host, or use pinned memory\n");
    }
    const ssize_t ignored = ::write(STDERR_FILENO, line.text, line.size);
    static_cast<void>(ignored);
    line.text[line.size - 1] = 0;
    count_message(reason_of(slot->why.load(std::memory_order_relaxed)), line.text + std::strlen(prefix));
}

void handle(int signal, siginfo_t* info, void* context) {
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const bool from_the_processor = info->si_code > 0;  // true: a fault, not kill() or raise()
    if (from_the_processor && landing) {
        landing->fault = address;
        siglongjmp(landing->point, 1);
    }
    if (from_the_processor) explain(address);
    const struct sigaction& previous = signal == SIGBUS ? previous_bus : previous_segv;
    if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction) {
        previous.sa_sigaction(signal, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(signal);
    } else {
        // Restores the default action, so that the process ends by this signal: a faulting instruction runs again, a
        // raised signal is raised again.
        ::sigaction(signal, &previous, nullptr);
        if (!from_the_processor) ::raise(signal);
    }
}

}  // namespace

void install_fault_handler() {
    static bool installed = false;
    if (installed) return;
    prepare_statistics();
    installed = true;
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGSEGV, &action, &previous_segv);
    ::sigaction(SIGBUS, &action, &previous_bus);
}

bool run_with_landing(const std::function<void()>& work, std::uintptr_t& fault) {
    Landing here;
    Landing* const outer = landing;
    // The signal mask is not saved, because that would cost a system call per operation: the jump leaves the handler's
    // mask, in which the signals that led here are blocked.
    if (sigsetjmp(here.point, 0) != 0) {
        fault = landing->fault;
        landing = outer;
        sigset_t faults;
        sigemptyset(&faults);
        sigaddset(&faults, SIGSEGV);
        sigaddset(&faults, SIGBUS);
        ::pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
        return false;
    }
    landing = &here;
    work();
    landing = outer;
    return true;
}

void describe_closed_memory(void* pointer, std::size_t bytes, int device, Why why) {
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(pointer);
    std::size_t in_use = slots_in_use.load(std::memory_order_relaxed);
    Slot* free_slot = nullptr;
    for (std::size_t i = 0; i < in_use; ++i) {
        const std::uintptr_t taken = slots[i].begin.load(std::memory_order_relaxed);
        if (taken == begin) return;
        if (taken == 0 && !free_slot) free_slot = &slots[i];
    }
    if (!free_slot && in_use < slots.size()) free_slot = &slots[in_use++];
    if (!free_slot) return;
    free_slot->end.store(begin + bytes, std::memory_order_relaxed);
    free_slot->device.store(device, std::memory_order_relaxed);
    free_slot->why.store(why, std::memory_order_relaxed);
    free_slot->begin.store(begin, std::memory_order_release);  // pairs with find_slot
    slots_in_use.store(in_use, std::memory_order_release);
}

void forget_closed_memory(void* pointer) {
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(pointer);
    std::size_t in_use = slots_in_use.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < in_use; ++i) {
        if (slots[i].begin.load(std::memory_order_relaxed) != begin) continue;
        slots[i].begin.store(0, std::memory_order_release);
        break;  // one description per fault
    }
    while (in_use != 0 && slots[in_use - 1].begin.load(std::memory_order_relaxed) == 0) --in_use;
    slots_in_use.store(in_use, std::memory_order_release);
}

}  // namespace isthmus::sim
