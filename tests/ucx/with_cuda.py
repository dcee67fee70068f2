#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays ucx_device_test on simulated machines with a UCX that was built with CUDA, which Debian's was not.

usage: with_cuda.py BUILD UCX_LIBRARIES

UCX_LIBRARIES is the folder with libucp.so.0, such as libucx/lib of PyPI's libucx-cu13. UCX opens the simulated driver as
libcuda.so.1; a stand-in takes the place of NVML.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# The last with what UCX may use in one machine, and with fragments as small as UCX's own: slow, and no end of the
# connection.
ROUNDS = (('h200', 'tcp,cuda_copy', None), ('h200-x2', 'tcp,cuda_copy', None), ('orin', 'tcp,cuda_copy', None),
          ('thor', 'tcp,cuda_copy', None), ('h200', 'tcp,sm,self,cuda_copy', '8k'))


def main():
    if len(sys.argv) != 3 or not os.path.exists(os.path.join(sys.argv[2], 'libucp.so.0')):
        sys.exit(__doc__)
    build, ucx = (os.path.abspath(path) for path in sys.argv[1:])
    simulator = os.path.join(build, 'platform/sim')
    passed = 0
    with tempfile.TemporaryDirectory() as beside:
        subprocess.run([os.environ.get('CC', 'cc'), '-shared', '-fPIC', '-o', os.path.join(beside, 'libnvidia-ml.so.1'),
                        os.path.join(HERE, 'no_nvml.c')], check=True)
        for machine, transports, fragments in ROUNDS:
            environment = {**os.environ, 'LD_LIBRARY_PATH': ':'.join((ucx, beside, simulator)), 'ISTHMUS_SIM': machine,
                           'ISTHMUS_CUDA_LIBRARY': os.path.join(simulator, 'libcuda.so.1'), 'UCX_TLS': transports,
                           'UCX_NET_DEVICES': 'lo', 'UCX_HANDLE_ERRORS': 'none', 'UCX_VFS_ENABLE': 'n',
                           'UCX_LOG_LEVEL': 'fatal', 'ISTHMUS_UCX_CUDA': '1'}
            for variable in ('UCX_MEMTYPE_CACHE', 'UCX_TCP_TX_SEG_SIZE'):  # a program does not have to know them
                environment.pop(variable, None)
            if fragments:
                environment['UCX_TCP_TX_SEG_SIZE'] = fragments
            ran = subprocess.run([os.path.join(build, 'tests/ucx/ucx_device_test')], env=environment, timeout=600,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if ran.returncode != 0:
                sys.exit(f'{ran.stdout}\n{machine}, {transports}: exit code {ran.returncode}')
            passed += ran.stdout.count('[       OK ]')
    machines = len({machine for machine, _, _ in ROUNDS})
    print(f'{passed} tests passed on {machines} simulated machines, frames into device memory by UCX with CUDA')


if __name__ == '__main__':
    main()
