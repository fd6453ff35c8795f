#!/usr/bin/env python3
"""Builds and runs the fuzz targets with libFuzzer on stable Rust, without cargo-fuzz.

    fuzz/run.py --seconds 20            every target for that long
    fuzz/run.py --seconds 600 nfd_tlv   one target
    fuzz/run.py --executions 1000000    that many inputs in sum, most for parsers; then corpus-grown
                                        keeps one input for each thing that inputs reach
    fuzz/run.py --build                 build only

Seeds are in corpus/TARGET (made by make_seeds.py, committed). New inputs of a run go to
corpus-grown/TARGET, inputs that break a target to artifacts/TARGET; git ignores both. To
repeat a finding, run the printed binary with the file as its only argument.

As many targets run at a time as this process may use processors.

Limits: inputs of at most INPUT_BYTES_MAX, 1 GiB of memory for each target, 5 s for one input.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
INPUT_BYTES_MAX = 9000  # a little over the largest packet, so that inputs reach that limit
MEMORY_MIB_MAX = 1024
INPUT_SECONDS_MAX = 5
START_SECONDS_MAX = 60
LOG_LINES_MAX = 60  # of a failed run
LONG_SECONDS_MAX = 24 * 3600  # of one target with a number of inputs
# Targets that run whole engines, tables or links: a hundredth of the inputs each. The rest is for parsers.
SLOW_TARGETS = frozenset({
    "dead_nonce_list_operations", "engine_frames", "fib_designs", "fib_operations", "fingerprint_pit_operations",
    "keys", "link_service", "management_interest", "pit_cs_operations", "prefix_index_operations", "reliability",
    "repo_command", "router_sockets", "subset_tables", "tag_routing", "timer_wheel_operations",
})
SLOW_PART = 100
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


def allotted(executions: int, chosen: list[str]) -> dict[str, int]:
    """How many inputs each target gets."""
    slow = [target for target in chosen if target in SLOW_TARGETS]
    fast = [target for target in chosen if target not in SLOW_TARGETS]
    for_slow = executions // SLOW_PART if fast else executions // max(len(slow), 1)
    for_fast = (executions - for_slow * len(slow)) // max(len(fast), 1)
    return {target: max(1, for_slow if target in SLOW_TARGETS else for_fast) for target in chosen}


def minimise(target: str, binary: Path) -> None:
    """Replaces the grown corpus by a part of it that reaches as much."""
    grown = HERE / "corpus-grown" / target
    with tempfile.TemporaryDirectory(dir=grown.parent) as smaller:
        done = subprocess.run([str(binary), "-merge=1", smaller, str(grown)], capture_output=True, check=False)
        if done.returncode == 0:
            for former in grown.iterdir():
                former.unlink()
            for kept in Path(smaller).iterdir():
                kept.rename(grown / kept.name)


def fuzz(target: str, binary: Path, seconds: int, executions: int | None = None) -> bool:
    """Runs one target; prints one line if it passed, else the end of its log."""
    limit = f"-max_total_time={seconds}" if executions is None else f"-runs={executions}"
    grown, seeds, artifacts = (HERE / place / target for place in ("corpus-grown", "corpus", "artifacts"))
    for directory in (grown, seeds, artifacts):
        directory.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        done = subprocess.run([
            str(binary), str(grown), str(seeds), f"-artifact_prefix={artifacts}/",
            limit, f"-max_len={INPUT_BYTES_MAX}", f"-rss_limit_mb={MEMORY_MIB_MAX}",
            f"-timeout={INPUT_SECONDS_MAX}", "-print_final_stats=1", "-use_value_profile=0",
        ], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            timeout=seconds + START_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        print(f"FAILED {target}: still running {START_SECONDS_MAX} s after its time limit", flush=True)
        return False
    if done.returncode != 0:
        log = done.stdout.splitlines()[-LOG_LINES_MAX:]
        print("\n".join([*log, f"FAILED {target}: repeat with {binary} FILE"]), flush=True)
        return False
    runs = next((line.split()[-1] for line in done.stdout.splitlines() if "number_of_executed_units" in line), "?")
    if runs in ("?", "0"):
        print(f"{done.stdout}\nFAILED {target}: no input was tried", flush=True)
        return False
    reached = re.findall(r" cov: (\d+) ", done.stdout)
    edges = f", {reached[-1]} edges reached" if reached else ""
    print(f"ok     {target}: {runs} inputs in {time.monotonic() - began:.0f} s{edges}", flush=True)
    if executions is not None:
        minimise(target, binary)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the fuzz targets; see the head of this file.")
    parser.add_argument("--seconds", type=int, default=20, help="seconds for each target")
    parser.add_argument("--executions", type=int, help="inputs of all targets in sum, instead of seconds")
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
    seconds = args.seconds if args.executions is None else LONG_SECONDS_MAX
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(lambda target: fuzz(target, binaries / target, seconds, quotas.get(target)), chosen))
    print(f"{sum(results)} targets passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
