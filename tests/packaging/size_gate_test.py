#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/scripts/size-gate with files of chosen sizes: it fails where a library grew by more than 2 %. keeps R10

    size_gate_test.py GATE RECORD     RECORD: the one that releases are held against
"""
import os
import subprocess
import sys
import tempfile


def main(gate, recorded):
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, 'record')
        library = os.path.join(folder, 'library.so')

        def run(size, *before):
            with open(library, 'wb') as file:
                file.truncate(size)
            done = subprocess.run([gate, *before, library, 'x86-64', record], text=True, capture_output=True, check=False)
            return done.returncode, done.stdout

        with open(record, 'w', encoding='utf-8') as file:
            file.write('# bytes\naarch64 500\nx86-64 100000\n')
        cases = [(100000, 0, '+0.0 %'), (102000, 0, '+2.0 %'), (102001, 1, '+2.0 %'), (150000, 1, '+50.0 %'),
                 (1, 0, '-100.0 %')]
        for size, code, text in cases:
            ended, said = run(size)
            assert ended == code and text in said and 'x86-64' in said, (size, ended, said)
        assert run(120000, '--record')[0] == 0
        with open(record, encoding='utf-8') as file:
            assert file.read() == '# bytes\naarch64 500\nx86-64 120000\n'
        assert run(121000)[0] == 0 and run(123000)[0] == 1
        with open(record, 'w', encoding='utf-8') as file:
            file.write('aarch64 500\n')
        ended, said = run(1)
        assert ended == 1 and 'nothing is recorded' in said, said
    with open(recorded, encoding='utf-8') as file:
        lines = dict(line.split() for line in file if not line.startswith('#'))
    assert 'x86-64' in lines and set(lines) <= {'aarch64', 'x86-64', 'x86-64-core'}, lines
    assert all(int(size) > 0 for size in lines.values()), lines


if __name__ == '__main__':
    main(*sys.argv[1:])
