#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipelines with isthmuscorners, isthmussink and isthmussrc on one machine, with `isthmus view`, `share` and `run` in
other processes.

usage: pipelines_test.py MACHINE ISTHMUS RUN_PIPELINE PLUGIN_FOLDER MADE_UP_DMA_BUFS [unittest's arguments]; MACHINE:
cpu, or a simulated one
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

MACHINE, ISTHMUS, RUN_PIPELINE, PLUGINS, DMA_BUFS = sys.argv[1:6]
SKIPPED = 77
DEADLINE_S = 100
FORMATS = {"GRAY8": "gray", "NV12": "nv12", "I420": "i420", "YUY2": "yuyv", "UYVY": "uyvy"}
SANITIZED = "ISTHMUS_TEST_SANITIZED" in os.environ
SCRATCH = tempfile.mkdtemp(prefix="isthmus-gst-")


def environment(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("ISTHMUS_", "GST_"))}
    clean["ISTHMUS_PROFILE"] = "none"
    clean["GST_PLUGIN_PATH_1_0"] = PLUGINS
    clean["GST_REGISTRY_1_0"] = os.path.join(SCRATCH, "registry.bin")
    clean["GST_REGISTRY_FORK"] = "no"  # a helper without sanitizers could not load a plugin that has them
    clean["G_DEBUG"] = "fatal-criticals"
    if SANITIZED:  # GLib and GStreamer keep what they made once
        clean["ASAN_OPTIONS"] = clean.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    if MACHINE == "cpu":
        clean["ISTHMUS_CUDA_LIBRARY"] = "/nonexistent/libcuda.so.1"  # no GPU
    else:
        clean["ISTHMUS_CUDA_LIBRARY"] = os.environ["ISTHMUS_CUDA_LIBRARY"]
        clean["ISTHMUS_SIM"] = MACHINE
    clean.update(more)
    return clean


def clip(frames, form="GRAY8", size=(160, 120), pattern="smpte"):
    """videotestsrc with corners that move, as fast as it can."""
    return (f"videotestsrc num-buffers={frames} pattern={pattern} horizontal-speed=3 ! "
            f"video/x-raw,format={form},width={size[0]},height={size[1]}")


class Pipelines(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=SCRATCH)
        self.at = os.path.join(self.folder.name, "meet")
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def begin(self, words, **more):
        process = subprocess.Popen(words, env=environment(**more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process

    def end(self, process, code=0, deadline_s=DEADLINE_S):
        out, error = process.communicate(timeout=deadline_s)
        self.assertEqual(process.returncode, code, error)
        result = json.loads(out)
        result["stderr"] = error
        return result

    def pipeline(self, text, *options, **more):
        return self.begin([RUN_PIPELINE, *options, text], **more)

    def run_pipeline(self, text, *options, end="eos", **more):
        result = self.end(self.pipeline(text, *options, **more))
        self.assertEqual(result["end"], end, result)
        return result

    def view(self, *arguments):
        return self.begin([ISTHMUS, "view", "--at", self.at, "--json", "--connect-deadline", "60", *arguments])

    def found_by_run(self, path, form, size):
        done = subprocess.run([ISTHMUS, "run", path, "--json", "--format", FORMATS[form], "--width", str(size[0]),
                               "--height", str(size[1])],
                              env=environment(), capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["corners"]


class Corners(Pipelines):
    def test_digests_are_those_of_isthmus_run(self):  # keeps Y4
        for form in FORMATS:
            with self.subTest(form=form):
                raw, size = self.path(form), (160, 120)
                result = self.run_pipeline(f"{clip(6, form, size)} ! isthmuscorners ! filesink location={raw}")
                wanted = self.found_by_run(raw, form, size)
                self.assertGreater(wanted["count"], 0)
                self.assertEqual(result["corners"][-1]["clip-digest"], wanted["digest"])
                self.assertEqual(sum(one["listed"] for one in result["corners"]), wanted["count"])
                self.assertEqual([one["frame"] for one in result["corners"]], list(range(6)))
                # A frame alone: as a run on that frame alone.
                with open(raw, "rb") as file:
                    frames = file.read()
                one = self.path("one")
                with open(one, "wb") as file:
                    file.write(frames[3 * len(frames) // 6:4 * len(frames) // 6])
                self.assertEqual(result["corners"][3]["digest"], self.found_by_run(one, form, size)["digest"])
                self.assertNotEqual(result["corners"][3]["digest"], result["corners"][3]["clip-digest"])

    def test_a_y4m_file_through_its_encoder(self):  # keeps Y4
        if not exists("y4menc"):
            self.skipTest("y4menc is missing: apt-get install gstreamer1.0-plugins-good")
        video = self.path("clip.y4m")
        result = self.run_pipeline(f"{clip(5, 'I420')} ! isthmuscorners ! y4menc ! filesink location={video}")
        done = subprocess.run([ISTHMUS, "run", video, "--json"], env=environment(), capture_output=True, text=True,
                              timeout=DEADLINE_S)
        self.assertEqual(json.loads(done.stdout)["corners"]["digest"], result["corners"][-1]["clip-digest"])

    def test_a_y4m_file_through_a_decoder(self):  # keeps Y4
        if not exists("y4mdec"):
            self.skipTest("y4mdec is missing: apt-get install gstreamer1.0-plugins-bad")
        raw, video, (width, height) = self.path("raw"), self.path("clip.y4m"), (160, 120)
        self.run_pipeline(f"{clip(5, 'I420', (width, height))} ! filesink location={raw}")
        with open(raw, "rb") as file:
            frames = [file.read(width * height * 3 // 2) for _ in range(5)]
        with open(video, "wb") as file:
            file.write(f"YUV4MPEG2 W{width} H{height} F30:1 Ip A1:1 C420\n".encode())
            for frame in frames:
                file.write(b"FRAME\n" + frame)
        done = subprocess.run([ISTHMUS, "run", video, "--json"], env=environment(), capture_output=True, text=True,
                              timeout=DEADLINE_S)
        wanted = json.loads(done.stdout)["corners"]
        self.assertGreater(wanted["count"], 0)
        viewer = self.begin([ISTHMUS, "view", "--at", self.at, "--json", "--connect-deadline", "60", "--corners"])
        result = self.run_pipeline(f"filesrc location={video} ! y4mdec ! isthmuscorners ! isthmussink at={self.at} "
                                   "sync=false policy=wait viewers=1 viewer-deadline=60000")
        self.assertEqual(result["corners"][-1]["clip-digest"], wanted["digest"])
        self.assertEqual(self.end(viewer)["corners"]["digest"], wanted["digest"])
        # y4mdec gives the file's own blocks where rows need no padding: these are copied, once for each element.
        for element in ("isthmuscorners", "isthmussink"):
            self.assertIn(result["elements"][element]["copied-frames"], (0, 5))

    def test_frames_in_proposed_memory_are_not_copied_and_others_are(self):  # keeps Y4
        proposed = self.run_pipeline(f"{clip(5)} ! isthmuscorners ! fakesink")
        others = self.run_pipeline(f"{clip(5)} ! identity drop-allocation=true ! isthmuscorners ! fakesink")
        self.assertEqual(proposed["elements"]["isthmuscorners"]["copied-frames"], 0)
        self.assertEqual(others["elements"]["isthmuscorners"]["copied-frames"], 5)
        for result in (proposed, others):
            self.assertEqual(result["elements"]["isthmuscorners"]["frames"], 5)

    @unittest.skipIf(SANITIZED, "a sanitizer has to be loaded first")
    def test_dma_bufs_are_used_in_place_between_cache_operations(self):  # keeps Y4, Y5
        for form, size in (("GRAY8", (160, 120)), ("NV12", (160, 120)), ("I420", (161, 119))):
            with self.subTest(form=form):
                text = f"{clip(6, form, size)} ! identity name=frames ! isthmuscorners ! fakesink"
                count = self.path("count")
                plain = self.run_pipeline(text, "--dma-buf")  # no kernel lets these files pass
                in_place = self.run_pipeline(text, "--dma-buf", LD_PRELOAD=DMA_BUFS, MADE_UP_DMA_BUFS=count)
                self.assertEqual(plain["elements"]["isthmuscorners"]["copied-frames"], 6)
                self.assertEqual(in_place["elements"]["isthmuscorners"]["copied-frames"], 0)
                self.assertGreater(in_place["corners"][-1]["corners"], 0)
                self.assertEqual([one["digest"] for one in in_place["corners"]],
                                 [one["digest"] for one in plain["corners"]])
                with open(count, encoding="utf-8") as file:
                    starts, ends = (int(word) for word in file.read().split())
                self.assertEqual(starts, ends)
                self.assertGreaterEqual(starts, 6)

    @unittest.skipIf(SANITIZED, "a sanitizer has to be loaded first")
    @unittest.skipIf(MACHINE == "cpu", "the CPU uses every dma-buf in place")
    def test_dma_bufs_that_the_device_cannot_use_are_copied_each_time(self):  # keeps Y4, Y5
        # Two dma-bufs that are filled three times each.
        text = f"{clip(6)} ! identity name=frames ! isthmuscorners ! fakesink"
        plain = self.run_pipeline(text, "--dma-buf")  # no kernel lets these files pass
        faults = "call=cuMemHostRegister:code=801;call=cuImportExternalMemory:code=801"
        refused = self.run_pipeline(text, "--dma-buf", LD_PRELOAD=DMA_BUFS, ISTHMUS_SIM_FAULTS=faults)
        self.assertEqual(refused["elements"]["isthmuscorners"]["copied-frames"], 6)
        self.assertEqual(len({one["digest"] for one in plain["corners"]}), 6)
        self.assertEqual([one["digest"] for one in refused["corners"]], [one["digest"] for one in plain["corners"]])

    def test_drawing_changes_luma_around_corners_and_nothing_else(self):  # keeps Y4
        width, height = size = (160, 120)
        pictures = {}
        before, after, kept = self.path("before"), self.path("after"), self.path("kept")
        result = self.run_pipeline(f"{clip(1, 'NV12', size)} ! tee name=t ! queue ! filesink location={before} "
                                   f"t. ! queue ! isthmuscorners draw=true ! filesink location={after} "
                                   f"t. ! queue ! isthmuscorners draw=false ! filesink location={kept}")
        for name in (before, after, kept):
            with open(name, "rb") as file:
                pictures[name] = file.read()
        self.assertEqual(pictures[before], pictures[kept])
        corners = result["corners"][0]["listed"]
        self.assertGreater(corners, 0)
        changed = [at for at, (old, new) in enumerate(zip(pictures[before], pictures[after])) if old != new]
        self.assertTrue(changed)
        self.assertLess(changed[-1], width * height)  # no colour
        self.assertLessEqual(len(changed), corners * 24)
        self.assertEqual({pictures[after][at] for at in changed}, {255})

    def test_wrong_settings_are_refused_before_a_frame_comes(self):  # keeps Y4
        for setting, words in (("device=99", "99"), ("device=nonsense", "nonsense")):
            with self.subTest(setting=setting):
                result = self.run_pipeline(f"{clip(1)} ! isthmuscorners {setting} ! fakesink", end="error")
                self.assertIn(words, result["errors"][0]["message"])
                self.assertEqual(result["corners"], [])
        if MACHINE == "cpu":  # elsewhere the environment names the machine, and wins
            result = self.run_pipeline(f"{clip(1)} ! isthmuscorners machine=no-such ! fakesink", end="error")
            self.assertIn("no-such", result["errors"][0]["message"])
        else:
            self.run_pipeline(f"{clip(1)} ! isthmuscorners machine=no-such ! fakesink")
        self.run_pipeline(f"{clip(1)} ! isthmuscorners device=cpu ! fakesink")


class Sink(Pipelines):
    def sink(self, more=""):
        return f"isthmussink at={self.at} sync=false {more}"

    def test_two_viewers_get_what_was_written_into_the_ring(self):  # keeps Y4, I1
        for form, size in (("GRAY8", (160, 120)), ("NV12", (160, 120)), ("I420", (161, 119))):
            with self.subTest(form=form):
                viewers = [self.view("--corners"), self.view("--waiting", "sleep", "--corners")]
                result = self.run_pipeline(f"{clip(20, form, size)} ! isthmuscorners ! "
                                           f"{self.sink('policy=wait viewers=2 viewer-deadline=60000')}")
                viewed = [self.end(viewer) for viewer in viewers]
                self.assertEqual(result["elements"]["isthmussink"]["frames"], 20)
                self.assertEqual(result["elements"]["isthmussink"]["copied-frames"], 0)
                self.assertEqual(result["elements"]["isthmuscorners"]["copied-frames"], 0)
                self.assertEqual(viewed[0]["digest"], viewed[1]["digest"])
                for one in viewed:
                    self.assertEqual((one["frames"], one["missed"], one["end"]), (20, 0, "closed"))
                    self.assertEqual(one["corners"]["digest"], result["corners"][-1]["clip-digest"])
                    self.assertGreater(one["corners"]["count"], 0)
        self.assertEqual(os.listdir(self.at), [])

    def test_frames_of_other_memory_are_copied_once_and_counted(self):  # keeps Y4
        viewer = self.view("--corners")
        raw = self.path("raw")
        result = self.run_pipeline(f"{clip(10)} ! identity drop-allocation=true ! tee name=t ! queue ! filesink "
                                   f"location={raw} t. ! queue ! "
                                   f"{self.sink('policy=wait viewers=1 viewer-deadline=60000')}")
        self.assertEqual(result["elements"]["isthmussink"]["copied-frames"], 10)
        self.assertEqual(self.end(viewer)["corners"]["digest"], self.found_by_run(raw, "GRAY8", (160, 120))["digest"])

    @unittest.skipIf(SANITIZED, "a sanitizer has to be loaded first")
    def test_dma_bufs_go_into_the_ring_by_one_copy_of_the_runtime(self):  # keeps Y4, Y5
        """Two dma-bufs that are filled three times each, as a camera's pool has them; also one for each plane."""
        for form, size, options in (("GRAY8", (160, 120), ["--dma-buf"]),
                                    ("NV12", (160, 120), ["--dma-buf-caps"]),
                                    ("NV12", (160, 120), ["--dma-buf-planes", "--dma-buf-caps"]),
                                    ("I420", (168, 118), ["--dma-buf-planes"]),
                                    ("YUY2", (160, 119), ["--dma-buf"]),
                                    ("GRAY8", (161, 119), ["--dma-buf"])):
            with self.subTest(form=form, size=size, options=options):
                count, viewer = self.path("count"), self.view("--corners")
                self.run_pipeline(f"{clip(6, form, size)} ! identity drop-allocation=true ! " +
                                  self.sink("policy=wait viewers=1 viewer-deadline=60000"))
                plain = self.end(viewer)
                viewer = self.view("--corners")
                text = (f"{clip(6, form, size)} ! identity name=frames ! " +
                        self.sink("policy=wait viewers=1 viewer-deadline=60000"))
                result = self.run_pipeline(text, *options, LD_PRELOAD=DMA_BUFS, MADE_UP_DMA_BUFS=count,
                                           GST_DEBUG="isthmus:6", GST_DEBUG_NO_COLOR="1")
                counts = result["elements"]["isthmussink"]
                self.assertEqual((counts["frames"], counts["copied-frames"], counts["twice-copied-frames"]), (6, 6, 0))
                viewed = self.end(viewer)
                self.assertEqual(viewed["frames"], 6)
                self.assertEqual(viewed["corners"]["digest"], plain["corners"]["digest"])
                if size[0] % 8 == 0:  # rows without padding, which has any content
                    self.assertEqual(viewed["digest"], plain["digest"])
                memories = 2 * (1 if "--dma-buf-planes" not in options else {"NV12": 2, "I420": 3}[form])
                self.assertEqual(result["stderr"].count("a dma-buf is used as"), memories)  # adopted once each
                self.assertEqual(result["stderr"].count("the runtime copied the frame"), 6)
                with open(count, encoding="utf-8") as file:
                    starts, ends = (int(word) for word in file.read().split())
                self.assertEqual(starts, ends)
                fills = 3 * memories  # by maps of GStreamer
                self.assertGreaterEqual(starts, fills + 6 if MACHINE == "cpu" else fills)

    @unittest.skipIf(SANITIZED, "a sanitizer has to be loaded first")
    def test_dma_bufs_that_the_device_cannot_use_are_mapped_and_copied_once(self):  # keeps Y4, Y5
        raw = self.path("raw")
        self.run_pipeline(f"{clip(6)} ! filesink location={raw}")
        wanted = self.found_by_run(raw, "GRAY8", (160, 120))["digest"]
        faults = "call=cuMemHostRegister:code=801;call=cuImportExternalMemory:code=801"
        ways = [{}]  # no kernel lets these files pass
        if MACHINE != "cpu":
            ways.append({"LD_PRELOAD": DMA_BUFS, "ISTHMUS_SIM_FAULTS": faults})
        for more in ways:
            with self.subTest(more=more):
                viewer = self.view("--corners")
                text = f"{clip(6)} ! identity name=frames ! " + self.sink("policy=wait viewers=1 viewer-deadline=60000")
                result = self.run_pipeline(text, "--dma-buf", GST_DEBUG="isthmus:6", GST_DEBUG_NO_COLOR="1", **more)
                counts = result["elements"]["isthmussink"]
                self.assertEqual((counts["frames"], counts["copied-frames"], counts["twice-copied-frames"]), (6, 6, 0))
                self.assertEqual(result["stderr"].count("the runtime copied the frame"), 0)
                self.assertEqual(self.end(viewer)["corners"]["digest"], wanted)

    @unittest.skipIf(SANITIZED, "a sanitizer has to be loaded first")
    def test_a_plane_in_two_dma_bufs_is_mapped_and_copied_once(self):  # keeps Y4, Y5
        for form in ("GRAY8", "NV12", "I420"):
            with self.subTest(form=form):
                text = clip(6, form) + " ! identity {} ! " + self.sink("policy=wait viewers=1 viewer-deadline=60000")
                viewer = self.view("--corners")
                self.run_pipeline(text.format("drop-allocation=true"))
                plain = self.end(viewer)
                viewer = self.view("--corners")
                result = self.run_pipeline(text.format("name=frames"), "--dma-buf-halves", LD_PRELOAD=DMA_BUFS,
                                           GST_DEBUG="isthmus:6", GST_DEBUG_NO_COLOR="1")
                counts = result["elements"]["isthmussink"]
                self.assertEqual((counts["frames"], counts["copied-frames"], counts["twice-copied-frames"]), (6, 6, 0))
                self.assertEqual(result["stderr"].count("the runtime copied the frame"), 0)
                viewed = self.end(viewer)
                self.assertEqual(viewed["frames"], 6)
                self.assertEqual(viewed["digest"], plain["digest"])

    @unittest.skipIf(SANITIZED, "a sanitizer has to be loaded first")
    def test_a_dma_buf_that_nobody_can_read_is_an_error_that_says_why(self):  # keeps Y4, Y5
        text = f"{clip(6)} ! identity name=frames ! " + self.sink()
        result = self.run_pipeline(text, "--dma-buf-unreadable", end="error", LD_PRELOAD=DMA_BUFS)
        message, more = result["errors"][0]["message"], result["errors"][0]["more"]
        self.assertIn("cannot be mapped for reading, and the device does not use its memory", message)
        self.assertIn("io-mode=mmap", more)
        self.assertEqual(result["elements"]["isthmussink"]["frames"], 0)

    def test_an_element_that_holds_frames_does_not_stop_the_sink(self):  # keeps Y4
        # A queue holds several frames at a time, and slots are lent one at a time: the others are copied.
        viewer = self.view("--corners")
        result = self.run_pipeline(f"{clip(30)} ! isthmuscorners ! queue max-size-buffers=8 ! "
                                   f"{self.sink('policy=wait viewers=1 viewer-deadline=60000')}")
        counts = result["elements"]["isthmussink"]
        self.assertEqual((counts["frames"], counts["dropped-frames"]), (30, 0))
        viewed = self.end(viewer)
        self.assertEqual((viewed["frames"], viewed["corners"]["digest"]), (30, result["corners"][-1]["clip-digest"]))

    def test_new_caps_make_a_new_ring(self):  # keeps Y4
        viewer = self.view()
        result = self.run_pipeline(
            f"concat name=c ! {self.sink('policy=wait viewers=1 viewer-deadline=60000')} {clip(5)} ! c. "
            f"{clip(7, 'NV12', (96, 64))} ! c.")
        self.assertEqual(result["elements"]["isthmussink"]["frames"], 12)
        viewed = self.end(viewer)
        self.assertEqual((viewed["frames"], viewed["end"]), (5, "closed"))
        self.assertEqual((viewed["input"]["width"], viewed["input"]["format"]), (160, "gray"))

    def test_a_flush_loses_no_slot(self):  # keeps Y4
        result = self.run_pipeline(f"{clip(200)} ! {self.sink('name=counted')}", "--seek-after", "20")
        self.assertTrue(result["sought"])
        counts = result["elements"]["isthmussink"]
        self.assertGreater(counts["frames"], 150)  # but for those on their way when the flush came
        self.assertEqual((counts["dropped-frames"], counts["copied-frames"]), (0, 0))

    def test_a_stopped_viewer_does_not_stop_a_sink_that_drops(self):  # keeps Y4, I6
        producer = self.pipeline(f"{clip(400)} ! {self.sink('policy=drop viewers=1')}")
        viewer = self.begin([ISTHMUS, "view", "--at", self.at, "--json", "--connect-deadline", "60", "--work", "50"])
        result = self.end(producer)
        self.assertEqual((result["end"], result["elements"]["isthmussink"]["frames"]), ("eos", 400))
        viewed = self.end(viewer)
        self.assertEqual(viewed["frames"] + viewed["missed"] + viewed["overtaken"], 400)
        self.assertGreater(viewed["missed"] + viewed["overtaken"], 0)

    def test_a_killed_viewer_stops_nobody(self):  # keeps Y4, I6
        producer = self.pipeline(f"{clip(300)} ! {self.sink('policy=wait viewers=2 viewer-deadline=60000')}")
        doomed = self.view("--work", "60000")  # it has its first frame until it is killed: nobody ends before
        other = self.view("--work", "1")
        self.wait_until_mapped(doomed)
        doomed.kill()
        result = self.end(producer)
        self.assertEqual((result["end"], result["elements"]["isthmussink"]["frames"]), ("eos", 300))
        self.assertEqual((self.end(other)["frames"]), 300)

    def test_a_viewer_that_hangs_is_given_up(self):  # keeps Y4, I6
        producer = self.pipeline(f"{clip(60)} ! {self.sink('policy=wait viewers=1 viewer-deadline=300')}")
        viewer = self.view("--work", "60000")  # not at the end before it is stopped, however late that is
        self.wait_until_mapped(viewer)
        viewer.send_signal(signal.SIGSTOP)
        self.assertEqual(self.end(producer)["elements"]["isthmussink"]["frames"], 60)
        viewer.kill()

    def wait_until_mapped(self, process):
        until = time.monotonic() + DEADLINE_S
        while True:
            with open(f"/proc/{process.pid}/maps", encoding="utf-8") as file:
                if "isthmus-ring" in file.read():
                    return
            self.assertIsNone(process.poll(), "the process ended")
            self.assertLess(time.monotonic(), until)
            time.sleep(0.005)

    def test_an_open_directory_is_refused(self):  # keeps Y4, I4
        os.mkdir(self.at)
        os.chmod(self.at, 0o755)
        result = self.run_pipeline(f"{clip(1)} ! {self.sink()}", end="error")
        self.assertIn(self.at, result["errors"][0]["message"])
        os.chmod(self.at, 0o700)
        self.run_pipeline(f"{clip(1)} ! {self.sink()}")

    def test_frames_without_caps_are_an_error(self):  # keeps Y4
        result = self.run_pipeline(f"fakesrc num-buffers=3 sizetype=fixed sizemax=19200 ! {self.sink()}", end="error")
        self.assertIn("before its caps", result["errors"][0]["message"])
        self.assertEqual(result["elements"]["isthmussink"]["frames"], 0)


class Source(Pipelines):
    def source(self, more=""):
        return f"isthmussrc at={self.at} connect-deadline=60000 {more}"

    def test_frames_arrive_in_place_and_as_they_were_sent(self):  # keeps Y4
        for more, copied in (("", 0), ("copy=true", 12)):
            with self.subTest(more=more):
                reader = self.pipeline(f"{self.source(more)} ! isthmuscorners ! fakesink")
                sent = self.run_pipeline(f"{clip(12, 'I420', (99, 75))} ! isthmuscorners ! isthmussink at={self.at} "
                                         "sync=false policy=wait viewers=1 viewer-deadline=60000")
                got = self.end(reader)
                self.assertEqual(got["end"], "eos", got)
                self.assertEqual([one["digest"] for one in got["corners"]],
                                 [one["digest"] for one in sent["corners"]])
                counts = got["elements"]["isthmussrc"]
                self.assertEqual((counts["frames"], counts["missed-frames"], counts["overtaken-frames"]), (12, 0, 0))
                self.assertEqual(counts["copied-frames"], copied)
                self.assertEqual(got["elements"]["isthmuscorners"]["copied-frames"], 0)

    def test_frames_of_isthmus_share(self):  # keeps Y4
        reader = self.pipeline(f"{self.source()} ! queue ! fakesink sync=false")
        producer = self.begin([ISTHMUS, "share", "--synthetic", "96x64", "--frames", "50", "--at", self.at, "--policy",
                               "wait", "--viewers", "1", "--viewer-deadline", "60", "--json"])
        self.end(producer)
        got = self.end(reader)
        self.assertEqual((got["end"], got["elements"]["isthmussrc"]["frames"]), ("eos", 50), got)

    def test_overwritten_frames_are_counted(self):  # keeps Y4
        reader = self.pipeline(f"{self.source('num-buffers=4')} ! identity sleep-time=60000 ! fakesink sync=false")
        producer = self.begin([ISTHMUS, "share", "--synthetic", "96x64", "--at", self.at, "--slots", "2", "--viewers",
                               "1", "--rate", "500", "--json"])
        counts = self.end(reader)["elements"]["isthmussrc"]
        producer.send_signal(signal.SIGINT)
        self.assertGreater(counts["overtaken-frames"], 0)
        self.assertGreater(counts["missed-frames"], 0)

    def test_a_killed_producer_is_a_typed_error(self):  # keeps Y4, I6
        for policy in ("drop", "wait"):
            with self.subTest(policy=policy):
                producer = self.pipeline(f"videotestsrc is-live=true ! video/x-raw,format=GRAY8,framerate=100/1 ! "
                                         f"isthmussink at={self.at} policy={policy} viewers=1")
                reader = self.pipeline(f"{self.source()} ! isthmuscorners ! fakesink")
                Sink.wait_until_mapped(self, reader)
                producer.kill()
                got = self.end(reader)
                self.assertEqual(got["end"], "error")
                self.assertIn("peer_lost", got["errors"][0]["more"])

    def test_without_a_producer_the_deadline_counts(self):  # keeps Y4
        got = self.run_pipeline(f"isthmussrc at={self.at} connect-deadline=100 ! fakesink", end="error")
        self.assertIn("peer_lost", got["errors"][0]["more"])
        producer = self.begin([ISTHMUS, "share", "--synthetic", "96x64", "--at", self.at, "--viewers", "2"])
        got = self.run_pipeline(f"{self.source('deadline=100')} ! fakesink", end="error")
        self.assertIn("timed_out", got["errors"][0]["more"])
        producer.kill()


class Leaks(Pipelines):
    def traced(self, text, *options):
        result = self.end(self.pipeline(text, *options, GST_TRACERS="leaks", GST_DEBUG="GST_TRACER:7",
                                        GST_DEBUG_NO_COLOR="1"), deadline_s=4 * DEADLINE_S)
        return result, [line for line in result["stderr"].splitlines() if "object-alive, type-name=(string)" in line and "%s" not in line]

    def test_a_thousand_state_changes_leave_nothing(self):  # keeps Y4
        cycles = 170 if MACHINE in ("cpu", "h200") else 20  # of six state changes
        result, left = self.traced(f"{clip(-1)} ! isthmuscorners draw=true ! isthmussink at={self.at}", "--cycles",
                                   str(cycles))
        self.assertEqual((result["end"], result["cycles"]), ("cycles", cycles))
        self.assertEqual(left, [])

    def test_the_source_leaves_nothing(self):  # keeps Y4
        self.begin([ISTHMUS, "share", "--synthetic", "96x64", "--at", self.at, "--rate", "200"])
        until = time.monotonic() + DEADLINE_S
        while not os.path.exists(os.path.join(self.at, "channel")):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)
        result, left = self.traced(f"isthmussrc at={self.at} ! isthmuscorners ! fakesink", "--cycles", "20")
        self.assertEqual(result["end"], "cycles")
        result, left = self.traced(f"isthmussrc at={self.at} num-buffers=20 ! isthmuscorners ! fakesink")
        self.assertEqual((result["end"], left), ("eos", []))

    def test_the_tracer_sees_a_leak(self):  # keeps Y4
        _, left = self.traced(f"{clip(1)} ! isthmuscorners ! fakesink", "--leak")
        self.assertEqual(len(left), 1)


class Inspection(unittest.TestCase):
    @unittest.skipIf(SANITIZED, "gst-inspect-1.0 has no sanitizers, and cannot load a plugin that has them")
    def test_every_property_is_described(self):  # keeps Y4
        for element in ("isthmuscorners", "isthmussink", "isthmussrc"):
            done = subprocess.run(["gst-inspect-1.0", element], env=environment(), capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Long-name", done.stdout)
            for name in ("device", "machine"):
                self.assertRegex(done.stdout, rf"(?m)^  {name} +: \S.{{20}}")
            features = {"isthmussrc": 0}.get(element, 1)
            for feature in ("memory:CUDAMemory", "memory:DMABuf"):
                found = done.stdout.count(f"video/x-raw({feature})")
                self.assertEqual(found, features * (2 if element == "isthmuscorners" else 1), done.stdout)
        missing = subprocess.run(["gst-inspect-1.0", "isthmusnothing"], env=environment(), capture_output=True)
        self.assertNotEqual(missing.returncode, 0)


def exists(element):
    """Whether GStreamer itself has the element."""
    alone = environment(GST_PLUGIN_PATH_1_0="", GST_REGISTRY_1_0=os.path.join(SCRATCH, "without.bin"))
    return subprocess.run(["gst-inspect-1.0", "--exists", element], env=alone).returncode == 0


def what_is_missing():
    if shutil.which("gst-inspect-1.0") is None:
        return "gst-inspect-1.0 is missing: apt-get install gstreamer1.0-tools"
    for element in ("videotestsrc", "tee", "identity"):
        if not exists(element):
            return f"GStreamer's {element} is missing: apt-get install gstreamer1.0-plugins-base"
    return ""


if __name__ == "__main__":
    missing = what_is_missing()
    if missing:
        print(missing)
        sys.exit(SKIPPED)
    try:
        unittest.main(argv=[sys.argv[0], *sys.argv[6:]])
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)
