#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program with the libisthmus of a folder instead of the one that it was linked with.

usage: with_library.py FOLDER PROGRAM [ARGUMENT...]
"""
import os
import shlex
import subprocess
import sys

folder, *command = sys.argv[1:]
folders = [folder, *filter(None, [os.environ.get('LD_LIBRARY_PATH')])]
environment = dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join(folders))
sys.exit(subprocess.run(shlex.split(os.environ.get('MESON_EXE_WRAPPER', '')) + command, env=environment,
                        check=False).returncode)
