#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames over UCX beside ucx_perftest, with and without its error handling, and beside TCP with a copy into fresh memory;
in turn, on loopback: MiB/s at 1 MiB and 8 MiB, microseconds at 4 KiB.

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
               "UCX_HANDLE_ERRORS": "none", "UCX_VFS_ENABLE": "n", "UCX_LOG_LEVEL": "fatal",
               "UCX_TCP_RX_SEG_SIZE": "256k", "UCX_TCP_TX_SEG_SIZE": "256k"}  # as isthmus-bridge sets them
TASKS = (("bandwidth", 1 << 20, 2000), ("bandwidth", 8 << 20, 300), ("latency", 4096, 10000))


def ours(what, size, frames, *more):
    done = subprocess.run([BENCH, what, str(size), str(frames), *more], env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=120, check=True)
    return float(done.stdout)


def peer(what, size, frames, *more):
    test = "ucp_am_bw" if what == "bandwidth" else "ucp_am_lat"
    command = ["ucx_perftest", *more, "-t", test, "-s", str(size), "-n", str(frames), "-w", str(frames // 10), "-p", "13399"]
    server = subprocess.Popen(["ucx_perftest", *more, "-p", "13399"], env=ENVIRONMENT, stdout=subprocess.DEVNULL,
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


WAYS = (("isthmus", ours), ("ucx_perftest", peer), ("ucx_perftest -e", lambda *task: peer(*task, "-e")),
        ("TCP copy", lambda *task: ours(*task, "tcp")))
for what, size, frames in TASKS:
    rounds = [[way(what, size, frames) for _, way in WAYS] for _ in range(ROUNDS)]
    medians = [statistics.median(each) for each in zip(*rounds)]
    unit = "MiB/s" if what == "bandwidth" else "us"
    print(f"{what} {size}: " + ", ".join(f"{name} {median:.1f} {unit} (isthmus is {medians[0] / median:.3f} times that)"
                                        for (name, _), median in zip(WAYS, medians)), flush=True)
    print("    " + " ".join("/".join(f"{each:.1f}" for each in turn) for turn in rounds), flush=True)
