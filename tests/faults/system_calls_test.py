#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what the library imports from the system against what failing_system.c can make fail, so that a new system call
does not stay untested. usage: system_calls_test.py NM LIBRARY
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Not system calls, or system calls whose failure cannot be acted on.
NOT_FAILED = re.compile(r'''^(
    _Z\w+ | __cxa_\w+ | __gxx_\w+ | _Unwind_\w+ | _ITM_\w+ | __gmon_start__ | __stack_chk_fail | __libc_single_threaded |
    __errno_location | __tls_get_addr | __cmsg_nxthdr | (__)?mem\w+ | (__)?str\w+ | secure_getenv | getenv | free | malloc | bcmp |
    qsort | __?v?snprintf\w* | __aarch64_\w+ | __\w+[dst]i2 | __isoc\d+_\w+ |
    munmap | munlock | close | closedir |                       # giving back: a leak by definition
    dlsym | dlerror | dlclose |                                 # a missing function: tests/unit/cuda
    pthread_(attr|mutex|cond|rwlock|once|self|getspecific|setspecific|key_create|key_delete|join|sigmask)\w* |
    sigfillset | fegetenv | fesetenv |                          # fail for no argument that is passed here
    __register_atfork | getpid | gettid | geteuid | getuid | nanosleep | clock_nanosleep | clock_gettime | sched_yield |
    \w*printf\w*
)$''', re.X)


def failing():
    with open(os.path.join(HERE, 'failing_system.c'), encoding='utf-8') as source:
        text = source.read()
    return set(re.findall(r'^CALL\([^,]+, (\w+),', text, re.M)) | set(re.findall(r'planned\("(\w+)"', text))


def main(nm, library):
    listed = subprocess.run([nm, '-D', '--undefined-only', library], text=True, capture_output=True, check=True).stdout
    imported = {line.split()[-1].split('@')[0] for line in listed.splitlines() if line.split()}
    known = failing()
    unknown = sorted(name for name in imported if name not in known and not NOT_FAILED.match(name))
    if unknown:
        print('imported, but never made to fail: ' + ' '.join(unknown))
        print('give each a line in tests/faults/failing_system.c, or say in system_calls_test.py why not')
    played = sorted(known & imported)
    print(f'{len(played)} of the library\'s imports can fail: {" ".join(played)}')
    return 1 if unknown or len(played) < 10 else 0


sys.exit(main(*sys.argv[1:3]))
