#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything that says what the rooms of runtime/ are says the same: rooms.json, the build files, the folders, each
room's README.md, and the table of docs/architecture.md.

usage: rooms_test.py SOURCE_ROOT
"""
import json
import os
import re
import sys

root = sys.argv[1]
MOST_LINES = 10  # of a room's README.md


def read(path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def names_below(folder):
    return {name for _, _, names in os.walk(os.path.join(root, folder)) for name in names}


def wrong_lists(spec):
    """One order: of rooms.json, of the build, and of nothing else; a folder for each room and for nothing else."""
    order = spec['order']
    build = re.search(r'^rooms = \[(.*?)\]', read('runtime/meson.build'), flags=re.S | re.M)
    if build is None or re.findall(r"'(\w+)'", build[1]) != order:
        yield 'runtime/meson.build and runtime/rooms.json name other rooms, or in another order'
    entries = os.listdir(os.path.join(root, 'runtime'))
    folders = {name for name in entries if os.path.isdir(os.path.join(root, 'runtime', name))}
    if folders != set(order) | {'vocabulary'}:
        yield f'runtime/ has other folders than rooms.json has rooms: {", ".join(sorted(folders ^ set(order)))}'
    for key in ('files', 'purpose'):
        if sorted(spec[key]) != sorted(order):
            yield f'runtime/rooms.json: "{key}" is not about the rooms of "order"'
    known = order + [planned['room'] for planned in spec['planned']]
    for planned in spec['planned']:
        if planned['after'] not in known or planned['room'] in order or not planned['purpose']:
            yield f'runtime/rooms.json: the planned room {planned["room"]} has no place'
    yield from (f'runtime/{name} is in no room' for name in sorted(entries) if name.endswith(('.cpp', '.hpp', '.h')))


def wrong_sources(room):
    """Every source of a room is built, by that room's build file."""
    there = {name for name in os.listdir(os.path.join(root, 'runtime', room)) if name.endswith('.cpp')}
    built = set(re.findall(r"'(\w+\.cpp)'", read(f'runtime/{room}/meson.build')))
    yield from (f'runtime/{room}/meson.build and the folder differ about {name}' for name in sorted(there ^ built))


def wrong_components(order):
    """The rooms that -Dcomponents= may leave out are those with a left_out.cpp, and none of the others needs them."""
    option = re.search(r"^option\('components'.*?choices: \[(.*?)\], value: \[(.*?)\]", read('meson_options.txt'), flags=re.M)
    choices, default = (re.findall(r"'(\w+)'", text) for text in option.groups()) if option else ([], [])
    there = [room for room in order if 'left_out.cpp' in os.listdir(os.path.join(root, 'runtime', room))]
    if not there or choices != there or default != there:
        yield f'meson_options.txt: components are not the rooms with a left_out.cpp: {", ".join(there)}'
    if there and order[order.index(there[0]):-1] != there:
        yield 'the rooms with a left_out.cpp are not those between the core and front'


def wrong_readme(room, order):
    path = f'runtime/{room}/README.md'
    if not os.path.exists(os.path.join(root, path)):
        yield f'{path} is missing'
        return
    text = read(path)
    lines = len(text.splitlines())
    if lines > MOST_LINES:
        yield f'{path} has {lines} lines, and may have {MOST_LINES}'
    named = re.findall(r'`([\w/.]+\.(?:hpp|h|cpp))`', text)
    there = names_below(f'runtime/{room}')
    if not named:
        yield f'{path} names no file to start with'
    strange = [name for name in named if os.path.basename(name) not in there]
    yield from (f'{path} names {name}, which is not in the room' for name in strange)
    sees = re.search(r'^May see: (.*)', text, flags=re.M)
    mentioned = re.findall(r'\w+', sees[1].split('vocabulary')[0]) if sees else None
    if mentioned != order[:order.index(room)]:
        yield f'{path}: "May see:" does not list the rooms before it in their order'


def wrong_table(spec):
    """The table of docs/architecture.md: a row for each room, in the order, with its purpose."""
    rows = re.findall(r'^\| `(\w+)` \| ([^|]*) \|$', read('docs/architecture.md'), flags=re.M)
    if rows != [(room, spec['purpose'][room]) for room in spec['order']]:
        yield 'docs/architecture.md: its table of rooms is not what runtime/rooms.json says'


def wrong_headers(spec):
    """Public headers lie in isthmus/, those of some rooms in a folder of it ("headers" of rooms.json)."""
    folders = spec['headers']
    for room in spec['order']:
        top = os.path.join(root, 'runtime', room, 'include/isthmus')
        entries = os.listdir(top) if os.path.isdir(top) else []
        own = folders.get(room)
        if own and entries != [own]:
            yield f'runtime/{room}/include/isthmus: public headers of {room} lie in its folder {own}'
        if not own and set(entries) & set(folders.values()):
            yield f'runtime/{room}/include/isthmus: a folder of headers of other rooms'


spec = json.loads(read('runtime/rooms.json'))
problems = [*wrong_lists(spec), *wrong_table(spec), *wrong_components(spec['order']), *wrong_headers(spec)]
for room in spec['order']:
    if os.path.isdir(os.path.join(root, 'runtime', room)):
        problems += [*wrong_sources(room), *wrong_readme(room, spec['order'])]
print('\n'.join(problems) or f'{len(spec["order"])} rooms')
sys.exit(1 if problems else 0)
