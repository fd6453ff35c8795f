#!/usr/bin/env python3
"""Writes the list of the crates in the program (SBOM, CycloneDX as JSON), and checks it against cargo.

Usage: sbom.py OUTPUT.json FOLDER [TARGET]. cargo-cyclonedx writes a file beside every manifest of a workspace, and paths
of this machine into it: so it runs in a copy of the sources in FOLDER, and the paths go. So do the time and the random
number, because the same sources shall give the same list. Run it by `make sbom`.
"""
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / ".tools/bin/cargo-cyclonedx"
SOURCES = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "crates", "sim", "lab"]
PROGRAM = "namewire-cli"
FILE = "namewire.cdx"


def host() -> str:
    said = subprocess.run(["rustc", "--version", "--verbose"], check=True, stdout=subprocess.PIPE, text=True)
    return next(line.removeprefix("host: ") for line in said.stdout.splitlines() if line.startswith("host: "))


def describe(folder: Path, target: str) -> dict:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for source in SOURCES:
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
        copy(ROOT / source, folder / source)
    subprocess.run([TOOL, "cyclonedx", "-qq", "--format", "json", "--spec-version", "1.5", "--target", target,
                    "--override-filename", FILE], cwd=folder, check=True)
    described = next(folder.glob(f"crates/cli/{FILE}*")).read_text()
    shutil.rmtree(folder)
    return json.loads(described.replace(f"{folder}/", "").replace(str(folder), ""))


def linked(target: str) -> set[tuple[str, str]]:
    """Name and version of each crate whose code is in the program, as cargo resolves them."""
    command = ["cargo", "tree", "--locked", "--package", PROGRAM, "--edges", "normal", "--target", target,
               "--prefix", "none", "--format", "{p}"]
    said = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    lines = {tuple(line.split()[:2]) for line in said.stdout.splitlines() if line.strip()}
    return {(name, version.removeprefix("v")) for name, version in lines} - {of_program()}


def of_program() -> tuple[str, str]:
    return PROGRAM, tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def main() -> None:
    output, folder = (Path(argument).resolve() for argument in sys.argv[1:3])
    target = sys.argv[3] if len(sys.argv) > 3 else host()
    sbom = describe(folder, target)
    # With SOURCE_DATE_EPOCH, the tool leaves the number out itself.
    sbom.pop("serialNumber", None)
    sbom["metadata"].pop("timestamp", None)
    component = sbom["metadata"]["component"]
    assert (component["name"], component["version"]) == of_program(), component
    listed = {(crate["name"], crate["version"]) for crate in sbom["components"]}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    locked = {(crate["name"], crate["version"]) for crate in lock["package"]}
    needed = linked(target)
    assert needed and needed <= listed, f"crates of the program that are not listed: {sorted(needed - listed)}"
    assert listed <= locked, f"crates that Cargo.lock does not have: {sorted(listed - locked)}"
    without = [crate["name"] for crate in sbom["components"] if not crate.get("licenses")]
    assert not without, f"crates without a licence: {without}"
    text = json.dumps(sbom, indent=1) + "\n"
    assert str(Path.home()) not in text and str(ROOT) not in text, "it names places of this machine"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text)
    print(f"{os.path.relpath(output)}: {len(listed)} crates, {len(needed)} of them in the program, the others build it")


main()
