#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CUB's block and device algorithms, compiled by NVRTC for the simulated machine that ISTHMUS_SIM names.

From PyPI: `pip install "cuda-core[cu13]" "nvidia-cuda-nvrtc==13.0.*" "nvidia-cuda-cccl==13.0.*"
"nvidia-cuda-runtime==13.0.*"`. ISTHMUS_NUMBA_PYTHON, else ISTHMUS_CLIENTS_PYTHON, names the interpreter that has them;
without them, and with a CUB of another version, whose kernels have other parameters, the test is skipped.

usage: cub_nvrtc_test.py PROGRAM FOLDER
PROGRAM: test_ptx_cub, which runs PTX; FOLDER: the sources (tests/unit/ptx/known)
"""
import os
import subprocess
import sys
import tempfile

PYTHON = os.environ.get('ISTHMUS_NUMBA_PYTHON') or os.environ.get('ISTHMUS_CLIENTS_PYTHON') or sys.executable
COMPILE = r'''
import pathlib
import re
import sys
try:
    import nvidia
    from cuda.core import Device, Program, ProgramOptions
except ImportError as error:
    print(error)
    sys.exit(77)
folders = [pathlib.Path(root) / 'cu13' / 'include' for root in nvidia.__path__]
headers = next((one for one in folders if (one / 'cccl' / 'cub' / 'version.cuh').exists()), None)
if headers is None:
    print('the headers of CUB are not installed')
    sys.exit(77)
version = re.search(r'define CUB_VERSION (\d+)', (headers / 'cccl' / 'cub' / 'version.cuh').read_text())
if version is None or version[1] != '300001':
    print('another version of CUB')
    sys.exit(77)
arch = 'compute_%d%d' % tuple(Device().compute_capability)
options = ProgramOptions(arch=arch, std='c++17', include_path=[str(headers / 'cccl'), str(headers)])
for source, target in zip(sys.argv[1::2], sys.argv[2::2]):
    code = Program(pathlib.Path(source).read_text(), code_type='c++', options=options).compile('ptx').code
    pathlib.Path(target).write_bytes(code if isinstance(code, bytes) else code.encode())
'''

program, folder = sys.argv[1:3]
with tempfile.TemporaryDirectory() as place:
    texts = [os.path.join(place, name) for name in ('blocks.ptx', 'device.ptx')]
    sources = [os.path.join(folder, name) for name in ('cub_blocks.cu', 'cub_device_nvrtc.cu')]
    made = subprocess.run([PYTHON, '-c', COMPILE, sources[0], texts[0], sources[1], texts[1]], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    if made.returncode != 0:
        print(made.stdout, made.stderr)
        sys.exit(made.returncode)
    sys.exit(subprocess.run([program, *texts], check=False).returncode)
