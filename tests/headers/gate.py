#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One admission for each public call (docs/adr/0086-one-gate-for-public-calls.md). Refuses code of runtime/ that asks
by hand what the gate answers and returns an error for it, calls of the table that no function or several ask for, and
refusals in the name of another call. What stays by hand stands below, each place with its reason.

usage: gate.py SOURCE_ROOT [--self-test]
"""
import functools
import os
import re
import sys

TABLE = 'runtime/rules/admission_rules.hpp'
GATE = {'runtime/device/device_session.hpp', 'runtime/device/device_session.cpp'}

# The questions that the gate answers: fork, fault, host function, captures, services.
QUESTION = re.compile(r'\bforked\(\)|\bprocess::generation\(\)|\bis_lost\(\)|\blost_code\(\)|\bin_(?:host_function|native_work)\b|'
                      r'\busable\(\)|\bcaptures\.(?:here|any)\(\)|\bservices\.(?:any|hinders|allow|try_enter|enter)\(')
# In an if's body: it may return an error. `false`, `nullptr` and the like refuse no call.
RETURNS = re.compile(r'\breturn\b\s*(?!;|\{\s*\}|true\b|false\b|nullptr\b|std::nullopt\b|0\b)[^;]')

FORK_ALONE = 'a channel belongs to no runtime: fork is all that bars it, and its own words name create_channel_pair()'
MEMORY = 'depends on the kind of the memory, its pool, and the stream that a capture may record it on'
SERVICE = 'depends on which driver call this memory, kernel or stream needs (service_rules.hpp)'
FAILED = 'refuses nothing: chooses what is said of a driver call that failed already, or whether it is tried again'
END = 'refuses nothing: the end of a thing, which is put off or left to the process'
NO_DRIVER = 'refuses nothing: chooses a way without the driver'
FORK_LOCKS = 'refuses nothing: in the child of a fork it answers nothing, without a lock that a thread of the parent held'
OTHERS = 'about the device that memory lies on, which may be another than the call is for'
# Room and function: why its question stays there. A question without an entry is refused, and so is an entry without a
# question.
BY_HAND = {
    ('channel', 'wait'): FORK_ALONE,
    ('channel', 'usable'): FORK_ALONE,
    ('channel', 'send'): FORK_ALONE,
    ('channel', 'wait_received'): FORK_ALONE,
    ('channel', 'wait_for_message'): FORK_ALONE,
    ('concurrent', 'launched'): NO_DRIVER,
    ('concurrent', 'stop'): 'on a lost device a service is ended here, and the caller hears of the loss',
    ('copy', 'not_done'): 'a hint is not refused: its report says that a capture takes none',
    ('copy', 'refuse_in_capture'): 'depends on the way of the copy: through bounce buffers it cannot be captured',
    ('core', 'all_work_ended'): END,
    ('core', 'ask_driver'): NO_DRIVER,
    ('core', 'end'): FAILED,
    ('core', 'end_now'): END,
    ('core', 'free_at_end'): END,
    ('core', 'free_beside_services'): END,
    ('core', 'free_piece'): END,
    ('core', 'give_to_driver'): END,
    ('core', 'has_ended'): END,
    ('core', 'lost_owner'): OTHERS,
    ('core', 'open_at_once'): 'the short way of views: refuses nothing, open_scope() asks the gate',
    ('core', 'order_of_allocation'): 'refuses nothing: on a lost device no work is left that memory is freed behind',
    ('core', 'own_order'): FAILED,
    ('core', 'refuse_gone'): 'depends on the kind of the memory: what the driver gave went with its context (K11)',
    ('core', 'release_untold'): END,
    ('core', 'return_unreturned'): END,
    ('core', 'trim_cache'): 'refuses nothing: what must not be unmapped now stays',
    ('core', 'wait_for_all'): NO_DRIVER,
    ('core', 'wait_for_others'): 'refuses nothing: what cannot be asked while a capture is open is not waited for',
    ('core', 'wait_until'): SERVICE,
    ('core', 'wait_until_unused'): FAILED,
    ('device', 'give_back'): END,
    ('device', 'make'): SERVICE,
    ('device', 'make_once'): 'refuses nothing: in a forked child the block comes from the heap, without the lock',
    ('device', 'take'): 'refuses nothing: in a forked child the block comes from the heap, without the lock',
    ('device', 'trim'): NO_DRIVER,
    ('front', 'counters'): FORK_LOCKS,
    ('front', 'seal'): 'allowed on a lost device, in a capture and within a call: a fork alone refuses it',
    ('graph', 'end'): FAILED,
    ('graph', 'update_in_place'): FAILED,
    ('graph', 'wait_for'): FAILED,
    ('ipc', 'create_exportable'): FAILED,
    ('launch', 'launch_untold'): SERVICE,
    ('mapping', 'end_when_allowed'): END,
    ('mapping', 'refuse_beside_services'): SERVICE,
    ('memory', 'allowed'): MEMORY,
    ('memory', 'cache_usage'): FORK_LOCKS,
    ('memory', 'current'): FORK_LOCKS,
    ('memory', 'give_back_of'): 'refuses nothing: what must not be freed now stays',
    ('memory', 'import_here'): FAILED,
    ('memory', 'make_room'): FAILED,
    ('memory', 'may_be_put_off'): SERVICE,
    ('memory', 'pool'): MEMORY,
    ('memory', 'settle'): FAILED,
    ('module', 'put_off_end'): END,
    ('module', 'unload_now'): END,
    ('module', 'wait_for_launches'): FAILED,
}
# Calls that several functions request.
SEVERAL = {
    'allocate': 'a buffer by its use is planned before its source allocates',
    'allocate_host': 'a buffer of no bytes has no source that would ask',
    'change_mapping': 'every call that maps, and growth, whose function also asks for host memory',
    'copy': 'the devices of both buffers besides the stream\'s: three at most',
    'launch': 'the short way, the long way, and the call that explains both',
    'create_event': 'an event by itself, and a fresh one with its record, which the same bars (barred_alike())',
    'unmap': 'a mapping by hand, and pages of a range',
    'release_memory': 'the release of a block, and giving back what the driver did not take before',
    'use_module': 'a kernel and a variable are found by name',
    'wait_for_event': 'a stream waits for an event, or the host does',
}
# Room and function that ask and do not refuse.
SILENT = {
    ('core', 'return_unreturned'): 'gives back what nothing waits for, when it can',
    ('memory', 'request_of_lanes'): 'the short way: the general one, which is taken then, refuses',
    ('memory', 'grantable'): 'a question without an error: not asked is answered "not verified"',
    ('launch', 'launch_buffers'): 'the short way: the long way, which is taken then, refuses',
}


def code_of(text):
    """The text without comments and without what strings hold; as long as it was."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match[0]) if match[0].startswith('/') else '"' + ' ' * (len(match[0]) - 2) + '"'
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def closing(code, at):
    """Where the bracket at `at` is closed."""
    pairs, depth = {'(': ')', '{': '}'}, 0
    opening, end = code[at], pairs[code[at]]
    for place in range(at, len(code)):
        depth += (code[place] == opening) - (code[place] == end)
        if depth == 0:
            return place
    return len(code)


def conditions(code):
    """Each if: where it stands, what it asks, and what it does."""
    for match in re.finditer(r'\bif\s*(?:constexpr\s*)?\(', code):
        end = closing(code, match.end() - 1)
        rest = re.match(r'\s*', code[end + 1:])
        begin = end + 1 + rest.end()
        last = closing(code, begin) if code[begin:begin + 1] == '{' else code.find(';', begin)
        yield match.start(), code[match.end():end], code[begin:last + 1]


def function_at(code, place, margin=''):
    """The function in which the place lies, also within a class."""
    for match in re.finditer(rf'^{margin}(?![\s#}}])(?!(?:inline )?namespace\b)[^;{{}}]*\{{', code, flags=re.M):
        if not match.start() <= place <= closing(code, match.end() - 1):
            continue
        if re.match(r'\s*(?:template <[^>]*>\s*)?(?:class|struct)\b', match[0]):
            return function_at(code, place, margin + '    ')
        name = re.search(r'(~?\w+)\s*\(', match[0])
        return name[1] if name else '?'
    return '?'


@functools.lru_cache(None)
def by_hand(path, text):
    """(room, function) and line of each question that the gate answers, with an answer of its own."""
    code = code_of(text)
    return [((room_of(path), function_at(code, place)), code.count('\n', 0, place) + 1)
            for place, asked, done in conditions(code) if QUESTION.search(asked) and RETURNS.search(done)]


@functools.lru_cache(None)
def asked_calls(text):
    """Each function with the calls that it asks the gate for, and those that it refuses."""
    code = code_of(text)
    found = {}
    for match in re.finditer(r'(\brefusal\(\s*)?(?:rules::)?\bPublicCall::(\w+)', code):
        found.setdefault(function_at(code, match.start()), (set(), set()))[bool(match[1])].add(match[2])
    for match in re.finditer(r'\brefusal\(\s*call\b', code):  # of a variable: which of the calls that it asked for
        asked, refused = found.setdefault(function_at(code, match.start()), (set(), set()))
        refused |= asked
    return found


def room_of(path):
    return path.split('/')[1]


def check(files, calls):
    """What is wrong with these files, by their paths, and a table of these calls."""
    found, places, silent, askers = [], set(), set(), {}
    for path, text in sorted(files.items()):
        for place, line in by_hand(path, text):
            places.add(place)
            if place not in BY_HAND:
                found.append(f'{path}:{line}: {place[1]}() asks by hand what DeviceSession::bars() answers')
        for function, (asked, refused) in asked_calls(text).items():
            for call in asked:
                askers.setdefault(call, []).append(f'{path} {function}()')
            if refused - asked:
                other = ', '.join(sorted(refused - asked))
                found.append(f'{path}: {function}() refuses {other}, which it did not ask for')
            if asked - refused:
                silent.add((room_of(path), function))
                if (room_of(path), function) not in SILENT:
                    alone = ', '.join(sorted(asked - refused))
                    found.append(f'{path}: {function}() asks for {alone} and refuses nothing')
    for call in sorted(calls):
        number = len(askers.get(call, ()))
        if number == 0:
            found.append(f'{TABLE}: nothing asks for {call}')
        elif (number > 1) != (call in SEVERAL):
            found.append(f'{TABLE}: {call} is asked for by {number}: {", ".join(askers[call])}')
    gone = [f'{room} {function}()' for room, function in sorted((set(BY_HAND) - places) | (set(SILENT) - silent))]
    return found + [f'gate.py: no such place any more: {name}' for name in gone]


def tree(root):
    files = {}
    for folder, _, names in os.walk(os.path.join(root, 'runtime')):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            if name.endswith(('.cpp', '.hpp')) and path not in GATE:
                with open(os.path.join(folder, name), encoding='utf-8') as file:
                    files[path] = file.read()
    calls = set(re.findall(r'\{C::(\w+),', files.pop(TABLE)))
    return files, calls


def self_test(root):
    """Each kind of fault is seen where it is put into the tree, and the tree without it is clean."""
    files, calls = tree(root)
    path = 'runtime/streams/stream.cpp'
    gate = ('    if (device.bars(rules::PublicCall::record_event)) '
            'return device.refusal(rules::PublicCall::record_event);\n')
    assert files[path].count(gate) == 1, 'the example has moved'
    faults = {
        'a question by hand': ('    if (device.is_lost()) return Error(Code::device_lost, "lost", "");\n' + gate,
                               'asks by hand'),
        'in a block': ('    if (!device.usable()) {\n        return gone(device);\n    }\n' + gate, 'asks by hand'),
        'of captures': ('    if (device.books->captures.here()) return in_capture("recording an event");\n' + gate,
                        'asks by hand'),
        'no question': ('', 'nothing asks for record_event'),
        'asked twice': (gate.replace('record_event', 'mark_stream'), 'mark_stream is asked for by 2'),
        'another name': (gate.replace('refusal(rules::PublicCall::record_event', 'refusal(rules::PublicCall::launch'),
                         'refuses launch, which it did not ask for'),
        'no refusal': (gate.replace('device.refusal(rules::PublicCall::record_event)', '{}'), 'and refuses nothing'),
    }
    wrong = check(files, calls)
    for name, (text, expected) in faults.items():
        changed = check({**files, path: files[path].replace(gate, text)}, calls)
        if not any(expected in line for line in changed):
            wrong.append(f'not seen: {name}')
    harmless = '    if (device.is_lost()) stream.gives("nothing");  // if (device.usable()) return error;\n' + gate
    wrong += check({**files, path: files[path].replace(gate, harmless)}, calls)
    return wrong


if __name__ == '__main__':
    root = sys.argv[1]
    wrong = self_test(root) if '--self-test' in sys.argv else check(*tree(root))
    print('\n'.join(wrong) or 'one gate, and no question beside it')
    sys.exit(1 if wrong else 0)
