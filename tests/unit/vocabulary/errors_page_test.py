#!/usr/bin/env python3
"""docs/errors.md lists every code of isthmus/result.hpp with its number, and none besides."""
import re
import sys

header = open(sys.argv[1], encoding='utf-8').read()
page = open(sys.argv[2], encoding='utf-8').read()
enumeration = re.search(r'enum class Code : int \{(.*?)\};', header, re.S).group(1)
codes = dict(re.findall(r'^\s*(\w+) = (\d+),', enumeration, re.M))
rows = dict(re.findall(r'^\| `(\w+)` \| (\d+) \|', page, re.M))
assert len(codes) > 20, 'the enumeration was not found'
for name in sorted(codes.keys() | rows.keys()):
    if codes.get(name) != rows.get(name):
        sys.exit(f'{name}: {codes.get(name, "no code")} in the header, {rows.get(name, "no row")} in docs/errors.md')
print(f'{len(codes)} codes')
