#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each snippet of refusals.txt and compares what the compiler says. keeps L9

    refusals_test.py refusals.txt -I include … -- compiler and its options
Further compilers found on this machine are tried too, because users choose theirs.
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile


def read_snippets(path):
    prologue, snippets, current = [], [], None
    for line in open(path, encoding='utf-8').read().split('\n'):
        if line.startswith('# ') or line == '== prologue':
            continue
        if line.startswith('-- '):
            current = {'title': line[3:], 'expect': [], 'first': '', 'lines': 0, 'code': []}
            snippets.append(current)
        elif current is None:
            prologue.append(line)
        elif line.startswith('expect: '):
            current['expect'].append(line[8:])
        elif line.startswith('first: '):
            current['first'] = line[7:]
        elif line.startswith('lines: '):
            current['lines'] = int(line[7:])
        else:
            current['code'].append(line)
    return '\n'.join(prologue), snippets


def check(compiler, options, prologue, snippet):
    with tempfile.TemporaryDirectory() as folder:  # from a file, as users see it: with the lines of the source
        with open(os.path.join(folder, 'wrong.cpp'), 'w', encoding='utf-8') as file:
            file.write(prologue + '\n' + '\n'.join(snippet['code']) + '\n')
        command = compiler + ['-std=c++20', '-fsyntax-only', '-Wall'] + options + ['wrong.cpp']
        done = subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)
    if snippet['expect'] == ['compiles']:
        return done.returncode == 0 or done.stderr
    if done.returncode == 0:
        return 'it compiled'
    if snippet['first']:
        said = done.stderr.splitlines()
        error = next((line for line in said if 'error: ' in line), '')
        if 'isthmus: ' not in error or snippet['first'] not in error:
            return f'the first error is not "{snippet["first"]}":\n{done.stderr}'
        return len(said) <= snippet['lines'] or f'{len(said)} lines instead of {snippet["lines"]}:\n{done.stderr}'
    return any(text in done.stderr for text in snippet['expect']) or \
        f'none of {snippet["expect"]} is in:\n{done.stderr}'


def main():
    split = sys.argv.index('--')
    path, options, own = sys.argv[1], sys.argv[2:split], sys.argv[split + 1:]
    own = [part for part in own if part != 'ccache']
    known = {os.path.realpath(shutil.which(part) or part) for part in own}  # c++ is g++ or clang++
    compilers = [own] + [[c] for c in ('g++', 'clang++')
                         if shutil.which(c) and os.path.realpath(shutil.which(c)) not in known]
    prologue, snippets = read_snippets(path)
    if len(snippets) < 20:
        sys.exit(f'{path}: only {len(snippets)} snippets were understood')
    failed = 0
    for compiler in compilers:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            verdicts = list(pool.map(lambda snippet: check(compiler, options, prologue, snippet), snippets))
        for snippet, verdict in zip(snippets, verdicts):
            if verdict is not True:
                failed += 1
                print(f'FAILED {" ".join(compiler)}: {snippet["title"]}: {verdict}')
        print(f'{" ".join(compiler)}: {len(snippets)} snippets')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
