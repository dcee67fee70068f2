#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles one public header by itself, as a careful user would.

usage: check_header.py HEADER INCLUDE_DIR... -- COMPILER [ARGUMENT...] [-- COMPILER...]
"""
import subprocess
import sys

STRICT = ['-std=c++20', '-Wall', '-Wextra', '-Wpedantic', '-Wshadow', '-Wconversion', '-Wno-sign-conversion', '-Werror']
# Strict C++20; the dialect of embedded users once, for the header that includes all others.
STRICT_ONLY = [[]]
WITH_EMBEDDED = [[], ['-fno-exceptions', '-fno-rtti']]
# Through them every other header is read. They are compiled with each compiler, the others with the first: whether a
# header includes what it uses is the same question for all.
ALL = ('isthmus/isthmus.hpp', 'isthmus/kernel.hpp')


def compile_text(compiler, options, include_dirs, text):
    command = compiler + STRICT + options + [f'-I{path}' for path in include_dirs] + ['-fsyntax-only', '-x', 'c++', '-']
    return subprocess.run(command, input=text, text=True, capture_output=True, check=False)


def main(arguments):
    groups = [[]]
    for argument in arguments:
        if argument == '--':
            groups.append([])
        else:
            groups[-1].append(argument)
    header, *include_dirs = groups[0]
    compilers = groups[1:]
    failed = False
    for compiler in compilers if header in ALL else compilers[:1]:
        for options in WITH_EMBEDDED if header == 'isthmus/isthmus.hpp' else STRICT_ONLY:
            # Twice: a second inclusion must declare nothing new.
            result = compile_text(compiler, options, include_dirs, f'#include <{header}>\n#include <{header}>\n')
            if result.returncode != 0:
                failed = True
                print(f'{header} does not stand alone with {" ".join(compiler + options)}:\n{result.stderr}')
        # Shows that the check can fail: a header that uses what it does not include is refused.
        if compile_text(compiler, [], include_dirs, 'std::string unknown;\n').returncode == 0:
            failed = True
            print(f'{" ".join(compiler)} accepts anything')
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
