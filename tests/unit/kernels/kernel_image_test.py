#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs kernel_image.py as a build would and looks at what it made.

    kernel_image_test.py kernel_image.py NVCC-or-'' -I include …
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT, NVCC, INCLUDES = sys.argv[1], sys.argv[2], sys.argv[3:]
KERNEL = '''#include <isthmus/kernel.hpp>
#include "factor.hpp"
namespace demo {{
using namespace isthmus;
ISTHMUS_KERNEL(scale, Index i, View<float> out) {{ out[i] *= factor + {number}; }}
}}
'''


class KernelImage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix='kernel image ')  # with a space, as folder names may have
        self.addCleanup(self.folder.cleanup)
        self.write('factor.hpp', 'constexpr float factor = 2;\n')

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as f:
            f.write(text)

    def read(self, name, mode='r'):
        with open(self.path(name), mode) as f:
            return f.read()

    def make(self, *options, number=0, expect=0):
        self.write('k.cpp', KERNEL.format(number=number))
        done = subprocess.run([SCRIPT, self.path('k.cpp'), '--symbol', 'image_k', '--image', self.path('k.fatbin'),
                               '--assembly', self.path('k.S'), '--definition', self.path('k_image.cpp'),
                               '--depfile', self.path('k.d'), *options], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        if expect:
            return done.stderr
        found = re.search(r'"([0-9a-f]{64})", "k\.cpp", (true|false)', self.read('k_image.cpp'))
        self.assertIn(found.group(1), self.read('k.S'))
        return found.groups()

    def gpu_options(self):
        if not NVCC:
            self.skipTest('there is no nvcc')
        return ['--nvcc', NVCC, '--arch', 'ptx', *INCLUDES]

    def test_a_placeholder_has_no_gpu_code_and_changes_with_the_source(self):
        first, has_code = self.make()
        self.assertEqual(has_code, 'false')
        self.assertTrue(self.read('k.fatbin').startswith('no GPU code: k.cpp '))
        self.assertEqual(self.make()[0], first)
        self.assertNotEqual(self.make(number=1)[0], first)

    def test_unchanged_output_is_not_written_again(self):
        self.make()
        before = os.stat(self.path('k.S')).st_mtime_ns
        self.make()
        self.assertEqual(os.stat(self.path('k.S')).st_mtime_ns, before)

    def test_nvcc_makes_a_fatbin_whose_hash_follows_source_and_headers(self):
        options = self.gpu_options()
        first, has_code = self.make(*options)
        self.assertEqual(has_code, 'true')
        self.assertEqual(self.read('k.fatbin', 'rb')[:4], b'\x50\xed\x55\xba')
        self.assertNotEqual(self.make(*options, number=1)[0], first)
        self.write('factor.hpp', 'constexpr float factor = 3;\n')
        self.assertNotEqual(self.make(*options)[0], first)
        self.assertIn('kernel.hpp', self.read('k.d'))
        self.assertIn('factor.hpp', self.read('k.d'))

    def test_a_kernel_that_nvcc_refuses_is_an_error_that_names_the_source(self):
        options = self.gpu_options()
        self.assertIn('k.cpp', self.make(*options, number='nonsense', expect=1))

    def test_a_prebuilt_image_is_taken_as_it_is(self):
        self.write('old.fatbin', 'as if it were code')
        self.assertEqual(self.make('--prebuilt', self.path('old.fatbin'))[1], 'true')
        self.assertEqual(self.read('k.fatbin'), 'as if it were code')
        self.assertIn('old.fatbin', self.read('k.d'))

    def refused(self, source, symbol, says):
        done = subprocess.run([SCRIPT, source, '--symbol', symbol, '--image', self.path('k.fatbin'),
                               '--assembly', self.path('k.S'), '--definition', self.path('k_image.cpp')],
                              capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(says, done.stderr)
        self.assertNotIn('Traceback', done.stderr)
        self.assertFalse(os.path.exists(self.path('k_image.cpp')))

    def test_a_source_that_is_not_there_is_one_line(self):
        missing = self.path('missing.cpp')
        self.refused(missing, 'image_k', f'isthmus-kernel-image: {missing}: No such file')

    def test_a_symbol_that_is_no_name_of_c_is_refused(self):
        self.write('k.cpp', KERNEL.format(number=0))
        for symbol in ('', '1k', 'a-b', 'a b', 'k;', 'k\n.globl main', 'k\n', 'größe', 'a::b', '"'):
            with self.subTest(symbol=symbol):
                self.refused(self.path('k.cpp'), symbol, 'symbol')

    def test_names_that_c_would_read_otherwise_still_compile(self):
        if shutil.which('c++') is None:
            self.skipTest('there is no c++ here')
        for name in ('a"b.cpp', 'a\\b.cpp', 'a*/b.cpp', 'a\nb.cpp', 'größe.cpp'):
            with self.subTest(name=name):
                self.write('k.cpp', KERNEL.format(number=0))
                done = subprocess.run([SCRIPT, self.path('k.cpp'), '--symbol', 'image_k', '--name', name,
                                       '--image', self.path('k.fatbin'), '--assembly', self.path('k.S'),
                                       '--definition', self.path('k_image.cpp')],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                done = subprocess.run(['c++', '-std=c++20', '-fsyntax-only', *INCLUDES, self.path('k_image.cpp')],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_compiler_that_is_not_there_is_one_line(self):
        self.assertIn('/nonexistent/nvcc', self.make('--nvcc', '/nonexistent/nvcc', expect=1))
        self.assertNotIn('Traceback', self.make('--nvcc', '/bin/false', expect=1))

    def test_an_empty_prebuilt_image_is_refused(self):
        self.write('old.fatbin', '')
        self.assertIn('empty', self.make('--prebuilt', self.path('old.fatbin'), expect=1))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
