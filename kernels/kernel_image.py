#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the GPU image of one kernel source and the two files that embed it in a program.

    isthmus-kernel-image SOURCE --symbol isthmus_image_scale --image scale.fatbin --assembly scale.S
                         --definition scale_image.cpp [--depfile scale.d]
                         [--nvcc nvcc --arch 90 --arch ptx -I include … | --prebuilt scale.fatbin]
    isthmus-kernel-image --nvcc nvcc --print-architectures

--nvcc compiles the image; --prebuilt uses an existing one. With neither the image is a placeholder that names the
source, and kernels run on CPU devices and simulated machines only.
"""
import argparse
import hashlib
import os
import re
import subprocess
import sys

PROGRAM = 'isthmus-kernel-image'  # as installed
WANTED = ['75', '80', '86', '87', '89', '90', '100', '103', '110', '120', '121']
PTX_BASELINE = '75'  # every GPU since Turing can run it, also a GPU newer than the compiler


def parse_arguments():
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('source', nargs='?')
    parser.add_argument('--symbol', help='C name of the KernelImage')
    parser.add_argument('--name', help='name of the source in messages; default: its file name')
    parser.add_argument('--image', help='output: the image')
    parser.add_argument('--assembly', help='output: assembly that embeds the image')
    parser.add_argument('--definition', help='output: C++ that defines the KernelImage')
    parser.add_argument('--depfile', help='output: dependencies in the form of make')
    parser.add_argument('--nvcc', default='', help='the GPU compiler; empty: none')
    parser.add_argument('--arch', action='append', default=[], help="such as 87; 'ptx': code for GPUs to come; 'all' (the default): those that nvcc knows")
    parser.add_argument('--prebuilt', default='', help='an image that was compiled before')
    parser.add_argument('-I', dest='include', action='append', default=[])
    parser.add_argument('-D', dest='define', action='append', default=[])
    parser.add_argument('--nvcc-option', action='append', default=[])
    parser.add_argument('--print-architectures', action='store_true', help="what 'all' means with this nvcc")
    a = parser.parse_args()
    needed = [] if a.print_architectures else ['source', 'symbol', 'image', 'assembly', 'definition']
    missing = [name for name in needed if not getattr(a, name)]
    if missing:
        parser.error('missing: ' + ', '.join(missing))
    # The symbol is written into C++ and assembly unchanged.
    if needed and not re.fullmatch('[A-Za-z_][A-Za-z0-9_]*', a.symbol):
        parser.error(f'--symbol {a.symbol!r}: a name of C is wanted: letters, digits and _, the first one no digit')
    return a


def all_architectures(nvcc):
    known = subprocess.run([nvcc, '--list-gpu-code'], capture_output=True, text=True, check=True).stdout.split()
    return [arch for arch in WANTED if 'sm_' + arch in known] + ['ptx']


def major_version(nvcc):
    text = subprocess.run([nvcc, '--version'], capture_output=True, text=True, check=True).stdout
    return int(text.split('release ')[1].split('.')[0])


def code_options(architectures):
    options = []
    for arch in architectures:
        if arch == 'ptx':
            options += ['-gencode', f'arch=compute_{PTX_BASELINE},code=compute_{PTX_BASELINE}']
        else:
            options += ['-gencode', f'arch=compute_{arch},code=sm_{arch}']
    return options


def compile_image(a):
    """Runs nvcc; returns the files that the image depends on."""
    # -fmad=false: the CPU twin has no fused multiply-add either, so that both give the same bits.
    command = [a.nvcc, '-x', 'cu', '-std=c++20', '-fatbin', '-fmad=false', '-t', '0', '-MMD', '-MF', a.image + '.d']
    # Code from CUDA 13 needs a driver that reads this compression anyway; code from nvcc 12 must load on older drivers.
    if major_version(a.nvcc) >= 13:
        command.append('--compress-mode=size')
    architectures = all_architectures(a.nvcc) if a.arch in ([], ['all']) else a.arch
    command += code_options(architectures) + a.nvcc_option + ['-I' + d for d in a.include] + ['-D' + d for d in a.define]
    done = subprocess.run(command + [a.source, '-o', a.image], check=False)
    if done.returncode != 0:
        sys.exit(f'{PROGRAM}: {a.nvcc} could not compile {a.source} for the GPU (exit status {done.returncode})')
    with open(a.image + '.d', encoding='utf-8') as f:
        rule = f.read().replace('\\\n', ' ')
    return rule.split(':', 1)[1].split()


def as_c_string(text):
    """The characters between the quotes of a C string."""
    return ''.join(c if ' ' <= c <= '~' and c not in '"\\?' else ''.join(f'\\{b:03o}' for b in c.encode(errors='surrogateescape'))
                   for c in text)


def write_if_changed(path, text):
    if os.path.exists(path):
        with open(path, encoding='utf-8') as f:
            if f.read() == text:
                return
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def main():
    a = parse_arguments()
    if a.print_architectures:
        print(' '.join(all_architectures(a.nvcc)))
        return
    name = as_c_string(a.name or os.path.basename(a.source))
    comment = name.replace('*/', '*_/')
    depends = [a.source]
    with open(a.source, 'rb') as f:
        source = f.read()
    has_gpu_code = bool(a.nvcc or a.prebuilt)
    if a.prebuilt:
        depends.append(a.prebuilt)
        with open(a.prebuilt, 'rb') as f:
            content = f.read()
        if not content:
            sys.exit(f'{PROGRAM}: the prebuilt image {a.prebuilt} is empty')
        with open(a.image, 'wb') as f:
            f.write(content)
    elif a.nvcc:
        depends += compile_image(a)
        with open(a.image, 'rb') as f:
            content = f.read()
    else:
        content = f'no GPU code: {name} {hashlib.sha256(source).hexdigest()}\n'.encode()
        with open(a.image, 'wb') as f:
            f.write(content)
    digest = hashlib.sha256(content).hexdigest()

    path = as_c_string(os.path.abspath(a.image))
    write_if_changed(a.assembly, f'''/* {comment}, sha256 {digest}: the hash makes this file, and what is built from it, change with the image. */
    .section .rodata
    .balign 16
    .globl {a.symbol}_data
    .hidden {a.symbol}_data
    .type {a.symbol}_data, %object
{a.symbol}_data:
    .incbin "{path}"
    .size {a.symbol}_data, {len(content)}
    .section .note.GNU-stack, "", %progbits
''')
    write_if_changed(a.definition, f'''// The embedded image of {name}.
#include <isthmus/kernel_info.hpp>

extern "C" {{
extern const unsigned char {a.symbol}_data[];
// Of this shared library alone, as the kernels that name it.
[[gnu::visibility("hidden")]] extern const isthmus::KernelImage {a.symbol};
constinit const isthmus::KernelImage {a.symbol} = {{{a.symbol}_data, {len(content)},
    "{digest}", "{name}", {'true' if has_gpu_code else 'false'}}};
}}
''')
    if a.depfile:
        with open(a.depfile, 'w', encoding='utf-8', errors='surrogateescape') as f:
            f.write(a.image + ': ' + ' '.join(dict.fromkeys(depends)) + '\n')


if __name__ == '__main__':
    try:
        main()
    except OSError as error:
        sys.exit(PROGRAM + ': ' + (f'{error.filename}: {error.strerror}' if error.filename else str(error)))
    except subprocess.CalledProcessError as error:
        sys.exit(f'{PROGRAM}: {" ".join(error.cmd)} failed (exit status {error.returncode})')
