#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/glossary.md calls a name of isthmus stands in the public headers: `Class::member` in one header with both.
The terms that programmers of CUDA look for stand in its table CUDA → isthmus.

usage: glossary_test.py SOURCE_ROOT
"""
import pathlib
import re
import sys

CUDA = re.compile(r'^(?:cuda|cu[A-Z]|CU|__)')

# What programmers of CUDA look for.
SEARCHED = ['zero-copy', 'pinned', 'unified memory', 'CUDA graph', 'cudaMallocHost', 'cudaMallocManaged', 'cudaHostRegister',
            'cudaStreamWaitEvent', 'cudaIpcGetMemHandle', 'cudaMemPrefetchAsync', 'cudaMemAdvise', 'cudaGraphLaunch']


def names_in(page):
    """Of the tables: (line, name) in the columns about isthmus, between backticks."""
    for number, line in enumerate(page.splitlines(), 1):
        cells = line.split(' | ')
        if line.startswith('|') and len(cells) > 1 and not line.startswith('| term'):
            for text in re.findall(r'`([^`]+)`', cells[1]):
                if re.fullmatch(r'\w+(?:::\w+)?', text) and not CUDA.match(text):
                    yield number, text


def main():
    root = pathlib.Path(sys.argv[1])
    headers = [set(re.findall(r'\w+', re.sub(r'//.*', '', path.read_text(encoding='utf-8'))))
               for pattern in ('runtime/*/include/isthmus/**/*.h*', 'runtime/vocabulary/isthmus/*.hpp')
               for path in root.glob(pattern) if not {'detail', 'protocol'} & set(path.parts)]
    page = (root / 'docs/glossary.md').read_text(encoding='utf-8')
    names = list(names_in(page))
    wrong = [f'docs/glossary.md:{line}: {name} is in no public header' for line, name in names
             if not any(set(name.split('::')) <= words for words in headers)]
    cuda = '\n'.join(line.split(' | ')[0] for line in page[page.index('## CUDA → isthmus'):].splitlines())
    wrong += [f'docs/glossary.md: no row of CUDA → isthmus has {term}' for term in SEARCHED if term not in cuda]
    if len(names) < 100:
        wrong.append(f'docs/glossary.md: only {len(names)} names were found')
    print('\n'.join(wrong) or f'{len(names)} names')
    return 1 if wrong else 0


sys.exit(main())
