#!/usr/bin/env python3
"""The programs that README.md shows are the examples that are built and tested; what it links to exists.

usage: readme_test.py SOURCE_ROOT
"""
import os
import re
import sys

root = sys.argv[1]
with open(os.path.join(root, 'README.md'), encoding='utf-8') as file:
    text = file.read()
problems = []
shown = re.findall(r'<!-- (\S+) -->\n```cpp\n(.*?)```', text, flags=re.S)
for path, code in shown:
    with open(os.path.join(root, path), encoding='utf-8') as file:
        if file.read() != code:
            problems.append(f'README.md shows another {path} than the one that is built')
if len(shown) < 2:
    problems.append('README.md shows no program')
for path in re.findall(r'\]\(([^)#:]+)\)', text) + re.findall(r'^\./(\S+)', text, flags=re.M):
    if not os.path.exists(os.path.join(root, path)):
        problems.append(f'README.md names {path}, which does not exist')
print('\n'.join(problems))
sys.exit(1 if problems else 0)
