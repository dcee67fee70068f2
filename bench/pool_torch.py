#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures allocation and release of memory on a stream in PyTorch's caching allocator, a peer of pool_bench.cpp.

Prints nanoseconds per pair, as medians over repetitions.

    python3 bench/pool_torch.py [--repetitions N] [--pairs N]
    python3 bench/pool_torch.py --trace FILE [--trace FILE]... [--repetitions N]

With --trace, replays recorded allocations (tests/traces/README.md), a peer of trace_bench.cpp: nanoseconds per event,
and what PyTorch reserved at most per byte that lived at the peak.

Every pair is made from Python, which is part of its time; `an empty loop over a call` shows that part.
"""
import argparse
import gzip
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


def read_trace(path):
    """[(block, bytes or None, stream)], numbers of blocks and streams, and the most bytes that live."""
    events, living, blocks, peak, live, streams = [], {}, 0, 0, 0, {}
    with (gzip.open if path.endswith('.gz') else open)(path, 'rt') as lines:
        for line in lines:
            if line.startswith('#'):
                continue
            fields = line.split()
            stream = streams.setdefault(fields[-1], len(streams))
            if fields[0] == 'a':
                living[fields[1]] = (blocks, int(fields[2]))
                events.append((blocks, int(fields[2]), stream))
                blocks, live = blocks + 1, live + int(fields[2])
                peak = max(peak, live)
            else:
                block, size = living.pop(fields[1])
                events.append((block, None, stream))
                live -= size
    events += [(block, None, 0) for block, _ in living.values()]
    return events, blocks, len(streams), peak


def replay(torch, path, repetitions):
    events, blocks, count, peak = read_trace(path)
    raw_alloc = torch._C._cuda_cudaCachingAllocator_raw_alloc
    raw_delete = torch._C._cuda_cudaCachingAllocator_raw_delete
    streams = [torch.cuda.Stream().cuda_stream for _ in range(count)]
    addresses = [0] * blocks

    def play(allocate, delete):
        begin = time.perf_counter_ns()
        for block, size, stream in events:
            if size is None:
                delete(addresses[block])
            else:
                addresses[block] = allocate(size, streams[stream])
        return (time.perf_counter_ns() - begin) / len(events)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    play(raw_alloc, raw_delete)
    reserved = torch.cuda.max_memory_reserved() / peak
    taken = statistics.median(play(raw_alloc, raw_delete) for _ in range(repetitions))
    empty = statistics.median(play(lambda size, stream: 0, lambda address: None) for _ in range(repetitions))
    print(f'{path}: {taken:.0f} ns an event, of which {empty:.0f} are those of Python; '
          f'reserved {reserved:.3f} of the peak')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--repetitions', type=int, default=15)
    parser.add_argument('--pairs', type=int, default=2000)
    parser.add_argument('--trace', action='append', default=[])
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print('skipped: PyTorch is not installed')
        return 0
    if not torch.cuda.is_available():
        print('skipped: PyTorch finds no GPU')
        return 0
    for path in options.trace:
        replay(torch, path, options.repetitions)
    if options.trace:
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
