#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""isthmus_runtime_capabilities_json() is JSON, and says what `isthmus caps --json` says of the same machine.

usage: capabilities_test.py LIBRARY COMMAND
"""
import ctypes
import json
import subprocess
import sys


def from_library(path):
    library = ctypes.CDLL(path)
    runtime, text = ctypes.c_void_p(), ctypes.c_char_p()
    if library.isthmus_runtime_open(None, ctypes.byref(runtime), None) != 0:
        sys.exit('the runtime does not open')
    if library.isthmus_runtime_capabilities_json(runtime, ctypes.byref(text), None) != 0:
        sys.exit('the library gives no text')
    told = json.loads(text.value)
    library.isthmus_runtime_free(runtime)
    return told


def differences(mine, other, path=''):
    """Of what the library says; the command says more."""
    if isinstance(mine, dict) and isinstance(other, dict):
        for key, value in mine.items():
            yield from differences(value, other.get(key), f'{path}.{key}')
    elif isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other):
        for at, (one, two) in enumerate(zip(mine, other)):
            yield from differences(one, two, f'{path}[{at}]')
    elif mine != other:
        yield f'{path}: {mine!r}, and the command says {other!r}'


def main(library, command):
    mine = from_library(library)
    other = json.loads(subprocess.run([command, '--json', 'caps'], text=True, capture_output=True, check=True).stdout)
    found = list(differences(mine, other))
    print('\n'.join(found) or f'{len(mine["devices"])} devices as the command tells them')
    if not any(differences({'devices': []}, other)):
        sys.exit('this check cannot tell a difference')
    return 1 if found or not mine['devices'] else 0


sys.exit(main(*sys.argv[1:]))
