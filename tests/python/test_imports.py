# SPDX-License-Identifier: Apache-2.0
"""The modules of the package lie in one order: no module needs itself through others, for types alone, either."""
import ast
import pathlib
import subprocess
import sys
import typing

import isthmus

FOLDER = pathlib.Path(isthmus.__file__).parent


def needs_of(file: pathlib.Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding='utf-8'))):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {node.module.split('.')[0]} if node.module else {one.name for one in node.names}
    return {name for name in found if (FOLDER / f'{name}.py').is_file()}


def test_modules_import_each_other_in_one_order():
    left = {file.stem: needs_of(file) for file in FOLDER.glob('*.py')}
    assert {'runtime', 'buffers'} <= left['__init__']
    while ready := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in ready:
            del left[name]
    assert not left, 'a circle'


def test_every_module_is_imported_first():
    for file in sorted(FOLDER.glob('*.py')):
        if file.stem != '__main__':
            subprocess.run([sys.executable, '-c', f'import isthmus.{file.stem}'.replace('.__init__', '')], check=True)


def test_annotations_have_their_names():
    for of in (isthmus.Buffer, isthmus.Device, isthmus.DeviceScope, isthmus.Runtime, isthmus.Stream):
        typing.get_type_hints(of)
        for member in vars(of).values():
            function = member.fget if isinstance(member, property) else member
            if callable(function) and hasattr(function, '__annotations__'):
                typing.get_type_hints(function)
