#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures growth of a PyTorch tensor, a peer of growth_bench.cpp. Growth works as in a vector: a new tensor, a copy of
the content, and release of the old tensor to the caching allocator. Prints microseconds, as medians over repetitions:
once with the allocator's cache emptied before (the memory comes from the driver), once with the cache as the previous
repetition left it.

    python3 bench/growth_torch.py [--repetitions N]

Only the growth is timed, with a synchronisation after each, as in growth_bench.cpp; allocation of the first tensor and
release of the last one are not included.
"""
import argparse
import statistics
import sys
import time

MEBIBYTE = 1 << 20
DOUBLED_MEBIBYTES = [16, 128, 1024, 8192]
ADDED_AT_MEBIBYTES = [64, 512, 4096, 8192]


def grown(torch, tensor, size):
    larger = torch.empty(size, dtype=torch.uint8, device='cuda')
    larger[:tensor.numel()].copy_(tensor)
    torch.cuda.synchronize()
    return larger


def doubling(torch, most):
    tensor = torch.empty(2 * MEBIBYTE, dtype=torch.uint8, device='cuda')
    torch.cuda.synchronize()
    begin = time.perf_counter_ns()
    while tensor.numel() < most:
        tensor = grown(torch, tensor, 2 * tensor.numel())
    return time.perf_counter_ns() - begin


def adding(torch, size):
    tensor = torch.empty(size, dtype=torch.uint8, device='cuda')
    torch.cuda.synchronize()
    begin = time.perf_counter_ns()
    tensor = grown(torch, tensor, size + 64 * MEBIBYTE)
    return time.perf_counter_ns() - begin


def median(torch, once, size, repetitions, emptied):
    times = []
    once(torch, size)
    for _ in range(repetitions):
        if emptied:
            torch.cuda.empty_cache()
        times.append(once(torch, size) / 1000)
    torch.cuda.empty_cache()
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--repetitions', type=int, default=7)
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print('skipped: PyTorch is not installed')
        return 0
    if not torch.cuda.is_available():
        print('skipped: PyTorch finds no GPU')
        return 0
    print(f'PyTorch {torch.__version__}, {torch.cuda.get_device_name()}')
    for name, once, sizes in (('doubling', doubling, DOUBLED_MEBIBYTES), ('add_64_MiB', adding, ADDED_AT_MEBIBYTES)):
        for size in sizes:
            for emptied in (True, False):
                taken = median(torch, once, size * MEBIBYTE, options.repetitions, emptied)
                print(f'{name}/{size} MiB, {"empty" if emptied else "warm"} cache: {taken:.1f} us')
    return 0


if __name__ == '__main__':
    sys.exit(main())
