#!/usr/bin/env python3
"""Runs the test programs of the workspace, some at a time.

`cargo test` runs one program after the other, and many of them wait for routers most of the time: on two processors the
programs took 1,728 s one by one. Here JOBS run at a time, the largest first, because these are the slowest. What a
program prints is shown when it ends: a line if its tests passed, all of it if not. Documentation tests come last.

    tools/run_tests.py [--jobs N] [options of `cargo test`, for example --features x --package y]

Exit status 1: a test failed, or did not compile. A failing program does not hide what the programs after it say.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time


def compiled(options):
    """The test programs: (folder of the package, name of the test, program)."""
    command = ["cargo", "test", "--no-run", "--message-format=json-render-diagnostics", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(1)
    programs = []
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            folder = pathlib.Path(message["manifest_path"]).parent
            programs.append((folder, f'{folder.name}, {message["target"]["name"]}', message["executable"]))
    return programs


def run(program):
    """Runs one program in its package's folder, as cargo does: (passed, what to print)."""
    folder, name, path = program
    began = time.monotonic()
    environment = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
    done = subprocess.run([path], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = done.stdout.decode(errors="replace")
    results = [line for line in output.splitlines() if line.startswith("test result:")]
    result = results[-1].removeprefix("test result: ").split("; finished")[0] if results else "no result"
    line = f"{name}: {result}, {time.monotonic() - began:.0f} s"
    if done.returncode == 0:
        return True, line
    return False, f"{output}\n{line} (exit status {done.returncode})"


def main():
    options = sys.argv[1:]
    jobs = 2
    if options[:1] == ["--jobs"]:
        jobs, options = int(options[1]), options[2:]
    programs = sorted(compiled(options), key=lambda program: -os.path.getsize(program[2]))
    failed = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(run, program): program for program in programs}
        for ended in concurrent.futures.as_completed(running):
            passed, text = ended.result()
            print(text, flush=True)
            if not passed:
                failed.append(running[ended][1])
    if subprocess.run(["cargo", "test", "--doc", "--no-fail-fast", *options]).returncode != 0:
        failed.append("documentation")
    print(f"{len(programs)} programs, {len(failed)} failed" + "".join(f"\n  {name}" for name in failed))
    sys.exit(1 if failed else 0)


main()
