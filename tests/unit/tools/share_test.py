#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`isthmus share` and `isthmus view`: the same frames in two processes, whoever is killed, and nothing left behind.

usage: share_test.py ISTHMUS [MACHINE...]
"""
import json
import os
import pathlib
import resource
import select
import shlex
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

COMMAND = []  # under emulation: the wrapper that Meson names, then the program
MACHINES = []
DEADLINE_S = 200
SYNTHETIC = ("--synthetic", "96x64")


def environment(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ISTHMUS_")}
    clean["ISTHMUS_PROFILE"] = "none"
    clean["ISTHMUS_CUDA_LIBRARY"] = "/nonexistent/libcuda.so.1"  # no GPU unless --machine plays one
    clean.update(more)
    return clean


def clip(path, frames):
    """A gray video in which a bright square moves."""
    with open(path, "wb") as file:
        file.write(b"YUV4MPEG2 W96 H64 F25:1 Cmono\n")
        for number in range(frames):
            picture = bytearray(96 * 64)
            for y in range(20, 40):
                picture[y * 96 + 20 + number:y * 96 + 44 + number] = bytes([200]) * 24
            file.write(b"FRAME\n" + picture)


class Place(unittest.TestCase):
    """A directory to meet in, and what has to be so when everybody has gone."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = os.path.join(self.folder.name, "meet")
        self.shared_memory = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.folder.cleanup()

    def start(self, command, *arguments, machine=None):
        played = ("--machine", machine) if machine else ()
        process = subprocess.Popen([*COMMAND, command, "--at", self.at, "--json", *arguments, *played],
                                   env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process

    def end_of(self, process, code=0):
        out, error = process.communicate(timeout=DEADLINE_S)
        if process.returncode == 3 and "simulator" in error:
            self.skipTest("this build has no simulator")
        self.assertEqual(process.returncode, code, error)
        return json.loads(out) if out else None

    def assert_nothing_left(self):
        self.assertEqual(os.listdir(self.at), [])
        if self.shared_memory:
            left = {name for name in set(os.listdir("/dev/shm")) - self.shared_memory if "isthmus" in name}
            self.assertEqual(left, set())

    def wait_until_reading(self, viewer):
        """Until the viewer has the frames mapped."""
        until = time.monotonic() + DEADLINE_S
        while "isthmus-ring" not in pathlib.Path(f"/proc/{viewer.pid}/maps").read_text():
            self.assertIsNone(viewer.poll(), "the viewer ended")
            self.assertLess(time.monotonic(), until)
            time.sleep(0.005)


class SameFrames(Place):
    def meet(self, producer_machine, viewer_machine, *arguments):
        producer = self.start("share", *SYNTHETIC, "--frames", "25", "--policy", "wait", "--viewers", "2",
                              "--viewer-deadline", "60", *arguments, machine=producer_machine)
        viewers = [self.start("view", "--waiting", waiting, "--connect-deadline", "60", machine=viewer_machine)
                   for waiting in ("adaptive", "sleep")]
        shared = self.end_of(producer)
        for viewed in [self.end_of(viewer) for viewer in viewers]:
            self.assertEqual(viewed["digest"], shared["digest"])
            self.assertEqual((viewed["frames"], viewed["missed"], viewed["overtaken"]), (25, 0, 0))
            self.assertEqual(viewed["end"], "closed")
            self.assertTrue(viewed["ring"]["reason"])
        self.assertEqual(shared["frames"], 25)
        self.assertEqual(len(shared["readers"]), 2)
        self.assert_nothing_left()

    def test_without_a_gpu(self):  # keeps I1
        self.meet(None, None)
        self.meet(None, None, "--writable")

    def test_on_played_machines(self):  # keeps I1
        for machine in MACHINES:
            with self.subTest(machine=machine):
                self.meet(machine, machine)

    def test_between_two_kinds_of_machine(self):  # keeps I1
        if MACHINES:
            self.meet(MACHINES[0], None)
            self.meet(None, MACHINES[-1], "--writable")

    def test_a_viewers_gpu_finds_what_run_finds(self):  # keeps I1
        video = os.path.join(self.folder.name, "clip.y4m")
        clip(video, 6)
        for machine in [None, *MACHINES]:
            with self.subTest(machine=machine):
                played = ("--machine", machine) if machine else ()
                done = subprocess.run([*COMMAND, "run", video, "--json", *played], env=environment(),
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S)
                if done.returncode == 3 and "simulator" in done.stderr:
                    self.skipTest("this build has no simulator")
                self.assertEqual(done.returncode, 0, done.stderr)
                producer = self.start("share", video, "--policy", "wait", "--viewers", "1", "--viewer-deadline", "60",
                                      machine=machine)
                viewer = self.start("view", "--corners", "--connect-deadline", "60", machine=machine)
                self.end_of(producer)
                corners = self.end_of(viewer)["corners"]
                wanted = json.loads(done.stdout)["corners"]
                self.assertGreater(wanted["count"], 0)
                self.assertEqual(corners, {"count": wanted["count"], "digest": wanted["digest"]})

    def test_what_a_slow_viewer_accepts_is_what_was_published(self):  # keeps I1
        producer = self.start("share", *SYNTHETIC, "--frames", "400", "--slots", "2", "--viewers", "1", "--checksums")
        viewer = self.start("view", "--checksums", "--frames", "400", "--work", "1", "--connect-deadline", "60")
        shared, viewed = self.end_of(producer), self.end_of(viewer)
        published = {number: checksum for number, checksum in shared["checksums"]}
        self.assertEqual(len(published), 400)
        for number, checksum in viewed["checksums"]:
            self.assertEqual(checksum, published[number])
        self.assertEqual(viewed["frames"] + viewed["missed"] + viewed["overtaken"], 400)
        self.assertEqual(viewed["frames"], len(viewed["checksums"]))
        self.assert_nothing_left()


class Deaths(Place):
    def test_a_killed_viewer_stops_nobody(self):  # keeps I6
        producer = self.start("share", *SYNTHETIC, "--frames", "200", "--policy", "wait", "--viewers", "5",
                              "--viewer-deadline", "60")
        # The last of them has its first frame until it is killed: until then nobody comes to the end.
        doomed = [self.start("view", "--work", work, "--connect-deadline", "60") for work in ("1", "1", "1", "60000")]
        other = self.start("view", "--connect-deadline", "60", "--work", "1")
        for number, viewer in enumerate(doomed):
            self.wait_until_reading(viewer)
            time.sleep(0.007 * number)
            viewer.kill()
        shared, viewed = self.end_of(producer), self.end_of(other)
        self.assertEqual(shared["frames"], 200)
        self.assertEqual((viewed["frames"], viewed["digest"]), (200, shared["digest"]))
        # A later reader may have got the place of an earlier one.
        states = [reader["state"] for reader in shared["readers"]]
        # The last viewer leaves when the ring has ended, perhaps before the states are looked at.
        self.assertTrue(set(states) <= {"gone", "live"} and states.count("live") <= 1, shared)
        self.assert_nothing_left()

    def test_a_viewer_that_hangs_is_given_up(self):  # keeps I6
        producer = self.start("share", *SYNTHETIC, "--frames", "300", "--policy", "wait", "--viewers", "2",
                              "--viewer-deadline", "0.5")
        # The first one is not at the end before it is stopped, however late that is.
        viewers = [self.start("view", "--connect-deadline", "60", "--work", work) for work in ("3000", "2")]
        self.wait_until_reading(viewers[0])  # the producer itself waits for both
        viewers[0].send_signal(signal.SIGSTOP)
        shared = self.end_of(producer)
        self.assertEqual(shared["frames"], 300)
        self.assertIn("too_slow", [reader["state"] for reader in shared["readers"]])
        viewers[0].send_signal(signal.SIGCONT)
        # The reader gets this error although unread frames are still in the ring, which is closed by now.
        out, error = viewers[0].communicate(timeout=DEADLINE_S)
        self.assertEqual(viewers[0].returncode, 1, error)
        self.assertIn("gave this reader up", error)
        viewed = json.loads(out)
        self.assertEqual((viewed["end"], viewed["missed"]), ("peer_lost", 0))
        self.assertLess(viewed["frames"], 300)

    def test_a_killed_producer_is_a_typed_end(self):  # keeps I6
        for policy in ("drop", "wait"):
            with self.subTest(policy=policy):
                producer = self.start("share", *SYNTHETIC, "--policy", policy, "--viewers", "2", "--rate", "200",
                                      "--viewer-deadline", "60")
                viewers = [self.start("view", "--waiting", waiting, "--connect-deadline", "60")
                           for waiting in ("spin", "sleep")]
                for viewer in viewers:
                    self.wait_until_reading(viewer)
                time.sleep(0.05)
                producer.kill()
                producer.communicate()
                for viewer in viewers:
                    out, error = viewer.communicate(timeout=DEADLINE_S)
                    self.assertEqual(viewer.returncode, 1, error)
                    self.assertEqual(error.count("\n"), 1, error)
                    self.assertEqual(json.loads(out)["end"], "peer_lost")
        # The directory is usable for the next producer.
        producer = self.start("share", *SYNTHETIC, "--frames", "3", "--viewers", "1", "--policy", "wait",
                              "--viewer-deadline", "60")
        viewer = self.start("view", "--connect-deadline", "60")
        self.assertEqual(self.end_of(viewer)["digest"], self.end_of(producer)["digest"])
        self.assert_nothing_left()

    def test_a_producer_without_descriptors_waits_until_it_has_some(self):  # keeps R6
        if len(COMMAND) > 1:
            self.skipTest("an emulator has descriptors of its own")
        if os.environ.get("ISTHMUS_TEST_SANITIZED"):
            self.skipTest("a sanitizer needs descriptors of its own")
        producer = self.start("share", *SYNTHETIC, "--viewers", "1", "--rate", "50")
        first = self.start("view", "--connect-deadline", "60")
        self.wait_until_reading(first)
        # All descriptor numbers below the limit are in use.
        used = {int(number) for number in os.listdir(f"/proc/{producer.pid}/fd")}
        before = resource.prlimit(producer.pid, resource.RLIMIT_NOFILE)
        least = next(number for number in range(len(used) + 1) if number not in used)
        resource.prlimit(producer.pid, resource.RLIMIT_NOFILE, (least, before[1]))
        late = self.start("view", "--frames", "2", "--connect-deadline", "60")
        said = b""
        while b"was not admitted" not in said:
            self.assertTrue(select.select([producer.stderr], [], [], DEADLINE_S)[0], said)
            more = os.read(producer.stderr.fileno(), 1 << 16)
            self.assertTrue(more, said)
            said += more
        self.assertIsNone(late.poll())
        resource.prlimit(producer.pid, resource.RLIMIT_NOFILE, before)
        self.assertEqual(self.end_of(late)["end"], "frames")
        producer.send_signal(signal.SIGTERM)
        _, error = producer.communicate(timeout=DEADLINE_S)
        error = said.decode() + error
        self.assertEqual(producer.returncode, 143, error)
        self.assertLess(error.count("\n"), 10, error)
        self.assertEqual(self.end_of(first)["end"], "closed")

    def test_a_producer_that_is_told_to_end_closes_its_ring(self):  # keeps I6
        producer = self.start("share", *SYNTHETIC, "--viewers", "1", "--rate", "200")
        viewer = self.start("view", "--frames", "3", "--connect-deadline", "60")
        self.assertEqual(self.end_of(viewer)["end"], "frames")
        viewer = self.start("view", "--connect-deadline", "60")
        self.wait_until_reading(viewer)
        producer.send_signal(signal.SIGTERM)
        shared = self.end_of(producer, 143)
        self.assertGreater(shared["frames"], 2)
        self.assertEqual(self.end_of(viewer)["end"], "closed")
        self.assert_nothing_left()


class Strangers(Place):
    """Processes that connect and do not follow the protocol."""

    def produce(self, stderr):
        """A producer that has its listener."""
        producer = subprocess.Popen([*COMMAND, "share", *SYNTHETIC, "--rate", "200", "--at", self.at, "--json"],
                                    env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr)
        self.started.append(producer)
        until = time.monotonic() + DEADLINE_S
        while not os.path.exists(os.path.join(self.at, "channel")):
            self.assertIsNone(producer.poll(), "the producer ended")
            self.assertLess(time.monotonic(), until)
            time.sleep(0.005)
        return producer

    def connect(self):
        """A connected socket, as soon as the listener has room for one more."""
        stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(stranger.close)
        stranger.settimeout(DEADLINE_S)
        until = time.monotonic() + DEADLINE_S
        while True:
            try:
                stranger.connect(os.path.join(self.at, "channel"))
                return stranger
            except (BlockingIOError, ConnectionRefusedError, FileNotFoundError):  # not listening yet, or full
                self.assertLess(time.monotonic(), until)
                time.sleep(0.005)

    def break_rules(self, times):
        for _ in range(times):
            stranger = self.connect()
            try:
                stranger.send(b"nonsense" * 20)
                self.assertEqual(stranger.recv(1), b"")  # closed
            except (ConnectionResetError, BrokenPipeError):
                pass
            stranger.close()

    def assert_serves(self, producer):
        viewer = self.start("view", "--frames", "2", "--connect-deadline", "60")
        self.assertEqual(self.end_of(viewer)["end"], "frames")
        self.assertIsNone(producer.poll())

    def end(self, producer):
        producer.send_signal(signal.SIGTERM)
        out = producer.stdout.read()
        producer.wait(timeout=DEADLINE_S)
        self.assertEqual(producer.returncode, 143)
        self.assertGreater(json.loads(out)["frames"], 1)
        self.assert_nothing_left()

    def test_nobody_reads_what_is_said_of_them(self):  # keeps I4
        reading, writing = os.pipe()
        try:
            producer = self.produce(writing)
            self.break_rules(700)  # each notice would be more than 100 bytes; a pipe has room for 64 KiB
            self.assert_serves(producer)
            self.end(producer)
            os.set_blocking(reading, False)
            said = os.read(reading, 1 << 20).decode()
        finally:
            os.close(reading)
            os.close(writing)
        self.assertIn("share: a viewer was not admitted: a frame from pid", said)
        self.assertIn("left out here", said)
        self.assertLess(len(said), 60000)

    def test_standard_error_has_no_reader(self):  # keeps I4
        reading, writing = os.pipe()
        os.close(reading)
        producer = self.produce(writing)
        os.close(writing)
        self.break_rules(3)
        self.assert_serves(producer)
        self.end(producer)

    def test_a_crowd_that_says_nothing(self):  # keeps I4
        producer = self.produce(subprocess.DEVNULL)
        crowd = [self.connect() for _ in range(50)]
        self.assert_serves(producer)
        crowd += [self.connect() for _ in range(50)]
        self.end(producer)

    def test_what_they_say_reaches_no_terminal(self):
        video = os.path.join(self.folder.name, "clip\033]0;title\a.y4m")
        done = subprocess.run([*COMMAND, "share", video, "--at", self.at], env=environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("\\u001b]0;title\\u0007", done.stderr)
        self.assertNotIn("\033", done.stderr)
        odd = os.path.join(self.folder.name, "me\033[2Jet")
        done = subprocess.run([*COMMAND, "share", *SYNTHETIC, "--frames", "1", "--at", odd], env=environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("me\\u001b[2Jet", done.stdout)
        self.assertNotIn("\033", done.stdout)


class Refusals(Place):
    def refused(self, code, *arguments, says="", **more):
        done = subprocess.run([*COMMAND, *arguments], env=environment(**more), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, code, done)
        self.assertEqual(done.stdout, "", done)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(says, done.stderr)

    def test_what_there_is_not(self):  # keeps I1
        at = ("--at", self.at)
        self.refused(2, "share", *at, says="--synthetic")
        self.refused(2, "share", "clip.y4m", *SYNTHETIC, *at, says="--synthetic")
        self.refused(2, "share", "--synthetic", "96", *at, says="640x480")
        self.refused(2, "share", "--synthetic", "0x7", *at, says="width")
        self.refused(2, "share", "/nonexistent/clip.y4m", *at, says="clip.y4m")
        raw = os.path.join(self.folder.name, "raw")
        with open(raw, "wb") as file:
            file.write(bytes(96 * 64))
        self.refused(2, "share", raw, *at, says="`isthmus run` takes raw frames")
        os.remove(raw)
        self.refused(2, "share", *SYNTHETIC, "--policy", "hope", *at, says="--policy")
        self.refused(2, "share", *SYNTHETIC, "--slots", "1", *at, says="--slots")
        self.refused(2, "share", *SYNTHETIC, says="--at", XDG_RUNTIME_DIR="")
        self.refused(2, "view", says="--at", XDG_RUNTIME_DIR="")
        self.refused(1, "view", *at, "--connect-deadline", "0", says="view: ")
        self.assertFalse(os.path.exists(self.at))

    def test_checksums_without_an_end(self):
        for command in ("share", "view"):
            what = SYNTHETIC if command == "share" else ()
            for frames in ((), ("--frames", "100001")):
                self.refused(2, command, *what, "--checksums", "--json", *frames, "--at", self.at, says="--frames")
        self.assertFalse(os.path.exists(self.at))

    def test_a_name_that_is_no_listeners(self):  # keeps I4
        os.mkdir(self.at, 0o700)
        name = os.path.join(self.at, "channel")
        pathlib.Path(name).write_text("mine")
        self.refused(2, "share", *SYNTHETIC, "--frames", "1", "--at", self.at, says="channel")
        self.assertEqual(pathlib.Path(name).read_text(), "mine")
        os.unlink(name)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.bind(name)
            other.listen()
            self.refused(2, "share", *SYNTHETIC, "--frames", "1", "--at", self.at, says="channel")
            self.assertTrue(stat.S_ISSOCK(os.stat(name).st_mode))
        # The socket is dead now, and belongs to this user: it is removed.
        producer = self.start("share", *SYNTHETIC, "--frames", "1")
        self.assertEqual(self.end_of(producer)["frames"], 1)
        self.assertEqual(os.listdir(self.at), [])

    def test_a_directory_that_others_may_enter(self):  # keeps I4
        os.mkdir(self.at, 0o755)
        os.chmod(self.at, 0o755)
        self.refused(2, "share", *SYNTHETIC, "--frames", "1", "--at", self.at, says="share: ")
        self.assertEqual(os.listdir(self.at), [])


if __name__ == "__main__":
    COMMAND = [*shlex.split(os.environ.get("MESON_EXE_WRAPPER", "")), sys.argv[1]]
    MACHINES = sys.argv[2:]
    unittest.main(argv=sys.argv[:1], verbosity=1)
