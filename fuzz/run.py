#!/usr/bin/env python3
"""Builds and runs the fuzz targets with libFuzzer on stable Rust, without cargo-fuzz.

    fuzz/run.py --seconds 20            every target for that long
    fuzz/run.py --seconds 600 nfd_tlv   one target
    fuzz/run.py --executions 1000000    that many inputs of parsers in sum, and a hundredth of
                                        that for each other target, within --hours; then
                                        corpus/TARGET keeps what reaches more than its seeds do
    fuzz/run.py --build                 build only

Seeds are in corpus/TARGET (made by make_seeds.py, committed). New inputs of a run go to
corpus-grown/TARGET, inputs that break a target to artifacts/TARGET; git ignores both. To
repeat a finding, run the printed binary with the file as its only argument. A file in
corpus/TARGET with a name of 40 hexadecimal digits was found by a run: the next run with
--executions chooses those files anew, at most KEPT_INPUTS_MAX, the smallest first.

As many targets run at a time as this process may use processors.

Limits: inputs of at most INPUT_BYTES_MAX, 1 GiB of memory for each target, 5 s for one input.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
INPUT_BYTES_MAX = 9000  # a little over the largest packet, so that inputs reach that limit
MEMORY_MIB_MAX = 1024
INPUT_SECONDS_MAX = 5
START_SECONDS_MAX = 60
LOG_LINES_MAX = 60  # of a failed run
KEPT_INPUTS_MAX = 300  # of one target, beside its seeds
FOUND_NAME = re.compile(r"[0-9a-f]{40}")  # as libFuzzer names what it found
# Targets that run whole engines, tables or links: a hundredth of the inputs each. The others are parsers.
SLOW_TARGETS = frozenset({
    "dead_nonce_list_operations", "engine_frames", "fib_designs", "fib_operations", "fingerprint_pit_operations",
    "keys", "link_service", "management_interest", "pit_cs_operations", "prefix_index_operations", "reliability",
    "repo_command", "revocation", "router_sockets", "subset_tables", "tag_routing", "timer_wheel_operations",
})
SLOW_PART = 100
PARSER_WEIGHT = 3  # in time
# The instrumentation for libFuzzer; the flags are LLVM's and need no nightly compiler.
COVERAGE_FLAGS = " ".join([
    "--cfg fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
])


def targets() -> list[str]:
    manifest = tomllib.loads((HERE / "Cargo.toml").read_text())
    return [target["name"] for target in manifest["bin"]]


def host_triple() -> str:
    text = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True, cwd=HERE).stdout
    return next(line.split()[1] for line in text.splitlines() if line.startswith("host:"))


def build(triple: str, target_dir: Path) -> Path:
    # With an explicit --target the flags do not apply to build scripts, which have no fuzzing engine.
    env = dict(os.environ, RUSTFLAGS=COVERAGE_FLAGS, CARGO_TARGET_DIR=str(target_dir))
    subprocess.run(["cargo", "build", "--release", "--locked", "--target", triple], check=True, cwd=HERE, env=env)
    return target_dir / triple / "release"


@dataclass
class Result:
    """What came of one target."""
    target: str
    is_passed: bool
    inputs: int = 0

    @property
    def is_slow(self) -> bool:
        return self.target in SLOW_TARGETS


def allotted(executions: int, chosen: list[str]) -> dict[str, int]:
    """How many inputs each target gets. Those of parsers are `executions` in sum, if there is a parser."""
    slow = [target for target in chosen if target in SLOW_TARGETS]
    fast = [target for target in chosen if target not in SLOW_TARGETS]
    for_slow = executions // SLOW_PART if fast else executions // max(len(slow), 1)
    for_fast = -(-executions // max(len(fast), 1))
    return {target: max(1, for_slow if target in SLOW_TARGETS else for_fast) for target in chosen}


def night(hours: float, at_once: int, chosen: list[str]) -> dict[str, int]:
    """Most seconds of each target, so that all end in time: a parser, which should reach its number, has more."""
    weights = {target: 1 if target in SLOW_TARGETS else PARSER_WEIGHT for target in chosen}
    second = hours * 3600 * at_once / sum(weights.values())
    return {target: max(1, int(min(weight * second, hours * 3600))) for target, weight in weights.items()}


def keep(target: str, binary: Path) -> str:
    """Replaces what earlier runs have put beside the seeds by what reaches more than the seeds do, now. Says how many."""
    grown, corpus = HERE / "corpus-grown" / target, HERE / "corpus" / target
    with tempfile.TemporaryDirectory(dir=grown.parent) as place:
        seeds, found = Path(place) / "seeds", Path(place) / "found"
        seeds.mkdir()
        found.mkdir()
        former = [path for path in corpus.iterdir() if FOUND_NAME.fullmatch(path.name)]
        for path in corpus.iterdir():
            shutil.copy(path, (found if path in former else seeds) / path.name)
        names = {path.name for path in seeds.iterdir()}
        done = subprocess.run([str(binary), "-merge=1", str(seeds), str(found), str(grown)], capture_output=True,
                              check=False)
        if done.returncode != 0:
            return "; the corpus stays, because merging failed"
        new = sorted((path for path in seeds.iterdir() if path.name not in names),
                     key=lambda path: (path.stat().st_size, path.name))
        for path in former:
            path.unlink()
        for path in new[:KEPT_INPUTS_MAX]:
            shutil.copy(path, corpus / path.name)
        for path in grown.iterdir():
            path.unlink()
        for path in new:
            shutil.move(path, grown / path.name)
    return f"; {min(len(new), KEPT_INPUTS_MAX)} of {len(new)} kept beside {len(names)} seeds"


def fuzz(target: str, binary: Path, seconds: int, executions: int | None = None) -> Result:
    """Runs one target, until the time or the number of inputs is reached; prints one line if it passed, else the end of
    its log."""
    limits = [f"-max_total_time={seconds}"] + ([] if executions is None else [f"-runs={executions}"])
    grown, seeds, artifacts = (HERE / place / target for place in ("corpus-grown", "corpus", "artifacts"))
    for directory in (grown, seeds, artifacts):
        directory.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        done = subprocess.run([
            str(binary), str(grown), str(seeds), f"-artifact_prefix={artifacts}/",
            *limits, f"-max_len={INPUT_BYTES_MAX}", f"-rss_limit_mb={MEMORY_MIB_MAX}",
            f"-timeout={INPUT_SECONDS_MAX}", "-print_final_stats=1", "-use_value_profile=0",
        ], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            timeout=seconds + START_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        print(f"FAILED {target}: still running {START_SECONDS_MAX} s after its time limit", flush=True)
        return Result(target, False)
    if done.returncode != 0:
        log = done.stdout.splitlines()[-LOG_LINES_MAX:]
        print("\n".join([*log, f"FAILED {target}: repeat with {binary} FILE"]), flush=True)
        return Result(target, False)
    runs = next((line.split()[-1] for line in done.stdout.splitlines() if "number_of_executed_units" in line), "?")
    if runs in ("?", "0"):
        print(f"{done.stdout}\nFAILED {target}: no input was tried", flush=True)
        return Result(target, False)
    reached = re.findall(r" cov: (\d+) ", done.stdout)
    edges = f", {reached[-1]} edges reached" if reached else ""
    kept = keep(target, binary) if executions is not None else ""
    print(f"ok     {target}: {int(runs):,} inputs in {time.monotonic() - began:.0f} s{edges}{kept}", flush=True)
    return Result(target, True, int(runs))


def summary(results: list[Result], executions: int | None) -> tuple[str, bool]:
    """What all targets did, and whether it is enough."""
    inputs_of = lambda is_slow: sum(result.inputs for result in results if result.is_slow == is_slow)
    passed = sum(result.is_passed for result in results)
    lines = [f"{inputs_of(False):,} inputs of parsers; {inputs_of(True):,} of engines, tables and links"]
    is_enough = passed == len(results)
    if executions is not None and any(not result.is_slow for result in results) and inputs_of(False) < executions:
        lines.append(f"too few: {executions:,} inputs of parsers were asked for; give more --hours")
        is_enough = False
    lines.append(f"{passed} targets passed, {len(results) - passed} failed")
    return "\n".join(lines), is_enough


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the fuzz targets; see the head of this file.")
    parser.add_argument("--seconds", type=int, default=20, help="seconds for each target")
    parser.add_argument("--executions", type=int, help="inputs of all parsers in sum, instead of seconds")
    parser.add_argument("--hours", type=float, default=10, help="time for all targets together, with --executions")
    parser.add_argument("--build", action="store_true", help="only build")
    parser.add_argument("targets", nargs="*", help="targets to run (default: all)")
    args = parser.parse_args()
    unknown = set(args.targets) - set(targets())
    if unknown:
        parser.error(f"unknown target {', '.join(sorted(unknown))}; there are {', '.join(targets())}")
    if args.seconds < 1:
        parser.error("--seconds must be 1 or more")
    binaries = build(host_triple(), Path(os.environ.get("FUZZ_TARGET_DIR", HERE / "target")))
    if args.build:
        return 0
    chosen = args.targets or targets()
    quotas = {} if args.executions is None else allotted(args.executions, chosen)
    at_once = len(os.sched_getaffinity(0))
    limits = dict.fromkeys(chosen, args.seconds) if args.executions is None else night(args.hours, at_once, chosen)
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        results = list(pool.map(lambda target: fuzz(target, binaries / target, limits[target], quotas.get(target)),
                                chosen))
    text, is_enough = summary(results, args.executions)
    print(text)
    return 0 if is_enough else 1


if __name__ == "__main__":
    sys.exit(main())
