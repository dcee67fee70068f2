#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`isthmus litmus` as people run it: on simulated machines, where its numbers mean nothing and its form everything.

usage: litmus_command_test.py ISTHMUS KNOWN_RECORDS_FOLDER [MACHINE...]
"""
import json
import os
import pathlib
import shlex
import struct
import subprocess
import sys
import tempfile
import unittest

COMMAND = []  # under emulation: the wrapper that Meson names, then the program
RECORDS = pathlib.Path()
MACHINES = []
WITHOUT_GPU = ("no-gpu", "old-driver")
SHAPES = {"message_to_device", "message_to_host", "store_buffering", "load_buffering", "coherence_to_device",
          "coherence_to_host", "tearing_to_device", "tearing_to_host", "lost_updates"}
KERNELS_AT = 192  # of isthmus_sim_statistics: `kernels`, then `kernels_from_ptx`


def run(*arguments, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ISTHMUS_")}
    clean["ISTHMUS_PROFILE"] = "none"
    clean.update(environment)
    return subprocess.run([*COMMAND, *arguments], env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=200)


def device_of(machine):
    return json.loads((RECORDS / (machine + ".json")).read_text())["devices"][0]


class Refusals(unittest.TestCase):
    def refused(self, *arguments, says=""):
        done = run("litmus", *arguments)
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stdout, "", done)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(says, done.stderr)

    def test_what_there_is_not(self):  # keeps G13
        self.refused("--kinds", "device", says="pinned")
        self.refused("--shapes", "message", says="message_to_host")
        self.refused("--mutant", "radioactive", says="device_scope")
        self.refused("--seconds", "0", says="--seconds")
        self.refused("--instances", "0", says="--instances")
        self.refused("--instances", "5", "--seconds", "5", says="--")
        self.refused("--machine", "pdp11", says="orin")
        self.refused("--save", "", says="names no file")
        self.refused("--device", "99", says="99")
        self.refused("--save", "mutant.json", "--mutant", "relaxed", says="--mutant")
        self.assertFalse(os.path.exists("mutant.json"))


class PlayedMachines(unittest.TestCase):
    def play(self, machine, *arguments, **environment):
        done = run(*arguments, "--machine", str(machine), **environment)
        if done.returncode == 3 and "simulator" in done.stderr:
            self.skipTest("this build has no simulator")
        return done

    def each_with_a_gpu(self):
        for machine in MACHINES:
            if machine not in WITHOUT_GPU:
                with self.subTest(machine=machine):
                    yield machine

    def test_a_machine_without_a_gpu_has_no_second_side(self):  # keeps G13
        for machine in [machine for machine in MACHINES if machine in WITHOUT_GPU] or ["no-gpu"]:
            with self.subTest(machine=machine):
                done = self.play(machine, "litmus", "--json")
                self.assertEqual(done.returncode, 3, done)
                self.assertEqual(json.loads(done.stdout)["summary"], "not applicable")
                self.assertIn("not applicable", self.play(machine, "litmus").stdout)

    def test_each_kind_that_both_use_has_every_shape(self):  # keeps G13
        for machine in self.each_with_a_gpu():
            done = self.play(machine, "litmus", "--json")
            document = json.loads(done.stdout)
            self.assertEqual(done.returncode, 0, document)
            self.assertEqual(document["summary"], "simulated")
            kinds = {row["kind"] for row in document["rows"]}
            attributes = device_of(machine)["attributes"]
            self.assertIn("pinned", kinds)
            self.assertEqual("host" in kinds, attributes["PAGEABLE_MEMORY_ACCESS"] == 1)
            self.assertEqual("managed" in kinds, attributes["CONCURRENT_MANAGED_ACCESS"] == 1)
            for kind in kinds:
                # A CPU without loads of 16 bytes in one piece (Armv8.0, and its emulator) has none that could tear.
                absent = {shape for shape in SHAPES
                          if any(line.startswith(f"{kind}, {shape}: ") for line in document["left_out"])}
                self.assertTrue(all("tearing" in shape for shape in absent), absent)
                self.assertEqual({row["shape"] for row in document["rows"] if row["kind"] == kind}, SHAPES - absent, kind)
            for row in document["rows"]:
                self.assertEqual(row["ending"], "finished", row)
                self.assertGreaterEqual(row["instances"], 1000, row)
                self.assertGreater(row["weak_rate_upper_bound"], row["weak"] / row["instances"], row)
                updates = row["shape"] == "lost_updates" and row["kind"] in ("pinned", "registered")
                expected = updates and attributes["HOST_NATIVE_ATOMIC_SUPPORTED"] == 0
                self.assertEqual(row["role"], "refused" if expected else "test", row)
                self.assertEqual("control" in row, row["role"] == "test", row)
                if row["role"] == "test" and "tearing" not in row["shape"]:  # emulators may split 16 bytes
                    self.assertEqual(row["weak"], 0, row)

    def test_the_text_says_that_simulation_proves_nothing(self):  # keeps G13
        for machine in self.each_with_a_gpu():
            done = self.play(machine, "litmus", "--kinds", "pinned", "--shapes", "store_buffering")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("store_buffering", done.stdout)
            self.assertIn("proves nothing", done.stdout)
            self.assertNotIn("message_to_host", done.stdout)

    def test_a_child_that_does_not_end_is_a_report(self):  # keeps G13
        done = self.play("orin", "litmus", "--json", "--kinds", "pinned", "--instances", str(1 << 40), "--deadline", "20")
        document = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1, document)
        self.assertEqual(document["summary"], "incomplete")
        self.assertIn("not over after 20 seconds", document["end"])
        self.assertEqual([row["ending"] for row in document["rows"]][:2], ["hung", "not_run"])
        self.assertGreater(document["rows"][0]["instances"], 0, "what was seen before is kept")
        self.assertEqual(document["rows"][0]["answer"], "incomplete")

    def test_mutants_are_rows_of_their_own(self):
        for machine in self.each_with_a_gpu():
            done = self.play(machine, "litmus", "--json", "--kinds", "pinned", "--mutant", "relaxed")
            document = json.loads(done.stdout)
            self.assertEqual(done.returncode, 0, document)
            self.assertEqual({row["role"] for row in document["rows"]}, {"mutant"})

    # With the twin switched off: the counter proves that each launch ran from the image's PTX.
    def test_the_shapes_run_from_their_ptx_under_the_machines_rules(self):  # keeps G13
        if os.environ.get("ISTHMUS_TEST_KERNEL_PTX") != "1":
            self.skipTest("no nvcc made the PTX of this build's kernels")
        for machine in self.each_with_a_gpu():
            with tempfile.NamedTemporaryFile() as counts:
                done = self.play(machine, "litmus", "--json", ISTHMUS_SIM_PTX="always",
                                 ISTHMUS_SIM_STATISTICS=counts.name)
                kernels, from_ptx = struct.unpack_from("<2Q", counts.read(), KERNELS_AT)
            document = json.loads(done.stdout)
            self.assertEqual(done.returncode, 0, document)
            self.assertGreaterEqual(from_ptx, len(document["rows"]))
            self.assertEqual(kernels, from_ptx)
            self.assertEqual({row["shape"] for row in document["rows"] if row["kind"] == "pinned"}, SHAPES)
            for row in document["rows"]:
                self.assertEqual(row["ending"], "finished", row)
                if row["role"] == "test":
                    self.assertEqual(row["weak"], 0, row)

    # Kernels from PTX lose updates of host memory where the machine has no native atomics, and nowhere else.
    def test_updates_from_ptx_get_lost_without_native_atomics(self):  # keeps G13
        if os.environ.get("ISTHMUS_TEST_KERNEL_PTX") != "1":
            self.skipTest("no nvcc made the PTX of this build's kernels")
        for machine in self.each_with_a_gpu():
            native = device_of(machine)["attributes"]["HOST_NATIVE_ATOMIC_SUPPORTED"] == 1
            weak = 0
            for seed in range(1 if native else 20):
                done = self.play(machine, "litmus", "--json", "--kinds", "pinned", "--shapes", "lost_updates",
                                 "--instances", "100000", "--seed", str(seed + 1), ISTHMUS_SIM_PTX="always")
                self.assertEqual(done.returncode, 0, done.stdout)
                weak += json.loads(done.stdout)["rows"][0]["weak"]
                if weak:
                    break
            self.assertEqual(weak == 0, native, machine)

    # A record with litmus findings of the real device: the guards are stricter wherever that machine is simulated.
    def test_what_was_found_narrows_the_machine_it_was_found_on(self):  # keeps G13
        for machine in self.each_with_a_gpu():
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "found.json")
                done = self.play(machine, "litmus", "--kinds", "pinned", "--save", path)
                self.assertEqual(done.returncode, 0, done)
                record = json.loads(pathlib.Path(path).read_text())
                litmus = record["devices"][0]["litmus"]
                self.assertTrue(litmus["simulated"])
                self.assertEqual({result["kind"] for result in litmus["results"]}, {"pinned"})
                before = self.atomics(machine)
                self.assertEqual(self.atomics(path), before, "nothing forbidden was seen, so nothing changes")

                litmus["results"].append({"kind": "pinned", "shape": "message_to_host", "instances": 10,
                                          "forbidden": 1, "control_instances": 10, "control_weak": 1})
                pathlib.Path(path).write_text(json.dumps(record))
                narrowed = dict(before, pinned="no")
                self.assertEqual(self.atomics(path), narrowed)
                other = json.loads(pathlib.Path(path).read_text())
                other["devices"][0]["litmus"]["driver_version"] += 10
                pathlib.Path(path).write_text(json.dumps(other))
                self.assertEqual(self.atomics(path, says="another driver"), before)

    def atomics(self, machine, says=""):
        done = self.play(machine, "caps", "--json", "--device", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(says, done.stderr)
        device = json.loads(done.stdout)["devices"][0]
        return {kind: answers["atomics"] for kind, answers in device["memory_kinds"].items()}


if __name__ == "__main__":
    COMMAND = [*shlex.split(os.environ.get("MESON_EXE_WRAPPER", "")), sys.argv[1]]
    RECORDS = pathlib.Path(sys.argv[2])
    MACHINES = sys.argv[3:]
    unittest.main(argv=sys.argv[:1], verbosity=1)
