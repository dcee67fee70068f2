#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what two builds of libisthmus export: a program that is linked with one has to load with the other.

usage: same_exports.py NM WHOLE CORE

Weak symbols are instances of inline functions: every program brings its own.
"""
import subprocess
import sys

nm, *libraries = sys.argv[1:]


def exported(library):
    lines = subprocess.run([nm, '-D', '--defined-only', library], text=True, capture_output=True, check=True).stdout
    rows = [line.split() for line in lines.splitlines()]
    return {row[-1] for row in rows if row[-2] not in 'WwVvu'}


whole, core = map(exported, libraries)
if len(whole) < 100:
    sys.exit(f'{nm} found {len(whole)} symbols in {libraries[0]}, which exports hundreds')
for symbol in sorted(whole - core):
    print('left_out.cpp of its room has to define', symbol)
for symbol in sorted(core - whole):
    print('exported by the core alone:', symbol)
print(len(whole), 'and', len(core), 'symbols')
sys.exit(whole != core)
