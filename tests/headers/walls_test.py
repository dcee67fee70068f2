#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks the compiler and the linker of this build whether the walls between the rooms of runtime/ hold.

Headers: with the options of a room's sources, every header of the room and of the rooms below it is found, and none of
a later room and none of the drivers'. Calls: linked as the room's wall library is (meson.build), a function of the room
resolves, and a function of each later room is an undefined symbol.

usage: walls_test.py SOURCE_ROOT BUILD_DIR headers-and-calls|headers|cross COMPILER [ARGUMENT...]
"headers": a build without wall libraries (sanitizers, link-time optimisation). "cross": nothing is tried, exit code 77.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

OWN = ('-o', '-MF', '-MQ', '-include', '-include-pch')  # options of a compile command that name its own files


def rooms_in(source_root):
    with open(os.path.join(source_root, 'runtime/rooms.json'), encoding='utf-8') as file:
        return json.load(file)['order']


def headers_below(folder, private):
    """Names by which the headers below `folder` are included; private ones lie in it, public ones in its include/."""
    found = []
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in ('pch', 'include')]
        start = private if top == folder else ''
        found += [os.path.join(start, os.path.relpath(os.path.join(top, name), folder))
                  for name in names if name.endswith(('.hpp', '.h'))]
    return found


def headers_of(source_root, room):
    folder = os.path.join(source_root, 'runtime', room)
    return sorted(headers_below(folder, '') + headers_below(os.path.join(folder, 'include'), ''))


def drivers_headers(source_root):
    """As a source would have to name them that has all of platform/ on its include path."""
    return sorted(os.path.join(backend, name) for backend in ('cpu', 'cuda', 'sim')
                  for name in headers_below(os.path.join(source_root, 'platform', backend), ''))


def options_of(entry):
    """The command of a source without the source and what it makes."""
    words = shlex.split(entry['command'])
    for option in OWN:
        while option in words:
            at = words.index(option)
            del words[at:at + 2]
    return [word for word in words if word not in ('-c', '-MD', '-MMD', entry['file'])]


def found_by(entry, headers):
    """Which of the headers the preprocessor finds for this source: one run for all of them."""
    text = ''.join(f'#if __has_include("{name}")\nfound {name}\n#endif\n' for name in headers)
    done = subprocess.run(options_of(entry) + ['-E', '-P', '-x', 'c++', '-'], cwd=entry['directory'], input=text,
                          text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f'the preprocessor refuses the options of {entry["file"]}:\n{done.stderr}')
    return {line.split()[1] for line in done.stdout.splitlines() if line.startswith('found ')}


def wrong_headers(rooms, entries, headers, drivers):
    everything = [name for room in rooms for name in headers[room]] + drivers
    for at, room in enumerate(rooms):
        visible = {name for lower in rooms[:at + 1] for name in headers[lower]}
        for entry in entries[room]:
            found = found_by(entry, everything)
            yield from (f'{entry["file"]} can include {name}' for name in everything if name in found - visible)
            yield from (f'{entry["file"]} cannot include {name}' for name in everything if name in visible - found)


def function_in(entries, nm):
    """One function that the objects of a room define, as the linker knows it."""
    for entry in entries:
        path = os.path.join(entry['directory'], entry['output'])
        symbols = subprocess.run([nm, '--defined-only', '-g', path], text=True, capture_output=True, check=True).stdout
        found = re.search(r' T (\S+)$', symbols, flags=re.M)
        if found:
            return found[1]
    sys.exit(f'no function was found in the objects of {entries[0]["file"]} and its neighbours')


def link_arguments(build_dir, library):
    """What the build gives the linker for `library`, from build.ninja: its libraries and flags."""
    with open(os.path.join(build_dir, 'build.ninja'), encoding='utf-8') as file:
        text = file.read().replace('$\n', '')
    found = re.search(rf'^build {re.escape(library)}:.*\n(?: .*\n)*? LINK_ARGS = (.*)\n', text, flags=re.M)
    if found is None:
        sys.exit(f'{library} was not found in build.ninja')
    return shlex.split(re.sub(r'\$([$ :])', r'\1', found[1]))


def link(compiler, arguments, build_dir, folder, symbols):
    """The symbols that stay undefined where a program calls all of `symbols`. Other ways to fail end the test."""
    source = os.path.join(folder, 'call.cpp')
    with open(source, 'w', encoding='utf-8') as file:
        for number, symbol in enumerate(symbols):
            file.write(f'void called{number}() __asm__("{symbol}");\n')
        file.write('void call(); void call() {\n' + ''.join(f'called{n}();\n' for n in range(len(symbols))) + '}\n')
    command = compiler + ['-fPIC', source, '-o', os.path.join(folder, 'call.so')] + arguments + ['-Wl,--no-demangle']
    done = subprocess.run(command, cwd=build_dir, text=True, capture_output=True, check=False)
    undefined = {symbol for symbol in symbols if re.search(rf'\b{re.escape(symbol)}\b', done.stderr)}
    if (done.returncode == 0) == bool(undefined):
        sys.exit(f'{shlex.join(command)}:\n{done.stderr}')
    return undefined


def wrong_calls(rooms, entries, build_dir, compiler, nm):
    functions = {room: function_in(entries[room], nm) for room in rooms}
    with tempfile.TemporaryDirectory() as folder:
        for at, room in enumerate(rooms[:-1]):  # the last one is the product itself
            arguments = link_arguments(build_dir, f'tests/headers/libwall_isthmus_{room}.so')
            undefined = link(compiler, arguments, build_dir, folder, [functions[lower] for lower in rooms[:at + 1]])
            yield from (f'{room} does not link with a call of {symbol}' for symbol in sorted(undefined))
            later = rooms[at + 1:]
            undefined = link(compiler, arguments, build_dir, folder, [functions[name] for name in later])
            yield from (f'{room} links with a call into {name}' for name in later if functions[name] not in undefined)


def main(source_root, build_dir, tried, *compiler):
    if tried == 'cross':
        print('skipped: a cross build; the native one asks the same of the same build files')
        sys.exit(77)
    rooms = rooms_in(source_root)
    entries = {room: [] for room in rooms}
    with open(os.path.join(build_dir, 'compile_commands.json'), encoding='utf-8') as file:
        for entry in json.load(file):
            path = os.path.relpath(os.path.join(entry['directory'], entry['file']), source_root).split(os.sep)
            # Tests compile some of the sources again.
            built_here = path[0] == 'runtime' and entry['output'].startswith('runtime')
            if built_here and path[1] in entries and path[-1].endswith('.cpp'):
                entries[path[1]].append(entry)
    missing = [room for room in rooms if not entries[room]]
    if missing:
        sys.exit(f'no source of {", ".join(missing)} is in compile_commands.json')
    # The sources of a room are compiled with the same options; those with other options are queried one by one.
    alike = {room: list({shlex.join(options_of(entry)): entry for entry in entries[room]}.values()) for room in rooms}
    headers = {room: headers_of(source_root, room) for room in rooms}
    problems = list(wrong_headers(rooms, alike, headers, drivers_headers(source_root)))
    told = f'{sum(map(len, headers.values()))} headers'
    nm = shutil.which('nm')
    if tried == 'headers':
        told += '; calls not tried: this build has no wall libraries'
    elif not nm:
        told += '; calls not tried: nm was not found'
    else:
        problems += wrong_calls(rooms, entries, build_dir, list(compiler), nm)
        told += f', {len(rooms) * (len(rooms) - 1) // 2} calls upward'
    print('\n'.join(problems) or f'{len(rooms)} rooms, {told}')
    sys.exit(1 if problems else 0)


main(*sys.argv[1:])
