#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`isthmus report` as the owner of a board runs it, and `--read` as the project does.

usage: report_command_test.py ISTHMUS KNOWN_RECORDS_FOLDER [MACHINE...]
"""
import getpass
import json
import os
import pathlib
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
WITHOUT_GPU = ("no-gpu", "old-driver")
PARTS = ("record", "litmus", "tests", "profile", "doctor")
TEST_OUTPUT = "passed  unit.rules\nFAILED  conformance.real (1)\nwhat it printed\n1 passed, 1 failed, 0 skipped\n"


def run(*arguments, command=None, **environment):
    clean = {key: value for key, value in os.environ.items()
             if not key.startswith("ISTHMUS_") and key != "XDG_CONFIG_HOME"}
    clean.update({key: value for key, value in environment.items() if value is not None})
    return subprocess.run([*(command or COMMAND), *arguments], env=clean, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=200)


class Reports(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.here = {"ISTHMUS_CUDA_LIBRARY": "/nonexistent/libcuda.so.1"}  # no GPU unless --machine plays one

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            pathlib.Path(path).write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def report(self, *arguments, code=0, **environment):
        done = run("report", *arguments, **{**self.here, **environment})
        if done.returncode == 3 and "simulator" in done.stderr:
            self.skipTest("this build has no simulator")
        self.assertEqual(done.returncode, code, done)
        return done

    def made(self, *arguments, **environment):
        path = self.path("report.json")
        done = self.report(path, *arguments, **environment)
        document = json.loads(pathlib.Path(path).read_text())
        self.assertEqual(document["schema"], "isthmus-report-1")
        self.assertEqual(set(document), {"schema", "written_by", "written_on", "simulated", "left_out", *PARTS})
        for part in PARTS:
            left_out = [line for line in document["left_out"] if line.startswith(part + ":")]
            self.assertEqual(len(left_out), 1 if document[part] is None else 0, (part, document["left_out"]))
        for line in document["left_out"]:
            self.assertIn(line.split("\n")[0], done.stdout)
        return document, done

    def refused(self, *arguments, says, **environment):
        done = self.report(*arguments, code=2, **environment)
        self.assertEqual(done.stdout, "", done)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(says, done.stderr)


class ThisMachine(Reports):
    def test_a_computer_without_a_gpu_reports_too(self):
        document, done = self.made("--profile", self.path("p", {"schema": "isthmus-profile-1", "devices": []}),
                                   "--tests", self.path("t", TEST_OUTPUT))
        self.assertFalse(document["simulated"])
        self.assertEqual(document["record"]["devices"], [])
        self.assertEqual((document["tests"]["passed"], document["tests"]["failed"]), (1, 1))
        self.assertIn("what it printed", document["tests"]["failures"][0]["output"])
        self.assertEqual(document["profile"]["devices"], [])
        self.assertIn("D001", document["doctor"]["checked"])
        self.assertIn("left out   litmus: there is no GPU", done.stdout)
        self.assertIn("failed: conformance.real", done.stdout)
        again = self.report("--read", self.path("report.json"))
        self.assertEqual(again.stdout, done.stdout, "the project sees what its sender saw")

    def test_what_identifies_the_computer_is_in_no_report(self):
        uuid = "GPU-8e2c0c4f-1b7d-4f3a-9c1e-0123456789ab"
        home = self.path("people/zacharias-home")
        secrets = f"{home}/x zacharias_q {uuid} 48:b0:2d:aa:bb:cc serial no: 1320921004567 {socket.gethostname()}"
        profile = {"schema": "isthmus-profile-1", "devices": [{"uuid": uuid, "name": "NVIDIA H200", "notes": secrets}]}
        document, _ = self.made("--profile", self.path("p", profile), "--no-litmus",
                                "--tests", self.path("t", f"FAILED  x (1)\n{secrets}\n"),
                                HOME=home, USER="zacharias_q", LOGNAME="zacharias_q")
        text = pathlib.Path(self.path("report.json")).read_text()
        for secret in ("zacharias", "8e2c0c4f", "48:b0:2d", "1320921004567"):
            self.assertNotIn(secret, text)
        host = socket.gethostname()
        if len(host) > 8:
            self.assertNotIn(host, text)
        user = getpass.getuser()
        if user not in ("root", "user", "build") and len(user) > 5:
            self.assertNotIn(user, text)
        self.assertEqual(document["profile"]["devices"][0]["uuid"], "GPU-00000000-0000-0000-0000-000000000001")
        self.assertEqual(document["profile"]["devices"][0]["name"], "NVIDIA H200")
        self.assertEqual(document["record"]["machine"]["kernel_release"], os.uname().release)

    def test_the_profile_is_found_where_programs_find_it(self):
        profile = {"schema": "isthmus-profile-1", "devices": []}
        os.makedirs(self.path("config/isthmus"))
        self.path("config/isthmus/profile.json", profile)
        named = self.path("named.json", dict(profile, named=1))
        config = {"XDG_CONFIG_HOME": self.path("config"), "HOME": self.folder}
        quick = ("--no-litmus",)
        self.assertEqual(self.made(*quick, **config)[0]["profile"], profile)
        self.assertEqual(self.made(*quick, **config, ISTHMUS_PROFILE=named)[0]["profile"]["named"], 1)
        self.assertEqual(self.made(*quick, "--profile", named, **config)[0]["profile"]["named"], 1)
        self.assertIsNone(self.made(*quick, **config, ISTHMUS_PROFILE="none")[0]["profile"])
        self.assertIsNone(self.made(*quick, **config, ISTHMUS_PROFILE=self.path("absent"))[0]["profile"])
        self.path("config/isthmus/profile.json", "{damaged")
        document, _ = self.made(*quick, **config)
        self.assertIn("is no JSON document", " ".join(document["left_out"]))
        self.assertIsNotNone(document["record"], "a damaged profile hides nothing else")

    def test_bad_input_writes_nothing(self):
        out = self.path("out.json")
        self.refused(says="--read FILE")
        self.refused("", says="names no file")
        self.refused(out, "--profile", self.path("absent"), says="absent")
        self.refused(out, "--no-litmus", "--profile", self.path("p", "[]"), says="no JSON document")
        self.refused(out, "--no-litmus", "--profile", self.path("p", {"schema": "isthmus-profile-2"}), says="schema")
        self.refused(out, "--no-litmus", "--tests", self.path("t", "nothing"), says="no results of tests")
        self.refused(out, "--tests", self.path("t", "nothing"), "--run-tests", says="--run-tests")
        self.refused(out, "--record", self.path("r.json"), says="--read")
        self.refused(out, "--machine", "pdp11", says="orin")
        self.refused(out, "--litmus", str(RECORDS / "h200.json"), "--no-litmus", says="--no-litmus")
        self.refused(out, "--litmus", str(RECORDS / "h200.json"), says="no findings")
        self.refused("/no/such/folder/out.json", "--no-litmus", says="/no/such/folder")
        self.refused("--read", self.path("absent"), says="absent")
        self.refused("--read", self.path("p", "{}"), says="is no report")
        self.refused("--read", self.path("p", {"schema": "isthmus-report-9"}), says="isthmus-report-9")
        empty = self.path("p", {"schema": "isthmus-report-1"})
        self.refused("--read", empty, "--record", self.path("r.json"), says="no record")
        self.assertFalse(os.path.exists(out) or os.path.exists(self.path("r.json")))

    def test_a_report_that_cannot_be_shown_is_not_written(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no full device")
        out = self.path("out.json")
        done = subprocess.run(["sh", "-c", 'exec "$@" >/dev/full', "sh", *COMMAND, "report", out, "--no-litmus"],
                              env={**os.environ, **self.here}, capture_output=True, timeout=200)
        self.assertEqual(done.returncode, 2, done)
        self.assertFalse(os.path.exists(out))

    def test_a_dash_prints_the_document_alone(self):
        done = self.report("-", "--no-litmus")
        self.assertEqual(json.loads(done.stdout)["schema"], "isthmus-report-1")


class InstalledTests(Reports):
    """A copy of the command beside a `run-tests` of ours."""

    def setUp(self):
        super().setUp()
        if len(COMMAND) > 1:
            self.skipTest("the program is emulated")
        self.prefix = self.path("prefix")
        os.makedirs(os.path.join(self.prefix, "bin"))
        self.program = os.path.join(self.prefix, "bin", "isthmus")
        shutil.copy2(COMMAND[0], self.program)
        runtime = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(COMMAND[0]))), "runtime")
        self.here["LD_LIBRARY_PATH"] = os.pathsep.join([runtime, os.environ.get("LD_LIBRARY_PATH", "")])

    def install(self, script):
        folder = os.path.join(self.prefix, "libexec", "isthmus", "tests")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "run-tests")
        pathlib.Path(path).write_text("#!/bin/sh\n" + script)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def made_beside(self, *arguments):
        path = self.path("report.json")
        done = run("report", path, "--no-litmus", *arguments, command=[self.program], **self.here)
        self.assertEqual(done.returncode, 0, done)
        return json.loads(pathlib.Path(path).read_text())

    def test_are_run_only_where_that_was_asked_for(self):
        self.install(f"echo 'passed  with {self.folder}' \"$@\"; echo 'skipped other'; exit 0")
        self.assertIsNone(self.made_beside()["tests"])
        tests = self.made_beside("--run-tests")["tests"]
        self.assertEqual((tests["from"], tests["passed"], tests["skipped"]), ("run-tests", 1, 1))
        self.assertTrue(tests["names"]["passed"][0].endswith("--real"), tests)

    def test_that_fail_hang_or_say_nothing_are_part_of_the_report(self):
        self.install("echo 'passed  one'; echo 'FAILED  two (1)'; echo why; exit 1")
        tests = self.made_beside("--run-tests")["tests"]
        self.assertEqual((tests["passed"], tests["failed"], tests["failures"][0]["output"]), (1, 1, "why\n"))
        self.install("echo 'passed  one'; sleep 1000")
        document = self.made_beside("--run-tests", "--tests-deadline", "8")
        self.assertEqual(document["tests"]["passed"], 1)
        self.assertIn("not over after 8 seconds", document["tests"]["end"])
        self.install("exit 0")
        document = self.made_beside("--run-tests")
        self.assertIn("tests: they printed no result", document["left_out"])

    def test_end_with_the_command(self):
        self.install(f"sleep 1000 & echo $! >{self.folder}/pid.new; mv {self.folder}/pid.new {self.folder}/pid; sleep 1000")
        for end in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=end):
                process = subprocess.Popen([self.program, "report", self.path("out.json"), "--no-litmus", "--run-tests"],
                                           env={**os.environ, **self.here}, stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
                until = time.monotonic() + 60
                while not os.path.exists(self.path("pid")) and time.monotonic() < until:
                    time.sleep(0.02)
                sleeper = int(pathlib.Path(self.path("pid")).read_text())
                os.remove(self.path("pid"))
                (os.killpg if end == signal.SIGINT else os.kill)(process.pid, end)  # as a terminal does
                process.wait(timeout=60)
                while self.lives(sleeper) and time.monotonic() < until:
                    time.sleep(0.02)
                self.assertFalse(self.lives(sleeper))
                self.assertFalse(os.path.exists(self.path("out.json")))

    @staticmethod
    def lives(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def test_that_are_not_there_are_left_out(self):
        document = self.made_beside("--run-tests")
        if document["tests"] is None:  # tests may be installed where this build would install them
            self.assertIn("none are installed", " ".join(document["left_out"]))


class PlayedMachines(Reports):
    def capabilities(self, machine):
        done = run("caps", "--json", "--machine", str(machine), **self.here)
        if done.returncode == 3 and "simulator" in done.stderr:
            self.skipTest("this build has no simulator")
        self.assertEqual(done.returncode, 0, done)
        document = json.loads(done.stdout)
        for device in document["devices"]:
            device.pop("uuid", None)
            device.pop("evidence", None)
        return document["devices"]

    def test_a_report_becomes_a_record_with_the_same_capabilities(self):
        for machine in MACHINES:
            with self.subTest(machine=machine):
                document, done = self.made("--machine", machine, "--seconds", "0.1", "--no-litmus")
                self.assertTrue(document["simulated"])
                self.assertIn("SIMULATED", done.stdout)
                record = self.path("played-again.json")
                self.report("--read", self.path("report.json"), "--record", record)
                saved = json.loads(pathlib.Path(record).read_text())
                self.assertEqual(saved["name"], "played-again")
                self.assertEqual(self.capabilities(record), self.capabilities(machine))
                known = json.loads((RECORDS / (machine + ".json")).read_text())
                if machine not in WITHOUT_GPU:
                    self.assertEqual([device["row"] for device in saved["devices"]],
                                     [device["row"] for device in known["devices"]])
                    self.assertEqual([device["attributes"] for device in saved["devices"]],
                                     [device["attributes"] for device in known["devices"]])
                for device in saved["devices"]:
                    self.assertEqual({source["is"] for source in device["evidence"]}, {"assumed"}, "simulated")

    def test_results_of_litmus_are_part_of_it_and_of_its_record(self):  # keeps G13
        for machine in [machine for machine in MACHINES if machine not in WITHOUT_GPU][:4]:
            with self.subTest(machine=machine):
                document, done = self.made("--machine", machine, "--seconds", "0.1")
                self.assertEqual(document["litmus"]["summary"], "simulated")
                self.assertIn("litmus     simulated: ", done.stdout)
                self.assertTrue(document["record"]["devices"][0]["litmus"]["results"])
                record = self.path("with-litmus.json")
                self.report("--read", self.path("report.json"), "--record", record)
                self.assertEqual(self.capabilities(record), self.capabilities(machine))
                again, _ = self.made("--machine", record, "--litmus", record)
                self.assertEqual(again["litmus"]["from"], "file")
                self.assertEqual(len(again["litmus"]["findings"]), 1)

    def test_what_hangs_or_crashes_is_left_out_and_the_rest_is_there(self):
        for fault, says in (("call=cuInit:stands", "not over after 8 seconds"),
                            ("call=cuMemHostAlloc:stands", "not over")):
            with self.subTest(fault=fault):
                document, _ = self.made("--machine", "orin", "--deadline", "8", "--seconds", "0.1",
                                        ISTHMUS_SIM_FAULTS=fault)
                self.assertIn(says, " ".join(document["left_out"]))
                self.assertIn("D001", document["doctor"]["checked"])
                self.assertTrue(document["simulated"])
                if "cuInit" in fault:
                    self.assertIsNone(document["record"])
                    done = self.report("--read", self.path("report.json"), "--record", self.path("r.json"), code=2)
                    self.assertIn("not over after 8 seconds", done.stderr)
                else:
                    self.assertEqual(document["record"]["devices"][0]["attributes"]["INTEGRATED"], 1)
                    self.assertEqual(document["litmus"]["summary"], "incomplete")


if __name__ == "__main__":
    COMMAND = [*shlex.split(os.environ.get("MESON_EXE_WRAPPER", "")), sys.argv[1]]
    RECORDS = pathlib.Path(sys.argv[2])
    MACHINES = sys.argv[3:]
    unittest.main(argv=sys.argv[:1], verbosity=1)
