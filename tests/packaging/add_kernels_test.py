#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CMake projects whose kernels come through isthmus_add_kernels, in the shapes that real projects have. Nothing of the
library is linked: the programs run their kernels' twins. keeps W9

    add_kernels_test.py IsthmusKernels.cmake NVCC-or-'' -I include …
"""
import os
import subprocess
import sys
import tempfile
import unittest

MODULE, NVCC, INCLUDES = sys.argv[1], sys.argv[2], [i[2:] for i in sys.argv[3:]]
HEAD = f'''cmake_minimum_required(VERSION 3.20)
project(consumer CXX)
include("{MODULE}")
include_directories({' '.join(f'"{i}"' for i in INCLUDES)})
'''
RUN = '''#include <isthmus/kernel.hpp>
using Doubled = void(isthmus::Index, isthmus::View<int>);
inline int value_of(const isthmus::Kernel<Doubled>& kernel) {
    int value = 5;
    const auto pack = isthmus::KernelTraits<Doubled>::pack({&value, 1});
    kernel.info().twin({1, 1, 1}, 0, 1, &pack);
    return kernel.info().image == nullptr ? -1 : value;
}
'''
KERNEL = '''#include <isthmus/kernel.hpp>
ISTHMUS_KERNEL({name}, isthmus::Index i, isthmus::View<int> values) {{ values[i] = values[i] {does}; }}
'''
DECLARE = 'ISTHMUS_DECLARE_KERNEL({name}, isthmus::Index i, isthmus::View<int> values);\n'
ADD_TWO = KERNEL.format(name='change', does='+ 2')


def main_of(*kernels):
    """A program that prints what each kernel makes of 5."""
    prints = ''.join(f'    std::printf("%d ", value_of({name}));\n' for name in kernels)
    return '#include "run.hpp"\n#include <cstdio>\n' + ''.join(DECLARE.format(name=n) for n in kernels) + \
        'int main() {\n' + prints + '}\n'


class AddKernels(unittest.TestCase):
    def configure(self, folder, files, *options):
        for name, text in {'run.hpp': RUN, **files}.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text)
        command = ['cmake', '-S', folder, '-B', os.path.join(folder, 'build'), '-G', 'Unix Makefiles', *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def output(self, files, *programs, options=('-DISTHMUS_NVCC=NOTFOUND',)):
        """Builds the project and returns what the programs print."""
        with tempfile.TemporaryDirectory() as folder:
            done = self.configure(folder, files, *options)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            build = os.path.join(folder, 'build')
            done = subprocess.run(['cmake', '--build', build], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            printed = [subprocess.run([os.path.join(build, name)], capture_output=True, text=True, check=True).stdout
                       for name in programs]
            return [text.split() for text in printed]

    def test_one_source_in_two_targets_of_a_folder(self):
        files = {'CMakeLists.txt': HEAD + '''
add_executable(one main.cpp)
add_executable(two main.cpp)
target_compile_definitions(two PRIVATE MORE=100)
isthmus_add_kernels(one change.cpp NO_GPU)
isthmus_add_kernels(two change.cpp NO_GPU)
''', 'main.cpp': main_of('change'), 'change.cpp': '''#ifndef MORE
#define MORE 2
#endif
''' + KERNEL.format(name='change', does='+ MORE')}
        self.assertEqual(self.output(files, 'one', 'two'), [['7'], ['105']])

    def test_two_sources_of_one_name_in_a_target(self):
        files = {'CMakeLists.txt': HEAD + '''
add_executable(one main.cpp)
isthmus_add_kernels(one left/change.cpp right/change.cpp NO_GPU)
''', 'main.cpp': main_of('left', 'right'), 'left/change.cpp': KERNEL.format(name='left', does='* 3'),
                 'right/change.cpp': KERNEL.format(name='right', does='- 1')}
        self.assertEqual(self.output(files, 'one'), [['15', '4']])

    def test_kernels_added_in_a_folder_below_the_target(self):
        files = {'CMakeLists.txt': HEAD + '''
add_executable(one main.cpp)
add_subdirectory(below)
target_include_directories(one PRIVATE given_later)  # known when the build files are written
''', 'below/CMakeLists.txt': 'isthmus_add_kernels(one change.cpp NO_GPU)\n', 'main.cpp': main_of('change'),
                 'below/change.cpp': '#include "later.hpp"\n' + KERNEL.format(name='change', does='+ LATER'),
                 'given_later/later.hpp': '#define LATER 4\n'}
        self.assertEqual(self.output(files, 'one'), [['9']])

    def test_a_shared_library_and_what_linked_libraries_bring(self):
        files = {'CMakeLists.txt': HEAD + '''
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/made)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/made/made.hpp
  COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/made.in ${CMAKE_BINARY_DIR}/made/made.hpp)
add_custom_target(make_header DEPENDS ${CMAKE_BINARY_DIR}/made/made.hpp)
add_library(settings INTERFACE)
target_include_directories(settings INTERFACE ${CMAKE_BINARY_DIR}/made)
target_compile_definitions(settings INTERFACE BROUGHT=30)
add_dependencies(settings make_header)
add_library(parts SHARED parts.cpp)
set_target_properties(parts PROPERTIES CXX_VISIBILITY_PRESET hidden)
target_link_libraries(parts PRIVATE settings)
isthmus_add_kernels(parts change.cpp NO_GPU)
add_executable(one main.cpp)
target_link_libraries(one PRIVATE parts)
''', 'made.in': '#define MADE 1\n', 'change.cpp': '#include "made.hpp"\n' + KERNEL.format(
            name='change', does='+ BROUGHT + MADE'),
                 'parts.cpp': '#include "run.hpp"\n' + DECLARE.format(name='change') +
                 'extern "C" [[gnu::visibility("default")]] int run_part() { return value_of(change); }\n',
                 'main.cpp': '#include <cstdio>\nextern "C" int run_part();\nint main() { std::printf("%d", run_part()); }\n'}
        self.assertEqual(self.output(files, 'one'), [['36']])

    def test_a_source_that_is_added_twice_is_refused_by_name(self):
        files = {'CMakeLists.txt': HEAD + '''
add_executable(one main.cpp)
isthmus_add_kernels(one change.cpp NO_GPU)
isthmus_add_kernels(one change.cpp NO_GPU)
''', 'main.cpp': main_of('change'), 'change.cpp': ADD_TWO}
        with tempfile.TemporaryDirectory() as folder:
            done = self.configure(folder, files)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn('one already has the kernels of', done.stderr)

    def test_a_missing_nvcc_is_said_once_and_is_an_error_where_gpu_code_is_required(self):
        calls = 'add_executable(one main.cpp)\nisthmus_add_kernels(one change.cpp {})\n' \
                'isthmus_add_kernels(one other.cpp {})\n'
        files = {'main.cpp': main_of('change', 'other'), 'change.cpp': ADD_TWO,
                 'other.cpp': KERNEL.format(name='other', does='* 2')}
        for first, second, options, works, said in (
                ('', '', [], True, 1), ('NO_GPU', 'NO_GPU', [], True, 0), ('NO_GPU', 'REQUIRE_GPU', [], False, 0),
                ('', '', ['-DISTHMUS_REQUIRE_GPU=ON'], False, 0),
                ('NO_GPU', 'NO_GPU', ['-DISTHMUS_REQUIRE_GPU=ON'], True, 0),
                ('NO_GPU', 'NO_GPU REQUIRE_GPU', [], False, 0)):
            with self.subTest(first=first, second=second, options=options), tempfile.TemporaryDirectory() as folder:
                files['CMakeLists.txt'] = HEAD + calls.format(first, second)
                done = self.configure(folder, files, '-DISTHMUS_NVCC=NOTFOUND', *options)
                self.assertEqual(done.returncode == 0, works, done.stderr)
                text = ' '.join(done.stderr.split())
                self.assertEqual(text.count('no nvcc was found, so kernels run'), said, text)
                if not works and 'NO_GPU REQUIRE_GPU' not in second:
                    self.assertIn('GPU code is required', text)

    @unittest.skipUnless(NVCC, 'there is no nvcc')
    def test_with_nvcc_each_target_has_code_for_its_own_definitions(self):
        files = {'CMakeLists.txt': HEAD + '''
add_executable(one main.cpp)
add_executable(two main.cpp)
target_compile_definitions(one PRIVATE MORE=2)
target_compile_definitions(two PRIVATE MORE=100)
isthmus_add_kernels(one change.cpp ARCHITECTURES ptx REQUIRE_GPU)
isthmus_add_kernels(two change.cpp ARCHITECTURES ptx REQUIRE_GPU)
''', 'main.cpp': '#include "run.hpp"\n#include <cstdio>\n' + DECLARE.format(name='change') +
                 'int main() { std::printf("%d %s", value_of(change), change.info().image->hash); }\n',
                 'change.cpp': KERNEL.format(name='change', does='+ MORE')}
        one, two = self.output(files, 'one', 'two', options=(f'-DISTHMUS_NVCC={NVCC}',))
        self.assertEqual([one[0], two[0]], ['7', '105'])
        self.assertNotEqual(one[1], two[1])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
