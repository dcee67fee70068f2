#!/usr/bin/env python3
"""Reads every #include and refuses those that no corridor allows (docs/architecture.md): the build keeps rooms apart by
include directories, this keeps them apart by name, "../" included.

usage: corridors.py SOURCE_ROOT [--self-test]
"""
import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
SUFFIXES = ('.cpp', '.hpp', '.h', '.c', '.def')
BACKENDS = r'(platform/)?(cuda|cpu|sim)/'

# Where a file lies (the longest prefix counts), and what it may not include. "public" stands for headers under
# runtime/include, "private" for platform/ headers, "cuda" for the toolkit's, "backend" for the rooms of the backends,
# "abi" for what the CUDA backend and the simulator share.
RULES = {
    'runtime/vocabulary/': {'public', 'platform', 'cuda', 'backend', 'third-party', 'machines', 'abi'},
    'runtime/include/': {'platform', 'cuda', 'backend', 'third-party', 'machines', 'operating-system', 'abi'},
    'runtime/': {'cuda', 'backend', 'third-party', 'machines', 'abi'},
    'platform/interface/': {'public', 'cuda', 'backend', 'third-party', 'machines', 'abi'},
    'platform/os/': {'public', 'cuda', 'backend', 'third-party', 'machines', 'abi'},
    'platform/table/': {'public', 'cuda', 'backend', 'third-party', 'machines', 'operating-system', 'abi'},
    'platform/cpu/': {'public', 'cuda', 'backend', 'third-party', 'machines', 'abi'},
    'platform/cuda/': {'public', 'cuda', 'backend', 'third-party', 'machines'},
    'platform/machines/': {'public', 'platform', 'cuda', 'backend', 'operating-system', 'abi'},
    'platform/sim/': {'public', 'platform', 'backend'},
    'platform/abi/': {'public', 'platform', 'cuda', 'backend', 'third-party', 'machines', 'operating-system'},
    'platform/driver_list.cpp': {'public', 'cuda', 'third-party', 'machines'},
    'kernels/': {'platform', 'cuda', 'backend', 'third-party', 'machines', 'operating-system', 'abi'},
    'tools/': {'platform', 'cuda', 'backend', 'abi'},
    # They show machines that are not this one, from their records: no runtime has them open.
    'tools/command/caps/caps_render.cpp': {'cuda', 'backend', 'abi'},
    'tools/command/caps/caps_screen.cpp': {'cuda', 'backend', 'abi'},
    'tools/command/caps/machines_page.cpp': {'cuda', 'backend', 'abi'},
    'examples/': {'platform', 'cuda', 'backend', 'machines', 'abi'},
    'tests/conformance/': {'platform', 'cuda', 'backend', 'machines'},
}
OPERATING_SYSTEM = re.compile(r'^(sys/|linux/|unistd\.h|fcntl\.h|dlfcn\.h|pthread\.h|numa|signal\.h|poll\.h|sched\.h)')
THIRD_PARTY = re.compile(r'^(nlohmann/|fmt/|CLI/|gtest/|gmock/|benchmark/)')
CUDA = re.compile(r'^(cuda|cuda_runtime|cudaTypedefs|driver_types|nvml)[\w/]*\.h$')


def kind_of(name, vocabulary):
    if name.startswith('isthmus/'):
        return 'vocabulary' if name in vocabulary else 'public'
    if name == 'cuda/atomic':  # libcu++, for GPU code alone: the toolkit's, and no room of ours
        return 'own'
    if CUDA.match(name):
        return 'cuda'
    if THIRD_PARTY.match(name):
        return 'third-party'
    if name.startswith('driver_abi/'):
        return 'abi'
    if name.startswith('machines/'):
        return 'machines'
    if re.match(BACKENDS, name):
        return 'backend'
    if name.startswith('platform/'):
        return 'platform'
    if OPERATING_SYSTEM.match(name):
        return 'operating-system'
    return 'own'


def refusals(path, text, vocabulary):
    """The includes of the file at `path` (relative to the root) that lead where it may not go."""
    room = max((prefix for prefix in RULES if path.startswith(prefix)), key=len, default=None)
    found = []
    for quote, name in INCLUDE.findall(text):
        kind = kind_of(name, vocabulary)
        if os.path.basename(os.path.dirname(path)) == 'pch' and re.fullmatch(r'\.\./\w+\.hpp', name):
            continue  # what a room precompiles of its own; the build gives quoted names no other folder there
        if '..' in name.split('/') or name.startswith('/'):
            found.append(f'{path}: "{name}" walks around the include directories')
        elif room and kind in RULES[room]:
            # Those that compare our declarations with the toolkit's.
            if kind == 'cuda' and re.fullmatch(r'platform/cuda/\w+_check\.cpp', path):
                continue
            found.append(f'{path}: {name} ({kind}) is not for {room}')
        elif quote == '"' and path.startswith(('runtime/vocabulary/', 'runtime/include/')) and path.endswith('.hpp'):
            found.append(f'{path}: "{name}": public headers name each other by <isthmus/...>')
    return found


def vocabulary_of(root):
    folder = os.path.join(root, 'runtime/vocabulary/isthmus')
    names = {f'isthmus/{name}' for name in os.listdir(folder) if name.endswith('.hpp')}
    return names | {'isthmus/version.hpp'}


def check_tree(root):
    vocabulary = vocabulary_of(root)
    found, files = [], 0
    for top in ('runtime', 'platform', 'kernels', 'tools', 'examples', 'bench', 'tests'):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith(SUFFIXES):
                    path = os.path.join(folder, name)
                    with open(path, encoding='utf-8') as file:
                        found += refusals(os.path.relpath(path, root), file.read(), vocabulary)
                    files += 1
    return found, files


def self_test(root):
    """A wrong include of every kind is seen, and the right one beside it is not."""
    vocabulary = vocabulary_of(root)
    wrong = [('runtime/stream.cpp', '#include "cuda/api.hpp"'), ('runtime/stream.cpp', '#include <cuda.h>'),
             ('runtime/include/isthmus/view.hpp', '#include <platform/driver.hpp>'),
             ('runtime/include/isthmus/view.hpp', '#include "event.hpp"'),
             ('platform/os/host_pages.cpp', '#include <isthmus/buffer.hpp>'),
             ('platform/cuda/api.cpp', '#include "../sim/engine.hpp"'), ('platform/cuda/api.cpp', '#include <cuda.h>'),
             ('platform/cpu/cpu_driver.cpp', '#  include "sim/engine.hpp"'),
             ('runtime/vocabulary/isthmus/facts.hpp', '#include <nlohmann/json.hpp>'),
             ('runtime/pch/prelude.hpp', '#include "../../platform/cuda/api.hpp"'),
             ('platform/sim/errors.cpp', '#include <cuda/abi_values.hpp>'),
             ('platform/sim/errors.cpp', '#include <platform/driver.hpp>'),
             ('runtime/front/runtime.cpp', '#include <driver_abi/sim_control.h>'),
             ('tools/command/main.cpp', '#include <platform/driver.hpp>')]
    right = [('runtime/stream.cpp', '#include <platform/driver.hpp>'), ('runtime/stream.cpp', '#include "operation.hpp"'),
             ('platform/cuda/abi_check.cpp', '#include <cuda.h>'), ('platform/cuda/api.cpp', '#include "abi.hpp"'),
             ('platform/driver_list.cpp', '#include "cuda/cuda_driver.hpp"'),
             ('platform/sim/errors.cpp', '#include <driver_abi/results.def>'),
             ('platform/sim/call.hpp', '#include "engine/engine.hpp"'),
             ('runtime/pch/prelude.hpp', '#include "../operation.hpp"'),
             ('platform/os/host_pages.cpp', '#include <isthmus/result.hpp>'), ('tools/command/main.cpp', '#include <CLI/CLI.hpp>')]
    return ([f'not seen: {path}: {text}' for path, text in wrong if not refusals(path, text, vocabulary)] +
            [f'wrongly refused: {path}: {text}' for path, text in right if refusals(path, text, vocabulary)])


root = sys.argv[1]
if '--self-test' in sys.argv:
    found, files = self_test(root), 1
else:
    found, files = check_tree(root)
print('\n'.join(found) or f'{files} files keep to their corridors')
sys.exit(1 if found or files == 0 else 0)
