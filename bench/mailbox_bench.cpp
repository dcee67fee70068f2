// SPDX-License-Identifier: Apache-2.0
// Measures questions to the GPU: a mailbox with a resident kernel, beside the ways through the driver; the throughput
// of messages; and which driver calls wait for a resident kernel.
//   bench_mailbox [--rounds N] [--messages N] [--blocking]
// Prints the median and the 99th percentile of each way in µs; the ways alternate. --messages N (100000000 for the
// figures of docs/performance.md; 0: none) sends that many each way and checks every one. --blocking makes each driver
// call beside a resident kernel, on a thread of its own, and reports the calls that did not return within a second; the
// kernel is then told to end.
#include "mailbox_kernels.hpp"
#include "raw_driver.hpp"

#include <isthmus/isthmus.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace isthmus;
using Clock = std::chrono::steady_clock;
using Mail = Mailbox<std::uint64_t, std::uint64_t>;
using Echoing = Service<std::uint64_t, std::uint64_t>;

struct Options {
    std::uint64_t rounds = 20000;
    std::uint64_t messages = 1000000;
    bool blocking = false;
};

double us(Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
}

struct Way {
    const char* name;
    std::function<void()> once;
    std::vector<double> times{};
};

void print(Way& way) {
    if (way.times.empty()) return;
    std::sort(way.times.begin(), way.times.end());
    std::printf("%-44s median %8.2f   p99 %8.2f µs\n", way.name, way.times[way.times.size() / 2],
                way.times[way.times.size() * 99 / 100]);
}

// Alternates the ways, so that changes of the machine's speed affect all of them.
void measure(std::vector<Way>& ways, std::uint64_t rounds) {
    for (Way& way : ways) {
        for (int warm = 0; warm < 100; ++warm) way.once();
    }
    for (std::uint64_t round = 0; round < rounds; ++round) {
        for (Way& way : ways) {
            const Clock::time_point begin = Clock::now();
            way.once();
            way.times.push_back(us(Clock::now() - begin));
        }
    }
    for (Way& way : ways) print(way);
}

// The driver's own ways to pass eight bytes, through pinned words mapped for host and device.
struct Raw {
    bench::RawDriver driver;
    bench::RawDriver::Handle stream = nullptr, entry = nullptr, event = nullptr;
    int (*copy)(std::uint64_t, std::uint64_t, std::size_t, void*) = nullptr;
    int (*wait_value)(void*, std::uint64_t, std::uint32_t, unsigned) = nullptr;
    int (*write_value)(void*, std::uint64_t, std::uint32_t, unsigned) = nullptr;
    int (*launch_host)(void*, void (*)(void*), void*) = nullptr;
    bool open() {
        if (!driver.open() || !driver.find_events()) return false;
        if (!driver.prepare(bench::count_up.info(), stream, entry)) return false;
        if (driver.event_create(&event, 2) != 0) return false;
        (void)driver.find(copy, "cuMemcpyAsync");
        if (!driver.find(wait_value, "cuStreamWaitValue32_v2")) (void)driver.find(wait_value, "cuStreamWaitValue32");
        if (!driver.find(write_value, "cuStreamWriteValue32_v2"))
            (void)driver.find(write_value, "cuStreamWriteValue32");
        (void)driver.find(launch_host, "cuLaunchHostFunc");
        return true;
    }
    void launch(std::uint64_t address) const {
        Extent extent{1, 1, 1};
        struct {
            std::uint64_t data, count;
        } pack{address, 1};
        void* parameters[] = {&extent, &pack};
        (void)driver.launch(entry, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
    }
};

// Call this before the service starts: the driver can load this module's code only then.
std::vector<Way> ways_through_the_driver(Raw& raw, std::uint32_t* words, std::uint64_t address) {
    std::vector<Way> ways;
    ways.push_back({"launch, synchronize the stream", [&raw, address] {
                        raw.launch(address);
                        (void)raw.driver.stream_sync(raw.stream);
                    }});
    ways.push_back({"launch, record, ask the event", [&raw, address] {
                        raw.launch(address);
                        (void)raw.driver.event_record(raw.event, raw.stream);
                        while (raw.driver.event_query(raw.event) != 0) {
                        }
                    }});
    // The host writes one word; the stream waits for it and writes another.
    const auto hand_over = [&raw, words, address] {
        const std::uint32_t next = __atomic_load_n(words + 64, __ATOMIC_RELAXED) + 1;
        const bool queued = raw.wait_value(raw.stream, address + 128, next, 1) == 0 &&
                            raw.write_value(raw.stream, address + 256, next, 0) == 0;
        __atomic_store_n(words + 32, next, __ATOMIC_RELEASE);
        while (queued && __atomic_load_n(words + 64, __ATOMIC_ACQUIRE) != next) {
        }
        return queued;
    };
    if (raw.wait_value != nullptr && raw.write_value != nullptr && hand_over()) {
        ways.push_back({"cuStreamWaitValue32, cuStreamWriteValue32", [hand_over] { (void)hand_over(); }});
    }
    if (raw.launch_host != nullptr) {
        ways.push_back({"launch, host function", [&raw, address] {
                            std::atomic<int> called{0};
                            raw.launch(address);
                            const auto call = [](void* flag) { static_cast<std::atomic<int>*>(flag)->store(1); };
                            if (raw.launch_host(raw.stream, call, &called) != 0) return;
                            while (called.load() == 0) {
                            }
                        }});
    }
    if (raw.copy != nullptr) {
        ways.push_back({"copy of 4 bytes, synchronize", [&raw, address] {
                            (void)raw.copy(address + 384, address, 4, raw.stream);
                            (void)raw.driver.stream_sync(raw.stream);
                        }});
    }
    return ways;
}

// The lower bound that the link sets, to compare the mailbox with.
void by_hand(Device& device, Buffer<std::uint32_t>& words, std::uint32_t* word, const Options& options) {
    if (!prepare(device, bench::echo_word) || !device.stream().launch(bench::echo_word, 1, words)) return;
    std::uint32_t next = 0;
    std::vector<Way> ways;
    ways.push_back({"a word each way, by hand", [&] {
                        __atomic_store_n(word, ++next, __ATOMIC_RELAXED);
                        while (__atomic_load_n(word + 32, __ATOMIC_RELAXED) != next) {
                        }
                    }});
    std::memset(word, 0, 64 * sizeof *word);
    measure(ways, options.rounds * 5);
    __atomic_store_n(word, 0xffffffffu, __ATOMIC_RELAXED);
    device.stream().synchronize().value();
}

void round_trips(Device& device, const Options& options) {
    auto words = device.allocate<std::uint32_t>(1024, MemoryKind::pinned).value();
    auto open = words.concurrent_on_host().value();
    std::memset(open.data(), 0, open.size_bytes());
    prepare(device, bench::count_up).value();  // registers the kernel with a simulated driver, too
    Raw raw;
    std::vector<Way> ways;
    if (!device.is_cpu() && raw.open()) ways = ways_through_the_driver(raw, open.data(), words.device_address());
    measure(ways, options.rounds);
    // This runs after the others: beside a resident kernel their times would include it.
    by_hand(device, words, open.data(), options);
    Result<Echoing> service = Echoing::start(device, bench::echo);
    if (!service) {
        std::printf("no service: %s\n", service.error().text().c_str());
        return;
    }
    std::uint64_t next = 0;
    std::vector<Way> mailbox;
    mailbox.push_back({"mailbox, kernel that stays", [&] {
                           const std::uint64_t sent = ++next;
                           if (service->call(sent).value() != sent) std::abort();
                       }});
    measure(mailbox, options.rounds * 5);
    service->stop().value();
}

void say_rate(const char* name, std::uint64_t messages, Clock::duration time) {
    const double seconds = us(time) / 1e6;
    std::printf("%-44s %llu messages of 8 bytes in %.2f s: %.2f million/s\n", name,
                static_cast<unsigned long long>(messages), seconds, static_cast<double>(messages) / seconds / 1e6);
}

void send_by_ring(Mail& mailbox, std::uint64_t message) {
    auto& requests = mailbox.core().protocol().requests();
    while (requests.room() == protocol::RingStatus::wait) {
    }
    requests.write(0, 0, static_cast<std::uint32_t>(message));
    requests.write(0, 1, static_cast<std::uint32_t>(message >> 32));
    requests.publish();
}
void send_by_mailbox(Mail& mailbox, std::uint64_t message) {
    while (!mailbox.try_send(message).value()) {
    }
}

// Sums up every message; 4096 fit into the ring.
template <class Drain>
bool to_the_gpu(Device& device, const char* name, Drain& drain, void (*send)(Mail&, std::uint64_t),
                std::uint64_t messages) {
    Mail mailbox = Mail::create(device, 4096).value();
    device.stream().launch(drain, 1, mailbox.device_end(), messages).value();
    const Clock::time_point begin = Clock::now();
    std::uint64_t sum = 0;
    for (std::uint64_t message = 0; message < messages; ++message) {
        send(mailbox, message);
        sum += message;
    }
    const std::uint64_t got = mailbox.receive(Wait::at_most(std::chrono::minutes(5))).value();
    say_rate(name, messages, Clock::now() - begin);
    return got == sum;
}

// Compares every message.
bool from_the_gpu(Device& device, std::uint64_t messages) {
    Mail mailbox = Mail::create(device, 4096).value();
    device.stream().launch(bench::pour, 1, mailbox.device_end(), messages).value();
    auto& replies = mailbox.core().protocol().replies();
    const Clock::time_point begin = Clock::now();
    for (std::uint64_t message = 0; message < messages; ++message) {
        std::uint32_t words[2] = {};
        while (replies.try_receive(words) == protocol::RingStatus::wait) {
        }
        if ((std::uint64_t{words[1]} << 32) + words[0] == message) continue;
        mailbox.command(protocol::ServiceCommand::abandon);
        return false;
    }
    say_rate("GPU to CPU", messages, Clock::now() - begin);
    return true;
}

// Whether the call returns while a resident kernel runs.
void say_whether_it_waits(Device& device, const char* name, const std::function<int()>& call) {
    Echoing service = Echoing::start(device, bench::echo).value();
    if (service.call(1).value() != 1) std::abort();
    std::atomic<bool> returned{false};
    int code = -1;
    const Clock::time_point begin = Clock::now();
    std::thread other([&] {
        code = call();
        returned.store(true);
    });
    while (!returned.load() && Clock::now() - begin < std::chrono::seconds(1)) std::this_thread::yield();
    const bool waits = !returned.load();
    service.stop().value();
    other.join();
    std::printf("%-44s %s (%d)\n", name, waits ? "WAITS for the kernel" : "returns", code);
}

void blocking_calls(Device& device) {
    prepare(device, bench::count_up).value();
    bench::RawDriver driver;
    if (!driver.open() || !driver.find_events() || !driver.prepare_device()) return;
    int (*managed)(std::uint64_t*, std::size_t, unsigned) = nullptr;
    int (*host_alloc)(void**, std::size_t, unsigned) = nullptr;
    int (*host_free)(void*) = nullptr;
    int (*host_register)(void*, std::size_t, unsigned) = nullptr;
    int (*host_unregister)(void*) = nullptr;
    int (*context_sync)() = nullptr;
    int (*trim)(void*, std::size_t) = nullptr;
    (void)driver.find_pools();
    (void)driver.find(managed, "cuMemAllocManaged");
    (void)driver.find(host_alloc, "cuMemHostAlloc");
    (void)driver.find(host_free, "cuMemFreeHost");
    if (!driver.find(host_register, "cuMemHostRegister_v2")) (void)driver.find(host_register, "cuMemHostRegister");
    (void)driver.find(host_unregister, "cuMemHostUnregister");
    (void)driver.find(context_sync, "cuCtxSynchronize");
    (void)driver.find(trim, "cuMemPoolTrimTo");
    constexpr std::size_t bytes = 1 << 20;
    std::uint64_t address = 0;
    void* host = nullptr;
    void* handle = nullptr;
    bench::RawDriver::Handle stream = nullptr;
    (void)driver.stream_create(&stream, 1);
    const auto here = [&](auto body) {  // runs `body` on the calling thread, with the context current
        return [&, body] { return driver.prepare_device() ? body() : -1; };
    };
    const auto say = [&](const char* name, const std::function<int()>& call) {
        say_whether_it_waits(device, name, call);
    };
    say("cuMemAlloc", here([&] { return driver.allocate(&address, bytes); }));
    say("cuMemFree of device memory", here([&] { return driver.free(address); }));
    say("cuMemAllocManaged", here([&] { return managed(&address, bytes, 1); }));
    say("cuMemFree of managed memory", here([&] { return driver.free(address); }));
    say("cuMemHostAlloc", here([&] { return host_alloc(&host, bytes, 0); }));
    say("cuMemFreeHost", here([&] { return host_free(host); }));
    host = std::aligned_alloc(4096, bytes);
    say("cuMemHostRegister", here([&] { return host_register(host, bytes, 0); }));
    say("cuMemHostUnregister", here([&] { return host_unregister(host); }));
    std::free(host);
    say("cuMemAllocAsync", here([&] { return driver.allocate_async(&address, bytes, stream); }));
    say("cuMemFreeAsync", here([&] { return driver.free_async(address, stream); }));
    say("cuStreamSynchronize of another stream", here([&] { return driver.stream_sync(stream); }));
    say("cuMemPoolTrimTo", here([&] {
            const int found = driver.default_pool(&handle, 0);
            return found == 0 ? trim(handle, 0) : found;
        }));
    say("cuModuleLoadData", here([&] { return driver.load(&handle, bench::count_up.info().image->data); }));
    say("cuModuleGetFunction", here([&] {
            bench::RawDriver::Handle function = nullptr;
            return driver.function(&function, handle, bench::count_up.info().symbol);
        }));
    say("cuStreamCreate and cuStreamDestroy", here([&] {
            bench::RawDriver::Handle made = nullptr;
            const int code = driver.stream_create(&made, 1);
            return code == 0 ? driver.stream_destroy(made) : code;
        }));
    say("cuCtxSynchronize", here([&] { return context_sync(); }));
    (void)driver.stream_destroy(stream);
}

bool read(int count, char** arguments, Options& options) {
    for (int at = 1; at < count; ++at) {
        const std::string_view option = arguments[at];
        if (option == "--blocking") {
            options.blocking = true;
        } else if (option == "--rounds" && at + 1 < count) {
            options.rounds = std::strtoull(arguments[++at], nullptr, 10);
        } else if (option == "--messages" && at + 1 < count) {
            options.messages = std::strtoull(arguments[++at], nullptr, 10);
        } else {
            return false;
        }
    }
    return options.rounds > 0;
}

}  // namespace

int main(int count, char** arguments) {
    Options options;
    if (!read(count, arguments, options)) {
        std::fprintf(stderr, "usage: bench_mailbox [--rounds N] [--messages N] [--blocking]\n");
        return 2;
    }
    Runtime runtime = Runtime::open().value();
    Device& device = runtime.default_device();
    if (device.is_cpu()) {
        std::fprintf(stderr, "bench_mailbox needs a GPU, or a simulated one\n");
        return 77;
    }
    std::printf("%.*s\n", static_cast<int>(device.name().size()), device.name().data());
    if (options.blocking) {
        blocking_calls(device);
        return 0;
    }
    round_trips(device, options);
    if (options.messages == 0) return 0;
    const std::uint64_t messages = options.messages;
    const bool right =
        to_the_gpu(device, "CPU to GPU, one at a time", bench::drain_1, send_by_ring, messages) &&
        to_the_gpu(device, "CPU to GPU, up to 16 at once", bench::drain_16, send_by_ring, messages) &&
        to_the_gpu(device, "CPU to GPU, up to 32 at once", bench::drain_32, send_by_ring, messages) &&
        to_the_gpu(device, "the same, sent by Mailbox::try_send", bench::drain_32, send_by_mailbox, messages) &&
        from_the_gpu(device, messages);
    if (!right) std::printf("MESSAGES WERE LOST OR CHANGED\n");
    return right ? 0 : 1;
}
