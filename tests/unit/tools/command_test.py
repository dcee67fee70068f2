#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The built command as people run it: on simulated machines, with bad input, and with outputs that cannot be written.

usage: command_test.py ISTHMUS KNOWN_RECORDS_FOLDER [MACHINE...]
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

COMMAND = []  # under emulation: the wrapper that Meson names, then the program
RECORDS = pathlib.Path()
MACHINES = []


def run(*arguments, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ISTHMUS_")}
    clean.update({"ISTHMUS_PROFILE": "none"} | environment)
    return subprocess.run([*COMMAND, *arguments], env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)


def on_terminal(*arguments, columns=80, **environment):
    """What the command prints on a terminal of so many columns."""
    clean = {key: value for key, value in os.environ.items()
             if not key.startswith(("ISTHMUS_", "LC_")) and key not in ("NO_COLOR", "LANG")}
    clean.update({"ISTHMUS_PROFILE": "none"} | environment)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen([*COMMAND, *arguments], env=clean, stdin=subprocess.DEVNULL, stdout=slave,
                               stderr=subprocess.DEVNULL)
    os.close(slave)
    printed = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # Linux reports that the other end is closed
            break
        if not piece:
            break
        printed += piece
    os.close(master)
    process.wait(timeout=120)
    return printed.decode().replace("\r\n", "\n")


class BadInput(unittest.TestCase):
    def refused(self, *arguments, code=2, says="", **environment):
        done = run(*arguments, **environment)
        self.assertEqual(done.returncode, code, done)
        self.assertEqual(done.stdout, "", done)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("isthmus: "), done.stderr)
        self.assertIn(says, done.stderr)
        self.assertTrue(done.stderr.rstrip("\n").isprintable(), repr(done.stderr))

    def test_usage(self):
        self.refused(says="subcommand")
        self.refused("caps", "--no-such-option", says="--no-such-option")
        self.refused("caps", "--format", "yaml")
        self.refused("doctor", "--deadline", "soon")
        self.refused("doctor", "--deadline", "-1")
        self.refused("caps", "--all", "--machine", "orin", says="--all")
        self.refused("caps", "--topology", "--why", says="--topology")
        self.refused("caps", "--topology", "--all", says="--topology")

    def test_an_unknown_command_names_the_nearest(self):
        for word, near in (("cap", "caps"), ("docter", "doctor"), ("litmsu", "litmus"), ("rnu", "run"), ("reprot", "report"),
                           ("shares", "share"), ("veiw", "view"), ("tnue", "tune"), ("latecny", "latency")):
            self.refused(word, says=f"there is no command '{word}'; the nearest is '{near}'")
            self.refused("--json", word, "--frames", "3", says=f"'{near}'")
        self.refused("frobnicate", says="there is no command 'frobnicate'; commands: caps, doctor")
        self.refused("", says="there is no command ''")
        self.refused("\033[2Jcaps", says="\\u001b[2Jcaps")

    def test_words_that_are_none_of_a_few_are_named(self):
        self.refused("caps", "--format", "xml", says="'xml' is none of text, json and markdown")
        self.refused("caps", "--format", "", says="--format")
        self.refused("share", "--synthetic", "9x9", "--policy", "\001", says="\\u0001")
        for size in ("96", "96x", "x64", "-96x64", "+96x64", " 96x64", "96x64 ", "96X64", "nanxnan", "96x64x2", ""):
            self.refused("share", "--synthetic", size, "--at", "/nonexistent/place",
                         says="640x480" if size else "--synthetic")

    # Every option that takes a number: the words before it, its name, and numbers just outside its range.
    NUMBERS = (
        ((), "--host-reserve", ("1099511627777",)),
        (("doctor",), "--deadline", ("0", "0.09", "3601")),
        (("doctor",), "--fabric-channel", ("65536",)),
        (("latency",), "--period", ("9.9", "10000001")),
        (("latency",), "--deadline", ("0", "0.9", "100000001")),
        (("latency",), "--turns", ("0", "4294967297")),
        (("latency",), "--duration", ("0", "1000001")),
        (("latency",), "--warm-up", ("0", "1000000001")),
        (("latency",), "--bytes", ("0", "3", "1073741825")),
        (("latency",), "--give-up", ("0", "3601")),
        (("latency",), "--priority", ("0", "100")),
        (("litmus",), "--instances", ("0", "1125899906842625")),
        (("litmus",), "--seconds", ("0", "0.09", "86401")),
        (("litmus",), "--threads", ("0", "257")),
        (("litmus",), "--seed", ()),
        (("litmus",), "--deadline", ("0", "1000001")),
        (("report", "report.json"), "--tests-deadline", ("0", "0.09", "1000001")),
        (("report", "report.json"), "--seconds", ("0", "0.09", "86401")),
        (("report", "report.json"), "--deadline", ("0", "0.09", "3601")),
        (("run", "clip.y4m"), "--frames", ("0", "1099511627777")),
        (("run", "clip.y4m"), "-n", ("0", "1099511627777")),
        (("run", "clip.y4m"), "--in-flight", ("0", "65")),
        (("run", "clip.y4m"), "--cpu-threads", ("0", "1025")),
        (("run", "clip.y4m"), "--width", ("0",)),
        (("run", "clip.y4m"), "--height", ("0",)),
        (("run", "clip.y4m"), "--pitch", ("0",)),
        (("run", "clip.y4m"), "--threshold", ("2147483648",)),
        (("run", "clip.y4m"), "--distance", ("0", "65")),
        (("run", "clip.y4m"), "--max-corners", ("0", "1048577")),
        (("run", "clip.y4m"), "--match-radius", ("1025",)),
        (("share", "clip.y4m"), "--frames", ("0", "1099511627777")),
        (("share", "clip.y4m"), "-n", ("0",)),
        (("share", "clip.y4m"), "--slots", ("1", "257")),
        (("share", "clip.y4m"), "--viewers", ("65",)),
        (("share", "clip.y4m"), "--rate", ("0", "1000001")),
        (("share", "clip.y4m"), "--viewer-deadline", ("0", "3601")),
        (("trace", "trace.json"), "--warm-up", ("1000000001",)),
        (("tune",), "--budget", ("0", "0.9", "86401")),
        (("tune", "--verify"), "--points", ("0", "100001")),
        (("tune", "--verify"), "--seed", ()),
        (("view",), "--frames", ("0", "1099511627777")),
        (("view",), "-n", ("0",)),
        (("view",), "--connect-deadline", ("3601",)),
        (("view",), "--deadline", ("0", "86401")),
        (("view",), "--work", ("60001",)),
    )
    NO_NUMBERS = ("", " ", "nan", "-nan", "inf", "-inf", "infinity", "-1", "-0.5", "-1e300", "1e400", "+1", " 1", "1 ",
                  "1x", "0x10", "1_000", "1,5", "{}", "[1]", "99999999999999999999999", "soon", "٣", "1\033[31m")

    def test_what_is_no_number_is_refused_by_every_option_that_takes_one(self):
        for words, name, outside in self.NUMBERS:
            with self.subTest(words=words, option=name):
                shown = {"-n": "--frames"}.get(name, name)
                for bad in (*self.NO_NUMBERS, *outside):
                    tail = () if words else ("caps",)
                    self.refused(*words, name, bad, *tail, says=f"{shown}: '")
                self.refused(*words, name + ("" if name == "-n" else "=") + "nan", *tail, says=f"{shown}: 'nan' is not")

    def test_every_option_is_among_those_that_are_tried(self):
        others = {"--help", "--version", "--machine", "--device", "--json", "--litmus", "--all", "--probe", "--record",
                  "--format", "--fabric", "--kinds", "--shapes", "--save", "--mutant", "--output", "--corners",
                  "--memory", "--synthetic", "--at", "--policy", "--writable", "--checksums", "--waiting", "--why",
                  "--topology", "--quick", "--thorough", "--html", "--verify", "--profile", "--compare", "--tests",
                  "--run-tests", "--no-litmus", "--read", "--real-time", "--trace"}
        for command in ((), ("caps",), ("doctor",), ("latency",), ("litmus",), ("report",), ("run",), ("share",),
                        ("trace",), ("tune",), ("view",)):
            tried = {name for words, name, _ in self.NUMBERS if words[:1] == command} | others
            if command == ("run",):
                tried.discard("--checksums")
                tried.add("--camera")
            if command in (("share",), ("view",)):
                tried |= {"--listen", "--from", "--key"}
            if command == ("latency",):
                tried |= {"--work", "--kind", "--sealed", "--cpus", "--load"}
            text = run(*command, "--help").stdout
            options = set(re.findall(r"^ +(?:-\w,)?(--[a-z][a-z-]+)", text, re.MULTILINE))
            self.assertTrue(options)
            self.assertEqual(options - tried, set(), command)

    def test_unknown_machines_name_the_known_ones(self):
        for command in (("caps",), ("doctor",), ("run", str(RECORDS / "orin.json"))):
            self.refused(*command, "--machine", "pdp11", says="orin")

    def test_records_that_are_absent_or_damaged(self):
        self.refused("caps", "--machine", "/no/such/record.json", says="/no/such/record.json")
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("empty", ""), ("words", "not a record"), ("half", '{"format": 1, "name": "x", '),
                               ("list", "[]"), ("binary", "\0\1\2")):
                path = os.path.join(folder, name + ".json")
                pathlib.Path(path).write_text(text)
                self.refused("caps", "--machine", path, says=name)

    def test_devices_that_are_not_there(self):
        self.refused("caps", "--device", "99", says="99")
        self.refused("caps", "--device", "-1")
        self.refused("caps", "--device", "gpu", says="gpu")
        self.refused("caps", "--device", "0", says="there is no GPU here; the CPU is cpu",
                     ISTHMUS_CUDA_LIBRARY="/nonexistent/libcuda.so.1")
        for bad in self.NO_NUMBERS:
            self.refused("caps", "--device", bad, says="--device: '")

    def test_outputs_that_cannot_be_written_leave_nothing_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refused("caps", "--record", os.path.join(folder, "no", "such", "folder.json"), says="No such file")
            self.refused("caps", "--record", folder, says=folder)
            self.refused("caps", "--record", "", says="names no file")
            self.assertEqual(os.listdir(folder), [])

    def test_a_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "w") as full:
            done = subprocess.run([*COMMAND, "caps", "--all"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("No space left", done.stderr)


class ThisMachine(unittest.TestCase):
    def test_help_and_version_go_to_standard_output(self):
        for arguments in (("--help",), ("caps", "--help"), ("doctor", "--help"), ("latency", "--help"), ("litmus", "--help"),
                          ("tune", "--help"), ("--version",)):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("isthmus" if "--version" in arguments else "--", done.stdout)

    def test_every_option_is_described(self):
        text = (RECORDS.parent.parent / "docs" / "command.md").read_text()
        for command in ((), ("caps",), ("doctor",), ("latency",), ("litmus",), ("run",), ("tune",)):
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", run(*command, "--help").stdout):
                self.assertRegex(text, r"(?<![\w-])" + option + r"(?![\w-])")

    def test_caps_always_has_the_cpu(self):
        document = json.loads(run("caps", "--json").stdout)
        self.assertEqual(document["devices"][-1]["name"], "CPU")
        self.assertEqual(json.loads(run("caps", "--format", "json").stdout), document)
        for style in ("text", "markdown"):
            self.assertIn("CPU", run("caps", "--format", style).stdout)

    def test_without_a_terminal_there_are_no_colours(self):
        for arguments in (("caps",), ("caps", "--all"), ("doctor",)):
            self.assertNotIn("\033", run(*arguments, TERM="xterm").stdout)

    def test_a_terminal_decides_colours_and_circles(self):
        for environment, circles, colour in (({"LANG": "C.UTF-8"}, True, True), ({"LANG": "C"}, False, True),
                                             ({"LANG": "C.UTF-8", "NO_COLOR": "1"}, False, False),
                                             ({"LANG": "C.UTF-8", "TERM": "dumb"}, False, False)):
            with self.subTest(environment=environment):
                printed = on_terminal("caps", "--all", **{"TERM": "xterm", **environment})
                self.assertEqual("\033[32m" in printed, colour, printed)
                machine = on_terminal("caps", "--machine", "orin", **{"TERM": "xterm", **environment})
                if "pinned" in machine:  # this build has the simulator
                    self.assertEqual("●" in machine, circles, machine)
                    self.assertEqual(" yes " in machine or "myes\033" in machine, not circles, machine)

    def test_lines_fit_the_terminal(self):
        for arguments in (("caps",), ("caps", "--all"), ("caps", "--all", "--why"), ("caps", "--topology"), ("litmus",)):
            for line in on_terminal(*arguments, TERM="xterm", LANG="C.UTF-8", columns=60).splitlines():
                self.assertLessEqual(len(re.sub(r"\033\[[0-9;]*m", "", line)), 60, line)

    def test_litmus_names_no_driver_where_there_is_none(self):
        done = run("litmus", "--device", "cpu", ISTHMUS_CUDA_LIBRARY="/no/such/libcuda.so.1")
        self.assertEqual(done.returncode, 3, done)
        self.assertNotIn("CUDA 0.0", done.stdout)
        self.assertIn("driver   none", done.stdout)

    def test_all_known_machines_stand_side_by_side(self):
        done = run("caps", "--all")
        self.assertEqual(done.returncode, 0)
        for record in RECORDS.glob("*.json"):
            if json.loads(record.read_text())["devices"]:
                self.assertIn(record.stem, done.stdout)
        json.loads(run("caps", "--all", "--json").stdout)

    def test_the_doctor_answers_in_json(self):
        done = run("doctor", "--json")
        document = json.loads(done.stdout)
        problems = [finding for finding in document["findings"] if finding["weight"] == "problem"]
        self.assertEqual(done.returncode, 1 if problems else 0)
        self.assertIn("D001", document["checked"])

    def test_the_doctor_finds_a_library_that_is_no_driver(self):
        document = json.loads(run("doctor", "--json", ISTHMUS_CUDA_LIBRARY="/no/such/libcuda.so.1").stdout)
        self.assertIn("D001", [finding["id"] for finding in document["findings"]])

    def test_the_doctor_finds_limits(self):
        limited = ["sh", "-c", 'ulimit -n 40 && exec "$@" doctor --json', "sh", *COMMAND]
        done = subprocess.run(limited, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 1, done)
        found = {finding["id"]: finding for finding in json.loads(done.stdout)["findings"]}
        self.assertIn("40 files", found["D007"]["evidence"])

    def test_a_record_replaces_a_file_as_a_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "here.json")
            pathlib.Path(path).write_text("something older, and longer than nothing")
            self.assertEqual(run("caps", "--record", path).returncode, 0)
            record = json.loads(pathlib.Path(path).read_text())
            self.assertEqual(record["name"], "here")
            self.assertEqual(os.listdir(folder), ["here.json"])
            alone = run("caps", "--record", "-")
            self.assertEqual(json.loads(alone.stdout)["machine"], record["machine"])


def colour_picture(folder):
    """A PPM of 40 by 30 pixels with squares in it."""
    path = os.path.join(folder, "squares.ppm")
    pixels = bytes(value for y in range(30) for x in range(40)
                   for value in ((255, 120, 0) if x // 8 % 2 == y // 8 % 2 else (0, 30, 60)))
    pathlib.Path(path).write_bytes(b"P6\n40 30\n255\n" + pixels)
    return path


class Reports(unittest.TestCase):
    """What `run`, `share` and `doctor` say to people."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.picture = colour_picture(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def said(self, *arguments):
        done = run(*arguments)
        if done.returncode == 3 and "simulator" in done.stderr:
            self.skipTest("this build has no simulator")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_times_of_a_played_machine_mean_nothing(self):
        here = self.said("run", self.picture, "--device", "cpu")
        self.assertNotIn("mean nothing", here)
        self.assertIn("device     cpu: ", here)
        for machine in MACHINES:
            with self.subTest(machine=machine):
                text = self.said("run", self.picture, "--machine", machine)
                self.assertIn(f"simulated: {machine}\n", text)
                self.assertIn("mean nothing", text)
                self.assertTrue(json.loads(self.said("run", self.picture, "--machine", machine, "--json"))["simulated"])

    def test_share_says_the_same_and_no_kind_twice(self):
        for machine in ["", *MACHINES]:
            with self.subTest(machine=machine):
                at = os.path.join(self.folder.name, "meet" + machine)
                played = ("--machine", machine) if machine else ("--device", "cpu")
                text = self.said("share", "--synthetic", "64x48", "--frames", "3", "--at", at, *played)
                self.assertEqual("mean nothing" in text, machine != "", text)
                memory = [line for line in text.splitlines() if line.startswith("memory ")]
                self.assertEqual(len(memory), 1, text)
                for kind in ("registered", "host:"):
                    self.assertLessEqual(memory[0].count(kind), 1, text)

    def test_a_colour_picture_is_not_gray(self):
        text = self.said("run", self.picture, "--device", "cpu")
        self.assertIn("PPM of 40x30 in colour", text)
        self.assertNotIn("gray\n", text)
        panned = self.said("run", self.picture, "--device", "cpu", "--frames", "3")
        self.assertIn("PPM of 40x30 in colour", panned)
        self.assertIn("frames of 35x27: a window", panned)

    def test_tracks_are_told_from_matches(self):
        report = json.loads(self.said("run", self.picture, "--device", "cpu", "--frames", "9", "--json"))
        text = self.said("run", self.picture, "--device", "cpu", "--frames", "9")
        tracks, corners = report["tracks"], report["corners"]
        self.assertEqual(tracks["count"] + tracks["matched"], corners["count"])
        self.assertIn(f"tracks     {tracks['count']}; {tracks['matched']} of {corners['count']} corners continue", text)

    def test_a_line_of_progress_is_wiped_before_it_is_drawn(self):
        theirs, ours = pty.openpty()
        try:
            done = subprocess.run([*COMMAND, "run", self.picture, "--device", "cpu", "--frames", "30"], stderr=ours,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=120)
            os.close(ours)
            shown = b""
            try:
                while part := os.read(theirs, 4096):
                    shown += part
            except OSError:
                pass  # the other end is closed
        finally:
            os.close(theirs)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b" of 30", shown)
        for redrawn in shown.split(b"\r")[1:]:
            self.assertTrue(redrawn.startswith(b"\033[K"), shown)

    def test_a_damaged_profile_is_one_finding_and_hides_no_other(self):
        machine = next(iter(set(MACHINES) & {"h200", "orin"}), None)
        if machine is None:
            self.skipTest("no machine to play")
        without = json.loads(run("doctor", "--machine", machine, "--json").stdout)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as profile:
            profile.write("{")
            profile.flush()
            done = run("doctor", "--machine", machine, "--json", ISTHMUS_PROFILE=profile.name)
        self.assertEqual(done.returncode, 1, done)
        found = {finding["id"]: finding for finding in json.loads(done.stdout)["findings"]}
        self.assertIn("T002", found.pop("D040")["evidence"])
        self.assertEqual(set(found), {finding["id"] for finding in without["findings"]})

    def test_the_doctor_says_what_is_fine_in_green(self):
        document = json.loads(run("doctor", "--json").stdout)
        found = {finding["id"] for finding in document["findings"]}
        self.assertEqual("limits" in document["fine"], not found & {"D007", "D008", "D010", "D024"}, document)
        self.assertEqual("/dev/shm" in document["fine"], "D036" not in found, document)
        self.assertIn("D040", document["checked"])
        for machine in set(MACHINES) & {"h200", "orin"}:
            with self.subTest(machine=machine):
                text = run("doctor", "--machine", machine).stdout
                self.assertIn("\nfine  driver, GPUs", text)
                self.assertRegex(text, r"devices  0: .*cpu\n")

    def test_the_doctor_says_what_real_time_lacks(self):
        limited = ["sh", "-c", 'ulimit -l 64 && exec "$@"', "sh", *COMMAND, "doctor", "--json"]
        usual, asked = (subprocess.run([*limited, *more], capture_output=True, text=True)
                        for more in ((), ("--real-time",)))
        effective = re.search(r"^CapEff:\s*(\w+)", pathlib.Path("/proc/self/status").read_text(), flags=re.M)
        unlimited = int(effective[1], 16) >> 14 & 1  # CAP_IPC_LOCK
        before, after = ({finding["id"]: finding for finding in json.loads(done.stdout)["findings"]}
                         for done in (usual, asked))
        self.assertEqual(before["D009"]["weight"], "note")
        self.assertEqual(after["D009"]["weight"], "note" if unlimited else "problem")
        self.assertEqual(asked.returncode, int(any(each["weight"] == "problem" for each in after.values())), asked)
        only_asked = {f"D{number:03}" for number in range(41, 47)}
        self.assertFalse(only_asked & set(before), "without --real-time these checks are silent")
        self.assertEqual(set(after) - only_asked, set(before))
        fine = json.loads(asked.stdout)["fine"]
        for words, ident in (("PREEMPT_RT", "D041"), ("no real-time throttling", "D043")):
            self.assertFalse(words in fine and ident in after, (words, fine))
        self.assertNotIn("PREEMPT_RT", json.loads(usual.stdout)["fine"])
        text = run("doctor", "--real-time").stdout
        for ident in only_asked & set(after):
            self.assertIn(ident, text)

    def test_pictures_come_in_and_go_out(self):
        for extension in ("png", "jpg"):
            with self.subTest(extension=extension):
                path = os.path.join(self.folder.name, "corners." + extension)
                done = run("run", self.picture, "--device", "cpu", "-o", path, "--json")
                if done.returncode == 3:
                    self.assertIn("built without", done.stderr)
                    self.assertIn("this build has no", " ".join(run("run", "--help").stdout.split()))
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                again = json.loads(self.said("run", path, "--device", "cpu", "--json"))
                self.assertEqual(again["input"]["picture"],
                                 {"format": "JPEG" if extension == "jpg" else "PNG", "colour": True,
                                  "width": 40, "height": 30})


# The findings about fabric handles.
FABRIC = {"D012", "D026", "D027", "D028", "D029", "D030", "D031", "D032"}


class PlayedMachines(unittest.TestCase):
    def play(self, machine, *arguments):
        done = run(*arguments, "--machine", machine)
        if done.returncode == 3 and "simulator" in done.stderr:
            self.skipTest("this build has no simulator")
        return done

    def test_caps_shows_the_recorded_devices(self):
        for machine in MACHINES:
            with self.subTest(machine=machine):
                record = json.loads((RECORDS / (machine + ".json")).read_text())
                done = self.play(machine, "caps", "--json")
                self.assertEqual(done.returncode, 0, done.stderr)
                names = [device["name"] for device in json.loads(done.stdout)["devices"]]
                expected = [device["name"] for device in record["devices"]]
                if machine == "old-driver":
                    expected = []
                self.assertEqual(names, expected + ["CPU"])

    def test_a_saved_record_plays_the_same_machine(self):
        for machine in MACHINES:
            with self.subTest(machine=machine), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "copy.json")
                first = self.play(machine, "caps", "--json", "--record", path)
                self.assertEqual(first.returncode, 0, first.stderr)
                second = self.play(path, "caps", "--json")
                self.assertEqual(second.returncode, 0, second.stderr)

                def gist(done):
                    return [(device["name"], device.get("row"), device.get("features"))
                            for device in json.loads(done.stdout)["devices"]]
                self.assertEqual(gist(first), gist(second))

    def test_a_number_never_names_the_cpu(self):
        for machine in MACHINES:
            with self.subTest(machine=machine), tempfile.TemporaryDirectory() as folder:
                devices = json.loads(self.play(machine, "caps", "--json").stdout)["devices"]
                gpus = [device for device in devices if device["name"] != "CPU"]
                for place, device in enumerate(gpus):
                    done = self.play(machine, "caps", "--json", "--device", str(device["ordinal"]))
                    self.assertEqual(json.loads(done.stdout)["devices"], [gpus[place]])
                for command in (("caps",), ("run", "clip.pgm"), ("litmus", "--instances", "1"),
                                ("share", "--synthetic", "96x64", "--frames", "1", "--at", folder)):
                    if command[0] == "run":
                        path = os.path.join(folder, "clip.pgm")
                        pathlib.Path(path).write_bytes(b"P5 64 64 255\n" + bytes(64 * 64))
                        command = ("run", path)
                    done = self.play(machine, *command, "--device", str(len(gpus)))
                    self.assertEqual((done.returncode, done.stdout), (2, ""), done)
                    self.assertIn(f"--device {len(gpus)}: ", done.stderr)
                    self.assertIn("the CPU is cpu", done.stderr)

    def test_the_reserve_of_host_memory_can_be_chosen(self):  # keeps K20
        if "orin" not in MACHINES:
            self.skipTest("orin is not built for")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "clip.pgm")
            pathlib.Path(path).write_bytes(b"P5 64 64 255\n" + bytes(64 * 64))
            done = self.play("orin", "run", path, "--host-reserve", "1000000000")
            self.assertEqual((done.returncode, done.stdout), (1, ""), done)
            self.assertIn("out of memory", done.stderr)
            self.assertIn("--host-reserve", done.stderr)
            self.assertEqual(self.play("orin", "run", path, "--host-reserve", "0").returncode, 0)
            # No reserve is kept where the GPU has separate memory.
            self.assertEqual(self.play("h200", "run", path, "--host-reserve", "1000000000").returncode, 0)

    def test_control_characters_of_a_record_reach_no_terminal(self):
        if "orin" not in MACHINES:
            self.skipTest("orin is not built for")
        record = json.loads((RECORDS / "orin.json").read_text())
        record["title"] = "a\033]0;title\ab\u009b31m\u202ec\u007f"
        record["devices"][0]["name"] = "Orin\033[2J\r"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "odd\033[31m.json")
            pathlib.Path(path).write_text(json.dumps(record))
            for arguments in (("caps",), ("caps", "--format", "markdown"), ("doctor",), ("caps", "--json"),
                              ("caps", "--record", "-"), ("doctor", "--json"), ("caps", "--litmus", path)):
                done = self.play(path, *arguments)
                for text in (done.stdout, done.stderr):
                    lines = text.split("\n")
                    self.assertTrue(all(line.isprintable() for line in lines), [l for l in lines if not l.isprintable()])
                if "--json" in arguments:
                    json.loads(done.stdout)
            document = json.loads(self.play(path, "caps", "--json").stdout)
            self.assertEqual(document["devices"][0]["name"], "Orin\033[2J\r")

    def test_places_on_the_bus_are_played_and_recorded(self):
        record = json.loads((RECORDS / "h200-x2.json").read_text())
        place = {"speed_mt_per_s": 2500, "lanes": 8, "max_speed_mt_per_s": 32000, "max_lanes": 16, "numa_node": 0,
                 "near_cpus": "0-15"}
        record["devices"][1]["pci"] = place
        record["machine"]["numa_nodes"][0]["cpu_list"] = "0-31"
        with tempfile.TemporaryDirectory() as folder:
            path, again = os.path.join(folder, "placed.json"), os.path.join(folder, "again.json")
            pathlib.Path(path).write_text(json.dumps(record))
            done = self.play(path, "caps", "--topology", "--record", again)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("PCIe 32 GT/s x16, now 2.5 GT/s x8", " ".join(done.stdout.split()))
            kept = json.loads(pathlib.Path(again).read_text())
            self.assertNotIn("pci", kept["devices"][0], "what the record does not say is not the host's")
            self.assertEqual(kept["devices"][1]["pci"], place)
            self.assertEqual(kept["machine"]["numa_nodes"][0]["cpu_list"], "0-31")
            shown = json.loads(self.play(again, "caps", "--json").stdout)
            self.assertEqual(shown["devices"][1]["pci"], place)

    def test_one_device_can_be_asked_for(self):
        for machine in MACHINES:
            with self.subTest(machine=machine):
                done = self.play(machine, "caps", "--json", "--device", "cpu")
                self.assertEqual([device["name"] for device in json.loads(done.stdout)["devices"]], ["CPU"])

    @staticmethod
    def missing_piece(record):
        """What fabric handles lack on a machine that is played: one finding, or none."""
        says = any(device["attributes"].get("HANDLE_TYPE_FABRIC_SUPPORTED") == 1 for device in record["devices"])
        if not says or all(device["fabric_usable"] for device in record["devices"]):
            return set()
        if record["machine"]["imex_channels_major"] < 0:
            return {"D027"}
        return {"D012"} if record["machine"]["imex_channel_files"] == 0 else {"D031"}

    def test_the_doctor_says_what_a_wanted_fabric_lacks(self):
        for machine in set(MACHINES) & {"gb200", "h200", "orin"}:
            with self.subTest(machine=machine):
                found = {finding["id"]: finding["weight"] for finding in json.loads(
                    self.play(machine, "doctor", "--json", "--fabric").stdout)["findings"]}
                expected = {"gb200": {}, "h200": {"D012": "problem"}, "orin": {"D026": "problem"}}
                self.assertEqual({key: found[key] for key in FABRIC & found.keys()}, expected[machine])

    def test_the_doctor_compares_channels(self):
        if "gb200" not in MACHINES:
            self.skipTest("gb200 is not built for")
        for number, expected in (("0", set()), ("7", {"D032"})):
            done = self.play("gb200", "doctor", "--json", "--fabric-channel", number)
            found = {finding["id"] for finding in json.loads(done.stdout)["findings"]}
            self.assertEqual(FABRIC & found, expected)

    def test_a_channel_file_alone_carries_nothing(self):
        record = json.loads((RECORDS / "h200.json").read_text())
        record["machine"]["imex_channel_files"] = 1
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "channel.json")
            pathlib.Path(path).write_text(json.dumps(record))
            found = {finding["id"]: finding for finding in json.loads(
                self.play(path, "doctor", "--json").stdout)["findings"]}
            self.assertEqual(FABRIC & found.keys(), {"D031"})
            self.assertIn("cuMemCreate returned 800", found["D031"]["evidence"])

    def test_tries_confirm_or_take_away_and_records_keep_them(self):
        for machine in MACHINES:
            with self.subTest(machine=machine), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "tried.json")
                plain = json.loads(self.play(machine, "caps", "--json").stdout)
                done = self.play(machine, "caps", "--json", "--probe", "--record", path)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                tried = json.loads(done.stdout)
                record = json.loads((RECORDS / (machine + ".json")).read_text())
                kept = json.loads(pathlib.Path(path).read_text())
                for number, device in enumerate(kept["devices"]):
                    for name in ("export_posix_fd", "export_fabric"):
                        before = plain["devices"][number]["features"][name]
                        after = tried["devices"][number]["features"][name]
                        works = name == "export_posix_fd" or record["devices"][number]["fabric_usable"]
                        expected = before["state"] if before["state"] == "no" else "probed" if works else "no"
                        self.assertEqual((after["state"], after["origin"] == "probe"),
                                         (expected, before["state"] != "no"), (name, after))
                    if plain["devices"][number]["features"]["export_fabric"]["state"] != "no":
                        self.assertEqual(device["fabric_usable"], record["devices"][number]["fabric_usable"])
                        said = [source for source in device["evidence"] if "fabric_usable" in source.get("of", [])]
                        self.assertEqual([source["is"] for source in said], ["observed"])
                self.assertEqual(self.play(path, "caps", "--json").returncode, 0)

    def test_the_doctor_judges_every_machine(self):
        for machine in MACHINES:
            with self.subTest(machine=machine):
                done = self.play(machine, "doctor", "--json")
                document = json.loads(done.stdout)
                found = {finding["id"]: finding["weight"] for finding in document["findings"]}
                if machine == "no-gpu":
                    self.assertEqual(found.get("D021"), "problem", found)
                elif machine == "old-driver":
                    self.assertEqual(found.get("D002"), "problem", found)
                else:
                    self.assertTrue(document["simulated"])
                    self.assertNotIn("D020", found)
                    self.assertNotIn("D022", found)
                    self.assertNotIn("D025", found)
                    self.assertNotIn("D033", found)
                    record = json.loads((RECORDS / (machine + ".json")).read_text())
                    self.assertEqual(FABRIC & found.keys(), self.missing_piece(record), found)
                self.assertEqual(done.returncode, 1 if "problem" in found.values() else 0)


if __name__ == "__main__":
    COMMAND = [*shlex.split(os.environ.get("MESON_EXE_WRAPPER", "")), sys.argv[1]]
    RECORDS = pathlib.Path(sys.argv[2])
    MACHINES = sys.argv[3:]
    unittest.main(argv=sys.argv[:1], verbosity=1)
