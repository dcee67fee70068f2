#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a built library or program what it needs and what it shows, with readelf and nm.

usage: product_test.py QUESTION READELF FILE...
needs:    shared libraries beyond those that every machine has
exports:  dynamic symbols outside namespace isthmus and the prefix isthmus_
c-…:      the same of the interface in C, which exports no C++; and that its SONAME ends with 1
gst-exports: symbols of the GStreamer plugin beside its entry: a process has other plugins, and their C++ libraries
imports:  functions that print, end the process or start a thread, which a library leaves to its user. pthread_create is
          lawful: RuntimeOptions::cpu_threads asks for workers (tests/unit/cpu counts the threads without it)
versions: symbol versions newer than glibc 2.35 and GLIBCXX_3.4.30 (JetPack 6)
"""
import re
import subprocess
import sys

ALLOWED_NEEDS = re.compile(r'^(libc|libm|libgcc_s|libstdc\+\+|libdl|libpthread|libnuma|ld-linux[\w-]*)\.so')
ALLOWED_EXPORT = re.compile(r'^(isthmus_|_ZN[KRO]*7isthmus|_ZT[IVS]N7isthmus|ISTHMUS_\d+)')
C_NEEDS = re.compile(ALLOWED_NEEDS.pattern + r'|^libisthmus(-c|-ucx)?\.so')
C_EXPORT = re.compile(r'^(isthmus_[a-z0-9_]+|ISTHMUS_C(_UCX)?_1)$')
GST_EXPORT = re.compile(r'^gst_plugin_isthmus_(get_desc|register)$')
FORBIDDEN_IMPORT = re.compile(r'^(stdout|stderr|_ZSt4(cout|cerr|clog)|(__)?(printf|fprintf|vprintf|vfprintf|dprintf)(_chk)?|'
                              r'puts|putchar|fputs|fputc|fwrite|perror|syslog|exit|_exit|_Exit|quick_exit|abort|__assert_fail|'
                              r'_ZNSt6thread\w*)$')
NEWEST = {'GLIBC': (2, 35), 'GLIBCXX': (3, 4, 30), 'CXXABI': (1, 3, 13), 'GCC': (12, 0, 0)}


def output(*command):
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


def unlawful_needs(text, allowed=ALLOWED_NEEDS):
    return [name for name in re.findall(r'\(NEEDED\).*\[(.+?)\]', text) if not allowed.match(name)]


def other_soname(text):
    return [name for name in re.findall(r'\(SONAME\).*\[(.+?)\]', text) or ['none']
            if not re.fullmatch(r'libisthmus-c(-camera|-ucx)?\.so\.1', name)]


def unlawful_exports(text, allowed=ALLOWED_EXPORT):
    found = []
    for line in text.splitlines():
        # Num: Value Size Type Bind Vis Ndx Name
        columns = line.split()
        if len(columns) >= 8 and columns[0].rstrip(':').isdigit() and columns[6] != 'UND' and columns[4] != 'LOCAL':
            name = columns[7].split('@')[0]
            if not allowed.match(name):
                found.append(name)
    return found


def unlawful_imports(text):
    rows = [line.split() for line in text.splitlines()]
    names = [row[7].split('@')[0] for row in rows if len(row) >= 8 and row[6] == 'UND']
    return [name for name in names if FORBIDDEN_IMPORT.match(name)]


def too_new(text):
    found = []
    for family, number in re.findall(r'Name: ([A-Z]+)_([0-9.]+)', text):
        version = tuple(int(part) for part in number.split('.'))
        if family in NEWEST and version > NEWEST[family]:
            found.append(f'{family}_{number}')
    return found


CHECKS = {
    'needs': (['-d', '-W'], unlawful_needs, '(NEEDED) [libcuda.so.1]', '(NEEDED) [libc.so.6]'),
    'exports': (['--dyn-syms', '-W'], unlawful_exports, ' 7: 0 0 FUNC WEAK DEFAULT 12 _ZNSt6vectorIiE4sizeEv',
                ' 7: 0 0 FUNC GLOBAL DEFAULT 12 _ZN7isthmus2v04nameEv@@ISTHMUS_0'),
    'c-needs': (['-d', '-W'], lambda text: unlawful_needs(text, C_NEEDS), '(NEEDED) [libcuda.so.1]', '(NEEDED) [libisthmus.so.0]'),
    'c-exports': (['--dyn-syms', '-W'], lambda text: unlawful_exports(text, C_EXPORT),
                  ' 7: 0 0 FUNC GLOBAL DEFAULT 12 _ZN7isthmus2v04nameEv', ' 7: 0 0 FUNC GLOBAL DEFAULT 12 isthmus_version@@ISTHMUS_C_1'),
    'c-soname': (['-d', '-W'], other_soname, '(SONAME) [libisthmus-c.so.1.0]', '(SONAME) [libisthmus-c.so.1]'),
    'gst-exports': (['--dyn-syms', '-W'], lambda text: unlawful_exports(text, GST_EXPORT),
                    ' 7: 0 0 FUNC WEAK DEFAULT 12 _ZN3fmt2v96detailE',
                    ' 7: 0 0 FUNC GLOBAL DEFAULT 12 gst_plugin_isthmus_get_desc'),
    'imports': (['--dyn-syms', '-W'], unlawful_imports, ' 7: 0 0 OBJECT GLOBAL DEFAULT UND stderr@GLIBC_2.2.5 (3)',
                ' 7: 0 0 FUNC GLOBAL DEFAULT UND dlopen@GLIBC_2.34 (3)'),
    'versions': (['--version-info', '-W'], too_new, '  Name: GLIBC_2.36  Flags', '  Name: GLIBC_2.35  Flags'),
}


def main(question, readelf, *files):
    options, unlawful, bad, good = CHECKS[question]
    if not unlawful(bad) or unlawful(good):
        sys.exit(f'this check of {question} cannot tell good from bad')
    failed = False
    for file in files:
        text = output(readelf, *options, file)
        if not text.strip():
            sys.exit(f'{readelf} says nothing of {file}')
        for name in unlawful(text):
            failed = True
            print(f'{file}: {question}: {name}')
    sys.exit(1 if failed else 0)


main(*sys.argv[1:])
