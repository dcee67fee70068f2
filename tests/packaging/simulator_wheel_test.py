#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel isthmus-simulator in a fresh environment: it runs a program on a simulated machine, without the runtime."""
import pathlib
import subprocess
import sys
import tempfile
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = '''
import ctypes, sys
cuda = ctypes.CDLL(sys.argv[1])
name = ctypes.create_string_buffer(64)
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetName(name, 64, 0) == 0
print(name.value.decode())
if len(sys.argv) > 2:
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0 and cuda.cuStreamDestroy_v2(stream) == 0
    cuda.cuStreamDestroy_v2(stream)
sys.exit(7)
'''


def main() -> None:
    library = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        sys.path.insert(0, str(ROOT / 'packaging' / 'simulator'))
        import simulator_backend
        wheel = folder / simulator_backend.build_wheel(name, {'library': str(library)})
        names = zipfile.ZipFile(wheel).namelist()
        assert not [each for each in names if 'libisthmus' in each], names
        venv.create(folder / 'environment', with_pip=True)
        binaries = folder / 'environment' / 'bin'
        subprocess.run([binaries / 'pip', 'install', '--quiet', '--no-index', '--no-deps', wheel], check=True)

        def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [binaries / 'isthmus-simulate', *arguments]
            return subprocess.run(command, capture_output=True, text=True, cwd=folder)

        python = [sys.executable, '-c', PROGRAM]
        for library_name in ('libcuda.so.1', 'libcuda.so'):
            orin = simulate('--machine', 'orin', '--', *python, library_name)
            assert orin.returncode == 7 and 'Orin' in orin.stdout, orin
        h200 = simulate('--machine', 'h200', '--', *python, 'libcuda.so.1')
        assert h200.returncode == 7 and 'H200' in h200.stdout, h200
        strict = simulate('--machine', 'h200', '--strict', '--', *python, 'libcuda.so.1', 'twice')
        assert strict.returncode == 134 and 'already destroyed' in strict.stderr, strict
        unknown = simulate('--machine', 'nothing', '--', *python, 'libcuda.so.1')
        assert unknown.returncode == 1 and 'ISTHMUS_SIM=nothing' in unknown.stderr, unknown
        assert simulate('--machine', 'orin', '--', './absent').returncode == 127
        assert simulate('--', 'true').returncode == 2  # no machine is named


if __name__ == '__main__':
    main()
