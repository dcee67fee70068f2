#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles isthmus.h and isthmus_ucx.h alone as C99, C11, C17 and C++20 with every warning, and isthmus/adopt.h and
isthmus/allocator.h as C.

usage: header_test.py SOURCE_ROOT COMPILER [ARGUMENT...] [-- COMPILER...]
The compilers are for C++; each is called with -x c as well.
"""
import os
import subprocess
import sys

C_HEADERS = {'isthmus.h': 'bindings/c/include', 'isthmus_ucx.h': 'bindings/c/include',
             'isthmus/adopt.h': 'runtime/provenance/include',
             'isthmus/allocator.h': 'runtime/memory/include'}
WARNINGS = ['-Wall', '-Wextra', '-Wpedantic', '-pedantic-errors', '-Wshadow', '-Wconversion', '-Wundef', '-Werror']
# What a caller writes with every _INIT macro: no field is missing.
ALL_INITS = '''
isthmus_runtime_options a = ISTHMUS_RUNTIME_OPTIONS_INIT;
isthmus_shared_use b = ISTHMUS_SHARED_USE_INIT;
isthmus_adopt_options c = ISTHMUS_ADOPT_OPTIONS_INIT;
isthmus_launch_shape d = ISTHMUS_LAUNCH_SHAPE_INIT;
isthmus_module_options e = ISTHMUS_MODULE_OPTIONS_INIT;
isthmus_shared_ring_options f = ISTHMUS_SHARED_RING_OPTIONS_INIT;
isthmus_shared_reader_options g = ISTHMUS_SHARED_READER_OPTIONS_INIT;
'''
UCX_INITS = '''
isthmus_ucx_options a = ISTHMUS_UCX_OPTIONS_INIT;
isthmus_ucx_offer b = ISTHMUS_UCX_OFFER_INIT;
isthmus_ucx_sent_counts c = ISTHMUS_UCX_SENT_COUNTS_INIT;
isthmus_ucx_received_counts d = ISTHMUS_UCX_RECEIVED_COUNTS_INIT;
'''
INITS = {'isthmus.h': ALL_INITS, 'isthmus_ucx.h': UCX_INITS}


def accepts(compiler, dialect, folder, text):
    language = 'c++' if dialect.startswith('c++') else 'c'
    command = compiler + ['-x', language, f'-std={dialect}', '-fsyntax-only', f'-I{folder}', *WARNINGS, '-']
    result = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    return result.returncode == 0, result.stderr


def main(source_root, *arguments):
    compilers, failed = [[]], []
    for argument in arguments:
        if argument == '--':
            compilers.append([])
        else:
            compilers[-1].append(argument)
    tried = 0
    for compiler in compilers:
        for header, folder in C_HEADERS.items():
            # Twice: a second inclusion declares nothing new.
            text = f'#include <{header}>\n#include <{header}>\n' + INITS.get(header, '')
            for dialect in ('c99', 'c11', 'c17', 'c++20'):
                tried += 1
                fine, errors = accepts(compiler, dialect, os.path.join(source_root, folder), text)
                if not fine:
                    failed.append(f'{header} as {dialect} with {compiler[-1]}:\n{errors}')
                # Shows that the check can fail.
                if accepts(compiler, dialect, os.path.join(source_root, folder), text + 'int unused(int a) { }\n')[0]:
                    failed.append(f'{compiler[-1]} accepts anything as {dialect}')
    print('\n'.join(failed) or f'{tried} combinations')
    return 1 if failed else 0


sys.exit(main(*sys.argv[1:]))
