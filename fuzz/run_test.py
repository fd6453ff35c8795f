#!/usr/bin/env python3
"""Tests run.py with programs that act as libFuzzer does, in a folder of their own."""
import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

import run

# Runs as often as it may. With -merge=1 it copies each file with a new first letter into the first folder, small ones first.
PROGRAM = f"""#!{sys.executable}
import hashlib, pathlib, sys
options = dict(one[1:].split("=", 1) for one in sys.argv[1:] if one.startswith("-"))
folders = [pathlib.Path(one) for one in sys.argv[1:] if not one.startswith("-")]
if "merge" in options:
    into, others = folders[0], folders[1:]
    reached = {{path.read_bytes()[:1] for path in into.iterdir()}}
    files = sorted((path for folder in others for path in folder.iterdir()), key=lambda path: path.stat().st_size)
    for path in files:
        if path.read_bytes()[:1] not in reached:
            reached.add(path.read_bytes()[:1])
            (into / hashlib.sha1(path.read_bytes()).hexdigest()).write_bytes(path.read_bytes())
else:
    for text in FOUND:
        (folders[0] / hashlib.sha1(text).hexdigest()).write_bytes(text)
    print("#2 INITED cov: 7 ft: 9 ")
    print("stat::number_of_executed_units:", options.get("runs", "5"))
"""


class Runs(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place, before = Path(place.name), run.HERE
        run.HERE = self.place
        self.addCleanup(lambda: setattr(run, "HERE", before))
        seeds = self.place / "corpus" / "name_uri"
        seeds.mkdir(parents=True)
        (seeds / "a-seed").write_bytes(b"a")

    def fuzz(self, found: list[bytes], executions: int | None = 10) -> tuple[run.Result, str]:
        program = self.place / "name_uri"
        program.write_text(PROGRAM.replace("FOUND", repr(found)))
        program.chmod(0o755)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            result = run.fuzz("name_uri", program, 60, executions)
        return result, printed.getvalue()

    def corpus(self) -> set[bytes]:
        return {path.read_bytes() for path in (self.place / "corpus" / "name_uri").iterdir()}

    def test_inputs_are_counted_and_what_reaches_more_is_kept(self):
        result, printed = self.fuzz([b"a long one", b"b", b"b too", b"c"])
        self.assertEqual((result.is_passed, result.inputs), (True, 10))
        self.assertIn("ok     name_uri: 10 inputs", printed)
        self.assertIn("7 edges reached; 2 of 2 kept beside 1 seeds", printed)
        self.assertEqual(self.corpus(), {b"a", b"b", b"c"})
        # A smaller input takes the place of what was found before; the seed stays.
        (self.place / "corpus" / "name_uri" / ("f" * 40)).write_bytes(b"d, but long")
        self.fuzz([b"d"])
        self.assertEqual(self.corpus(), {b"a", b"b", b"c", b"d"})

    def test_a_run_of_some_seconds_keeps_nothing(self):
        result, _ = self.fuzz([b"b"], None)
        self.assertEqual((result.inputs, self.corpus()), (5, {b"a"}))

    def test_what_is_kept_is_small(self):
        before, run.KEPT_INPUTS_MAX = run.KEPT_INPUTS_MAX, 2
        self.addCleanup(lambda: setattr(run, "KEPT_INPUTS_MAX", before))
        self.fuzz([b"bbb", b"cc", b"d"])
        self.assertEqual(self.corpus(), {b"a", b"cc", b"d"})


class Plans(unittest.TestCase):
    def test_parsers_share_the_inputs_and_engines_get_a_hundredth_each(self):
        inputs = run.allotted(1_000_001, ["name_uri", "lp_packet", "engine_frames", "router_sockets"])
        self.assertEqual(inputs, {"name_uri": 500_001, "lp_packet": 500_001, "engine_frames": 10_000,
                                  "router_sockets": 10_000})
        self.assertTrue(set(run.targets()) >= run.SLOW_TARGETS)

    def test_all_end_in_one_night(self):
        limits = run.night(10, 2, run.targets())
        self.assertLessEqual(sum(limits.values()), 2 * 36_000)
        self.assertEqual(limits["name_uri"] // limits["engine_frames"], 3)
        self.assertEqual(run.night(10, 2, ["name_uri"]), {"name_uri": 36_000})

    def test_too_few_inputs_of_parsers_are_no_success(self):
        results = [run.Result("name_uri", True, 1_500), run.Result("engine_frames", True, 7)]
        self.assertEqual(run.summary(results, 1_500),
                         ("1,500 inputs of parsers; 7 of engines, tables and links\n2 targets passed, 0 failed", True))
        text, is_enough = run.summary(results, 1_501)
        self.assertIn("too few", text)
        self.assertFalse(is_enough)
        self.assertFalse(run.summary([run.Result("name_uri", False)], None)[1])


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
