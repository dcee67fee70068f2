// SPDX-License-Identifier: Apache-2.0
// All-reduce of two GPUs in place: NCCL on buffers of isthmus, as work of other code (Stream::enqueue_native), beside
// NCCL alone on memory of cudaMalloc; a process for each GPU, in turn, medians. First one reduction of each kind is
// compared with the sum. It needs two GPUs. Bytes a second are those of the buffer: for two ranks NCCL's algorithm and
// bus bandwidth are the same.
//
// usage: nccl_bench [ROUNDS]
#include <isthmus/isthmus.hpp>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Floats = isthmus::Buffer<float>;

constexpr int ranks = 2;

void need(bool fine, const char* what) {
    if (fine) return;
    std::printf("failed: %s\n", what);
    std::fflush(stdout);
    std::_Exit(1);
}

// Sums of two of them are exact as floats.
float value_of(int rank, std::size_t at) {
    return static_cast<float>((rank + 1) * 1000 + static_cast<int>(at % 977));
}

struct Rank {
    int number;
    ncclComm_t group;
    isthmus::Device& gpu;
    isthmus::Stream stream;
    cudaStream_t raw_stream;
};

void reduce(const Rank& rank, float* data, std::size_t count, cudaStream_t stream) {
    need(ncclAllReduce(data, data, count, ncclFloat, ncclSum, rank.group, stream) == ncclSuccess, "ncclAllReduce");
}
void reduce(Rank& rank, Floats& data) {
    rank.stream
        .enqueue_native(
            "all-reduce",
            [&](void* s, float* in_place) {
                return ncclAllReduce(in_place, in_place, data.size(), ncclFloat, ncclSum, rank.group, cudaStream_t(s));
            },
            isthmus::updates(data))
        .value();
}

bool is_sum(const std::vector<float>& got) {
    for (std::size_t at = 0; at < got.size(); ++at) {
        if (got[at] != value_of(0, at) + value_of(1, at)) return false;
    }
    return true;
}

// Microseconds of one reduction, of `times` in a row.
double timed(int times, const std::function<void()>& one, const std::function<void()>& wait) {
    one();
    wait();
    const Clock::time_point begin = Clock::now();
    for (int at = 0; at < times; ++at) one();
    wait();
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / times;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct Way {
    std::string name;
    std::function<void()> reduce_once, wait, clear;
    std::function<void(const std::vector<float>&)> upload;
    std::function<std::vector<float>()> download;
};

void play(Rank& rank, std::size_t bytes, int rounds) {
    const std::size_t count = bytes / sizeof(float);
    float* raw = nullptr;
    need(cudaMalloc(reinterpret_cast<void**>(&raw), bytes) == cudaSuccess, "cudaMalloc");
    std::vector<Way> ways;
    const auto raw_wait = [&] { need(cudaStreamSynchronize(rank.raw_stream) == cudaSuccess, "cudaStreamSynchronize"); };
    ways.push_back({"cudaMalloc", [&] { reduce(rank, raw, count, rank.raw_stream); }, raw_wait,
                    [&] { need(cudaMemset(raw, 0, bytes) == cudaSuccess, "cudaMemset"); },
                    [&](const std::vector<float>& from) {
                        need(cudaMemcpy(raw, from.data(), bytes, cudaMemcpyHostToDevice) == cudaSuccess, "cudaMemcpy");
                    },
                    [&] {
                        std::vector<float> to(count);
                        need(cudaMemcpy(to.data(), raw, bytes, cudaMemcpyDeviceToHost) == cudaSuccess, "cudaMemcpy");
                        return to;
                    }});
    const isthmus::MemoryKind kinds[] = {isthmus::MemoryKind::device, isthmus::MemoryKind::managed,
                                         isthmus::MemoryKind::pinned};
    std::vector<Floats> buffers;
    for (const isthmus::MemoryKind kind : kinds) {
        if (kind == isthmus::MemoryKind::device || bytes <= (std::size_t{64} << 20)) {
            buffers.push_back(rank.gpu.allocate<float>(count, kind).value());
        }
    }
    for (Floats& buffer : buffers) {
        ways.push_back({"isthmus " + std::string(isthmus::name(buffer.kind())), [&] { reduce(rank, buffer); },
                        [&] { rank.stream.synchronize().value(); }, [&] { rank.stream.fill(buffer, 0.0f).value(); },
                        [&](const std::vector<float>& from) {
                            rank.stream.copy_from_host(buffer, from).value();
                            rank.stream.synchronize().value();
                        },
                        [&] { return isthmus::read_back(buffer).value(); }});
    }
    std::vector<float> own(count);
    for (std::size_t at = 0; at < count; ++at) own[at] = value_of(rank.number, at);
    std::vector<const char*> sums;
    for (const Way& way : ways) {
        way.upload(own);
        way.reduce_once();
        way.wait();
        const bool right = is_sum(way.download());
        sums.push_back(right ? "exact" : "WRONG");
        way.clear();
        way.wait();
        need(right, way.name.c_str());
    }
    std::vector<std::vector<double>> times(ways.size());
    const int repeats = static_cast<int>(std::clamp<std::size_t>((std::size_t{1} << 31) / bytes, 10, 200));
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t way = 0; way < ways.size(); ++way) {
            const bool host = ways[way].name == "isthmus pinned";
            times[way].push_back(timed(host ? 10 : repeats, ways[way].reduce_once, ways[way].wait));
        }
    }
    const double raw_us = median(times[0]);
    for (std::size_t way = 0; rank.number == 0 && way < ways.size(); ++way) {
        const double us = median(times[way]);
        std::printf("%10zu bytes  %-16s %10.2f us  %8.2f GB/s  %5.3f x cudaMalloc  sum %s\n", bytes,
                    ways[way].name.c_str(), us, static_cast<double>(bytes) / us / 1000, raw_us / us, sums[way]);
    }
    std::fflush(stdout);
    need(cudaFree(raw) == cudaSuccess, "cudaFree");
}

int run(int number, ncclUniqueId group, int rounds) {
    isthmus::Runtime runtime = isthmus::Runtime::open().value();
    if (runtime.device_count() <= ranks) return std::puts("two GPUs are needed"), 77;  // the CPU is the last device
    isthmus::Device& gpu = *runtime.device(static_cast<std::size_t>(number)).value();
    need(cudaSetDevice(number) == cudaSuccess, "cudaSetDevice");
    Rank rank{number, nullptr, gpu, gpu.create_stream().value(), nullptr};
    need(cudaStreamCreateWithFlags(&rank.raw_stream, cudaStreamNonBlocking) == cudaSuccess, "cudaStreamCreate");
    need(ncclCommInitRank(&rank.group, ranks, group, number) == ncclSuccess, "ncclCommInitRank");
    if (number == 0) {
        int version = 0;
        need(ncclGetVersion(&version) == ncclSuccess, "ncclGetVersion");
        std::printf("NCCL %d, %.*s\n", version, static_cast<int>(gpu.name().size()), gpu.name().data());
    }
    for (const std::size_t kib : {4, 64, 1024, 16 * 1024, 64 * 1024, 1024 * 1024}) play(rank, kib << 10, rounds);
    ncclCommDestroy(rank.group);
    return 0;
}

}  // namespace

int main(int count, char** words) {
    const int rounds = count > 1 ? std::atoi(words[1]) : 5;
    int line[2];
    if (pipe(line) != 0) return 1;
    ncclUniqueId group{};
    const pid_t other = fork();  // before a runtime or NCCL is used
    if (other < 0) return 1;
    if (other == 0) {
        close(line[1]);  // so that the end of the first process ends the read
        const bool told = read(line[0], &group, sizeof(group)) == static_cast<ssize_t>(sizeof(group));
        return told ? run(1, group, rounds) : 1;
    }
    if (ncclGetUniqueId(&group) != ncclSuccess) return 1;
    if (write(line[1], &group, sizeof(group)) != static_cast<ssize_t>(sizeof(group))) return 1;
    const int own = run(0, group, rounds);
    int status = 0;
    waitpid(other, &status, 0);
    return own != 0 ? own : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
