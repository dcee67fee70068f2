# SPDX-License-Identifier: Apache-2.0
"""Frames between processes."""
import errno
import gc
import json
import math
import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import pytest

import isthmus
from conftest import opened, raised_at_calls, wait_until


@pytest.fixture
def meeting_place(tmp_path):
    return tmp_path / 'ring'


def ring_on(device, *arguments, **options):
    try:
        return isthmus.SharedRing(device, *arguments, **options)
    except isthmus.Error as refusal:
        if refusal.code in (isthmus.Code.UNSUPPORTED, isthmus.Code.SYSTEM_LIMIT):
            pytest.skip(str(refusal))
        raise


def started(source, *arguments):
    head = (f'import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\nimport isthmus\nfrom conftest import opened\n')
    return subprocess.Popen([sys.executable, '-c', head + textwrap.dedent(source), *map(str, arguments)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process, expect=0):
    try:
        said, problems = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == expect, problems
    return said


READER = '''
    with opened() as runtime:
        device = runtime.default_device
        total = whole = 0
        with isthmus.SharedReader(sys.argv[1], device) as reader:
            print(reader, flush=True)
            for frame in reader:
                with frame.host('r') as pixels:
                    assert pixels.shape == (8, 16)
                    value = pixels[7, 15]
                    assert pixels.tobytes() == bytes([value]) * 128
                if frame.finish():
                    whole += 1
                    total += value
        print(whole, total)
'''


def test_frames_go_to_another_process_and_its_loop_ends(device, stream, meeting_place):   # keeps Y2
    with ring_on(device, (8, 16), 'u1', at=meeting_place, policy='wait', reader_deadline=30) as ring:
        reader = started(READER, meeting_place)
        assert 'SharedReader of uint8[8, 16]' in reader.stdout.readline()
        for number in range(20):
            with ring.frame() as frame:
                assert frame.number == number
                if number % 2:
                    with frame.host('w') as pixels:
                        pixels[:] = bytes([number]) * 128
                else:
                    stream.fill(frame.buffer, number)   # the GPU writes; publishing waits for it
        assert ring.published == 20
    assert ended(reader).split() == ['20', str(sum(range(20)))]


def test_a_frame_is_used_by_the_device_of_its_reader(device, stream, meeting_place, kernels):   # keeps Y2
    with ring_on(device, 128, 'u1', at=meeting_place) as ring, opened() as runtime:
        with isthmus.SharedReader(meeting_place, runtime.default_device) as reader:
            with ring.frame() as frame, frame.host('w') as pixels:
                pixels[:] = bytes(range(128))
            with reader.next(wait=10) as frame:
                with frame.device(reader.home.stream, 'r') as scope:
                    assert scope.shape == (128,)
                out = reader.home.allocate_shared(128)
                reader.home.stream.copy(out, frame.buffer)
                with out.host('r') as result:
                    assert result.tobytes() == bytes(range(128))
            assert frame.closed


def test_a_frame_that_was_overwritten_is_told(device, meeting_place):
    with ring_on(device, 64, 'u1', at=meeting_place, slots=2) as ring:
        with isthmus.SharedReader(meeting_place, device) as reader:
            def publish(value):
                with ring.frame() as frame, frame.host('w') as pixels:
                    pixels[:] = bytes([value]) * 64
            publish(1)
            frame = reader.next(wait=10)
            publish(2)
            assert frame.finish() is True
            frame = reader.next(wait=10)
            for value in range(6):
                publish(value)
            assert frame.finish() is False and frame.closed
            frame = reader.next(wait=10)
            assert frame.missed > 0
            with pytest.raises(isthmus.Overtaken):
                with frame:
                    for value in range(6):
                        publish(value)


def test_a_frame_of_an_exception_is_not_published(device, meeting_place):
    with ring_on(device, 64, 'u1', at=meeting_place) as ring:
        with pytest.raises(KeyError):
            with ring.frame() as frame:
                raise KeyError('mine')
        assert ring.published == 0 and frame.closed
        with ring.frame() as frame:
            pass
        assert ring.published == 1 and frame.closed and frame.number == 0


def test_waits_end_and_rings_close(device, meeting_place):
    ring = ring_on(device, 64, 'u1', at=meeting_place)
    with isthmus.SharedReader(meeting_place, device) as reader:
        with pytest.raises((isthmus.TimedOut, isthmus.NotReady)):
            reader.next(wait=0.05)
        with pytest.raises(isthmus.NotReady):
            reader.next(wait=0)
        ring.close()
        ring.close()
        with pytest.raises(isthmus.Ended):
            reader.next(wait=5)
        assert list(reader) == []
    reader.close()
    assert 'closed' in repr(ring) and 'closed' in repr(reader) and not list(meeting_place.glob('channel'))


def test_where_nobody_shares_is_an_error(tmp_path, device):
    with pytest.raises(isthmus.PeerLost, match='no process'):
        isthmus.SharedReader(tmp_path / 'nobody', device, connect=0.05)


def test_where_others_may_enter_is_refused(tmp_path, device):
    place = tmp_path / 'open'
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    with pytest.raises(isthmus.NotPermitted):
        ring_on(device, 64, at=place)


def test_one_ring_at_a_place(device, meeting_place):
    with ring_on(device, 64, at=meeting_place):
        with pytest.raises(isthmus.InUse):
            isthmus.SharedRing(device, 64, at=meeting_place)
    ring_on(device, 64, at=meeting_place).close()   # free again


def test_as_many_readers_as_were_said(device, meeting_place):
    with ring_on(device, 64, at=meeting_place, most_readers=1):
        first = isthmus.SharedReader(meeting_place, device)
        with pytest.raises(isthmus.PeerLost):
            isthmus.SharedReader(meeting_place, device, connect=0.1)
        first.close()


def test_a_producer_that_is_killed_is_lost(device, meeting_place):   # keeps Y3
    producer = started('''
        import time
        with opened() as runtime:
            ring = isthmus.SharedRing(runtime.default_device, 64, at=sys.argv[1])
            print('there', flush=True)
            time.sleep(60)
    ''', meeting_place)
    assert producer.stdout.readline().strip() == 'there', producer.communicate()
    with isthmus.SharedReader(meeting_place, device) as reader:
        producer.kill()
        producer.wait()
        with pytest.raises(isthmus.PeerLost):
            reader.next(wait=20)
    with ring_on(device, 64, at=meeting_place):   # the socket that it left is no obstacle
        pass


def open_files():
    return len(os.listdir('/proc/self/fd'))


def test_a_reader_whose_device_cannot_be_used_takes_no_place(device, meeting_place):   # keeps I6
    with opened() as gone:
        lost = gone.default_device
    with ring_on(device, 64, at=meeting_place, most_readers=1) as ring:
        before = open_files()
        for _ in range(3):
            with pytest.raises(isthmus.InvalidHandle):
                isthmus.SharedReader(meeting_place, lost)
        assert open_files() == before
        with isthmus.SharedReader(meeting_place, device) as reader:
            with ring.frame():
                pass
            assert reader.next(wait=10).finish()


@pytest.mark.parametrize('changed', [{'device': 'lost'}, {'device': 'lost later'}, {'shape': 'x'}, {'dtype': 'none'},
                                     {'descriptor': 7}])
def test_a_refused_reader_closes_the_files_that_it_was_given(device, monkeypatch, changed):   # keeps I6
    with opened() as gone:
        lost = gone.default_device
    with ring_on(device, 64, most_readers=1) as ring:
        for _ in range(3):   # each finds a place
            descriptor, files = ring.admit()
            asked = {'descriptor': descriptor, 'shape': 64, 'dtype': 'u1', 'device': device, **changed}
            if changed.get('device'):
                asked['device'] = lost
            if changed.get('device') == 'lost later':   # between a look at it and the use of it
                monkeypatch.setattr(isthmus.SharedReader, '_find_device', lambda self, one: setattr(self, 'home', one))
            with pytest.raises((isthmus.Error, TypeError)):
                isthmus.SharedReader.received(files=files, **asked)
            for file in files:
                with pytest.raises(OSError):
                    os.fstat(file)


def test_an_admission_that_runs_out_of_descriptors_leaves_none(device, monkeypatch):   # keeps I6
    with ring_on(device, 64) as ring:
        copies, made = os.dup, []

        def few(file):
            if made:
                raise OSError(errno.EMFILE, 'Too many open files')
            made.append(copies(file))
            return made[0]
        monkeypatch.setattr(os, 'dup', few)
        with pytest.raises(OSError, match='Too many'):
            ring.admit()
        with pytest.raises(OSError):
            os.fstat(made[0])


def test_a_reader_without_a_place_is_told_at_once(device, meeting_place):   # keeps I6
    from isthmus import meeting
    with ring_on(device, 64, at=meeting_place, most_readers=1) as ring:
        with isthmus.SharedReader(meeting_place, device) as reader:
            def told():
                try:
                    meeting._receive(os.fspath(meeting_place))
                except isthmus.PeerLost:
                    return True
                except isthmus.TimedOut:   # a second later: that thread of the ring stood still
                    return False
            for _ in range(3):
                assert wait_until(told)
            ring.frame().publish()
            assert reader.next(wait=10).finish()
            assert wait_until(told)


def the_thread_of_rings_ends():
    return wait_until(lambda: 'isthmus-ring' not in [thread.name for thread in threading.enumerate()])


def test_a_ring_that_is_dropped_ends(device, meeting_place):   # keeps Y3
    ring = ring_on(device, 64, at=meeting_place)
    with isthmus.SharedReader(meeting_place, device) as reader:
        with ring.frame():
            pass
        assert reader.next(wait=10).finish()
        del ring
        gc.collect()
        with pytest.raises(isthmus.Ended):
            reader.next(wait=10)
        assert the_thread_of_rings_ends()
    again = ring_on(device, 64, at=meeting_place)
    with isthmus.SharedReader(meeting_place, device) as reader:
        frame = again.frame()
        del again
        gc.collect()
        frame.publish()   # the frame keeps its ring, whose readers stay
        del frame
        assert reader.next(wait=10).finish()
        with pytest.raises(isthmus.Ended):
            reader.next(wait=10)


def test_a_ring_that_is_dropped_while_a_reader_is_admitted_ends_with_its_thread(device, meeting_place, monkeypatch):   # keeps Y3
    from isthmus import meeting
    ring = ring_on(device, 64, at=meeting_place)
    alive, sending, dropped = weakref.ref(ring), threading.Event(), []
    send = meeting.call

    def send_behind_the_drop(function, *arguments):
        if function is meeting.c.isthmus_channel_send:
            sending.set()
            until = time.monotonic() + 30
            while alive() is not None and time.monotonic() < until:
                time.sleep(0.001)
            dropped.append(alive() is None)
        return send(function, *arguments)
    monkeypatch.setattr(meeting, 'call', send_behind_the_drop)
    channel = None
    until = time.monotonic() + 30
    while channel is None:
        try:
            channel = meeting.owned('channel', meeting.c.isthmus_channel_connect, os.fsencode(meeting_place))
        except (isthmus.TimedOut, isthmus.PeerLost):   # the thread of the ring stood still for a second
            assert time.monotonic() < until
    assert sending.wait(30)
    del ring
    gc.collect()
    assert dropped == [True]
    assert the_thread_of_rings_ends()
    del channel


def test_a_ring_may_be_dropped_within_the_lock_of_threading(device, meeting_place):   # keeps Y3
    ring = ring_on(device, 64, at=meeting_place)
    # The thread of the ring has taken that lock for its beginning, and will not do so again before its end.
    assert wait_until(lambda: 'isthmus-ring' in [thread.name for thread in list(threading._active.values())])
    with threading._active_limbo_lock:   # as where the collector comes within threading.enumerate()
        in_time(ring.close, most=9)   # the thread's end takes that lock, and is waited for 10 s
    assert the_thread_of_rings_ends()


def test_readers_are_admitted_behind_one_that_failed_by_an_error_of_python(device, meeting_place, monkeypatch):   # keeps I6
    from isthmus import meeting
    told, failed = meeting.told, []

    def fails_once(*arguments):
        if not failed:
            failed.append(MemoryError())
            raise failed[0]
        return told(*arguments)
    monkeypatch.setattr(meeting, 'told', fails_once)
    with ring_on(device, 64, at=meeting_place) as ring, isthmus.SharedReader(meeting_place, device, connect=30) as reader:
        ring.frame().publish()
        assert failed and reader.next(wait=10).finish()


def test_a_ring_that_is_dropped_in_a_child_stays_the_parents(in_new_process, meeting_place):   # keeps Y3
    said = in_new_process('''
        import gc, os, signal, threading, warnings
        warnings.simplefilter('ignore', DeprecationWarning)
        with opened() as runtime:
            device = runtime.default_device
            try:
                ring = isthmus.SharedRing(device, 64, at=sys.argv[1])
            except isthmus.Error as refusal:
                print(refusal.code.name)
                sys.exit(0)
            frame = ring.frame()
            there, over = threading.Event(), threading.Event()

            def use():   # as the thread that admits readers may be about it
                with ring._turn.lock:
                    there.set()
                    over.wait()
            thread = threading.Thread(target=use)
            thread.start()
            there.wait()
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                try:
                    ring.frame()
                except isthmus.Forked:
                    frame.close()
                    ring.close()
                    del frame, ring
                    gc.collect()
                    os._exit(7)
                os._exit(0)
            over.set()
            thread.join()
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            with isthmus.SharedReader(sys.argv[1], device) as reader:
                frame.publish()
                print(reader.next(wait=10).finish())
    ''', str(meeting_place))
    if said.strip() in ('UNSUPPORTED', 'SYSTEM_LIMIT'):
        pytest.skip(said)
    assert said.split() == ['7', 'True']


def test_a_transport_of_ones_own(device):
    with ring_on(device, (4, 4), 'i2') as ring:
        descriptor, files = ring.admit()
        with isthmus.SharedReader.received(descriptor, files, (4, 4), 'i2', device=device) as reader:
            with ring.frame() as frame, frame.host('w') as pixels:
                pixels[:] = bytes(32)
            with reader.next(wait=10) as frame, frame.host('r') as pixels:
                assert pixels[3, 3] == 0
        descriptor, files = ring.admit()
        with pytest.raises(isthmus.PeerBrokeRules):
            isthmus.SharedReader.received(descriptor, files, (5, 5), 'i2', device=device)
        with pytest.raises(isthmus.Error):
            isthmus.SharedReader.received(b'nonsense', [], 4, device=device)


@pytest.mark.parametrize('kind, message', [
    (5, b'nonsense'), (0x676e6972, b''), (0x676e6972, bytes(3)), (0x6e727970, b''), (0x6e727970, b'\xff\xff\xff\xff{}'),
    (0x6e727970, b'\2\0\0\0{}xx'), (0x6e727970, b'\x1d\0\0\0{"shape": [-1], "dtype": "u1"}x'),
    (0x6e727970, b'\x1e\0\0\0{"shape": [1.5], "dtype": "u1"}x'), (0x6e727970, b'\0\0\1\0' + b'[' * 65536)])
def test_messages_that_are_none_are_refused(kind, message):
    from isthmus import meeting
    with pytest.raises(isthmus.PeerBrokeRules):
        meeting.understood(kind, message)


@pytest.mark.parametrize('shape, dtype', [((4, 6), 'u1'), ((4, 6), 'f4'), ((1, 2**32), 'u1'), ((), 'u1'), ((2, 3, 4), 'u1'),
                                          ((7,), 'i2')])
def test_messages_say_what_the_frames_are(shape, dtype):
    from isthmus import meeting
    from isthmus._types import dtype_of
    frames = meeting.Frames(shape, dtype_of(dtype))
    assert meeting.understood(*meeting.told(frames, b'descriptor')) == (frames, b'descriptor')


def command():
    path = pathlib.Path(isthmus.__file__).parent / 'lib' / 'isthmus'
    if not path.exists():
        pytest.skip('the package is not installed')
    return str(path)


def test_frames_of_isthmus_share_are_read(device, meeting_place):   # keeps Y2
    producer = subprocess.Popen([command(), 'share', '--device', 'cpu', '--synthetic', '64x48', '--frames', '12',
                                 '--viewers', '1', '--policy', 'wait', '--viewer-deadline', '60', '--at',
                                 str(meeting_place)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with isthmus.SharedReader(meeting_place, device, connect=30) as reader:
        assert reader.shape == (48, 64)
        numbers = []
        for frame in reader:
            with frame.host('r') as pixels:
                assert len(set(pixels.tobytes())) > 1
            numbers.append(frame.number)
            assert frame.finish()
    assert numbers == list(range(12))
    ended(producer)


def test_frames_of_python_are_viewed_by_the_command(device, meeting_place):   # keeps Y2
    with ring_on(device, (48, 64), 'u1', at=meeting_place) as ring:
        viewer = subprocess.Popen([command(), 'view', '--device', 'cpu', '--json', '--frames', '3', '--connect-deadline',
                                   '30', '--at', str(meeting_place)],
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until = time.monotonic() + 60
        while viewer.poll() is None and time.monotonic() < until:
            with ring.frame() as frame, frame.host('w') as pixels:
                pixels[:] = bytes([frame.number % 256]) * (48 * 64)
            time.sleep(0.02)
        assert json.loads(ended(viewer))['frames'] == 3


def test_ctrl_c_ends_a_wait_for_a_frame(device, meeting_place):
    import signal
    with ring_on(device, 64, at=meeting_place):
        reader = started('''
            with opened() as runtime, isthmus.SharedReader(sys.argv[1], runtime.default_device) as reader:
                try:
                    print('there', flush=True)
                    reader.next()
                except KeyboardInterrupt:
                    print('interrupted')
        ''', meeting_place)
        reader.stdout.readline()
        time.sleep(0.2)
        reader.send_signal(signal.SIGINT)
        assert ended(reader).strip() == 'interrupted'


def test_ctrl_c_ends_a_wait_for_readers(device, meeting_place):
    import signal
    ring_on(device, 64, policy='wait').close()
    producer = started('''
        import time
        with opened() as runtime:
            device = runtime.default_device
            with isthmus.SharedRing(device, 64, at=sys.argv[1], policy='wait', reader_deadline=120) as ring:
                with isthmus.SharedReader(sys.argv[1], device):
                    begun = time.monotonic()
                    try:
                        print('there', flush=True)
                        while True:
                            ring.frame(wait=60).publish()
                    except KeyboardInterrupt:
                        print('interrupted', time.monotonic() - begun < 30)
    ''', meeting_place)
    producer.stdout.readline()
    time.sleep(0.3)
    producer.send_signal(signal.SIGINT)
    assert ended(producer).split() == ['interrupted', 'True']


def test_readers_come_and_go_while_frames_are_published(in_new_process):   # keeps I6
    said = in_new_process('''
        import os, threading
        with opened() as runtime:
            try:
                ring = isthmus.SharedRing(runtime.default_device, 64, most_readers=8)
            except isthmus.Error as refusal:
                print(refusal.code.name)
                sys.exit(0)
            over = threading.Event()

            def come_and_go():
                while not over.is_set():
                    try:
                        for file in ring.admit()[1]:
                            os.close(file)
                    except isthmus.InUse:
                        pass
            threads = [threading.Thread(target=come_and_go) for _ in range(3)]
            for thread in threads:
                thread.start()
            try:
                for _ in range(4000):
                    with ring.frame():
                        pass
                    ring.frame().close()
            finally:
                over.set()
                for thread in threads:
                    thread.join()
            print(ring.published)
            ring.close()
    ''')
    if said.strip() in ('UNSUPPORTED', 'SYSTEM_LIMIT'):
        pytest.skip(said)
    assert said.split() == ['4000']


@pytest.mark.parametrize('ending', ['publish', 'close', 'drop'])
def test_one_thread_at_a_time_uses_a_ring_and_its_frames(device, ending):   # keeps I6
    with ring_on(device, 64) as ring:
        held, going = [ring.frame()], threading.Event()

        def end():
            going.set()
            frame = held.pop()
            if ending != 'drop':
                getattr(frame, ending)()
        thread = threading.Thread(target=end)
        with ring._turn.lock:
            thread.start()
            going.wait()
            thread.join(0.2)
            assert thread.is_alive() and ring.published == 0
        thread.join()
        assert ring.published == (ending == 'publish')
        with ring.frame() as frame:
            assert frame.number == (ending == 'publish')


def test_readers_are_admitted_while_publishing_waits_for_the_device(device, monkeypatch):   # keeps I6
    with ring_on(device, 64) as ring:
        frame, waited, admitted = ring.frame(), isthmus.RingFrame.host, []

        def admit():
            admitted.extend(ring.admit()[1])

        def wait_for_long(self, mode, *, wait=None):
            thread = threading.Thread(target=admit)
            thread.start()
            thread.join(30)
            assert admitted
            return waited(self, mode, wait=wait)
        device.stream.fill(frame.buffer, 5)
        monkeypatch.setattr(isthmus.RingFrame, 'host', wait_for_long)
        frame.publish()
        for file in admitted:
            os.close(file)
        assert len(admitted) == 3 and ring.published == 1


def waiting_ring(device, meeting_place, slots=2):
    return ring_on(device, 64, at=meeting_place, policy='wait', reader_deadline=120, slots=slots)


def fill(ring):
    """Publishes as many frames as a reader that reads none has room for."""
    with pytest.raises(isthmus.NotReady):
        while True:
            ring.frame(wait=0).publish()


def in_time(work, most=20):
    """What `work` returns, which it must do while another thread waits for longer than `most` seconds."""
    begun = time.monotonic()
    done = work()
    assert time.monotonic() - begun < most
    return done


def test_other_threads_use_a_ring_while_one_waits_for_readers(device, meeting_place):   # keeps I6
    with waiting_ring(device, meeting_place, slots=4) as ring, isthmus.SharedReader(meeting_place, device) as reader:
        for _ in range(3):
            ring.frame().publish()
        held = ring.frame()
        begun, going = [], threading.Event()

        def begin():
            going.set()
            begun.append(ring.frame(wait=60))
        thread = threading.Thread(target=begin)
        thread.start()
        going.wait()
        thread.join(0.3)
        assert in_time(lambda: ring.published) == 3
        for file in in_time(ring.admit)[1]:
            os.close(file)
        in_time(held.publish)
        assert ring.published == 4 and thread.is_alive() and not begun
        with in_time(lambda: isthmus.SharedReader(meeting_place, device)):
            assert reader.next(wait=10).finish()
            thread.join(30)
        assert [frame.number for frame in begun] == [4]
        begun.pop().publish()
        assert ring.published == 5


def test_a_ring_is_closed_while_another_thread_waits_for_readers(device, meeting_place):   # keeps I6
    with waiting_ring(device, meeting_place) as ring:
        with isthmus.SharedReader(meeting_place, device) as reader:
            fill(ring)
            refused, going = [], threading.Event()

            def begin():
                going.set()
                try:
                    ring.frame(wait=60)
                except (isthmus.Ended, isthmus.InvalidHandle) as refusal:
                    refused.append(refusal)
            thread = threading.Thread(target=begin)
            thread.start()
            going.wait()
            thread.join(0.3)
            in_time(ring.close)
            thread.join(30)
            assert refused and reader.next(wait=10).finish()


def test_waits_for_a_frame_end_at_their_time(device, meeting_place):
    with waiting_ring(device, meeting_place) as ring, isthmus.SharedReader(meeting_place, device) as reader:
        fill(ring)
        for wait in (1e-9, 0.05, 0.35):   # less and more than one slice
            begun = time.monotonic()
            with pytest.raises(isthmus.TimedOut):
                ring.frame(wait=wait)
            assert time.monotonic() - begun >= wait
        with pytest.raises(isthmus.InvalidArgument):
            ring.frame(wait=-1)
        assert reader.next(wait=10).number == 0


def test_a_wait_for_a_frame_without_a_time_has_the_runtimes(meeting_place):
    with opened(wait_timeout=0.35) as runtime, waiting_ring(runtime.default_device, meeting_place) as ring:
        with isthmus.SharedReader(meeting_place, runtime.default_device):
            fill(ring)
            begun = time.monotonic()
            with pytest.raises(isthmus.TimedOut):
                ring.frame()
            assert 0.35 <= time.monotonic() - begun < 30


class AtItsEnd:
    """A lock that calls something behind its first release."""

    def __init__(self, turn, work):
        self.turn, self.lock, self.work = turn, turn.lock, work
        turn.lock = self

    def __enter__(self):
        self.lock.acquire()

    def __exit__(self, *_):
        self.turn.lock = self.lock
        self.lock.release()
        self.work()


def test_a_frame_is_not_lost_where_its_ring_is_closed_behind_its_beginning(device):   # keeps I6
    with ring_on(device, 64) as ring:
        AtItsEnd(ring._turn, ring.close)
        frame = ring.frame()
        assert ring.closed and frame.number == 0
        frame.publish()


def test_a_ring_is_closed_for_other_threads_before_they_have_their_turn(device):   # keeps I6
    ring, closed = ring_on(device, 64), []
    AtItsEnd(ring._turn, lambda: closed.append(ring.closed))
    ring.close()
    assert closed == [True]


def test_a_frame_that_comes_with_an_exception_of_a_signal_is_not_lost(device, meeting_place, monkeypatch):   # keeps I6
    from isthmus import sharing
    with ring_on(device, 64, at=meeting_place) as ring, isthmus.SharedReader(meeting_place, device) as reader:
        def interrupted(name):
            function = getattr(sharing.c, name)

            def work(*arguments):
                assert function(*arguments) == 0
                raise KeyboardInterrupt
            monkeypatch.setattr(sharing.c, name, work)
        interrupted('isthmus_shared_ring_begin')
        with pytest.raises(KeyboardInterrupt):
            ring.frame()
        monkeypatch.undo()
        for number in range(2):
            with ring.frame() as frame:
                assert frame.number == number
        assert ring.published == 2
        interrupted('isthmus_shared_reader_next')
        with pytest.raises(KeyboardInterrupt):
            reader.next(wait=10)
        monkeypatch.undo()
        with reader.next(wait=10) as frame:
            assert frame.number == 1


@pytest.mark.parametrize('file', ['sharing.py', '_handles.py', 'buffers.py', '_library.py'])
def test_a_signal_at_any_call_loses_no_frame(device, meeting_place, file):   # keeps I6, Y3
    with ring_on(device, 64, at=meeting_place) as ring, isthmus.SharedReader(meeting_place, device) as reader:
        for _ in raised_at_calls(lambda: ring.frame().publish(), '/isthmus/' + file):
            before = ring.published
            ring.frame().publish()
            assert ring.published == before + 1
            assert reader.next(wait=10).finish()
        while True:
            try:
                reader.next(wait=0)
            except isthmus.NotReady:
                break
        ring.frame().publish()
        for _ in raised_at_calls(lambda: reader.next(wait=10).finish(), '/isthmus/' + file):
            ring.frame().publish()
            assert reader.next(wait=10).finish()
            ring.frame().publish()


def test_a_frame_asks_c_nothing_behind_its_beginning(device, meeting_place, monkeypatch):   # keeps I6, Y3
    from isthmus import sharing
    with ring_on(device, 64, at=meeting_place) as ring, isthmus.SharedReader(meeting_place, device) as reader:
        ring.frame().publish()
        for frame in (ring.frame(), reader.next(wait=10)):
            asked = []
            with monkeypatch.context() as patched:   # where another thread may have ended the frame
                patched.setattr(sharing.c, 'isthmus_frame_buffer', asked.append)
                assert frame.buffer.shape == (64,)
                frame.close()
                with pytest.raises(isthmus.InvalidHandle):
                    frame.buffer
            assert not asked


@pytest.mark.parametrize('ending', ['publish', 'finish'])
def test_an_interrupted_end_of_a_frame_ends_it_once(device, meeting_place, monkeypatch, ending):   # keeps I6, Y3
    with ring_on(device, 64, at=meeting_place) as ring, isthmus.SharedReader(meeting_place, device) as reader:
        frame = ring.frame()
        if ending == 'finish':
            frame.publish()
            frame = reader.next(wait=10)
        end = isthmus.sharing.glue.isthmus_python_end_frame

        def interrupted(*arguments):
            end(*arguments)
            raise KeyboardInterrupt
        with monkeypatch.context() as patched:
            patched.setattr(isthmus.sharing.glue, 'isthmus_python_end_frame', interrupted)
            with pytest.raises(KeyboardInterrupt):
                getattr(frame, ending)()
        assert frame.closed
        frame.close()
        del frame
        assert ring.published == 1
        ring.frame().publish()
        with ring.frame() as other:
            assert other.number == 2


@pytest.mark.parametrize('wait, limit', [(5, 5), (0.05, 0.05), (0, 0), (None, 60)])
def test_publishing_has_one_deadline_for_both_of_its_waits(device, monkeypatch, wait, limit):
    from isthmus import sharing
    with ring_on(device, 64) as ring:
        frame, host, end, waits = ring.frame(), isthmus.RingFrame.host, sharing.glue.isthmus_python_end_frame, []
        assert frame.buffer.shape == (64,)

        def wait_for_long(self, mode, *, wait=None):
            waits.append(wait)
            time.sleep(0.1)
            return host(self, mode, wait=wait)

        def note(function, handle, share, nanoseconds, error):
            waits.append(nanoseconds / 1e9)
            return end(function, handle, share, nanoseconds, error)
        monkeypatch.setattr(isthmus.RingFrame, 'host', wait_for_long)
        monkeypatch.setattr(sharing.glue, 'isthmus_python_end_frame', note)
        frame.publish(wait=wait)
        first, second = waits
        assert first == limit and ring.published == 1
        if limit:
            assert 0 < second <= max(limit - 0.1, 1e-6)   # 0 would ask for NotReady
        else:
            assert second == 0


@pytest.mark.parametrize('ending', ['finish', 'close'])
def test_a_worker_finishes_a_frame_while_another_thread_uses_the_reader(device, meeting_place, ending):   # keeps Y3
    with ring_on(device, 64, at=meeting_place) as ring, isthmus.SharedReader(meeting_place, device) as reader:
        ring.frame().publish()
        frame, going = reader.next(wait=10), threading.Event()

        def end():
            going.set()
            getattr(frame, ending)()
        worker = threading.Thread(target=end)
        with reader._turn.lock:   # as next() has it
            worker.start()
            going.wait()
            worker.join(0.2)
            assert worker.is_alive() and not frame.closed
        worker.join()
        assert frame.closed
        ring.frame().publish()
        assert reader.next(wait=10).finish()


def test_other_threads_use_a_reader_while_one_waits_for_the_device(device, meeting_place, gate):   # keeps I6, Y3
    if device.is_cpu:
        pytest.skip('its launches wait')
    stream, words = device.create_stream(), device.allocate_shared(1, 'u4')
    with ring_on(device, 64, at=meeting_place) as ring, isthmus.SharedReader(meeting_place, device) as reader:
        ring.frame().publish()
        frame, whole = reader.next(wait=10), []
        with frame.device(stream, 'r'):
            gate.hold(stream, words)   # work of the frame's scope, as its end takes it
        thread = threading.Thread(target=lambda: whole.append(frame.finish(wait=60)))
        thread.start()
        time.sleep(0.1)
        with reader._turn.lock:
            assert not frame.closed and not stream.finished
        gate.open()
        thread.join()
        assert whole == [True] and frame.closed


def test_a_reader_refuses_what_is_no_time(device, meeting_place):
    with ring_on(device, 64, at=meeting_place) as ring, isthmus.SharedReader(meeting_place, device) as reader:
        ring.frame(wait=math.inf).publish(wait=math.inf)
        frame = reader.next(wait=math.inf)
        for wait in (-1, math.nan):
            for call in (reader.next, ring.frame, frame.finish):
                with pytest.raises(isthmus.InvalidArgument):
                    call(wait)
        assert frame.finish(wait=math.inf)
        with pytest.raises(isthmus.TimedOut):
            reader.next(wait=1e-9)


def test_a_directory_with_a_null_byte_is_refused(device, tmp_path):
    for make in (lambda at: isthmus.SharedRing(device, 4, at=at), lambda at: isthmus.SharedReader(at, device)):
        with pytest.raises(isthmus.InvalidArgument):
            make(f'{tmp_path}/a\0b')
    assert os.listdir(tmp_path) == []


def test_a_frame_is_no_array(device, meeting_place, numpy):   # keeps Y2
    with ring_on(device, 64) as ring, ring.frame() as frame:
        with pytest.raises(TypeError, match='scope'):
            numpy.asarray(frame)


def test_a_frame_that_next_gave_back_is_not_finished_again(device, meeting_place):   # keeps Y3
    with ring_on(device, 64, at=meeting_place) as ring, isthmus.SharedReader(meeting_place, device) as reader:
        ring.frame().publish()
        ring.frame().publish()
        frame = reader.next(wait=10)
        assert reader.next(wait=10).number == 1
        with pytest.raises(isthmus.InvalidHandle):
            frame.finish()


def test_a_reader_is_closed_while_another_thread_waits_for_a_frame(device, meeting_place):   # keeps Y3
    with ring_on(device, 64, at=meeting_place):
        reader, refused = isthmus.SharedReader(meeting_place, device), []

        def wait():
            try:
                reader.next()
            except isthmus.InvalidHandle as refusal:
                refused.append(refusal)
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.15)
        reader.close()
        thread.join()
        assert refused
