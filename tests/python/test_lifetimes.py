# SPDX-License-Identifier: Apache-2.0
"""Lifetimes: every order of dropping things, the end of the interpreter, threads, fork()."""
import copy
import ctypes
import gc
import itertools
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import weakref

import pytest

import isthmus
from conftest import MACHINE, opened, raised_at_calls

PARTS = ['runtime', 'device', 'stream', 'event', 'buffer', 'array']


def made():
    numpy = pytest.importorskip('numpy')
    runtime = opened()
    device = runtime.default_device
    stream = device.create_stream()
    buffer = device.allocate_shared(256)
    stream.fill(buffer, 7)
    return {'runtime': runtime, 'device': device, 'stream': stream, 'event': stream.record(), 'buffer': buffer,
            'array': numpy.asarray(buffer.host('r'))}


@pytest.mark.parametrize('first', PARTS)
def test_things_are_dropped_in_every_order(first):   # keeps Y3
    rest = [part for part in PARTS if part != first]
    for order in itertools.permutations(rest):   # 720 in all
        things = made()
        for part in (first, *order):
            if 'array' in things:
                assert things['array'][100] == 7
            del things[part]


def test_arrays_outlive_all_else(in_new_process):   # keeps Y3
    pytest.importorskip('numpy')
    said = in_new_process('''
        import gc, numpy
        def work():
            with opened() as runtime:
                buffer = runtime.default_device.allocate_shared(1 << 20)
                runtime.default_device.stream.fill(buffer, 9)
                return numpy.asarray(buffer.host('rw'))
        array = work()
        gc.collect()
        array[5] = 1
        print(array[4], array[5], array.sum())
    ''')
    assert said.split() == ['9', '1', str(9 * ((1 << 20) - 1) + 1)]


@pytest.mark.parametrize('holder', ['module', 'thread', 'cycle', 'atexit', 'sys'])
def test_the_interpreter_ends_with_everything_open(in_new_process, holder):   # keeps Y3
    pytest.importorskip('numpy')
    in_new_process('''
        import atexit, threading, time, numpy
        holder = sys.argv[1]
        runtime = opened()
        device = runtime.default_device
        stream = device.create_stream()
        adopted = device.adopt(numpy.zeros(4096, 'u1'))
        buffer = device.allocate_shared(4096)
        things = [runtime, stream, adopted, buffer, stream.record(), buffer.host('r'), memoryview(buffer.host('r')),
                  numpy.asarray(buffer.host('r')), adopted.host('r').__dlpack__(max_version=(1, 0)),
                  getattr(numpy, 'from_dlpack', numpy.asarray)(device.allocate_shared(64).host('rw')),
                  device.allocate_shared(64).device(stream, 'rw')]
        stream.fill(device.allocate_shared(64), 1)
        if holder == 'thread':
            def wait(kept=things):
                time.sleep(60)
            threading.Thread(target=wait, daemon=True).start()
            del things
        elif holder == 'cycle':
            things.append(things)
            del things
        elif holder == 'atexit':
            atexit.register(lambda kept=things: kept.clear())
        elif holder == 'sys':
            sys.things = things
        print('end')
    ''', holder)


# Before Python 3.13 the collector ends the process where it clears a memoryview that has exported buffers.
def test_cycles_with_memoryviews_of_scopes_are_collected(in_new_process):   # keeps Y3
    said = in_new_process('''
        import gc, itertools
        device = opened().default_device
        class Holder: pass
        for order in itertools.permutations(range(3)):
            buffer = device.allocate_shared(64)
            scope = buffer.host('r')
            view, holder = memoryview(scope), Holder()
            things = [scope, view, memoryview(scope)]
            holder.kept = [things[at] for at in order]
            holder.kept.append(holder.kept)
            del scope, view, holder, things
            gc.collect()
            with buffer.host('rw') as alone:   # nothing keeps the collected scope open
                alone[:] = bytes(64)
            view = memoryview(buffer.host('r'))
            del buffer
            gc.collect()
            assert bytes(view) == bytes(64)
        print('collected')
    ''')
    assert said.split() == ['collected']


def test_reference_cycles_are_collected(device, stream):   # keeps Y3
    class Holder:
        pass
    holder = Holder()
    holder.me = holder
    holder.buffer = device.allocate_shared(64)
    holder.scope = holder.buffer.host('w')
    holder.device_scope = device.allocate_shared(64).device(stream, 'rw')
    gone, buffer = weakref.ref(holder), holder.buffer.reshaped(64)
    with pytest.raises(isthmus.InUse):
        stream.fill(buffer, 0)
    del holder
    gc.collect()
    assert gone() is None
    stream.fill(buffer, 0)


def test_a_scope_may_be_dropped_on_another_thread(device, stream):   # keeps Y3
    buffer = device.allocate_shared(64)
    for make in (lambda: buffer.host('w'), lambda: buffer.device(stream, 'rw'), lambda: memoryview(buffer.host('w'))):
        held = [make()]
        with pytest.raises(isthmus.InUse):
            buffer.host('w')
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        buffer.host('w').close()


def test_two_threads_may_close_at_once(device):   # keeps Y3
    for _ in range(200):
        scope = device.allocate_shared(64).host('w')
        threads = [threading.Thread(target=scope.close) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert scope.closed


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='no fork')
def test_after_fork_the_child_is_refused_and_ends_quietly_and_the_parent_goes_on(in_new_process):   # keeps Y3
    said = in_new_process('''
        import gc, os, warnings
        warnings.simplefilter('ignore', DeprecationWarning)   # 3.12 warns of a fork beside the driver's threads
        runtime = opened()
        device = runtime.default_device
        stream = device.create_stream()
        buffer, kept = device.allocate_shared(64), bytearray(4096)
        adopted = device.adopt(kept)
        scope = buffer.host('w')
        child = os.fork()
        if child == 0:
            refused = 0
            for use in (lambda: buffer.host('r'), lambda: device.allocate_shared(64), lambda: stream.synchronize(),
                        lambda: device.create_stream()):
                try:
                    use()
                except isthmus.Forked:
                    refused += 1
            del buffer, adopted, scope, stream, device, runtime
            gc.collect()
            os._exit(refused)
        scope[:] = bytes(64)
        scope.close()
        stream.fill(buffer, 3)
        with buffer.host('r') as again:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), again[5])
    ''')
    assert said.split() == ['4', '3']


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='no fork')
@pytest.mark.parametrize('end', ['exit', 'close'])
def test_after_fork_the_trace_is_the_parents(in_new_process, tmp_path, end):   # keeps Y3
    said = in_new_process('''
        import json, os, warnings
        warnings.simplefilter('ignore', DeprecationWarning)
        file = sys.argv[1]
        runtime = opened(trace=file)
        buffer = runtime.default_device.allocate_shared(64)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(read, 1)   # until the parent has written its trace
            if sys.argv[2] == 'close':
                runtime.close()
            sys.exit(0)
        for _ in range(100):
            runtime.default_device.stream.fill(buffer, 1)
        runtime.close()
        before = open(file).read()
        os.write(write, b'x')
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(json.loads(before)['traceEvents']) > 100,
              open(file).read() == before)
    ''', str(tmp_path / 'trace.json'), end)
    assert said.split() == ['0', 'True', 'True']


def test_a_child_of_multiprocessing_opens_its_own(in_new_process):   # keeps Y3
    source = f'''
import multiprocessing, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from conftest import opened

def work(number):
    with opened() as runtime:
        buffer = runtime.default_device.allocate_shared(4)
        with buffer.host('w') as scope:
            scope[:] = bytes([number]) * 4
            return scope[0]

if __name__ == '__main__':
    opened()
    with multiprocessing.get_context('spawn').Pool(2) as pool:
        print(pool.map(work, [1, 2, 3]))
'''
    import tempfile
    with tempfile.NamedTemporaryFile('w', suffix='.py', delete=False) as file:
        file.write(source)
    try:
        done = subprocess.run([sys.executable, file.name], text=True, capture_output=True, timeout=120, check=False)
    finally:
        os.unlink(file.name)
    assert done.stdout.strip() == '[1, 2, 3]', done.stderr


def test_generators_that_are_dropped_half_way_close_their_scopes(device, stream):   # keeps Y3
    buffer = device.allocate_shared(64)

    def rows():
        with buffer.host('r') as scope:
            for at in range(64):
                yield scope[at]
    some = rows()
    next(some)
    with pytest.raises(isthmus.InUse):
        stream.fill(buffer, 0)
    del some
    stream.fill(buffer, 0)


def test_the_tests_play_the_machine_they_say(runtime):
    assert MACHINE in ('cpu', 'here') or runtime.is_simulated


def test_nothing_that_names_memory_is_copied_or_pickled(device, stream, tmp_path):   # keeps Y3
    buffer = device.allocate_shared(16)
    things = [device._runtime, device, stream, stream.record(), buffer, buffer.host('r'), buffer.device(stream, 'r'),
              stream.scope(isthmus.reads(buffer)), isthmus.reads(buffer)]
    for thing in things:
        for work in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match='belongs to this process'):
                work(thing)
        if not isinstance(thing, (isthmus.scopes.Use, isthmus.scopes.DeviceScopes)):   # tuples of the same objects
            with pytest.raises(TypeError, match='belongs to this process'):
                copy.copy(thing)
    assert pickle.loads(pickle.dumps(buffer.dtype)) == buffer.dtype


def test_the_last_array_waits_without_the_interpreters_lock(gate, numpy):   # keeps Y3
    runtime = opened()
    if runtime.default_device.is_cpu:
        pytest.skip('its launches wait')
    array = numpy.asarray(runtime.default_device.allocate_shared(64).host('r'))
    words, stream = runtime.default_device.allocate_shared(1, 'u4'), runtime.default_device.create_stream()
    gate.hold(stream, words)
    del words, stream, runtime
    with gate.open_later():
        del array   # the last owner: the runtime ends behind its work


def interrupted(function):
    """As where a signal comes while the function works: its handler raises behind the call, and the result is lost."""
    def call(*arguments):
        function(*arguments)
        raise KeyboardInterrupt
    return call


def test_ctrl_c_in_a_wait_for_the_device_leaves_no_scope_open(device, stream, gate):   # keeps Y3
    if device.is_cpu:
        pytest.skip('its launches wait')
    words = device.allocate_shared(1, 'u4')
    gate.hold(stream, words)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt) as told:
        timer.start()
        words.host('r').close()
    gate.open()
    stream.fill(words, 1)   # also while the traceback lives
    del told
    timer.join()


def test_an_interrupted_call_leaves_nothing_open(device, stream, numpy, monkeypatch):   # keeps Y3
    buffer = device.allocate_shared(16)
    for name, of, work in (('_open', isthmus.views, lambda: buffer.host('r')),
                           ('isthmus_stream_open_native_scope', isthmus.scopes.c, lambda: buffer.device(stream, 'r'))):
        with monkeypatch.context() as patched:
            patched.setattr(of, name, interrupted(getattr(of, name)))
            with pytest.raises(KeyboardInterrupt) as told:
                work()
        stream.fill(buffer, 1)
        with buffer.host('w') as scope:
            scope[:] = bytes(16)
        del told


def test_an_interrupted_adoption_keeps_its_object_as_long_as_the_library(device, numpy, monkeypatch):   # keeps Y3
    array = numpy.zeros(4096, 'u1')
    with monkeypatch.context() as patched:
        adopt = sys.modules['isthmus.adopt']
        patched.setattr(adopt, '_adopt', interrupted(adopt._adopt))
        with pytest.raises(KeyboardInterrupt):
            device.adopt(array)
    device.synchronize()
    again = device.adopt(array)   # it was let go of, once
    device.stream.fill(again, 5)
    again.close()
    device.synchronize()
    assert array[100] == 5


def test_an_interrupted_allocation_is_freed(device, monkeypatch):   # keeps Y3
    freed, c = [], isthmus.runtime.c
    free, allocate = c.isthmus_buffer_free, c.isthmus_device_allocate_shared
    with monkeypatch.context() as patched:
        patched.setattr(c, 'isthmus_device_allocate_shared', interrupted(allocate))
        patched.setattr(c, 'isthmus_buffer_free', lambda buffer: (freed.append(buffer.value), free(buffer)))
        with pytest.raises(KeyboardInterrupt):
            device.allocate_shared(4)
    assert len(freed) == 1 and freed[0]


def interrupted_makes(device, folder):
    stream, place = device.create_stream(), os.path.join(folder, 'ring')
    event, handle = stream.record(), None if device.is_cpu else stream.native_handle
    yield 'isthmus_device_create_stream', 'stream', device.create_stream
    yield 'isthmus_stream_record', 'event', stream.record
    if handle:
        yield 'isthmus_device_wrap_stream', 'stream', lambda: device.wrap_stream(handle)
    yield 'isthmus_trace_open', 'trace', lambda: opened(trace=os.path.join(folder, 'trace.json'))
    try:
        ring = isthmus.SharedRing(device, 64, at=place)
    except isthmus.Error as refusal:
        assert refusal.code in (isthmus.Code.UNSUPPORTED, isthmus.Code.SYSTEM_LIMIT)
        return
    yield 'isthmus_shared_ring_create', 'shared_ring', lambda: isthmus.SharedRing(device, 64)
    yield 'isthmus_shared_ring_admit', 'descriptor', ring.admit
    yield 'isthmus_channel_connect', 'channel', lambda: isthmus.SharedReader(place, device)
    yield 'isthmus_channel_receive', 'message', lambda: isthmus.SharedReader(place, device)
    yield 'isthmus_shared_reader_open', 'shared_reader', lambda: isthmus.SharedReader(place, device)
    yield 'isthmus_listener_create', 'listener', lambda: isthmus.SharedRing(device, 64, at=os.path.join(folder, 'other'))
    ring.close()
    del event


def test_an_interrupted_call_frees_what_it_made(device, tmp_path, monkeypatch):   # keeps Y3
    c = isthmus.runtime.c
    for name, kind, work in interrupted_makes(device, str(tmp_path)):
        freed, free = [], getattr(c, f'isthmus_{kind}_free')
        isthmus._handles.free_of(kind)   # which knows the address from now on
        with monkeypatch.context() as patched:
            patched.setattr(c, name, interrupted(getattr(c, name)))
            patched.setattr(c, f'isthmus_{kind}_free',
                            lambda one, freed=freed, free=free: (freed.append(one.value), free(one)))
            with pytest.raises(KeyboardInterrupt):
                work()
        assert len(freed) == 1 and freed[0], name


def uses_of_handles(device, stream, kernels):
    def buffer():
        return device.allocate_shared(64)
    event, other = stream.record(), device.create_stream()
    first, second, third, fourth = buffer(), buffer(), buffer(), buffer()
    yield 'isthmus_event_synchronize', event, event.synchronize
    yield 'isthmus_stream_synchronize', other, other.synchronize
    yield 'isthmus_stream_fill_elements', first, lambda: stream.fill(first, 1)
    yield 'isthmus_stream_launch', second, lambda: kernels.find('test.brighten')(stream, 64, second, 1)
    yield 'isthmus_stream_open_native_scope', third, lambda: third.device(stream, 'r').close()
    yield 'isthmus_python_open_view', fourth, lambda: fourth.host('r').close()
    alone = opened()
    yield 'isthmus_runtime_synchronize', alone, alone.synchronize


def test_a_handle_lives_until_the_calls_that_use_it_have_ended(kernels, monkeypatch):   # keeps Y3
    device = opened().default_device
    for name, thing, work in uses_of_handles(device, device.create_stream(), kernels):
        gone, lived = weakref.ref(thing._share), []

        def closed_meanwhile(function, thing=thing, gone=gone, lived=lived):
            def call(*arguments):
                thread = threading.Thread(target=thing.close)
                thread.start()
                thread.join()
                lived.append(gone() is not None)
                return function(*arguments) if lived[0] else 17   # ISTHMUS_INVALID_HANDLE, in place of a crash
            return call
        of, attribute = (isthmus.views, '_open') if name == 'isthmus_python_open_view' else (isthmus.runtime.c, name)
        with monkeypatch.context() as patched:
            patched.setattr(of, attribute, closed_meanwhile(getattr(of, attribute)))
            work()
        assert lived == [True] and thing.closed, name
        gc.collect()
        assert gone() is None, name


PACKAGE = ['_handles.py', '_library.py', 'adopt.py', 'buffers.py', 'dlpack.py', 'scopes.py', 'views.py']


@pytest.mark.parametrize('file', PACKAGE)
def test_a_signal_at_any_call_leaves_no_scope_open(device, stream, from_dlpack, file):   # keeps Y3
    buffer, other = device.allocate_shared(16), device.allocate_shared(16)

    def on_host():
        with buffer.host('rw') as scope:
            scope[:] = bytes(16)
            memoryview(scope)[0] = 1
        assert from_dlpack(buffer.host('rw'))[0] == 1   # arrays of NumPy 1 are read-only

    def on_device():
        with buffer.device(stream, 'rw') as scope:
            scope.__dlpack__(max_version=(1, 0))
        with stream.scope(isthmus.reads(other), isthmus.writes(buffer)):
            pass
    for work in (on_host, on_device):
        for _ in raised_at_calls(work, '/isthmus/' + file):
            stream.fill(buffer, 3)


@pytest.mark.parametrize('file', PACKAGE)
def test_a_signal_at_any_call_keeps_no_adopted_object(device, stream, file):   # keeps Y3
    class Owner(bytearray):
        pass
    gone = []

    def adopt():
        memory = Owner(4096)
        gone.append(weakref.ref(memory))
        stream.fill(device.adopt(memory), 1)
    for _ in raised_at_calls(adopt, '/isthmus/' + file):
        device.synchronize()
        assert gone.pop()() is None


def test_the_end_of_the_interpreter_waits_for_threads_that_tell_of_releases(tmp_path):   # keeps Y3
    library = isthmus._library
    path = shutil.copy(library.FOLDER / 'libisthmus-python.so', tmp_path / 'copy.so')   # with a state of its own
    there, over, asked = threading.Event(), threading.Event(), []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    def add_pending_call(*_):
        asked.append(1)
        there.set()
        over.wait(30)
        return 0
    calls = library._Interpreter(*(ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p)
                                   for name in ('PyCapsule_IsValid', 'PyCapsule_GetPointer', 'Py_IncRef', 'Py_DecRef')))
    calls.add_pending_call = ctypes.cast(add_pending_call, ctypes.c_void_p)
    locked, free = ctypes.PyDLL(str(path)), ctypes.CDLL(str(path))
    locked.isthmus_python_start(ctypes.byref(calls), ctypes.byref(library._Functions()))
    locked.isthmus_python_adopted.restype = ctypes.c_void_p
    locked.isthmus_python_adopted.argtypes = library.glue_locked.isthmus_python_adopted.argtypes
    like = isthmus.dlpack.tensor_of(0, (), isthmus._types.dtype_of('u1'), (1, 0))

    def release():   # as a thread of the library does
        tensor = locked.isthmus_python_adopted(object(), None, None, ctypes.byref(like), 0)
        deleter = isthmus._structures.DLManagedTensorVersioned.from_address(tensor).deleter
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(tensor)
    thread = threading.Thread(target=release)
    thread.start()
    assert there.wait(30)
    free.isthmus_python_interpreter_ends()
    assert free.isthmus_python_inside() == 1   # what the package waits for
    over.set()
    thread.join()
    assert free.isthmus_python_inside() == 0
    late = threading.Thread(target=release)
    late.start()
    late.join()
    assert asked == [1]


def test_a_subinterpreter_is_refused(in_new_process):   # keeps Y3
    assert in_new_process('''
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        other = interpreters.create()
        try:
            problem = interpreters.run_string(other, 'import isthmus')
            told = str(getattr(problem, 'msg', problem))
        except Exception as problem:
            told = str(problem)
        interpreters.destroy(other)
        print('subinterpreter' in told)
        with opened() as runtime, runtime.default_device.allocate_shared(4).host('w') as scope:
            scope[:] = b'0123'
    ''') == 'True\n'
