#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Taichi's kernels (arch=ti.cuda) on the simulated machine that ISTHMUS_SIM names, unchanged.

Taichi makes PTX with a compiler of its own and uses the driver API alone. From PyPI: `pip install taichi`.
ISTHMUS_TAICHI_PYTHON, else ISTHMUS_CLIENTS_PYTHON, names the interpreter that has it; without it the tests are skipped.

usage: taichi_test.py
"""
import os
import subprocess
import sys
import tempfile
import unittest

PYTHON = os.environ.get('ISTHMUS_TAICHI_PYTHON') or os.environ.get('ISTHMUS_CLIENTS_PYTHON') or sys.executable

# Taichi reads the sources of kernels, so that the program lies in a file.
PROGRAM = r'''
import sys
import numpy as np
import taichi as ti
ti.init(arch=ti.cuda, offline_cache=False)
assert ti.cfg.arch == ti.cuda, ti.cfg.arch

n = 128
matrices = ti.Matrix.field(3, 3, ti.f64, shape=n)
counts = ti.field(ti.i32, shape=16)
cells = ti.field(ti.f32)
ti.root.pointer(ti.ij, 4).dense(ti.ij, 8).place(cells)
loss = ti.field(ti.f32, shape=(), needs_grad=True)
x = ti.field(ti.f32, shape=n, needs_grad=True)

@ti.kernel
def invert():
    for i in matrices:
        m = ti.Matrix([[i + 1.0, 2.0, 0.5], [0.0, 3.0 + i, 1.0], [1.0, 0.0, 2.0]], ti.f64)
        matrices[i] = m.inverse() @ m

@ti.kernel
def count():
    for i in range(10000):
        ti.atomic_add(counts[i % 16], 1)

@ti.kernel
def activate():
    for i in range(32):
        if i % 8 == 0:
            cells[i, i] = i

@ti.kernel
def active() -> ti.i32:
    found = 0
    for i, j in cells:
        found += 1
    return found

@ti.kernel
def square():
    for i in x:
        loss[None] += x[i] ** 2

@ti.kernel
def mean() -> ti.f32:
    total = 0.0
    for i in range(4096):
        total += ti.random()
    return total / 4096

@ti.kernel
def triple(v: ti.types.ndarray()):
    for i in v:
        v[i] *= 3

@ti.kernel
def says():
    for i in range(1):
        print('kernel says', i + 41)

invert()
assert np.allclose(matrices.to_numpy(), np.eye(3)[None])
print('inverts_matrices')
count()
assert (counts.to_numpy() == 625).all()
print('updates_atomically')
activate()
assert active() == 4 * 64
print('fills_sparse_fields')
x.from_numpy(np.arange(n, dtype=np.float32))
with ti.ad.Tape(loss):
    square()
assert np.allclose(x.grad.to_numpy(), 2 * np.arange(n))
print('differentiates')
assert 0.45 < mean() < 0.55
print('draws_random_numbers')
v = np.ones(1000, np.float32)
triple(v)
assert (v == 3).all()
print('takes_arrays_of_numpy')
says()
ti.sync()
'''

WANTED = ['inverts_matrices', 'updates_atomically', 'fills_sparse_fields', 'differentiates', 'draws_random_numbers',
          'takes_arrays_of_numpy', 'kernel says 41']


class Taichi(unittest.TestCase):
    def test_taichi_compiles_and_runs_kernels(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'program.py')
            with open(path, 'w', encoding='utf-8') as file:
                file.write(PROGRAM)
            # Taichi opens libcuda.so, which the folder of the simulator does not have.
            folders = os.environ.get('LD_LIBRARY_PATH', '').split(':')
            for found in [os.path.join(each, 'libcuda.so.1') for each in folders]:
                if os.path.exists(found) and not os.path.lexists(os.path.join(folder, 'libcuda.so')):
                    os.symlink(os.path.abspath(found), os.path.join(folder, 'libcuda.so'))
            environment = dict(os.environ, HOME=folder, LD_LIBRARY_PATH=':'.join([folder, *folders]))
            done = subprocess.run([PYTHON, path], capture_output=True, text=True, timeout=300, check=False,
                                  env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in WANTED:
            self.assertIn(line, done.stdout)
        self.assertNotIn('isthmus simulator', done.stderr)


if __name__ == '__main__':
    if subprocess.run([PYTHON, '-c', 'import taichi'], capture_output=True, check=False).returncode != 0:
        print('taichi is not installed: skipped')
        sys.exit(77)
    unittest.main(verbosity=2)
