#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/errors.md has exactly one full row for each code of isthmus/result.hpp, in their order, and none besides.

usage: errors_page_test.py RESULT.HPP ERRORS.MD
"""
import re
import sys


def codes_of(header):
    enumeration = re.search(r'enum class Code : int \{(.*?)\};', header, re.S)
    return [(name, int(number)) for name, number in re.findall(r'^\s*(\w+) = (\d+),', enumeration.group(1), re.M)]


def problems_of(header, page):
    codes = codes_of(header)
    rows = [[cell.strip() for cell in line.strip('|').split('|')]
            for line in page.splitlines() if line.startswith('| `')]
    problems = []
    named = [(row[0].strip('`'), int(row[1])) for row in rows]
    for each in codes:
        if named.count(each) != 1:
            problems.append(f'{each[0]} = {each[1]}: {named.count(each)} rows in docs/errors.md')
    problems += [f'{name} | {number}: a row without a code' for name, number in named if (name, number) not in codes]
    if not problems and named != codes:
        problems.append('the rows do not stand in the order of their numbers')
    # The first row is success; every other one says what, why and what works instead.
    for row in rows:
        if len(row) != 5 or (row[1] != '0' and not all(row)):
            problems.append(f'{row[0]}: code, number, what happened, why, remedy are wanted')
    return problems


def self_test(header, page):
    """Each way in which the page can be wrong is noticed."""
    last = codes_of(header)[-1]
    row = next(line for line in page.splitlines() if line.startswith(f'| `{last[0]}`'))
    appended = header.replace(f'{last[0]} = {last[1]},', f'{last[0]} = {last[1]},\n    new_one = {last[1] + 1},')
    renumbered = row.replace(f'| {last[1]} |', f'| {last[1] + 1} |')
    emptied = row.rsplit('|', 2)[0] + '| |'
    for changed in [(appended, page), (header, page.replace(row + '\n', '')), (header, page.replace(row, row + '\n' + row)),
                    (header, page.replace(row, renumbered)), (header, page.replace(row, emptied)),
                    (header, page.replace(row, row + '\n' + row.replace(last[0], 'no_such_code')))]:
        assert problems_of(*changed), 'a wrong page passes'


header_text = open(sys.argv[1], encoding='utf-8').read()
page_text = open(sys.argv[2], encoding='utf-8').read()
found = problems_of(header_text, page_text)
if not found:
    self_test(header_text, page_text)
print('\n'.join(found) or f'{len(codes_of(header_text))} codes')
sys.exit(1 if found else 0)
