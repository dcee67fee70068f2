#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The loops of the examples count what they did once they run steadily: no call was refused, no page was missing, and
no frame was lost without being counted. Counts, never times.

usage: counted_test.py PROGRAM...
"""
import re
import subprocess
import sys

CONTROL = re.compile(r'500 turns, \d+ late; (?P<refused>\d+) calls refused; from turn 250 on: (?P<faults>\d+) page faults, '
                     r'\d+ voluntary and \d+ involuntary switches\n')
CAMERA = re.compile(r'(?P<seen>\d+) of (?P<filmed>\d+) frames seen, (?P<dropped>\d+) dropped; '
                    r'(?P<refused>\d+) calls refused; from frame \d+ on: (?P<faults>\d+) page faults, '
                    r'\d+ voluntary and \d+ involuntary switches\n')
TRIES = 3  # a busy system may take a page away; a loop that takes one itself does so in each try


def problem(path):
    done = subprocess.run([path], capture_output=True, text=True, timeout=60)
    said = done.stdout.removeprefix('the loop runs\n')
    counts = CONTROL.fullmatch(said) or CAMERA.fullmatch(said)
    if done.returncode != 0 or counts is None:
        return f'{path}: exit code {done.returncode}\n{done.stdout}{done.stderr}', False
    numbers = {name: int(text) for name, text in counts.groupdict().items()}
    if 'filmed' in numbers and (numbers['filmed'] != 120 or numbers['seen'] + numbers['dropped'] != 120):
        return f'{path}: frames are lost: {said}', False
    if numbers['refused'] != 0:
        return f'{path}: {said}', False
    return (f'{path}: {said}', True) if numbers['faults'] != 0 else (None, False)


# keeps T2, T4
failures = 0
for program in sys.argv[1:]:
    for _ in range(TRIES):
        found, again = problem(program)
        if not again:
            break
    if found:
        print(found)
        failures += 1
sys.exit(1 if failures else 0)
