#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The built command under bad conditions: closed and full descriptors, limits, signals, and outputs that must not be
written. Each refusal is one line and a code, and no file is left behind.

usage: bad_conditions_test.py ISTHMUS KNOWN_RECORDS_FOLDER [MACHINE...]
"""
import json
import os
import pathlib
import resource
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

COMMAND = []  # under emulation: the wrapper that Meson names, then the program
RECORDS = pathlib.Path()
MACHINES = []
DEADLINE_S = 60
CLIP = b"YUV4MPEG2 W40 H30 F25:1 Cmono\n" + b"".join(b"FRAME\n" + bytes([shade]) * 1200 for shade in (10, 20, 30))
ON_CPU = ("--device", "cpu")


def environment(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ISTHMUS_")}
    clean["ISTHMUS_PROFILE"] = "none"
    clean["ISTHMUS_CUDA_LIBRARY"] = "/nonexistent/libcuda.so.1"  # no GPU unless --machine plays one
    clean.update(more)
    return clean


def emulated():
    return len(COMMAND) > 1


class Conditions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.clip = self.path("in.y4m")
        pathlib.Path(self.clip).write_bytes(CLIP)

    def path(self, name):
        return os.path.join(self.folder, name)

    def files(self):
        return sorted(set(os.listdir(self.folder)) - {"in.y4m"})

    def run_it(self, *arguments, shell="", **more):
        """`shell` is put behind the command: redirections. Reads the clip unless `stdin` says otherwise."""
        words = [*COMMAND, *arguments]
        if shell:
            words = ["sh", "-c", f'exec "$@" {shell}', "sh", *words]
        more.setdefault("stdin", subprocess.DEVNULL)
        for stream in ("stdout", "stderr"):
            more.setdefault(stream, subprocess.PIPE)
        done = subprocess.run(words, env=more.pop("env", environment()), timeout=DEADLINE_S, **more)
        self.skip_without_simulator(done)
        return done

    def skip_without_simulator(self, done):
        if done.returncode == 3 and b"simulator" in (done.stderr or b""):
            self.skipTest("this build has no simulator")

    def give_away(self, path):
        """To another user, where this one may."""
        try:
            os.chown(path, 12345, 12346, follow_symlinks=False)
        except OSError as error:
            self.skipTest(f"files cannot be given to another user here: {error}")

    def assert_refused(self, done, says=b"", code=2):
        self.assertEqual(done.returncode, code, done)
        if done.stderr is not None:
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
            self.assertTrue(done.stderr.startswith(b"isthmus: "), done.stderr)
            self.assertIn(says, done.stderr)


def pipe_without_reader():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def full_pipe():
    """Nobody reads from it, and nothing fits into it: its reader is held open."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for size in (4096, 1):
        try:
            while True:
                os.write(writer, b" " * size)
        except BlockingIOError:
            pass
    os.set_blocking(writer, True)
    return reader, writer


class Diagnostics(Conditions):
    WORDS = (("frobnicate",), ("caps", "--machine", "pdp11"), ("run", "/no/such/file", *ON_CPU))

    def test_that_cannot_be_written_leave_the_exit_code(self):
        for arguments in self.WORDS:
            with self.subTest(arguments=arguments):
                if not emulated():
                    self.assertEqual(self.run_it(*arguments, shell="2>&-").returncode, 2)
                if os.path.exists("/dev/full"):
                    self.assertEqual(self.run_it(*arguments, shell="2>/dev/full").returncode, 2)
                writer = pipe_without_reader()
                self.assert_refused(self.run_it(*arguments, stderr=writer))
                os.close(writer)

    def test_arrive_at_a_socket(self):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            done = self.run_it("frobnicate", stderr=theirs)
            self.assertEqual(done.returncode, 2)
            self.assertTrue(ours.recv(4096).startswith(b"isthmus: "))

    def test_that_nobody_reads_do_not_block(self):
        reader, writer = full_pipe()
        self.assert_refused(self.run_it("frobnicate", stderr=writer))
        os.close(writer)
        os.close(reader)


class Results(Conditions):
    WORDS = (("--help",), ("--version",), ("caps", "--help"), ("caps", "--all"), ("caps",), ("doctor",),
             ("caps", "--record", "-"))

    def test_that_cannot_be_written_are_an_error(self):
        for arguments in self.WORDS:
            with self.subTest(arguments=arguments):
                if os.path.exists("/dev/full"):
                    self.assert_refused(self.run_it(*arguments, shell=">/dev/full"), b"standard output")
                if not emulated():
                    self.assert_refused(self.run_it(*arguments, shell=">&-"), b"standard output")
                writer = pipe_without_reader()
                self.assert_refused(self.run_it(*arguments, stdout=writer), b"standard output")
                os.close(writer)

    def test_arrive_through_a_pipe_that_does_not_block(self):
        expected = self.run_it("caps", "--all", "--json").stdout
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        process = subprocess.Popen([*COMMAND, "caps", "--all", "--json"], env=environment(), stdin=subprocess.DEVNULL,
                                   stdout=writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            self.assertEqual(pipe.read(), expected)
        self.assertEqual(process.wait(timeout=DEADLINE_S), 0)


class ClosedDescriptors(Conditions):
    def setUp(self):
        super().setUp()
        if emulated():
            self.skipTest("an emulator has descriptors of its own")

    def test_standard_input_is_not_waited_for(self):
        meet = self.path("meet")
        for arguments in (("run", "-", *ON_CPU), ("share", "-", "--at", meet), ("run", "/dev/stdin", *ON_CPU)):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.run_it(*arguments, shell="<&-"))
        self.assert_refused(self.run_it("run", "-", *ON_CPU, shell="<&-"), b"Bad file descriptor")
        self.assertEqual(self.files(), [])

    def test_a_report_goes_nowhere_else(self):
        for shell in ("<&- >&-", ">&-"):
            with self.subTest(shell=shell):
                done = self.run_it("run", self.clip, *ON_CPU, "--corners", self.path("c.json"), shell=shell)
                self.assert_refused(done, b"standard output")
                self.assertEqual(self.files(), [])

    def test_a_run_needs_none_of_them_for_its_input(self):
        done = self.run_it("run", self.clip, *ON_CPU, "--json", shell="<&- 2>&-", stderr=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(json.loads(done.stdout)["frames"], 3)
        done = self.run_it("run", self.clip, *ON_CPU, "--json", shell="<&- >&- 2>&-", stderr=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 2)


class Children(Conditions):
    """The driver library is a pipe that nobody writes to: who loads it hangs in open()."""

    def children_of(self, parent):
        children = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent and fields[0] != "Z":
                children.append(int(entry.name))
        return children

    def is_alive(self, process):
        try:
            return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def wait_until(self, condition, what):
        until = time.monotonic() + DEADLINE_S
        while not condition():
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.01)

    def test_end_with_the_command_however_it_ends(self):
        if emulated():
            self.skipTest("an emulator's children are its own")
        library = self.path("libcuda.so.1")
        os.mkfifo(library)
        for command in (("doctor", "--deadline", "600"), ("litmus", "--deadline", "600"), ("caps", "--probe"),
                        ("tune", "--budget", "600", "--output", "/dev/null")):
            for number in (signal.SIGTERM, signal.SIGKILL):
                with self.subTest(command=command, signal=number):
                    process = subprocess.Popen([*COMMAND, *command], env=environment(ISTHMUS_CUDA_LIBRARY=library),
                                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                               stderr=subprocess.PIPE)
                    self.wait_until(lambda: self.children_of(process.pid) or process.poll() is not None, "a child")
                    children = self.children_of(process.pid)
                    self.assertEqual(len(children), 1, process.poll())
                    process.send_signal(number)
                    process.communicate(timeout=DEADLINE_S)
                    self.assertEqual(process.returncode, -number)
                    try:
                        self.wait_until(lambda: not self.is_alive(children[0]), "the child's end")
                    finally:
                        if self.is_alive(children[0]):
                            os.kill(children[0], signal.SIGKILL)


class Limits(Conditions):
    def test_of_files_are_errors_and_leave_nothing(self):
        large = self.path("in.y4m")
        pathlib.Path(large).write_bytes(b"YUV4MPEG2 W400 H300 Cmono\n" + (b"FRAME\n" + bytes(120000)) * 3)

        def at_most_64_kib():
            resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
        for outputs in (("-o", self.path("o.y4m")), ("-o", self.path("p.ppm"))):
            with self.subTest(outputs=outputs):
                done = self.run_it("run", large, *ON_CPU, *outputs, preexec_fn=at_most_64_kib)
                self.assert_refused(done, b"File too large")
                self.assertEqual(self.files(), [])

        def at_most_100_bytes():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        done = self.run_it("caps", "--record", self.path("here.json"), preexec_fn=at_most_100_bytes)
        self.assert_refused(done, b"File too large")
        with open(self.path("report"), "w") as report:
            self.assert_refused(self.run_it("caps", stdout=report, preexec_fn=at_most_100_bytes), b"File too large")
        self.assertEqual(self.files(), ["report"])


class Outputs(Conditions):
    """Written as a whole or not at all, where they were asked for, and as they were before."""

    def run_clip(self, *arguments, **more):
        return self.run_it("run", self.clip, *ON_CPU, *arguments, **more)

    def test_are_not_there_where_the_report_cannot_be_written(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        pathlib.Path(self.path("old.json")).write_text("old")
        for arguments in (("run", self.clip, *ON_CPU, "-o", self.path("o.y4m"), "--corners", self.path("c.json")),
                          ("run", self.clip, *ON_CPU, "-o", self.path("p.ppm"), "--corners", self.path("old.json")),
                          ("caps", "--record", self.path("r.json")),
                          ("caps", "--record", self.path("old.json"))):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.run_it(*arguments, shell=">/dev/full"), b"standard output")
                self.assertEqual(self.files(), ["old.json"])
                self.assertEqual(pathlib.Path(self.path("old.json")).read_text(), "old")

    def test_of_litmus_are_not_there_where_the_report_cannot_be_written(self):
        machine = next((machine for machine in MACHINES if machine not in ("no-gpu", "old-driver")), None)
        if machine is None or not os.path.exists("/dev/full"):
            self.skipTest("no machine with a GPU, or no /dev/full")
        arguments = ("litmus", "--machine", machine, "--kinds", "pinned", "--shapes", "message_to_host", "--save",
                     self.path("s.json"))
        self.assert_refused(self.run_it(*arguments, shell=">/dev/full"), b"standard output")
        self.assertEqual(self.files(), [])
        self.assertEqual(self.run_it(*arguments).returncode, 0)
        self.assertEqual(self.files(), ["s.json"])

    def test_of_one_name_are_refused(self):
        output = self.path("o.y4m")
        pathlib.Path(self.path("real.y4m")).write_text("old")
        os.link(self.path("real.y4m"), self.path("hard.y4m"))
        os.symlink("real.y4m", self.path("link.y4m"))
        os.symlink("nothing-yet", self.path("dangling.y4m"))
        os.symlink(self.folder, self.path("folder"))
        before = self.files()
        for one, other in ((output, output), (output, self.path("./o.y4m")), (output, self.path("folder/o.y4m")),
                           (self.path("link.y4m"), self.path("real.y4m")),
                           (self.path("hard.y4m"), self.path("link.y4m")),
                           (self.path("dangling.y4m"), self.path("nothing-yet"))):
            with self.subTest(one=one, other=other):
                self.assert_refused(self.run_clip("-o", one, "--corners", other), b"two outputs name the same file")
                self.assertEqual(self.files(), before)
        self.assert_refused(self.run_clip("-o", self.path("p.ppm"), "--corners", self.path("p-0001.ppm")),
                            b"two outputs name the same file")
        self.assertEqual(self.files(), before)
        with open(self.path("real.y4m"), "a") as report:
            done = self.run_clip("--json", "--corners", self.path("link.y4m"), stdout=report)
            self.assert_refused(done, b"standard output goes to the same file")
        self.assertEqual(pathlib.Path(self.path("real.y4m")).read_text(), "old")
        self.assertEqual(self.run_clip("-o", output, "--corners", self.path("c.json")).returncode, 0)
        self.assertEqual(self.files(), sorted([*before, "c.json", "o.y4m"]))

    def test_keep_mode_and_owner(self):
        path = pathlib.Path(self.path("c.json"))
        for mode in (0o600, 0o664, 0o644):
            path.write_text("old")
            path.chmod(mode)
            before = path.stat()
            self.assertEqual(self.run_clip("--corners", str(path)).returncode, 0)
            after = path.stat()
            self.assertEqual((stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid),
                             (mode, before.st_uid, before.st_gid))
            self.assertEqual(len(json.loads(path.read_text())["frames"]), 3)
        self.assertEqual(self.files(), ["c.json"])

    def test_keep_an_owner_that_is_another_user(self):
        path = pathlib.Path(self.path("c.json"))
        path.write_text("old")
        self.give_away(path)
        path.chmod(0o640)
        self.assertEqual(self.run_clip("--corners", str(path)).returncode, 0)
        after = path.stat()
        self.assertEqual((stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid), (0o640, 12345, 12346))
        self.assertEqual(len(json.loads(path.read_text())["frames"]), 3)

    def test_that_cannot_keep_their_owner_are_refused(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        if not shutil.which("setpriv"):
            self.skipTest("setpriv is not here")
        # The other user needs access to the folder and the command.
        os.chmod(self.folder, 0o777)
        for part in pathlib.Path(COMMAND[-1]).resolve().parents:
            if not part.stat().st_mode & stat.S_IXOTH:
                self.skipTest(f"other users cannot enter {part}")
        path = pathlib.Path(self.path("c.json"))
        path.write_text("old")
        path.chmod(0o666)
        words = ["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", *COMMAND, "run", self.clip,
                 *ON_CPU, "--corners", str(path)]
        done = subprocess.run(words, env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=DEADLINE_S)
        if done.stderr.startswith(b"setpriv"):
            self.skipTest(f"no other user can be had here: {done.stderr}")
        self.assert_refused(done, b"owner")
        self.assertEqual(path.read_text(), "old")
        self.assertEqual(self.files(), ["c.json"])

    def test_follow_links_and_keep_them(self):
        os.mkdir(self.path("elsewhere"))
        os.symlink("elsewhere/target.json", self.path("first.json"))
        os.symlink("first.json", self.path("second.json"))
        for _ in range(2):  # to a missing file, and to an existing one
            self.assertEqual(self.run_clip("--corners", self.path("second.json")).returncode, 0)
            self.assertTrue(os.path.islink(self.path("first.json")))
            self.assertTrue(os.path.islink(self.path("second.json")))
            self.assertEqual(os.listdir(self.path("elsewhere")), ["target.json"])
        os.symlink("round.json", self.path("round.json"))
        self.assert_refused(self.run_clip("--corners", self.path("round.json")), b"round.json")

    def test_that_another_user_planted_are_refused(self):
        shared = self.path("shared")
        os.mkdir(shared)
        os.chmod(shared, 0o1777)
        victim = pathlib.Path(self.path("victim.json"))
        victim.write_text("old")
        for target in (str(victim), self.path("new.json")):
            link = os.path.join(shared, "c.json")
            os.symlink(target, link)
            self.give_away(link)
            self.assert_refused(self.run_clip("--corners", link), b"another user")
            self.assert_refused(self.run_it("caps", "--record", link), b"another user")
            os.unlink(link)
        planted = os.path.join(shared, "c.json")
        pathlib.Path(planted).write_text("planted")
        self.give_away(planted)
        self.assert_refused(self.run_clip("--corners", planted), b"another user")
        os.unlink(planted)
        os.symlink(str(victim), planted)  # a link that belongs to the user is followed there, too
        self.assertEqual(victim.read_text(), "old")
        self.assertEqual(self.run_clip("--corners", planted).returncode, 0)
        self.assertNotEqual(victim.read_text(), "old")
        self.assertEqual(self.files(), ["shared", "victim.json"])

    def test_into_pipes_and_devices_arrive(self):
        done = self.run_clip("--corners", "/dev/stderr")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(len(json.loads(done.stderr)["frames"]), 3)


class RecordsFromPipes(Conditions):
    def test_play_as_files_do(self):
        for machine in MACHINES[:2]:
            text = (RECORDS / (machine + ".json")).read_bytes()
            for arguments in (("caps", "--json"), ("caps", "--json", "--probe"), ("doctor", "--json"),
                              ("run", self.clip, "--json")):
                with self.subTest(machine=machine, arguments=arguments):
                    file = str(RECORDS / (machine + ".json"))
                    expected = self.run_it(*arguments, "--machine", file)
                    done = self.run_it(*arguments, "--machine", "/dev/stdin", stdin=None, input=text)
                    self.assertEqual(done.returncode, expected.returncode, done)
                    self.assertEqual(done.stderr, expected.stderr)
                    names = [[device["name"] if isinstance(device, dict) else device for device in
                              json.loads(each.stdout).get("devices", [])] for each in (done, expected)]
                    self.assertEqual(names[0], names[1])
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            if len(text) < 65536:
                os.write(writer, text)
                os.close(writer)
                done = self.run_it("caps", "--machine", f"/dev/fd/{reader}", pass_fds=(reader,))
                self.assertEqual(done.returncode, 0, done)
            os.close(reader)

    def test_keep_what_trials_found(self):
        machine = next((machine for machine in MACHINES if machine not in ("no-gpu", "old-driver")), None)
        if machine is None:
            self.skipTest("no machine with a GPU")
        found = self.path("found.json")
        done = self.run_it("litmus", "--machine", machine, "--kinds", "pinned", "--shapes", "message_to_host", "--save",
                           found)
        self.assertEqual(done.returncode, 0, done)
        # A finding of another driver version, which each command that reads it reports once.
        record = json.loads(pathlib.Path(found).read_text())
        record["devices"][0]["litmus"]["driver_version"] += 10
        pathlib.Path(found).write_text(json.dumps(record))
        for arguments in (("caps", "--json", "--probe"), ("doctor", "--json")):
            with self.subTest(arguments=arguments):
                expected = self.run_it(*arguments, "--machine", machine, "--litmus", found)
                done = self.run_it(*arguments, "--machine", machine, "--litmus", "/dev/stdin", stdin=None,
                                   input=pathlib.Path(found).read_bytes())
                self.assertEqual((done.returncode, done.stderr), (expected.returncode, expected.stderr))
                findings = [json.loads(each.stdout).get("findings", []) for each in (done, expected)]
                self.assertEqual(*[[finding["id"] for finding in each] for each in findings])

    def test_that_are_none_are_refused(self):
        for text in (b"", b"no record"):
            self.assert_refused(self.run_it("caps", "--machine", "/dev/stdin", stdin=None, input=text), b"/dev/stdin")
        if os.path.exists("/dev/zero"):
            with open("/dev/zero", "rb") as endless:
                self.assert_refused(self.run_it("caps", "--machine", "/dev/stdin", stdin=endless), b"16 MiB")


if __name__ == "__main__":
    COMMAND = [*shlex.split(os.environ.get("MESON_EXE_WRAPPER", "")), sys.argv[1]]
    RECORDS = pathlib.Path(sys.argv[2])
    MACHINES = sys.argv[3:]
    unittest.main(argv=sys.argv[:1], verbosity=1)
