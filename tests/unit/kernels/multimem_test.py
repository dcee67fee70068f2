#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles kernels with multimem functions for the GPU: with their instructions for compute capability 9.0, and not at
all for older ones. keeps V14

    multimem_test.py NVCC-or-'' -I include …
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

NVCC, INCLUDES = sys.argv[1] or shutil.which('nvcc') or '/usr/local/cuda/bin/nvcc', sys.argv[2:]
HEAD = '#include <isthmus/kernel.hpp>\n#include <isthmus/mapping/multimem.hpp>\nnamespace demo {\nusing namespace isthmus;\n'
KERNEL = '''ISTHMUS_KERNEL(combine_{number}, Index i, Out<{type}> out, std::uint64_t object) {{
    {type}* const word = multimem_at<{type}>(object, i);
    {body}
}}
'''
OPERATIONS = ('add', 'min', 'max', 'and', 'or', 'xor')
WORDS = {'std::int32_t': ('s32', 'b32', 'u32'), 'std::uint32_t': ('u32', 'b32', 'u32'),
         'std::int64_t': ('s64', 'b64', 'u64'), 'std::uint64_t': ('u64', 'b64', 'u64')}
EVERY = 'multimem_store(word, out[i]);' + ''.join(
    f'out[i] = multimem_load_{name}(word); multimem_{name}(word, out[i]);' for name in OPERATIONS)
SUM = 'multimem_store(word, 1); multimem_add(word, 2); out[i] = multimem_load_add(word);'


class Multimem(unittest.TestCase):
    def setUp(self):
        if not os.access(NVCC, os.X_OK):
            self.skipTest('there is no nvcc')
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def compile(self, kernels, arch='sm_90', form='-ptx'):
        source, made = os.path.join(self.folder, 'k.cpp'), os.path.join(self.folder, 'made')
        with open(source, 'w', encoding='utf-8') as f:
            f.write(HEAD + ''.join(KERNEL.format(number=number, type=type, body=body)
                                   for number, (type, body) in enumerate(kernels)) + '}\n')
        done = subprocess.run([NVCC, '-std=c++20', '-x', 'cu', '-arch=' + arch, form, '-o', made,
                               '-DISTHMUS_KERNEL_IMAGE=image_k', *INCLUDES, source],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return False, done.stderr + done.stdout
        with open(made, 'rb') as f:
            return True, f.read().decode('latin-1')

    def test_every_function_is_its_instruction(self):
        kernels = [(type, EVERY) for type in WORDS] + [('float', SUM), ('double', SUM)]
        worked, text = self.compile(kernels)
        self.assertTrue(worked, text)
        for ordered, bits, total in WORDS.values():
            for name in OPERATIONS:
                word = total if name == 'add' else ordered if name in ('min', 'max') else bits
                self.assertIn(f'multimem.ld_reduce.relaxed.sys.global.{name}.{word} ', text)
                self.assertIn(f'multimem.red.relaxed.sys.global.{name}.{word} ', text)
            self.assertIn(f'multimem.st.relaxed.sys.global.{bits} ', text)
        for word in ('f32', 'f64'):
            for form in ('ld_reduce.relaxed.sys.global.add.', 'red.relaxed.sys.global.add.', 'st.relaxed.sys.global.'):
                self.assertIn(f'multimem.{form}{word} ', text)
        self.assertTrue(self.compile(kernels, form='-cubin')[0], 'the assembler takes them')

    def test_before_compute_capability_9_nothing_compiles(self):
        bodies = ('out[i] = multimem_load_add(word);', 'multimem_add(word, 1);', 'multimem_store(word, 1);')
        worked, text = self.compile([('float', body) for body in bodies], arch='sm_80')
        self.assertFalse(worked)
        self.assertGreaterEqual(text.count('multimem instructions need compute capability 9.0'), 3)

    def test_other_words_and_operations_are_refused(self):
        worked, text = self.compile([('float', 'out[i] = multimem_load_min(word);'), ('float', 'multimem_or(word, 1);'),
                                     ('std::int16_t', 'multimem_store(word, 1);'), ('char', 'multimem_store(word, 1);')])
        self.assertFalse(worked)
        self.assertGreaterEqual(text.count('its other operations take integers'), 2)
        self.assertGreaterEqual(text.count('a multimem store takes words of 4 or 8 bytes'), 2)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
