#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames over UCX beside ucx_perftest, in turn, on loopback: MiB/s at 1 MiB and 8 MiB, microseconds at 4 KiB.

usage: network_bench.py BENCH_NETWORK [ROUNDS [UCX_TLS]]
"""
import os
import re
import statistics
import subprocess
import sys
import time

BENCH = sys.argv[1]
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
ENVIRONMENT = {**os.environ, "UCX_TLS": sys.argv[3] if len(sys.argv) > 3 else "tcp", "UCX_NET_DEVICES": "lo",
               "UCX_HANDLE_ERRORS": "none", "UCX_VFS_ENABLE": "n", "UCX_LOG_LEVEL": "fatal"}
TASKS = (("bandwidth", 1 << 20, 2000), ("bandwidth", 8 << 20, 300), ("latency", 4096, 10000))


def ours(what, size, frames):
    done = subprocess.run([BENCH, what, str(size), str(frames)], env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=120, check=True)
    return float(done.stdout)


def peer(what, size, frames):
    test = "ucp_am_bw" if what == "bandwidth" else "ucp_am_lat"
    command = ["ucx_perftest", "-t", test, "-s", str(size), "-n", str(frames), "-w", str(frames // 10), "-p", "13399"]
    server = subprocess.Popen([*command[:1], "-p", "13399"], env=ENVIRONMENT, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        for _ in range(50):
            time.sleep(0.1)
            done = subprocess.run([command[0], "127.0.0.1", *command[1:], "-f"], env=ENVIRONMENT, capture_output=True,
                                  text=True, timeout=120)
            if done.returncode == 0:
                break
    finally:
        server.kill()
        server.wait()
    # iterations, latency (percentile, average, overall), MB/s (average, overall), messages
    numbers = [float(each) for each in re.findall(r"[\d.]+", done.stdout.strip().splitlines()[-1])]
    return numbers[1] if what == "latency" else numbers[5]


for what, size, frames in TASKS:
    pairs = [(ours(what, size, frames), peer(what, size, frames)) for _ in range(ROUNDS)]
    own, raw = (statistics.median(each) for each in zip(*pairs))
    unit = "MiB/s" if what == "bandwidth" else "us"
    print(f"{what} {size}: isthmus {own:.1f} {unit}, ucx_perftest {raw:.1f} {unit}, ratio {own / raw:.3f}; "
          + " ".join(f"{a:.1f}/{b:.1f}" for a, b in pairs), flush=True)
