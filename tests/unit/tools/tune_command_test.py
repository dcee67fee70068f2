#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`isthmus tune` as people run it: on simulated machines, where its times mean nothing and its form everything.

usage: tune_command_test.py ISTHMUS KNOWN_RECORDS_FOLDER [MACHINE...]
"""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

COMMAND = []  # under emulation: the wrapper that Meson names, then the program
RECORDS = pathlib.Path()
MACHINES = []
WITHOUT_GPU = ("no-gpu", "old-driver")
KEYS = {"uuid", "name", "driver_version", "kernel_release", "simulated", "translation", "memory", "measured_on",
        "choices", "conditions", "ways", "turns", "hosts", "figures", "record"}


def run(*arguments, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ISTHMUS_")}
    clean.update(environment)
    return subprocess.run([*COMMAND, *arguments], env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=200)


def record_of(machine):
    return json.loads((RECORDS / (machine + ".json")).read_text())


class InAFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.config = os.path.join(self.folder.name, "config")
        self.own = os.path.join(self.config, "isthmus", "profile.json")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def tune(self, *arguments):
        done = run("tune", *arguments, XDG_CONFIG_HOME=self.config)
        if done.returncode == 3 and "simulator" in done.stderr:
            self.skipTest("this build has no simulator")
        return done

    def refused(self, *arguments, says=""):
        done = self.tune(*arguments)
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stdout, "", done)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(says, done.stderr)


class Refusals(InAFolder):
    def test_what_does_not_go_together(self):  # keeps P3
        self.refused("--quick", "--thorough", says="--")
        self.refused("--quick", "--budget", "20", says="--")
        self.refused("--budget", "0", says="--budget")
        self.refused("--points", "5", says="--verify")
        self.refused("--profile", "file", says="--verify")
        self.refused("--verify", "--output", "file", says="--output")
        self.refused("--compare", "one", says="--compare")
        self.refused("--compare", "a", "b", "--html", "page", says="--html")
        self.refused("--output", "", says="names no file")
        self.refused("--format", "yaml", says="--format")
        self.refused("--machine", "pdp11", says="orin")
        self.refused("--device", "99", "--budget", "1", says="99")

    def test_files_that_are_no_profiles(self):  # keeps P4
        self.refused("--verify", says="no profile")
        self.refused("--verify", "--profile", self.path("missing"), says="missing")
        pathlib.Path(self.path("damaged")).write_text('{"schema": "isthmus-profile-1", "devices": [{}]}')
        self.refused("--verify", "--profile", self.path("damaged"), says="no profile that")
        self.refused("--compare", self.path("damaged"), self.path("missing"), says="damaged")

    def test_a_damaged_profile_in_its_place_is_not_overwritten(self):  # keeps P4
        os.makedirs(os.path.dirname(self.own))
        pathlib.Path(self.own).write_text("mine")
        self.refused("--budget", "1", says="remove it")
        self.assertEqual(pathlib.Path(self.own).read_text(), "mine")


class TheCpu(InAFolder):
    def test_is_measured_and_has_no_profile(self):  # keeps P3
        done = self.tune("--device", "cpu", "--budget", "2", "--json")
        self.assertEqual(done.returncode, 0, done)
        document = json.loads(done.stdout)
        self.assertEqual(document["written"], "")
        self.assertIn("UUID", document["not_written"])
        self.assertEqual([way["kind"] for way in document["measured"]["ways"]], ["host"])
        self.assertFalse(os.path.exists(self.own))


class PlayedMachines(InAFolder):
    def measured(self, machine, *arguments):
        path = self.path(machine + ".json")
        done = self.tune("--machine", machine, "--output", path, *arguments)
        self.assertEqual(done.returncode, 0, done)
        return json.loads(pathlib.Path(path).read_text()), done

    def each_with_a_gpu(self):
        for machine in MACHINES:
            if machine not in WITHOUT_GPU:
                with self.subTest(machine=machine):
                    yield machine

    def test_each_machine_has_a_profile_of_its_device(self):  # keeps P3
        for machine in self.each_with_a_gpu():
            document, done = self.measured(machine, "--budget", "2")
            self.assertEqual(document["schema"], "isthmus-profile-1")
            device, = document["devices"]
            self.assertLessEqual(KEYS, set(device))
            record = record_of(machine)
            self.assertEqual(device["driver_version"], record["machine"]["driver_version"])
            self.assertTrue(device["simulated"])
            self.assertTrue(device["uuid"].startswith("GPU-"))
            self.assertIn("devices", device["record"])
            self.assertIn("simulated", done.stdout)
            self.assertFalse(os.path.exists(self.own), "a simulated machine's profile is in nobody's way")
            attributes = record["devices"][0]["attributes"]
            kinds = {way["kind"] for way in device["ways"]}
            self.assertLessEqual({"pinned", "device"}, kinds)
            self.assertEqual("host" in kinds, attributes["PAGEABLE_MEMORY_ACCESS"] == 1)
            self.assertEqual("managed" in kinds, attributes["CONCURRENT_MANAGED_ACCESS"] == 1, "not where it is attached")
            for turn in device["turns"]:
                kind = device["ways"][turn["way"]]["kind"]
                self.assertFalse(kind == "write_combined" and turn["device"] != "reads", turn)
                median, low, high, count = turn["seconds"]
                self.assertTrue(0 < low <= median <= high and count >= 3, turn)

    def test_what_is_measured_is_enough_for_choices(self):  # keeps P3, P5
        machine = "orin" if "orin" in MACHINES else next(iter(set(MACHINES) - set(WITHOUT_GPU)), None)
        if machine is None:
            self.skipTest("no machine with a GPU")
        page = self.path("page.html")
        for budget in ("8", "25", "70"):  # in seconds; a busy machine, or a sanitizer, needs more of it
            document, _ = self.measured(machine, "--budget", budget, "--html", page)
            device, = document["devices"]
            sizes = {turn["bytes"] for turn in device["turns"]}
            if len(sizes) > 1:
                break
        self.assertGreater(len(sizes), 1)
        self.assertEqual({turn["device"] for turn in device["turns"]}, {"reads", "writes", "reads_and_writes"})
        self.assertGreaterEqual({figure["subject"] for figure in device["figures"]}, {"hand-over", "copies"})
        self.assertTrue(device["choices"])
        for use in device["choices"]:
            for passes, *borders in use["rows"]:
                self.assertGreaterEqual(passes, 1)
                self.assertEqual(borders[0], 0, use)
                for way in borders[1::2]:
                    self.assertIn(way, range(len(device["ways"])))
                    if use["host"] != "writes":
                        self.assertNotEqual(device["ways"][way]["kind"], "write_combined", use)
        xml.etree.ElementTree.parse(page)
        self.compares(document, machine)
        self.verifies(machine)

    def compares(self, document, machine):
        other = json.loads(json.dumps(document))
        other["devices"][0]["kernel_release"] = "9.87-other"
        pathlib.Path(self.path("other.json")).write_text(json.dumps(other))
        for form in ("text", "json"):
            done = self.tune("--compare", self.path(machine + ".json"), self.path("other.json"), "--format", form)
            self.assertEqual(done.returncode, 0, done)
            self.assertIn("9.87-other", done.stdout)

    def verifies(self, machine):
        path = self.path(machine + ".json")
        done = self.tune("--machine", machine, "--verify", "--profile", path, "--points", "6", "--budget", "6", "--json")
        self.assertEqual(done.returncode, 0, done)  # simulated: no ratio is a failure
        document = json.loads(done.stdout)
        self.assertTrue(document["simulated"])
        self.assertTrue(document["rows"])
        measured = {turn["bytes"] for turn in json.loads(pathlib.Path(path).read_text())["devices"][0]["turns"]}
        for row in document["rows"]:
            self.assertNotIn(row["bytes"], measured)
            self.assertGreaterEqual(row["with_profile"]["ratio"], 1)
            self.assertGreaterEqual(row["without_profile"]["ratio"], 1)
        for side in ("with_profile", "without_profile"):
            self.assertEqual(document[side]["points"], len(document["rows"]))

    def test_a_profile_of_another_device_is_not_verified(self):  # keeps P4
        machines = [machine for machine in MACHINES if machine not in WITHOUT_GPU][:2]
        if len(machines) < 2:
            self.skipTest("one machine has no other")
        self.measured(machines[0], "--budget", "1")
        self.refused("--machine", machines[1], "--verify", "--profile", self.path(machines[0] + ".json"),
                     says="has no entry")


if __name__ == "__main__":
    COMMAND = [*shlex.split(os.environ.get("MESON_EXE_WRAPPER", "")), sys.argv[1]]
    RECORDS = pathlib.Path(sys.argv[2])
    MACHINES = sys.argv[3:]
    unittest.main(argv=sys.argv[:1], verbosity=1)
