#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`isthmus share --listen` and `isthmus view --from`: the same frames over UCX, whoever is killed, stopped or hostile.

usage: network_test.py ISTHMUS SLOW_NETWORK_LIBRARY [MACHINE...]
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ISTHMUS, SLOW_NETWORK, *MACHINES = sys.argv[1:]
DEADLINE_S = 100
SYNTHETIC = ("--synthetic", "320x240")
SANITIZED = "ISTHMUS_TEST_SANITIZED" in os.environ
HELLO = struct.Struct("<8sII32s")
VERSION = 3


def environment(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("ISTHMUS_", "UCX_"))}
    clean["ISTHMUS_PROFILE"] = "none"
    clean["ISTHMUS_CUDA_LIBRARY"] = "/nonexistent/libcuda.so.1"  # no GPU unless --machine plays one
    clean["UCX_TLS"] = "tcp"  # as between machines
    clean.update(more)
    return clean


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(each) for each in file.read().split()]


class Network(unittest.TestCase):
    """A directory for the producer's socket, and what has to be so when everybody has gone."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = os.path.join(self.folder.name, "meet")
        self.key = os.path.join(self.folder.name, "key")
        self.write_key(self.key, "5a" * 32)
        self.started = []
        self.bridges = set()

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        until = time.monotonic() + 10
        while self.bridges and time.monotonic() < until:  # no bridge outlives its parent
            self.bridges = {pid for pid in self.bridges if os.path.exists(f"/proc/{pid}/exe")}
            time.sleep(0.05)
        self.assertEqual(self.bridges, set())
        self.folder.cleanup()

    @staticmethod
    def write_key(path, digits, mode=0o600):
        with open(path, "w") as file:
            file.write(digits + "\n")
        os.chmod(path, mode)

    def program(self, command):
        return [ISTHMUS]

    def start(self, command, *arguments, machine=None, before=None, **more):
        played = ("--machine", machine) if machine else ()
        process = subprocess.Popen([*self.program(command), command, "--json", *arguments, *played], env=environment(**more),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=before)
        self.started.append(process)
        return process

    def share(self, *arguments, listen="127.0.0.1:0", source=SYNTHETIC, **more):
        """A producer, and the port on which its bridge listens."""
        producer = self.start("share", *source, "--at", self.at, "--listen", listen, *arguments, **more)
        port = None
        said = ""
        while port is None:
            line = producer.stderr.readline()
            self.assertTrue(line, said)
            said += line
            found = re.search(r"listens on port (\d+)", line)
            port = int(found[1]) if found else None
        self.note_bridges(producer)
        return producer, port

    def note_bridges(self, process):
        for bridge in children_of(process.pid):
            self.bridges |= {bridge, *children_of(bridge)}

    def view(self, port, *arguments, **more):
        patience = () if "--connect-deadline" in arguments else ("--connect-deadline", "30")
        return self.start("view", "--from", f"127.0.0.1:{port}", *patience, *arguments, **more)

    def end_of(self, process, code=0):
        out, error = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, code, error)
        return json.loads(out) if out else error

    def bridge_of(self, process, children=0):
        """The bridge's process, when it has this many children of its own."""
        until = time.monotonic() + DEADLINE_S
        while time.monotonic() < until:
            self.assertIsNone(process.poll())
            bridges = children_of(process.pid)
            if bridges and len(children_of(bridges[0])) >= children:
                self.note_bridges(process)
                return bridges[0]
            time.sleep(0.01)
        self.fail("no bridge")

    def reads(self, viewer):
        """Waits until the viewer has the ring mapped; False: it has ended."""
        until = time.monotonic() + DEADLINE_S
        while viewer.poll() is None and time.monotonic() < until:
            with open(f"/proc/{viewer.pid}/maps") as file:
                if "isthmus-ring" in file.read():
                    return True
            time.sleep(0.005)
        return False

    def wait_until_reading(self, viewer):
        self.assertTrue(self.reads(viewer))

    def frames_flow(self, producer, frames=5):
        """The producer still makes frames: a new local viewer gets some."""
        self.assertIsNone(producer.poll())
        viewer = self.start("view", "--at", self.at, "--frames", str(frames), "--connect-deadline", "30")
        self.assertEqual(self.end_of(viewer)["frames"], frames)

    def end_producer(self, producer):
        producer.send_signal(signal.SIGTERM)
        return self.end_of(producer, 128 + signal.SIGTERM)

    def whole(self, viewed, shared):
        """Every frame that was viewed is one of the producer's, in its order. Returns the place of the last."""
        sums = [each[1] for each in shared["checksums"]]
        at = -1
        for _, each in viewed["checksums"]:
            at = sums.index(each, at + 1)
        return at


class SameFrames(Network):
    def meet(self, *, policy, machine=None, viewer_machine=None, frames=30, source=SYNTHETIC, key=(), **more):
        producer, port = self.share("--frames", str(frames), "--policy", policy, "--viewers", "1",
                                    "--viewer-deadline", "60", *key, machine=machine, source=source, **more)
        viewer = self.view(port, *key, machine=viewer_machine, **more)
        shared, viewed = self.end_of(producer), self.end_of(viewer)
        self.assertEqual(viewed["digest"], shared["digest"])
        self.assertEqual((viewed["frames"], viewed["missed"], viewed["overtaken"]), (frames, 0, 0))
        self.assertEqual((viewed["end"], viewed["ring"]["policy"]), ("closed", policy))
        how = {"pass": ", which the device uses in place", "stage": "; device memory: copied from there"}
        self.assertEqual(viewed["received"], f"from 127.0.0.1:{port} over UCX, into the ring in host memory" +
                         (how[viewed["ring"]["path"]] if viewer_machine else ""))
        self.assertEqual(os.listdir(self.at), [])

    def test_wait_gives_the_digest_of_the_producer(self):  # keeps N1
        self.meet(policy="wait")

    def test_small_frames_that_fit_into_a_message(self):  # keeps N1
        self.meet(policy="wait", source=("--synthetic", "96x64"), frames=100)

    def test_large_frames(self):  # keeps N1, N2
        self.meet(policy="wait", source=("--synthetic", "2048x1024"), frames=12)

    def test_transports_that_ucx_chooses(self):  # keeps N1
        self.meet(policy="wait", UCX_TLS="all")

    def test_with_a_key(self):  # keeps N4
        self.meet(policy="wait", key=("--key", self.key))

    def test_on_simulated_machines(self):  # keeps N1
        for machine in MACHINES:
            with self.subTest(machine=machine):
                self.meet(policy="wait", machine=machine, viewer_machine=machine)

    def test_a_local_and_a_remote_viewer_see_the_same(self):  # keeps N1
        producer, port = self.share("--frames", "40", "--policy", "wait", "--viewers", "2", "--viewer-deadline", "60")
        local = self.start("view", "--at", self.at, "--connect-deadline", "30")
        remote = self.view(port)
        shared = self.end_of(producer)
        for viewed in self.end_of(local), self.end_of(remote):
            self.assertEqual((viewed["digest"], viewed["frames"]), (shared["digest"], 40))

    def test_viewers_of_different_rates_under_drop(self):  # keeps N1, N3
        producer, port = self.share("--frames", "6000", "--policy", "drop", "--viewers", "2", "--rate", "100",
                                    "--slots", "16", "--checksums")
        fast = self.view(port, "--frames", "60", "--checksums")
        slow = self.view(port, "--frames", "12", "--work", "100", "--checksums")
        quick = self.end_of(fast)
        self.wait_until_reading(slow)
        self.frames_flow(producer, frames=100)  # most of which the slow one misses
        shared = self.end_producer(producer)
        late = self.end_of(slow)  # the last ones stay for it
        self.assertLess(shared["wall_ns"] / shared["frames"], 50e6)  # no viewer slows the producer
        self.whole(quick, shared)
        self.whole(late, shared)
        self.assertEqual((quick["frames"], late["frames"]), (60, 12))
        self.assertGreater(late["missed"] + late["overtaken"], 0)

    def test_over_a_bad_network(self):  # keeps N1, N3
        state = os.path.join(self.folder.name, "network")
        with open(state, "w") as file:
            file.write("s")
        preload = {"LD_PRELOAD": SLOW_NETWORK, "ISTHMUS_TEST_NETWORK": state}
        if not SANITIZED:  # their runtime wants to be first
            self.meet(policy="wait", frames=15, **preload)


class WhoMayConnect(Network):
    def test_other_keys_and_none_are_refused(self):  # keeps N4
        other = os.path.join(self.folder.name, "other")
        self.write_key(other, "a5" * 32)
        producer, port = self.share("--frames", "20", "--policy", "wait", "--viewers", "1", "--viewer-deadline", "60",
                                    "--key", self.key)
        self.assertIn("another key", self.end_of(self.view(port, "--key", other), 2))
        self.assertIn("asks for a key", self.end_of(self.view(port), 2))
        right = self.view(port, "--key", self.key)
        self.assertEqual(self.end_of(right)["digest"], self.end_of(producer)["digest"])

    def test_without_a_key_only_loopback(self):  # keeps N4
        producer = self.start("share", *SYNTHETIC, "--at", self.at, "--frames", "1", "--listen", "0.0.0.0:0")
        out, error = producer.communicate(timeout=DEADLINE_S)
        self.assertIn("needs a key", error)
        viewer = self.start("view", "--from", "192.0.2.1:7", "--connect-deadline", "5")
        self.assertIn("needs a key", self.end_of(viewer, 2))

    def test_a_key_that_others_may_read_is_refused(self):  # keeps N4
        os.chmod(self.key, 0o644)
        viewer = self.start("view", "--from", "127.0.0.1:7", "--key", self.key)
        self.assertIn("0600", self.end_of(viewer, 2))


class Directories(Network):
    def test_frames_of_another_producer_are_refused(self):  # keeps N1
        _, port = self.share("--policy", "drop", "--rate", "100")
        other = os.path.join(self.folder.name, "other")
        local = self.start("share", "--synthetic", "64x48", "--rate", "100", "--at", other)
        until = time.monotonic() + DEADLINE_S
        while not os.path.exists(os.path.join(other, "channel")) and time.monotonic() < until:
            time.sleep(0.01)
        viewer = self.view(port, "--frames", "3", "--at", other)
        self.assertIn("another producer", self.end_of(viewer, 2))
        self.assertIsNone(local.poll())
        free = self.view(port, "--frames", "3", "--at", os.path.join(self.folder.name, "free"))
        self.assertEqual(self.end_of(free)["input"]["width"], 320)


class Hostile(Network):
    def test_garbage_silence_floods_and_old_versions(self):  # keeps N3, N4
        producer, port = self.share("--frames", "400", "--policy", "wait", "--viewers", "1", "--rate", "100",
                                    "--viewer-deadline", "60", "--key", self.key)
        def connect():
            return socket.create_connection(("127.0.0.1", port), timeout=40)
        def exactly(line, count):
            got = b""
            while len(got) < count:
                more = line.recv(count - len(got))
                self.assertTrue(more, "closed")
                got += more
            return got
        held = [connect() for _ in range(30)]  # say nothing; they end at the greeting's deadline
        for each in held:
            self.addCleanup(each.close)
        with connect() as line:  # garbage
            line.sendall(b"GET / HTTP/1.1\r\n" * 40)
            try:
                self.assertEqual(line.recv(100), b"")
            except ConnectionResetError:
                pass
        with connect() as line:  # another version is told this one
            line.sendall(HELLO.pack(b"isthmucx", 0, 1, bytes(32)))
            said = HELLO.unpack(exactly(line, HELLO.size))
            self.assertEqual(said[:3], (b"isthmucx", VERSION, 1))
            self.assertEqual(line.recv(100), b"")  # and gets no proof
        with connect() as line:  # half a greeting
            line.sendall(HELLO.pack(b"isthmucx", VERSION, 1, bytes(32))[:20])
        with connect() as line:  # a proof that is none
            line.sendall(HELLO.pack(b"isthmucx", VERSION, 1, bytes(32)))
            exactly(line, 80)
            line.sendall(bytes(32))
            self.assertEqual(line.recv(100), b"")
        with connect() as line:  # the sender's own proof, reflected
            line.sendall(HELLO.pack(b"isthmucx", VERSION, 1, bytes(32)))
            line.sendall(exactly(line, 80)[48:])
            self.assertEqual(line.recv(100), b"")
        viewer = self.view(port, "--key", self.key)
        viewed, shared = self.end_of(viewer), self.end_of(producer)
        self.assertEqual((viewed["digest"], viewed["frames"]), (shared["digest"], 400))

    def test_failed_greetings_fill_no_log(self):  # keeps N3
        producer, port = self.share("--policy", "drop", "--rate", "50", "--key", self.key)
        begin = time.monotonic()
        for _ in range(60):
            with socket.create_connection(("127.0.0.1", port), timeout=40) as line:
                line.sendall(bytes(48))
                try:
                    self.assertEqual(line.recv(100), b"")
                except ConnectionResetError:
                    pass
        producer.send_signal(signal.SIGTERM)
        _, error = producer.communicate(timeout=DEADLINE_S)
        self.assertIn("does not speak isthmus", error)
        said = error.count("not admitted")
        self.assertLessEqual(said, 22 + (time.monotonic() - begin) / 0.5)  # notices.cpp: 20 at once, and two in a second
        self.assertTrue(said == 60 or "left out" in error, error)

    def test_a_receiver_that_waits_for_an_offer_hears_a_signal(self):  # keeps N3
        took = []
        while len(took) < 4 and min(took, default=2) >= 1.5:  # the greeting's deadline is 2 s; a slow machine tries again
            with socket.create_server(("127.0.0.1", 0)) as server:
                viewer = self.view(server.getsockname()[1], "--connect-deadline", "60")
                line, _ = server.accept()
                bridge = self.bridge_of(viewer)
                begin = time.monotonic()
                os.kill(bridge, signal.SIGTERM)
                viewer.communicate(timeout=DEADLINE_S)
                took.append(time.monotonic() - begin)
                line.close()
        self.assertLess(min(took), 1.5)

    def test_a_sender_that_is_none(self):  # keeps N3
        with socket.create_server(("127.0.0.1", 0)) as server:
            viewer = self.view(server.getsockname()[1])
            line, _ = server.accept()
            line.sendall(os.urandom(4096))
            self.assertIn("does not speak isthmus", self.end_of(viewer, 1))
            line.close()


class Deaths(Network):
    def endless(self, *arguments, policy="drop", deadline="20", **more):
        return self.share("--policy", policy, "--rate", "200", "--viewers", "1", "--viewer-deadline", deadline, *arguments,
                          **more)

    def test_a_killed_viewer_ends_alone(self):  # keeps N3
        for policy in "drop", "wait":
            with self.subTest(policy=policy):
                producer, port = self.endless(policy=policy)
                viewer = self.view(port)
                self.bridge_of(producer, children=1)
                for pause in 0.0, 0.05, 0.4:
                    time.sleep(pause)
                    self.note_bridges(viewer)
                    viewer.kill()
                    viewer.wait()
                    self.frames_flow(producer)
                    viewer = self.view(port)
                self.assertEqual(self.end_of(self.view(port, "--frames", "3"))["frames"], 3)
                viewer.kill()
                self.end_producer(producer)

    @unittest.skipIf(SANITIZED, "their runtime wants to be loaded before the library at the sockets")
    def test_either_end_is_killed_at_each_step_of_a_connection(self):  # keeps N3
        state = {end: os.path.join(self.folder.name, end) for end in ("sends", "receives")}
        preload = {end: {"LD_PRELOAD": SLOW_NETWORK, "ISTHMUS_TEST_NETWORK": path} for end, path in state.items()}

        def say(end, word):
            with open(state[end] + ".new", "w") as file:
                file.write(word)
            os.rename(state[end] + ".new", state[end])

        for end in state:
            say(end, "-")
        producer, port = self.endless(**preload["sends"])
        # Each call of the greeting, the offer and the answer; then of UCX, which makes many.
        steps = [*range(1, 13), *(13 * 3 ** more // 2 ** more for more in range(12))]
        killed = 0
        for step in steps:  # the receiving bridge
            say("receives", f"k{step}")
            viewer = self.view(port, "--frames", "3", **preload["receives"])
            _, error = viewer.communicate(timeout=DEADLINE_S)
            self.assertIn(viewer.returncode, (0, 1), (step, error))
            self.assertIsNone(producer.poll())
            if viewer.returncode == 0:
                break
            killed += 1
        self.assertGreater(killed, 12)
        self.frames_flow(producer)
        say("receives", "-")
        for step in steps[:killed]:  # the connection's process at the sender, until the viewer may have its frames
            say("sends", f"k{step}")
            viewer = self.view(port, "--frames", "3", **preload["receives"])
            time.sleep(0.2)
            say("sends", "-")
            self.assertEqual(self.end_of(viewer)["frames"], 3)
            self.assertIsNone(producer.poll())
        self.frames_flow(producer)
        self.end_producer(producer)

    def test_the_directory_of_a_killed_viewer_is_removed_by_the_next(self):  # keeps N3
        place = self.folder.name
        left = lambda: sorted(each for each in os.listdir(place) if each.startswith("isthmus-view-"))
        os.mkdir(os.path.join(place, "isthmus-view-open"))
        os.chmod(os.path.join(place, "isthmus-view-open"), 0o755)
        os.symlink(self.folder.name, os.path.join(place, "isthmus-view-link"))
        others = ["isthmus-view-link", "isthmus-view-open"]  # no viewer made these
        producer, port = self.endless(policy="drop")
        killed, lives = (self.view(port, XDG_RUNTIME_DIR=place) for _ in range(2))
        until = time.monotonic() + DEADLINE_S
        while len(left()) < 4 and time.monotonic() < until:
            time.sleep(0.01)
        self.bridge_of(killed)
        self.bridge_of(lives)
        self.wait_until_reading(killed)  # its bridge runs, and has no copy of the directory's lock any more
        killed.kill()
        killed.wait()
        self.assertEqual(len(left()), 4, left())
        viewed = self.view(port, "--frames", "3", XDG_RUNTIME_DIR=place)
        self.assertEqual(self.end_of(viewed)["frames"], 3)
        self.assertEqual(len(left()), 3, left())  # the one of the viewer that lives
        self.assertIsNone(lives.poll())
        lives.send_signal(signal.SIGTERM)
        lives.communicate(timeout=DEADLINE_S)
        self.assertEqual(left(), others)
        self.end_producer(producer)

    def test_a_stopped_viewer_never_stops_the_producer(self):  # keeps N3
        for policy in "drop", "wait":
            with self.subTest(policy=policy):
                producer, port = self.endless(policy=policy, deadline="3")
                viewer = self.view(port)
                theirs = self.bridge_of(viewer)
                self.bridge_of(producer, children=1)
                self.wait_until_reading(viewer)
                time.sleep(0.2)
                for process in viewer.pid, theirs:
                    os.kill(process, signal.SIGSTOP)
                self.frames_flow(producer)
                time.sleep(1.5)
                self.frames_flow(producer)
                for process in viewer.pid, theirs:
                    os.kill(process, signal.SIGCONT)
                viewer.kill()
                self.end_producer(producer)

    def test_a_signal_to_one_connection_does_not_wake_the_others(self):  # keeps N3
        producer, port = self.endless()
        viewer = self.view(port)
        bridge = self.bridge_of(producer, children=1)
        self.wait_until_reading(viewer)
        os.kill(children_of(bridge)[0], signal.SIGTERM)
        def ticks():
            with open(f"/proc/{bridge}/stat") as file:
                return sum(int(each) for each in file.read().rsplit(")", 1)[1].split()[11:13])
        time.sleep(0.3)
        before = ticks()
        time.sleep(2)
        self.assertLess(ticks() - before, 50)  # of 200: it does not spin, on a busy system either
        viewer.kill()
        self.end_producer(producer)

    def test_children_can_be_awaited_where_their_end_was_ignored(self):  # keeps N3
        ignored = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        producer, port = self.share("--frames", "20", "--policy", "wait", "--viewers", "1", "--viewer-deadline", "60",
                                    before=ignored)
        viewer = self.view(port, before=ignored)
        self.assertEqual(self.end_of(viewer)["digest"], self.end_of(producer)["digest"])

    def test_a_killed_bridge_ends_remote_viewers_only(self):  # keeps N3
        producer, port = self.endless()
        viewer = self.view(port, "--connect-deadline", "4")
        bridge = self.bridge_of(producer, children=1)
        self.wait_until_reading(viewer)
        self.note_bridges(producer)
        os.kill(bridge, signal.SIGKILL)
        viewed = self.end_of_lost(viewer)
        self.assertIn("peer_lost", viewed)
        self.frames_flow(producer)
        self.end_producer(producer)

    def end_of_lost(self, viewer):
        out, error = viewer.communicate(timeout=DEADLINE_S)
        self.assertEqual(viewer.returncode, 1, error)
        return out + error

    def test_a_killed_producer_ends_its_viewers(self):  # keeps N3
        for policy in "drop", "wait":
            for soon in True, False:
                with self.subTest(policy=policy, soon=soon):
                    producer, port = self.endless(policy=policy)
                    viewer = self.view(port, "--connect-deadline", "3")
                    self.bridge_of(producer, children=1)
                    if not soon:
                        self.wait_until_reading(viewer)
                        time.sleep(0.2)
                    self.note_bridges(producer)
                    producer.kill()
                    producer.wait()
                    self.end_of_lost(viewer)

    def test_a_viewer_connects_again(self):  # keeps N3
        producer, port = self.endless("--frames", "12000", "--checksums")
        viewer = self.view(port, "--checksums", "--frames", "1200")
        bridge = self.bridge_of(producer, children=1)
        self.wait_until_reading(viewer)
        time.sleep(0.2)
        self.note_bridges(producer)
        for child in children_of(bridge):  # the process of this viewer's connection
            os.kill(child, signal.SIGKILL)
        viewed, shared = self.end_of(viewer), self.end_producer(producer)
        self.assertEqual(viewed["frames"], 1200)
        self.whole(viewed, shared)

    def test_a_crashed_bridge_of_a_viewer_is_started_again(self):  # keeps N3
        # UCX aborts its process where a peer dies between two messages of a connection (UCX 1.13, tcp_ep.c).
        producer, port = self.endless()
        for frames in 300, 3000:  # more, where the viewer had them all before its second bridge crashed
            viewer = self.view(port, "--frames", str(frames))
            for _ in range(2):
                if not self.reads(viewer):
                    break
                time.sleep(0.1)  # the viewer has frames, but not yet all
                for bridge in children_of(viewer.pid):
                    self.bridges.add(bridge)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(bridge, signal.SIGABRT)
                    while os.path.exists(f"/proc/{bridge}"):
                        time.sleep(0.01)
            out, error = viewer.communicate(timeout=DEADLINE_S)
            if viewer.returncode != 0 or error.count("is started again") == 2:
                break
        self.assertEqual((viewer.returncode, error.count("is started again")), (0, 2), error)
        self.assertEqual(json.loads(out)["frames"], frames)
        self.frames_flow(producer)
        self.end_producer(producer)

    def test_a_bridge_that_crashes_again_and_again_ends_its_viewer(self):  # keeps N3
        with socket.create_server(("127.0.0.1", 0)) as server:  # connects, and never greets
            viewer = self.view(server.getsockname()[1])
            for _ in range(3):
                line, _ = server.accept()
                os.kill(self.bridge_of(viewer), signal.SIGABRT)
                line.close()
            self.assertEqual(self.end_of_lost(viewer).count("is started again"), 2)

    def test_a_ring_that_waits_has_no_second_bridge(self):  # keeps N3
        producer, port = self.endless(policy="wait")
        viewer = self.view(port, "--frames", "3000")
        self.bridge_of(producer, children=1)
        self.wait_until_reading(viewer)  # it looks at the ring's policy next, whatever becomes of the bridge
        os.kill(self.bridge_of(viewer), signal.SIGABRT)
        self.assertNotIn("is started again", self.end_of_lost(viewer))
        self.end_producer(producer)

    @unittest.skipIf(SANITIZED, "their runtime wants to be loaded first")
    def test_a_cut_network_is_noticed_and_then_comes_back(self):  # keeps N3
        state = os.path.join(self.folder.name, "network")
        producer, port = self.endless("--frames", "12000", "--checksums")
        viewer = self.view(port, "--checksums", "--frames", "1800", LD_PRELOAD=SLOW_NETWORK, ISTHMUS_TEST_NETWORK=state)
        self.bridge_of(producer, children=1)
        self.wait_until_reading(viewer)
        time.sleep(0.7)
        with open(state, "w") as file:
            file.write("c")
        time.sleep(7)  # longer than the silence that is tolerated
        os.unlink(state)
        out, error = viewer.communicate(timeout=DEADLINE_S)
        self.assertEqual(viewer.returncode, 0, error)
        self.assertIn("connects again", error)
        viewed, shared = json.loads(out), self.end_producer(producer)
        self.assertEqual(viewed["frames"], 1800)
        self.assertGreater(self.whole(viewed, shared), 2000)  # frames came again


def system(*words):
    return subprocess.run(words, capture_output=True, text=True)


class Namespaces(Network):
    """Two network namespaces with a cable between them (veth). Where the system makes none, the tests above stand alone."""

    def setUp(self):
        name = f"isthmus-{os.getpid()}"
        self.ends = {"share": (f"{name}-a", "10.213.7.1"), "view": (f"{name}-b", "10.213.7.2")}
        steps = [["ip", "netns", "add", each] for each, _ in self.ends.values()]
        steps.append(["ip", "link", "add", "isthmus0", "netns", f"{name}-a", "type", "veth", "peer", "name", "isthmus0",
                      "netns", f"{name}-b"])
        for each, address in self.ends.values():
            steps += [["ip", "-n", each, "address", "add", f"{address}/24", "dev", "isthmus0"],
                      ["ip", "-n", each, "link", "set", "isthmus0", "up"], ["ip", "-n", each, "link", "set", "lo", "up"]]
        if shutil.which("ip") is None or shutil.which("tc") is None:
            self.skipTest("no programs `ip` and `tc`: the shim at the sockets stands for them")
        for each, _ in self.ends.values():
            self.addCleanup(system, "ip", "netns", "delete", each)
        for step in steps:
            done = system(*step)
            if done.returncode != 0:
                self.skipTest(f"no network namespaces with veth here ({' '.join(step)}: {done.stderr.strip()}): "
                              "the shim at the sockets stands for them")
        until = time.monotonic() + 10  # UCX has no address of a link that is not up yet
        while time.monotonic() < until and not all("state UP" in system("ip", "-n", each, "link", "show", "isthmus0").stdout
                                                   for each, _ in self.ends.values()):
            time.sleep(0.02)
        super().setUp()

    def program(self, command):
        return ["ip", "netns", "exec", self.ends[command][0], ISTHMUS] if command in self.ends else [ISTHMUS]

    def joined(self, *arguments, frames, viewed=None, policy="wait"):
        producer, port = self.share("--policy", policy, "--viewers", "1", "--viewer-deadline", "30", "--checksums", "--key",
                                    self.key, "--frames", str(frames), *arguments, listen=f"{self.ends['share'][1]}:0",
                                    UCX_NET_DEVICES="isthmus0")
        viewer = self.start("view", "--from", f"{self.ends['share'][1]}:{port}", "--connect-deadline", "30", "--checksums",
                            "--key", self.key, "--frames", str(viewed or frames), UCX_NET_DEVICES="isthmus0")
        return producer, viewer

    def expect_all_frames(self, frames):
        producer, viewer = self.joined(frames=frames)
        viewed, shared = self.end_of(viewer), self.end_of(producer)
        self.assertEqual([viewed["frames"], viewed["digest"]], [frames, shared["digest"]])

    def test_frames_pass_between_namespaces(self):  # keeps N1, N4
        self.expect_all_frames(40)

    def test_a_cut_link_is_noticed_and_then_comes_back(self):  # keeps N3
        producer, viewer = self.joined("--rate", "200", frames=12000, viewed=1800, policy="drop")
        self.bridge_of(producer, children=1)
        self.wait_until_reading(viewer)
        time.sleep(0.7)
        link = ("ip", "-n", self.ends["view"][0], "link", "set", "isthmus0")
        self.assertEqual(system(*link, "down").returncode, 0)
        time.sleep(7)  # longer than the silence that is tolerated
        self.assertEqual(system(*link, "up").returncode, 0)
        out, error = viewer.communicate(timeout=DEADLINE_S)
        self.assertEqual(viewer.returncode, 0, error)
        self.assertIn("connects again", error)
        self.assertGreater(self.whole(json.loads(out), self.end_producer(producer)), 2000)

    def test_delay_loss_and_reordering(self):  # keeps N1, N3
        for end, _ in self.ends.values():
            done = system("tc", "-n", end, "qdisc", "add", "dev", "isthmus0", "root", "netem", "delay", "5ms", "2ms", "loss",
                          "1%", "reorder", "10%")
            if done.returncode != 0:
                self.skipTest(f"no tc netem here ({done.stderr.strip()}): the shim at the sockets stands for it")
        self.expect_all_frames(15)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
