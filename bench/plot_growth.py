#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the cost of growing by 64 MiB at sizes from 64 MiB to 8 GiB, in place and by a copy: docs/images/growth.svg.

    bench_growth --benchmark_filter=add_ --benchmark_format=json --benchmark_repetitions=7 > growth.json
    python3 bench/plot_growth.py growth.json docs/images/growth.svg

Draws the medians over repetitions. Needs matplotlib.
"""
import argparse
import collections
import json
import statistics

DRAWN = {'add_in_place': ('in place: GrowableBuffer', '#1b7f5c', 'o'),
         'add_by_driver': ("the driver's three calls", '#8a8a8a', '^'),
         'add_by_copy': ('allocate, copy, free', '#c0392b', 's')}
MICROSECONDS = {'ns': 1e-3, 'us': 1.0, 'ms': 1e3, 's': 1e6}


def times_of(report):
    """name -> [(MiB, microseconds)], by size."""
    seen = collections.defaultdict(lambda: collections.defaultdict(list))
    medians = collections.defaultdict(dict)
    for row in report['benchmarks']:
        name, size = row['name'].split('/')[:2]
        if name not in DRAWN or row.get('error_occurred'):
            continue
        taken = row['real_time'] * MICROSECONDS[row['time_unit']]
        if row.get('run_type') == 'aggregate':
            if row['aggregate_name'] == 'median':
                medians[name][int(size.split('_')[0])] = taken
        else:
            seen[name][int(size)].append(taken)
    return {name: sorted((medians[name] or {size: statistics.median(taken) for size, taken in seen[name].items()}).items())
            for name in DRAWN if medians[name] or seen[name]}


def label_of(mebibytes):
    return f'{mebibytes // 1024} GiB' if mebibytes >= 1024 else f'{mebibytes} MiB'


def draw(times, path):
    import matplotlib
    matplotlib.use('svg')
    matplotlib.rcParams['svg.hashsalt'] = 'growth'  # the same figures give the same file
    matplotlib.rcParams['svg.fonttype'] = 'none'
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2))
    for name, points in times.items():
        label, colour, marker = DRAWN[name]
        axes.plot([size for size, _ in points], [taken for _, taken in points], marker=marker, color=colour, label=label)
    axes.set_xscale('log', base=2)
    axes.set_yscale('log')
    sizes = sorted({size for points in times.values() for size, _ in points})
    axes.set_xticks(sizes, [label_of(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel('size before')
    axes.set_ylabel('µs for 64 MiB more')
    axes.grid(True, which='major', color='#dddddd', linewidth=0.6)
    axes.legend(frameon=False)
    for side in ('top', 'right'):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, format='svg', metadata={'Date': None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('report', help="bench_growth's output with --benchmark_format=json")
    parser.add_argument('image', help='the SVG to write')
    options = parser.parse_args()
    with open(options.report, encoding='utf-8') as file:
        draw(times_of(json.load(file)), options.image)


if __name__ == '__main__':
    main()
