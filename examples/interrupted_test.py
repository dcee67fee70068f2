#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGINT ends the loops of the examples cleanly: they print their counts, nothing was refused, and they return 0.

usage: interrupted_test.py PROGRAM...
"""
import signal
import subprocess
import sys


def interrupted(program):
    with subprocess.Popen([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as loop:
        first = loop.stdout.readline()
        loop.send_signal(signal.SIGINT)
        try:
            rest, _ = loop.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            loop.kill()
            raise
    return first, rest, loop.returncode


# keeps T2
failures = 0
for path in sys.argv[1:]:
    for _ in range(20):  # the loop may end before the signal where this process stands still
        begin, counts, code = interrupted(path)
        whole = any(counts.startswith(text) for text in ('500 turns', '120 of 120'))
        if not whole:
            break
    if begin != 'the loop runs\n' or code != 0 or whole or '; 0 calls refused' not in counts:
        print(f'{path}: exit code {code}\n{begin}{counts}')
        failures += 1
sys.exit(1 if failures else 0)
