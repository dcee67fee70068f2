#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures allocation and release of memory on a stream in PyTorch's caching allocator, a peer of pool_bench.cpp.

Prints nanoseconds per pair, as medians over repetitions.

    python3 bench/pool_torch.py [--repetitions N] [--pairs N]

Every pair is made from Python, which is part of its time; `an empty loop over a call` shows that part.
"""
import argparse
import statistics
import sys
import time

SIZES_BYTES = [256, 4 << 10, 1 << 20, 64 << 20]


def ways(torch, stream):
    """name -> a function that takes a size and makes one pair."""
    handle = stream.cuda_stream
    found = {'an empty loop over a call': lambda size: None}
    raw_alloc = getattr(torch._C, '_cuda_cudaCachingAllocator_raw_alloc', None)
    raw_delete = getattr(torch._C, '_cuda_cudaCachingAllocator_raw_delete', None)
    if raw_alloc is not None and raw_delete is not None:
        found['caching allocator, raw'] = lambda size: raw_delete(raw_alloc(size, handle))
    else:
        print('skipped: this PyTorch has no raw entry to its caching allocator', file=sys.stderr)

    def tensor(size):
        torch.empty(size, dtype=torch.uint8, device='cuda')  # released at once, without a reference
    found['torch.empty'] = tensor
    return found


def measure(pair, size, pairs, repetitions, settle):
    for _ in range(16):
        pair(size)
    settle()
    taken = []
    for _ in range(repetitions):
        begin = time.perf_counter_ns()
        for _ in range(pairs):
            pair(size)
        taken.append((time.perf_counter_ns() - begin) / pairs)
        settle()
    return statistics.median(taken)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--repetitions', type=int, default=15)
    parser.add_argument('--pairs', type=int, default=2000)
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print('skipped: PyTorch is not installed')
        return 0
    if not torch.cuda.is_available():
        print('skipped: PyTorch finds no GPU')
        return 0
    stream = torch.cuda.Stream()
    print(f'PyTorch {torch.__version__}, {torch.cuda.get_device_name()}')
    with torch.cuda.stream(stream):
        for name, pair in ways(torch, stream).items():
            for size in SIZES_BYTES:
                before = torch.cuda.memory_stats().get('num_device_alloc')
                taken = measure(pair, size, options.pairs, options.repetitions, stream.synchronize)
                after = torch.cuda.memory_stats().get('num_device_alloc')
                asked = '' if before is None else f', asked the driver {after - before} times in all'
                print(f'{name}/{size}: {taken:.0f} ns{asked}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
