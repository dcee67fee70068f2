#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the binary interface of libisthmus with the recorded one in packaging/abi, by abidiff (libabigail): the symbols
that the library exports, and the layouts of the types of its public headers.

The layouts come from a library that is made here: a function for each public class, and for some instances of the
templates, so that no build with debugging information is needed. Weak and unique symbols, which are inline functions and
variables of headers, are left out: a compiler emits them or not. Both records are of the compiler of Debian 12 on x86-64.

usage: library_abi.py ROOT ABIDIFF ABIDW LIBRARY GENERATED CXX [ARGUMENT...]            compare
       library_abi.py ROOT ABIDIFF ABIDW LIBRARY GENERATED CXX [ARGUMENT...] --record   write the records anew
       library_abi.py … --self-test     records into a folder of its own, and expects that changes are found

GENERATED: the folder of the headers that the build makes (BUILD/runtime/vocabulary)
"""
import glob
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile

RECORDS = 'packaging/abi'
BEFORE_NAME = r'(?:class|struct) (?:\[\[nodiscard\]\] )?(?:ISTHMUS_API )?'
INSTANCES = ['Buffer<int>', 'BufferPart<int>', 'TypedBuffer<int>', 'HostView<int>', 'View<int>', 'Result<int>',
             'FrameRing<int>', 'SharedFrameRing<int>', 'SharedFrameReader<int>', 'GrowableBuffer<int>']
LEAST_CLASSES = 100


def public_folders(root):
    return [os.path.join(root, 'runtime/vocabulary'), *sorted(glob.glob(os.path.join(root, 'runtime/*/include')))]


def public_headers(folders):
    """Names as programs include them."""
    return sorted({os.path.relpath(path, folder) for folder in folders
                   for path in glob.glob(os.path.join(folder, 'isthmus', '**', '*.hpp'), recursive=True)})


def classes_in(text):
    """Qualified names of the classes that are defined at the level of a namespace, without `detail` and templates."""
    namespaces, before, found = [], '', []
    for line in text.splitlines():
        opened = re.match(r'(?:inline )?namespace ([\w:]+) \{', line)
        defined = re.match(BEFORE_NAME + r'(\w+)(?: final)?(?: : [^;{]*)? \{', line)
        if opened:
            namespaces.append(opened[1])
        elif re.match(r'\}  // namespace', line) and namespaces:
            namespaces.pop()
        elif defined and 'detail' not in namespaces and not before.startswith('template'):
            found.append('::'.join([*namespaces, defined[1]]))
        before = line.strip() or before
    return found


def source_of(folders):
    headers, classes, all_text = public_headers(folders), set(), ''
    for folder in folders:
        for path in glob.glob(os.path.join(folder, 'isthmus', '**', '*.hpp'), recursive=True):
            with open(path, encoding='utf-8') as file:
                text = file.read()
            all_text += text
            classes.update(classes_in(text))
    instances = [one for one in INSTANCES if re.search(BEFORE_NAME + one.partition('<')[0] + r'\b', all_text)]
    if len(classes) < LEAST_CLASSES or len(instances) < len(INSTANCES) - 1:
        sys.exit(f'{len(classes)} classes and {instances} were found in the public headers')
    lines = [f'#include <{name}>' for name in headers]
    for at, name in enumerate([*sorted(classes), *(f'isthmus::{one}' for one in instances)]):
        shown = re.sub(r'\W+', '_', name)
        lines.append(f'extern "C" __attribute__((visibility("default"))) void shown_{shown}({name}*) {{}}')
    return '\n'.join(lines) + '\n', len(classes) + len(instances)


class Tools:
    def __init__(self, abidiff, abidw, generated, compiler):
        self.abidiff, self.abidw, self.generated, self.compiler = abidiff, abidw, generated, compiler

    def written(self, library, *more):
        with tempfile.NamedTemporaryFile(suffix='.abi') as out:
            subprocess.run([self.abidw, '--no-show-locs', '--no-comp-dir-path', '--no-corpus-path', '--no-architecture',
                            '--no-elf-needed', *more, '--out-file', out.name, library], check=True)
            return out.read().decode()

    def types(self, folders):
        text, count = source_of(folders)
        with tempfile.TemporaryDirectory() as work:
            source, library = os.path.join(work, 'types.cpp'), os.path.join(work, 'libisthmus-types.so')
            with open(source, 'w', encoding='utf-8') as file:
                file.write(text)
            subprocess.run([*self.compiler, '-x', 'c++', '-std=c++20', '-g', '-O0', '-w', '-fPIC', '-shared',
                            '-fvisibility=hidden', '-Wl,--unresolved-symbols=ignore-all',
                            *(f'-I{folder}' for folder in folders), f'-I{self.generated}', '-o', library, 'types.cpp'],
                           check=True, cwd=work)
            public = [word for folder in folders for word in ('--hd', folder)]
            return self.written(library, '--drop-private-types', *public), count

    def symbols(self, library):
        with tempfile.TemporaryDirectory() as work:
            bare = os.path.join(work, 'libisthmus.so')
            subprocess.run(['strip', '-o', bare, library], check=True)
            lines = self.written(bare).splitlines(keepends=True)
        kept = [line for line in lines if not re.search("binding='(weak|gnu-unique)-binding'", line)]
        return ''.join(kept), sum('<elf-symbol ' in line for line in kept)

    def differences(self, old, new):
        with tempfile.TemporaryDirectory() as work:
            paths = [os.path.join(work, name) for name in ('recorded.abi', 'now.abi')]
            for path, text in zip(paths, (old, new)):
                with open(path, 'w', encoding='utf-8') as file:
                    file.write(text)
            done = subprocess.run([self.abidiff, '--no-show-locs', '--no-architecture', '--no-corpus-path', *paths],
                                  text=True, capture_output=True, check=False)
        if done.returncode & 3:
            sys.exit(f'abidiff failed: {done.stderr}')
        return done.stdout if done.returncode else ''


def record_path(folder, what):
    return os.path.join(folder, f'libisthmus-{what}.abi.xz')


def read(folder, what):
    with lzma.open(record_path(folder, what), 'rt', encoding='utf-8') as file:
        return file.read()


def write(folder, what, text):
    os.makedirs(folder, exist_ok=True)
    with lzma.open(record_path(folder, what), 'wt', encoding='utf-8', preset=9) as file:
        file.write(text)


def compare(tools, folder, now):
    found = {what: tools.differences(read(folder, what), text) for what, text in now.items()}
    return ''.join(f'{what} of libisthmus changed:\n{text}\n' for what, text in found.items() if text)


def self_test(tools, root, now):
    """A member of another type, and a symbol less, are found; the same is not."""
    with tempfile.TemporaryDirectory() as work:
        for what, text in now.items():
            write(work, what, text)
        if compare(tools, work, now):
            sys.exit('the same interface was found to have changed')
        symbol = re.search(r"^.*<elf-symbol name='_ZN7isthmus[^\n]*\n", now['symbols'], re.M)[0]
        if 'symbols' not in compare(tools, work, {'symbols': now['symbols'].replace(symbol, '')}):
            sys.exit(f'nobody missed {symbol}')
        copies = []
        for at, folder in enumerate(public_folders(root)):
            copies.append(os.path.join(work, 'headers', str(at)))
            shutil.copytree(os.path.join(folder, 'isthmus'), os.path.join(copies[-1], 'isthmus'))
        (header,) = [path for folder in copies if os.path.exists(path := os.path.join(folder, 'isthmus/observer.hpp'))]
        with open(header, encoding='utf-8') as file:
            text = file.read()
        changed = text.replace('std::uint32_t device = 0;', 'std::uint64_t device = 0;')
        assert changed != text
        with open(header, 'w', encoding='utf-8') as file:
            file.write(changed)
        if 'ObservedFacts' not in compare(tools, work, {'types': tools.types(copies)[0]}):
            sys.exit('another size of a member was not found')
    print('changes are found')
    return 0


def main(root, abidiff, abidw, library, generated, *compiler):
    flags = {word for word in compiler if word in ('--record', '--self-test')}
    tools = Tools(abidiff, abidw, generated, [word for word in compiler if word not in flags])
    types, classes = tools.types(public_folders(root))
    symbols, count = tools.symbols(library)
    now, folder = {'types': types, 'symbols': symbols}, os.path.join(root, RECORDS)
    if '--self-test' in flags:
        return self_test(tools, root, now)
    if '--record' in flags:
        for what, text in now.items():
            write(folder, what, text)
    found = compare(tools, folder, now)
    if found:
        print(found + f'Programs that were compiled before may break. If this is meant: isthmus_soversion grows '
              f'(docs/releasing.md), and {os.path.basename(__file__)} … --record')
        return 1
    print(f'{count} symbols and {classes} types as recorded')
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
