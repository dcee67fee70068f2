#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kernels of tests/unit/ptx/kernels once more, compiled by NVRTC for the simulated machine that ISTHMUS_SIM names.

From PyPI: `pip install "cuda-core[cu13]" "nvidia-cuda-nvrtc==13.0.*" "nvidia-cuda-cccl==13.0.*"
"nvidia-cuda-runtime==13.0.*"`. ISTHMUS_NUMBA_PYTHON, else ISTHMUS_CLIENTS_PYTHON, names the interpreter that has them;
without them the test is skipped. NVRTC has no alloca.

usage: kernels_nvrtc_test.py PROGRAM FOLDER
PROGRAM: test_sim_kernels; FOLDER: the sources
"""
import os
import subprocess
import sys
import tempfile

PYTHON = os.environ.get('ISTHMUS_NUMBA_PYTHON') or os.environ.get('ISTHMUS_CLIENTS_PYTHON') or sys.executable
COMPILE = r'''
import pathlib
import sys
try:
    import nvidia
    from cuda.core import Device, Program, ProgramOptions
except ImportError as error:
    print(error)
    sys.exit(77)
folders = [pathlib.Path(root) / 'cu13' / 'include' for root in nvidia.__path__]
headers = next((one for one in folders if (one / 'cccl' / 'cuda' / 'barrier').exists()), None)
if headers is None:
    print('the headers of libcu++ are not installed')
    sys.exit(77)
major, minor = Device().compute_capability
options = ProgramOptions(arch='compute_%d%d' % (major, minor), std='c++17',
                         include_path=[str(headers / 'cccl'), str(headers)])
needed = {'heap': 7, 'textures': 7, 'barriers': 8, 'clusters': 9, 'small_floats': 9}
for name in (name for name, least in needed.items() if major >= least):
    source = pathlib.Path(sys.argv[1]) / (name + '.cu')
    code = Program(source.read_text(), code_type='c++', options=options).compile('ptx').code
    (pathlib.Path(sys.argv[2]) / (name + '.ptx')).write_bytes(code if isinstance(code, bytes) else code.encode())
'''

program, folder = sys.argv[1:3]
with tempfile.TemporaryDirectory() as place:
    made = subprocess.run([PYTHON, '-c', COMPILE, folder, place], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=300)
    if made.returncode != 0:
        print(made.stdout, made.stderr)
        sys.exit(made.returncode)
    sys.exit(subprocess.run([program, '--gtest_filter=SimKernel*:-SimKernelStack.*'], check=False,
                            env=dict(os.environ, ISTHMUS_TEST_PTX=place)).returncode)
