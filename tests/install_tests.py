#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the test programs with what they load, laid out as in the build, and a script that runs them.

Called by `meson install` where -Dinstall_tests=true. usage: install_tests.py LIBEXEC_DIR
"""
import json
import os
import shlex
import shutil
import sys

RUNNER = '''#!/bin/sh
# Runs the installed tests: with the simulator, or with --real on this machine's own driver. A name or a part of one
# chooses. Exit code 0 when none failed.
here=$(cd "$(dirname "$0")" && pwd)
ISTHMUS_CUDA_LIBRARY=$here/platform/sim/libcuda.so.1
ISTHMUS_PROFILE=none   # a profile of this machine would change what the tests expect
export ISTHMUS_CUDA_LIBRARY ISTHMUS_PROFILE
real=
if [ "${1:-}" = --real ]; then real=yes ISTHMUS_TEST_REAL=1; export ISTHMUS_TEST_REAL; unset ISTHMUS_CUDA_LIBRARY; shift; fi
chosen=${1:-}
passed=0 failed=0 skipped=0
run() {
    name=$1; shift
    case $name in *"$chosen"*) ;; *) return ;; esac
    # One program at a time: a GPU is not shared between tests.
    output=$(env "$@" 2>&1); status=$?
    case $status in
        0) passed=$((passed + 1)); echo "passed  $name" ;;
        77) skipped=$((skipped + 1)); echo "skipped $name" ;;
        *) failed=$((failed + 1)); echo "FAILED  $name ($status)"; printf '%s\\n' "$output" ;;
    esac
}
'''
ENDING = '''echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
'''


def copy(build, destination, path):
    target = os.path.join(destination, os.path.relpath(path, build))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy2(path, target, follow_symlinks=False)


def main(libexec):
    build = os.environ['MESON_BUILD_ROOT']
    destination = os.path.join(os.environ['MESON_INSTALL_DESTDIR_PREFIX'], libexec, 'isthmus', 'tests')
    with open(os.path.join(build, 'meson-info', 'intro-tests.json'), encoding='utf-8') as file:
        tests = json.load(file)
    lines, copied = [], set()
    for test in tests:
        program = os.path.realpath(next((word for word in test['cmd'] if word.startswith(build)), '/'))
        # Tests that are scripts check the sources and the build, so they do not apply elsewhere. Programs that get
        # files of the build as arguments would not find them.
        others = [word for word in test['cmd'] if word.startswith(build) and os.path.realpath(word) != program]
        if not program.startswith(os.path.join(build, 'tests')) or not os.path.isfile(program) or others:
            continue
        if program not in copied:
            copy(build, destination, program)
            copied.add(program)
        arguments = test['cmd'][test['cmd'].index(next(w for w in test['cmd'] if os.path.realpath(w) == program)) + 1:]
        variables = []
        for key, value in test['env'].items():
            places = []
            for part in value.split(os.pathsep):
                inside = part.startswith(build + os.sep)
                if inside and os.path.isfile(part) and part not in copied:
                    copy(build, destination, part)
                    copied.add(part)
                places.append('"$here"/' + shlex.quote(os.path.relpath(part, build)) if inside else shlex.quote(part))
            variables.append(f'{key}={os.pathsep.join(places)}')
        # Tests on simulated machines do not apply to a real driver.
        simulated = any(suite.split(':')[-1] == 'simulated' for suite in test['suite'])
        lines.append(('[ -n "$real" ] || ' if simulated else '') + f'run {shlex.quote(test["name"])} '
                     f'{" ".join(variables)} "$here"/{shlex.quote(os.path.relpath(program, build))} '
                     f'{shlex.join(arguments)}'.rstrip())
    for folder in ('runtime', 'bindings/c', 'bindings/ucx', 'platform/sim', 'tests/unit/kernels'):  # libraries that programs are linked with
        top = os.path.join(build, folder)
        for name in os.listdir(top) if os.path.isdir(top) else []:
            if '.so' in name and not os.path.isdir(os.path.join(top, name)) and '.symbols' not in name:
                copy(build, destination, os.path.join(top, name))
    script = os.path.join(destination, 'run-tests')
    with open(script, 'w', encoding='utf-8') as file:
        file.write(RUNNER + '\n'.join(lines) + '\n' + ENDING)
    os.chmod(script, 0o755)
    print(f'Installing {len(copied)} programs for tests to {destination}')


main(sys.argv[1])
