// SPDX-License-Identifier: Apache-2.0
// Sums a buffer over two GPUs: NCCL's all-reduce as work of other code, in a process for each GPU. Shown in
// docs/native-work.md. Built where NCCL is found; it needs two GPUs.
#include <isthmus/isthmus.hpp>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

namespace {

constexpr int ranks = 2;

// The first rank's process makes the identifier of the group, which the other one needs.
int run(int rank, ncclUniqueId group) {
    isthmus::Runtime runtime = isthmus::Runtime::open().value();
    // The CPU is the last device.
    if (runtime.device_count() <= ranks) return std::puts("two GPUs are needed"), 77;
    isthmus::Device& gpu = *runtime.device(static_cast<std::size_t>(rank)).value();
    ncclComm_t group_of_gpus = nullptr;
    if (cudaSetDevice(rank) != cudaSuccess) return 1;
    if (ncclCommInitRank(&group_of_gpus, ranks, group, rank) != ncclSuccess) return 1;
    constexpr std::size_t count = 1 << 20;
    isthmus::Stream stream = gpu.stream();

    // show: all-reduce
    auto gradients = gpu.allocate<float>(count, isthmus::MemoryKind::device).value();
    stream.fill(gradients, static_cast<float>(rank + 1)).value();
    stream
        .enqueue_native(
            "all-reduce",
            [&](void* s, float* data) {
                return ncclAllReduce(data, data, count, ncclFloat, ncclSum, group_of_gpus, cudaStream_t(s));
            },
            isthmus::updates(gradients))
        .value();
    // end

    std::vector<float> sum(count);
    stream.copy_to_host(sum, gradients).value();
    stream.synchronize().value();
    ncclCommDestroy(group_of_gpus);
    std::printf("rank %d: %g\n", rank, static_cast<double>(sum.back()));
    return sum.front() == 3 && sum.back() == 3 ? 0 : 1;
}

}  // namespace

int main() {
    int line[2];
    if (pipe(line) != 0) return 1;
    ncclUniqueId group{};
    const pid_t other = fork();  // before a runtime or NCCL is used
    if (other < 0) return 1;
    if (other == 0) {
        close(line[1]);  // so that the end of the first process ends the read
        const bool told = read(line[0], &group, sizeof(group)) == static_cast<ssize_t>(sizeof(group));
        return told ? run(1, group) : 1;
    }
    if (ncclGetUniqueId(&group) != ncclSuccess) return 1;
    if (write(line[1], &group, sizeof(group)) != static_cast<ssize_t>(sizeof(group))) return 1;
    const int own = run(0, group);
    int status = 0;
    waitpid(other, &status, 0);
    return own != 0 ? own : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
