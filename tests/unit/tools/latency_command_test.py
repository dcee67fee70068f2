#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`isthmus latency` as people run it: counts and structure on the CPU device and on simulated machines, never times.

usage: latency_command_test.py ISTHMUS KNOWN_RECORDS_FOLDER [MACHINE...]
"""
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest

COMMAND = []  # under emulation: the wrapper that Meson names, then the program
RECORDS = pathlib.Path()
MACHINES = []
SANITIZED = bool(os.environ.get("ISTHMUS_TEST_SANITIZED"))
WITHOUT_GPU = ("no-gpu", "old-driver")
PARTS = ["wake_up", "submit", "device", "view"]
LOADS = ["cpu", "memory", "page-cache", "stream", "copies"]
FEW = ("--period", "3000", "--turns", "12", "--warm-up", "2")
# For runs that end before their last turn: however many are skipped on a busy machine, enough are begun.
MANY = ("--period", "3000", "--turns", "20000", "--warm-up", "2")


def environment_with(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ISTHMUS_")}
    return {**clean, "ISTHMUS_PROFILE": "none", **more}


def run(*arguments, **environment):
    return subprocess.run([*COMMAND, *arguments], env=environment_with(**environment), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=200)


class Latency(unittest.TestCase):
    def play(self, *arguments, code=0, **environment):
        if "--give-up" not in arguments:
            arguments += ("--give-up", "100")  # slow machines are no failures
        done = run("latency", *arguments, **environment)
        if done.returncode == 3 and "simulator" in done.stderr:
            self.skipTest("this build has no simulator")
        self.assertEqual(done.returncode, code, done)
        return done

    def document(self, *arguments, code=0, **environment):
        return json.loads(self.play(*arguments, "--json", code=code, **environment).stdout)

    def adds_up(self, run_, planned):
        """The counts of a run that came to its end."""
        self.assertEqual(run_["planned"], planned, run_)
        self.assertEqual(run_["turns"] + run_["skipped"], planned)
        self.assertEqual(run_["missed"], run_["late"] + run_["skipped"])
        self.assertEqual(sum(count for _, _, count in run_["histogram"]), run_["turns"])
        self.assertEqual(list(run_["parts"]), PARTS)
        self.assertEqual(sum(run_["parts"][part]["sum_ns"] for part in PARTS), run_["total"]["sum_ns"])
        self.assertEqual(sum(run_["parts"][part]["late_by"] for part in PARTS), run_["late"])
        for times in (run_["total"], *run_["parts"].values()):
            ascending = [times[key] for key in ("minimum_ns", "p50_ns", "p99_ns", "p99_9_ns", "p99_99_ns",
                                                "maximum_ns")]
            self.assertEqual(ascending, sorted(ascending))
        self.assertIn("minor_faults", run_["counts"])
        self.assertNotIn("trouble", run_)


class Refusals(Latency):
    def refused(self, *arguments, says, code=2):
        done = run("latency", *arguments)
        self.assertEqual(done.returncode, code, done)
        self.assertEqual(done.stdout, "", done)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(says, done.stderr)

    def test_what_there_is_not(self):  # keeps T4
        self.refused("--work", "thinking", says="--work")
        self.refused("--kind", "pool", says="pinned, registered, host, managed or device")
        self.refused("--load", "cpu,weather", says="--load weather: cpu, memory, page-cache, stream or copies")
        self.refused("--load", "cpu,cpu", says="twice")
        self.refused("--compare", "prices", says="--compare")
        self.refused("--compare", "kinds", "--kind", "pinned", says="--kind")
        self.refused("--compare", "sealed", "--sealed", says="--sealed")
        self.refused("--cpus", "3-1", says="--cpus 3-1: numbers and ranges")
        self.refused("--priority", "100", says="--priority")
        self.refused("--turns", "5", "--duration", "5", says="--")
        self.refused("--bytes", "6", says="a multiple of 4")
        self.refused("--warm-up", "some", says="--warm-up: 'some'")
        self.refused("--waiting", "patiently", says="--waiting")
        self.refused("--mutant", "radioactive", says="--mutant")
        self.refused("--machine", "pdp11", says="orin")
        self.refused("--device", "99", says="99")

    def test_files_that_cannot_be_written_leave_nothing_behind(self):  # keeps T4
        self.refused("--html", "", says="names no file")
        self.refused("--output", "", says="names no file")
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.html")
            self.refused("--device", "cpu", *FEW, "--html", page, "--output", page, says="page.html")
            self.refused("--device", "cpu", *FEW, "--html", page, "--output", folder, says=folder)
            self.assertEqual(os.listdir(folder), [])

    def test_a_service_needs_a_device_where_a_kernel_may_stay(self):  # keeps T4
        self.refused("--device", "cpu", "--work", "service", *FEW, says="latency_serve", code=3)


class CpuDevice(Latency):
    def test_launches_and_graphs_are_measured(self):  # keeps T4
        for work in ("launch", "graph"):
            with self.subTest(work=work):
                document = self.document("--device", "cpu", "--work", work, *FEW)
                self.assertEqual([document["schema"], document["work"], document["device"]["number"]],
                                 [1, work, "cpu"])
                self.assertEqual([document["period_ns"], document["deadline_ns"], document["bytes"]],
                                 [3000000, 3000000, 256])
                self.assertEqual([run_["label"] for run_ in document["runs"]], [work])
                self.adds_up(document["runs"][0], 12)
                self.assertEqual(document["runs"][0]["warm_up_turns"], 2)

    def test_the_loops_of_the_examples_are_refused_nothing_and_miss_no_page(self):  # keeps T4, T2
        """The periods and sizes of examples/control_loop.cpp and examples/camera_loop.cpp."""
        for period, turns, size in ((1000, 400, 84), (8333, 40, 76800)):
            for _ in range(3):  # a busy system may take a page away; a loop that makes one itself does so each time
                document = self.document("--device", "cpu", "--sealed", "--period", str(period), "--turns", str(turns),
                                         "--warm-up", str(turns), "--bytes", str(size))
                run_ = document["runs"][0]
                self.adds_up(run_, turns)
                self.assertEqual(run_["seal"], {"refusals": 0, "places": []})
                faults = run_["counts"]["minor_faults"] + run_["counts"]["major_faults"]
                if faults == 0 or SANITIZED or COMMAND[:-1]:
                    break
            # A sanitizer and an emulator touch memory of their own for the first time at any turn.
            if not SANITIZED and not COMMAND[:-1]:
                self.assertEqual(faults, 0, document)

    def test_a_duration_makes_turns(self):  # keeps T4
        document = self.document("--device", "cpu", "--period", "2000", "--duration", "0.05", "--warm-up", "1",
                                 "--deadline", "1500")
        self.adds_up(document["runs"][0], 25)
        self.assertEqual(document["deadline_ns"], 1500000)

    def test_the_text_has_what_the_json_has(self):  # keeps T4
        text = " ".join(self.play("--device", "cpu", *FEW).stdout.split())  # wherever lines are broken
        for part in (*PARTS, "p50", "p99.9 ", "p99.99", "maximum", "of 12 planned", "page faults",
                     "involuntary switches", "launch every 3 ms, deadline 3 ms, 256 bytes"):
            self.assertIn(part, text)

    def test_files_hold_the_document_and_a_page_without_links(self):  # keeps T4
        with tempfile.TemporaryDirectory() as folder:
            page, saved = pathlib.Path(folder, "page.html"), pathlib.Path(folder, "latency.json")
            done = self.play("--device", "cpu", *FEW, "--html", str(page), "--output", str(saved), "--json")
            self.assertEqual(saved.read_text(), done.stdout)
            self.assertEqual(sorted(os.listdir(folder)), ["latency.json", "page.html"])
            text = page.read_text()
            self.assertIn("<svg", text)
            for outside in ("src=", "href=", "url(", "<script", "@import"):
                self.assertNotIn(outside, text)

    def test_every_load_works_and_ends(self):  # keeps T4
        for turns in (40, 400, 4000):  # a busy machine may give the threads of the loads no time in a short run
            document = self.document("--device", "cpu", "--period", "5000", "--turns", str(turns), "--warm-up", "2",
                                     "--load", ",".join(LOADS))
            if sum(load["rounds"] for load in document["runs"][0]["loads"]) > 0:
                break
        self.assertEqual(document["loads"], LOADS)
        loads = document["runs"][0]["loads"]
        self.assertEqual([load["load"] for load in loads], LOADS)
        for load in loads:
            self.assertNotIn("trouble", load)
            self.assertGreaterEqual(load["threads"], 1)
        self.assertGreater(sum(load["rounds"] for load in loads), 0)
        self.adds_up(document["runs"][0], turns)

    def test_what_is_not_permitted_is_printed_and_the_loop_runs(self):  # keeps T4
        # A CPU that no machine has, and a priority and locked memory that this process may or may not get.
        document = self.document("--device", "cpu", *FEW, "--cpus", "65535")
        self.adds_up(document["runs"][0], 12)
        thread = document["runs"][0]["thread"]
        self.assertEqual([thread["cpus"], len(thread["refused"])], [[], 1])
        self.assertIn("65535", thread["refused"][0])
        self.assertIn("refused    ", self.play("--device", "cpu", *FEW, "--cpus", "65535").stdout)
        document = self.document("--device", "cpu", *FEW, "--priority", "5", "--sealed")
        run_ = document["runs"][0]
        self.adds_up(run_, 12)
        thread = run_["thread"]
        granted = [thread["priority"] == 5, thread["locked"], thread["sealed"]]
        self.assertEqual(granted.count(False), len(thread["refused"]), thread)
        self.assertEqual(run_["seal"] is not None, thread["sealed"])

    def test_sealed_and_unsealed_are_two_runs_of_one_report(self):  # keeps T4
        document = self.document("--device", "cpu", *FEW, "--compare", "sealed")
        self.assertEqual([(run_["label"], run_["asked_sealed"]) for run_ in document["runs"]],
                         [("unsealed", False), ("sealed", True)])
        for run_ in document["runs"]:
            self.adds_up(run_, 12)
        self.assertEqual(document["runs"][0]["thread"]["refused"], [])
        self.assertEqual([document["runs"][0]["seal"], document["runs"][1]["seal"]],
                         [None, {"refusals": 0, "places": []}])

    def test_a_wrong_answer_is_an_error(self):  # keeps T4
        for mutant in ("wrong_answer", "no_answer"):
            for work in ("launch", "graph"):
                document = self.document("--device", "cpu", "--work", work, *MANY, "--mutant", mutant, code=1)
                run_ = document["runs"][0]
                self.assertEqual(run_["trouble"]["code"], "wrong_answer")
                self.assertEqual(run_["turns"] + run_["skipped"] + 1, run_["planned"])
                self.assertIn("wrong_answer: turn ", run_["trouble"]["text"])

    def test_signals_end_the_run_with_what_was_measured(self):  # keeps T4
        for number in (signal.SIGINT, signal.SIGTERM):
            for wait_s in (1, 4, 16):  # a signal before the handler is there ends the process as any other
                process = subprocess.Popen([*COMMAND, "latency", "--device", "cpu", "--json", "--period", "2000",
                                            "--duration", "1000", "--warm-up", "2", "--load", "cpu"],
                                           env=environment_with(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True)
                time.sleep(wait_s)
                process.send_signal(number)
                out, err = process.communicate(timeout=60)
                # One before the first run ends the command without any.
                runs = json.loads(out)["runs"] if process.returncode == 128 + number else []
                if runs and runs[0]["turns"] > 0:
                    break
            self.assertEqual(process.returncode, 128 + number, err)
            document = json.loads(out)
            self.assertEqual(document["signal"], number)
            self.adds_up(document["runs"][0], document["runs"][0]["planned"])
            self.assertLess(document["runs"][0]["planned"], 500000)


class PlayedMachines(Latency):
    def each_with_a_gpu(self):
        for machine in MACHINES:
            if machine not in WITHOUT_GPU:
                with self.subTest(machine=machine):
                    yield machine

    def attributes(self, machine):
        return json.loads((RECORDS / (machine + ".json")).read_text())["devices"][0]["attributes"]

    def test_every_work_has_its_turns_and_says_that_times_mean_nothing(self):  # keeps T4
        for machine in self.each_with_a_gpu():
            for work in ("launch", "graph", "service"):
                if work == "service" and self.attributes(machine)["KERNEL_EXEC_TIMEOUT"] == 1:
                    self.play("--machine", machine, "--work", work, *FEW, code=3)
                    continue
                document = self.document("--machine", machine, "--work", work, *FEW)
                self.assertEqual([document["simulated"], document["machine"]], [True, machine])
                self.adds_up(document["runs"][0], 12)
            self.assertIn("mean nothing", self.play("--machine", machine, *FEW).stdout)

    def test_a_sealed_loop_is_refused_nothing(self):  # keeps T4
        for machine in self.each_with_a_gpu():
            if machine not in ("h200", "orin"):
                continue
            for work in ("launch", "graph", "service"):
                document = self.document("--machine", machine, "--work", work, "--period", "3000", "--turns", "40",
                                         "--warm-up", "20", "--sealed")
                self.adds_up(document["runs"][0], 40)
                self.assertTrue(document["runs"][0]["thread"]["sealed"])
                self.assertEqual(document["runs"][0]["seal"], {"refusals": 0, "places": []})

    def test_kinds_that_the_machine_has_are_compared_and_others_named(self):  # keeps T4
        for machine in self.each_with_a_gpu():
            document = self.document("--machine", machine, "--compare", "kinds", *FEW)
            attributes = self.attributes(machine)
            kinds = [run_["label"] for run_ in document["runs"]]
            left_out = [line.split(":")[0] for line in document["left_out"]]
            self.assertEqual(sorted(kinds + left_out), ["device", "host", "managed", "pinned", "registered"])
            self.assertIn("pinned", kinds)
            self.assertEqual("host" in kinds, attributes["PAGEABLE_MEMORY_ACCESS"] == 1)
            for run_ in document["runs"]:
                self.assertEqual(run_["buffer"]["kind"], run_["label"])
                self.adds_up(run_, 12)

    def test_a_machine_without_a_gpu_measures_its_cpu(self):  # keeps T4
        for machine in [machine for machine in MACHINES if machine in WITHOUT_GPU] or ["no-gpu"]:
            document = self.document("--machine", machine, *FEW)
            self.assertEqual([document["device"]["number"], document["simulated"]], ["cpu", True])
            self.adds_up(document["runs"][0], 12)

    def test_loads_of_the_device_work_beside_a_service(self):  # keeps T4
        for machine in self.each_with_a_gpu():
            if machine not in ("h200", "orin"):
                continue
            document = self.document("--machine", machine, "--work", "service", "--period", "20000", "--turns", "20",
                                     "--warm-up", "1", "--load", "stream,copies")
            self.adds_up(document["runs"][0], 20)
            for load in document["runs"][0]["loads"]:
                self.assertNotIn("trouble", load)

    def test_a_service_that_does_not_answer_ends_the_run_in_time(self):  # keeps T4
        for machine in self.each_with_a_gpu():
            if machine not in ("h200", "orin"):
                continue
            document = self.document("--machine", machine, "--work", "service", *MANY, "--give-up", "5",
                                     "--mutant", "no_answer", code=1)
            run_ = document["runs"][0]
            self.assertEqual([run_["trouble"]["code"], run_["trouble"]["id"]], ["timed_out", "Q012"])
            self.assertEqual(run_["planned"], run_["turns"] + run_["skipped"] + 1)
            document = self.document("--machine", machine, "--work", "service", *MANY, "--mutant", "wrong_answer",
                                     code=1)
            self.assertEqual(document["runs"][0]["trouble"]["code"], "wrong_answer")

    def test_a_lost_device_ends_all_runs_with_its_error(self):  # keeps T4
        for machine in self.each_with_a_gpu():
            if machine not in ("h200", "orin"):
                continue
            for work, call in (("launch", "cuLaunchKernel"), ("graph", "cuGraphLaunch")):
                document = self.document("--machine", machine, "--work", work, *MANY, "--compare", "sealed", code=1,
                                         ISTHMUS_SIM_FAULTS=f"call={call}:nth=8:code=700:sticky",
                                         ISTHMUS_SIM_QUIET="1")
                self.assertEqual([run_["label"] for run_ in document["runs"]], ["unsealed"])
                run_ = document["runs"][0]
                self.assertEqual(run_["trouble"]["code"], "device_lost")
                self.assertEqual(run_["planned"], run_["turns"] + run_["skipped"] + 1)
                self.assertGreater(run_["turns"], 0)


if __name__ == "__main__":
    COMMAND = [*shlex.split(os.environ.get("MESON_EXE_WRAPPER", "")), sys.argv[1]]
    RECORDS = pathlib.Path(sys.argv[2])
    MACHINES = sys.argv[3:]
    unittest.main(argv=sys.argv[:1], verbosity=1)
