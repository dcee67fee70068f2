#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual pages name exactly the options and subcommands that the programs' --help names, in its words, and each
program that the Debian packages install has one there.

usage: manual_pages_test.py SOURCE_ROOT BUILD_ROOT PROGRAM...
"""
import difflib
import importlib.machinery
import importlib.util
import pathlib
import re
import sys

source, build = map(pathlib.Path, sys.argv[1:3])
loader = importlib.machinery.SourceFileLoader('manual_pages', str(source / 'tools' / 'scripts' / 'manual-pages'))
pages = importlib.util.module_from_spec(importlib.util.spec_from_loader('manual_pages', loader))
sys.dont_write_bytecode = True
loader.exec_module(pages)
failures = []


def names_in(lines):
    """The options at the beginning of lines, and the subcommands."""
    found = []
    for line in lines:
        if re.match(r' {2}-|\.B -', line):
            begins = re.match(r'(?:--?[a-zA-Z][\w-]*(?:, *| +|$))+', line[2:].strip())
            found += re.findall(r'(?<![\w-])--?[a-zA-Z][\w-]*', begins[0]) if begins else []
    return sorted(set(found))


def help_names(command):
    text = pages.help_of(command)
    names = {'': names_in(text.splitlines())}
    for subcommand, _ in pages.parsed(text)[2].get('subcommands', []):
        names[subcommand] = [name for name in names_in(pages.help_of([*command, subcommand]).splitlines())
                             if name not in ('-h', '--help')]
    return names


def page_names(text):
    parts = re.split(r'^\.SS (\S+)$', text, flags=re.M)
    return {name: names_in(part.splitlines()) for name, part in zip(['', *parts[1::2]], parts[::2])}


for name, command in pages.programs(source, build).items():
    if name not in sys.argv[3:]:
        continue
    page = (source / 'packaging' / 'man' / f'{name}.1').read_text(encoding='utf-8')
    wanted, has = help_names(command), page_names(page.replace('\\-', '-'))
    if wanted != has:
        failures.append(f'{name}.1 has {has}, and --help says {wanted}')
    # CLI11 2.5 and newer lays its text out otherwise, with titles in capitals.
    if 'OPTIONS:' not in pages.help_of(command):
        made = pages.page(name, command)
        if made.split() != page.split():
            failures.append(f'{name}.1 is not what --help says; tools/scripts/manual-pages makes it anew:\n' + '\n'.join(
                difflib.unified_diff(page.splitlines(), made.splitlines(), 'the page', '--help', lineterm='')))

for package in (source / 'debian').glob('*.install'):
    installed = package.read_text(encoding='utf-8').split()
    for path in installed:
        if path.startswith('usr/bin/') and f'usr/share/man/man1/{path.split("/")[-1]}.1' not in installed:
            failures.append(f'{package.name} has {path} without its manual page')

for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
