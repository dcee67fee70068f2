#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a small CMake project whose kernels come through isthmus_add_kernels, with and without nvcc, and runs it.

    cmake_test.py IsthmusKernels.cmake NVCC-or-'' -I include …
"""
import os
import subprocess
import sys
import tempfile
import unittest

MODULE, NVCC, INCLUDES = sys.argv[1], sys.argv[2], [i[2:] for i in sys.argv[3:]]
FILES = {
    'CMakeLists.txt': '''cmake_minimum_required(VERSION 3.20)
project(consumer CXX)
include("{module}")
add_executable(consumer main.cpp)
target_include_directories(consumer PRIVATE {includes})
target_compile_definitions(consumer PRIVATE OFFSET=5)
isthmus_add_kernels(consumer double.cpp {options})
''',
    'double.cpp': '''#include <isthmus/kernel.hpp>
#include "factor.hpp"
namespace demo {
using namespace isthmus;
ISTHMUS_KERNEL(twice, Index i, View<int> values) { values[i] = values[i] * factor + OFFSET; }
}
''',
    'factor.hpp': 'constexpr int factor = 2;\n',
    'main.cpp': '''#include <isthmus/kernel.hpp>
#include <cstdio>
namespace demo { ISTHMUS_DECLARE_KERNEL(twice, isthmus::Index i, isthmus::View<int> values); }
int main() {
    int values[] = {1, 2, 3};
    const auto pack = isthmus::KernelTraits<void(isthmus::Index, isthmus::View<int>)>::pack({values, 3});
    const isthmus::KernelInfo& info = demo::twice.info();
    info.twin({3, 1, 1}, 0, 3, &pack);
    std::printf("%d %s %s %s", values[2], info.image->name, info.image->has_gpu_code ? "gpu" : "cpu", info.image->hash);
}
''',
}


class Consumer(unittest.TestCase):
    def build_and_run(self, options):
        with tempfile.TemporaryDirectory() as folder:
            values = {'module': MODULE, 'includes': ' '.join(f'"{i}"' for i in INCLUDES), 'options': options}
            for name, text in FILES.items():
                with open(os.path.join(folder, name), 'w', encoding='utf-8') as f:
                    f.write(text.format(**values) if name == 'CMakeLists.txt' else text)
            build = os.path.join(folder, 'build')
            self.run_command('cmake', '-S', folder, '-B', build, f'-DISTHMUS_NVCC={NVCC or "NOTFOUND"}')
            self.run_command('cmake', '--build', build)
            first = self.run_command(os.path.join(build, 'consumer')).split()
            with open(os.path.join(folder, 'factor.hpp'), 'w', encoding='utf-8') as f:
                f.write('constexpr int factor = 3;\n')
            self.run_command('cmake', '--build', build)
            return first, self.run_command(os.path.join(build, 'consumer')).split()

    def run_command(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_without_nvcc_the_kernels_run_on_the_cpu(self):
        first, second = self.build_and_run('NO_GPU')
        self.assertEqual(first[:3], ['11', 'double.cpp', 'cpu'])
        self.assertEqual(second[:3], ['14', 'double.cpp', 'cpu'])

    @unittest.skipUnless(NVCC, 'there is no nvcc')
    def test_gpu_code_is_embedded_and_follows_a_changed_header(self):
        first, second = self.build_and_run('ARCHITECTURES ptx')
        self.assertEqual(first[:3], ['11', 'double.cpp', 'gpu'])
        self.assertEqual(second[:3], ['14', 'double.cpp', 'gpu'])
        self.assertNotEqual(first[3], second[3])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
