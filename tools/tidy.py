#!/usr/bin/env python3
"""House rules that a program can check. `tools/tidy.py --self-test` tests the checks.

1. Documents: every relative link and every path in backticks exists; a backticked
   `crate::item` or `Type::item` names something that is defined in the sources;
   a backticked `path/file.rs::name` names a test of that file.
2. `unsafe` stands only in the files listed in ARCHITECTURE.md, and every file
   listed there has some.
3. Crates use each other only along the arrows in ARROWS.
4. No file has a name that says nothing (BANNED_NAMES).
5. Nothing in the repository names the machine it was written on.
6. A source file over LINES_WARN lines is mentioned, without failing.

Only files that git tracks or would add are looked at. Exit status 1 if a rule is broken.
"""
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

LINES_WARN = 700
BANNED_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "misc"}
UNSAFE_HEADING = "Files that may contain `unsafe`"
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/**/*.md"]

# Who may use whom (ARCHITECTURE.md, the rooms). Tests and benches (dev-dependencies) may use more,
# but nothing may use what stands at the top of the house.
ARROWS = {
    "packet": set(),
    "tables": {"packet"},
    "engine": {"packet", "tables"},
    "faces": {"packet", "afxdp", "dpdk"},
    "afxdp": set(),
    "dpdk": set(),
    "security": {"packet"},
    "management": {"packet", "tables", "engine", "security"},
    "client": {"packet", "security"},
    "tagnet": {"packet"},
    "repo": {"packet", "client"},
    "router": {"packet", "tables", "engine", "faces", "management", "security", "tagnet"},
    "cli": {"packet", "router", "client", "repo", "security", "tagnet"},
    "sim": {"packet", "tables", "engine", "management", "faces"},
}
MAY_USE_EVERYTHING = {"lab", "fuzz", "router-loom", "tables-loom"}
NOTHING_USES = {"lab", "fuzz", "router-loom", "tables-loom", "cli"}


def repository_files(root: Path) -> list[Path]:
    """Files of the repository, relative to `root`."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=root, capture_output=True)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
        return [Path(name) for name in names if (root / name).is_file()]
    # A source archive has no git: everything but build output.
    skipped = {"target", "node_modules", ".venv", ".git", "artifacts", "corpus-grown", ".toolchain"}
    return [path.relative_to(root) for path in root.rglob("*")
            if path.is_file() and not skipped & set(path.relative_to(root).parts)]


# --- 1. documents ---------------------------------------------------------------------------

FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
BACKTICKED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PATH_END = r"(?:\.(?:rs|md|toml|py|sh|mjs|json|txt|lock)|/)"
LOOKS_LIKE_PATH = re.compile(rf"^(?:[A-Za-z0-9_.-]+/)*[A-Za-z0-9_.-]*{PATH_END}$|^(?:[a-z0-9_.-]+/)+[A-Za-z0-9_.-]+$")
LOOKS_LIKE_ITEM = re.compile(r"^(?:[A-Za-z_][A-Za-z0-9_]*::)+([A-Za-z_][A-Za-z0-9_]*)(?:\(\))?$|^([A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+)$")
DEFINITION = r"\b(?:fn|struct|enum|trait|mod|const|static|type|union|macro_rules!)\s+{0}\b|^\s*{0}\s*(?:[,({{=]|$)|^\s*(?:pub(?:\([a-z]+\))?\s+)?{0}\s*:"
# `module/verb` of the management protocol, which is no path.
LOOKS_LIKE_COMMAND = re.compile(r"^(?:faces|fib|rib|cs|strategy-choice|status)/[a-z-]+$")
# A test: the path of its file from the root, and its name.
LOOKS_LIKE_TEST = re.compile(r"^((?:[A-Za-z0-9_.-]+/)+[A-Za-z0-9_.-]+\.rs)::([a-z0-9_]+)$")
TEST = r"#\[(?:tokio::)?test[^\n]*\]\s*(?:#\[[^\n]*\]\s*|//[^\n]*\n\s*)*(?:async\s+)?fn\s+{0}\b"
# Words of the protocol in the CamelCase of the specifications, and what documents quote from elsewhere.
NOT_OURS = {"std", "core", "alloc", "tokio"}


def check_documents(root: Path, files: list[Path]) -> list[str]:
    problems = []
    file_set = set(files)
    directories = {parent for path in files for parent in path.parents}
    names = {path.name for path in files}
    sources = None
    for document in sorted({path for pattern in DOCUMENTS for path in root.glob(pattern)}):
        here = document.relative_to(root)
        if here not in file_set:
            continue
        text = document.read_text()
        prose = FENCE.sub("", text)
        for target in LINK.findall(prose):
            path = target.split("#")[0]
            if "://" in target or target.startswith("mailto:") or not path:
                continue
            if not (document.parent / path).exists():
                problems.append(f"{here}: link to {target}, which does not exist")
        for quoted in BACKTICKED.findall(prose):
            test = LOOKS_LIKE_TEST.match(quoted)
            if test:
                path, name = Path(test.group(1)), test.group(2)
                if path not in file_set or not re.search(TEST.format(name), (root / path).read_text()):
                    problems.append(f"{here}: names the test `{quoted}`, which does not exist")
                continue
            if LOOKS_LIKE_PATH.match(quoted):
                if not LOOKS_LIKE_COMMAND.match(quoted) and not names_a_path(quoted, here, file_set, directories, names):
                    problems.append(f"{here}: names `{quoted}`, which does not exist")
                continue
            item = LOOKS_LIKE_ITEM.match(quoted)
            if item and "::" in quoted and quoted.split("::")[0] not in NOT_OURS:
                if sources is None:
                    sources = "\n".join((root / path).read_text(errors="replace") for path in files if path.suffix == ".rs")
                name = item.group(1)
                if not re.search(DEFINITION.format(re.escape(name)), sources, re.MULTILINE):
                    problems.append(f"{here}: names `{quoted}`, but nothing defines {name}")
    return problems


def names_a_path(quoted: str, here: Path, files: set[Path], directories: set[Path], names: set[str]) -> bool:
    """True if `quoted` is a file or directory, from the root, from the document, or a bare file name somewhere."""
    if quoted.startswith("target/") or quoted.startswith("/") or quoted.startswith("~"):
        return True  # build output and system paths are not ours to check
    stripped = Path(quoted.rstrip("/"))
    if "/" not in quoted.rstrip("/"):
        return quoted in names or stripped in directories or any(d.name == quoted.rstrip("/") for d in directories)
    return any(place in files or place in directories for place in (stripped, here.parent / stripped)) or any(
        path.parts[-len(stripped.parts):] == stripped.parts for path in files | directories)


# --- 2. unsafe ------------------------------------------------------------------------------

UNSAFE_CODE = re.compile(r"\bunsafe\s*(?:\{|fn\b|impl\b|trait\b|extern\b)")


def without_comments_and_text(source: str) -> str:
    """Rust source with comments and string literals blanked, well enough for a word search."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|"(?:\\.|[^"\\])*"|\'(?:\\.[^\']*|[^\'\\])\'', re.DOTALL)
    return pattern.sub(lambda match: '""' if match.group(0)[0] in "\"r" else " ", source)


def unsafe_allow_list(architecture: str) -> set[Path] | None:
    """The backticked .rs paths in the section with UNSAFE_HEADING; None if there is no such section."""
    section = re.search(rf"^(#+)\s*(?:[\d.]+\s*)?{re.escape(UNSAFE_HEADING)}\s*$(.*?)(?=^#{{1,6}}\s|\Z)",
                        architecture, re.MULTILINE | re.DOTALL)
    if section is None:
        return None
    return {Path(quoted) for quoted in BACKTICKED.findall(section.group(2)) if quoted.endswith(".rs")}


def check_unsafe(root: Path, files: list[Path]) -> list[str]:
    architecture = root / "ARCHITECTURE.md"
    allowed = unsafe_allow_list(architecture.read_text()) if architecture.exists() else None
    if allowed is None:
        return [f"ARCHITECTURE.md: has no section \"{UNSAFE_HEADING}\""]
    found = {path for path in files if path.suffix == ".rs"
             and UNSAFE_CODE.search(without_comments_and_text((root / path).read_text(errors="replace")))}
    problems = [f"{path}: contains `unsafe` but is not listed in ARCHITECTURE.md" for path in sorted(found - allowed)]
    return problems + [f"ARCHITECTURE.md: lists {path}, which contains no `unsafe`" for path in sorted(allowed - found)]


# --- 3. crate arrows ------------------------------------------------------------------------

def ours(dependencies: dict) -> set[str]:
    return {name.removeprefix("namewire-") for name in dependencies if name.startswith("namewire-")}


def check_arrows(root: Path, files: list[Path]) -> list[str]:
    problems = []
    for path in files:
        if path.name != "Cargo.toml":
            continue
        manifest = tomllib.loads((root / path).read_text())
        package = manifest.get("package", {}).get("name", "")
        if not package.startswith("namewire-"):
            continue
        crate = package.removeprefix("namewire-")
        tables = [manifest] + list(manifest.get("target", {}).values())
        used = set().union(*(ours(table.get(kind, {})) for table in tables
                             for kind in ("dependencies", "build-dependencies")))
        tested_with = set().union(*(ours(table.get("dev-dependencies", {})) for table in tables))
        if crate in MAY_USE_EVERYTHING:
            allowed = used
        elif crate in ARROWS:
            allowed = ARROWS[crate]
        else:
            problems.append(f"{path}: crate {crate} has no arrows in tools/tidy.py")
            continue
        problems += [f"{path}: {crate} may not use {other}" for other in sorted(used - allowed)]
        problems += [f"{path}: nothing uses {other}" for other in sorted((used | tested_with) & NOTHING_USES)]
    return problems


# --- 4., 5., 6. files -----------------------------------------------------------------------

# Written in pieces, so that this file passes its own check.
MACHINE_PATH = re.compile(r"(?<![\w.])/" + r"work/|/tmp/" + r"nw\b|\.\./" + r"shared/")
TEXT_SUFFIXES = {".rs", ".md", ".toml", ".py", ".sh", ".mjs", ".yml", ".service", ""}


def check_files(root: Path, files: list[Path]) -> list[str]:
    problems = []
    for path in files:
        for part in path.parts:
            words = re.split(r"[-_.]", part.lower())
            if BANNED_NAMES & set(words):
                problems.append(f"{path}: the name says nothing ({', '.join(sorted(BANNED_NAMES & set(words)))})")
                break
        if path.suffix in TEXT_SUFFIXES and "corpus" not in path.parts:
            text = (root / path).read_bytes().decode(errors="replace")
            found = MACHINE_PATH.search(text)
            if found:
                line = text.count("\n", 0, found.start()) + 1
                problems.append(f"{path}:{line}: names a place outside the repository ({found.group(0)})")
    return problems


def long_files(root: Path, files: list[Path]) -> list[str]:
    counted = [(len((root / path).read_text(errors="replace").splitlines()), path)
               for path in files if path.suffix in {".rs", ".py", ".mjs"}]
    return [f"{path}: {lines} lines" for lines, path in sorted(counted, reverse=True) if lines > LINES_WARN]


def check_all(root: Path) -> list[str]:
    files = repository_files(root)
    return (check_documents(root, files) + check_unsafe(root, files)
            + check_arrows(root, files) + check_files(root, files))


# --- tests of the checks --------------------------------------------------------------------

class Checks(unittest.TestCase):
    """Each rule passes a tidy repository and catches one that breaks it."""

    def problems(self, change: dict[str, str]) -> list[str]:
        tidy = {
            "README.md": "See [the plan](ARCHITECTURE.md#rooms), `crates/engine/src/pit.rs` and `pit::Entry`.\n",
            "ARCHITECTURE.md": f"# Rooms\n\n## {UNSAFE_HEADING}\n\n- `crates/engine/src/ring.rs`\n\n## Next\n",
            "crates/engine/src/pit.rs": "//! No unsafe { here }.\npub struct Entry; const A: &str = \"unsafe { }\";\n",
            "crates/engine/src/ring.rs": "fn f() { unsafe { g() } }\n",
            "crates/engine/Cargo.toml": '[package]\nname = "namewire-engine"\n[dependencies]\nnamewire-packet = {}\n',
        }
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            for name, text in (tidy | change).items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_all(root)

    def caught(self, change: dict[str, str], *words: str) -> None:
        problems = self.problems(change)
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])

    def test_tidy_repository_passes(self):
        self.assertEqual(self.problems({}), [])

    def test_dead_link(self):
        self.caught({"CONTRIBUTING.md": "[x](docs/absent.md)"}, "docs/absent.md")
        self.caught({"docs/guide/a.md": "[x](../absent.md)"}, "../absent.md")

    def test_foreign_link_is_not_followed(self):
        self.assertEqual(self.problems({"CONTRIBUTING.md": "[x](https://example.org/y.md)"}), [])

    def test_dead_path(self):
        self.caught({"CONTRIBUTING.md": "see `crates/engine/src/absent.rs`"}, "absent.rs")
        self.caught({"CONTRIBUTING.md": "see `crates/absent/`"}, "crates/absent/")
        self.assertEqual(self.problems({"CONTRIBUTING.md": "see `src/pit.rs`, `pit.rs`, `crates/engine/`, `crates/engine`"}), [])

    def test_code_blocks_are_not_prose(self):
        self.assertEqual(self.problems({"CONTRIBUTING.md": "```\n`a/absent.rs`\n```\n"}), [])

    def test_dead_item(self):
        self.caught({"CONTRIBUTING.md": "the type `pit::Absent`"}, "Absent")

    def test_dead_test(self):
        tests = "#[test]\n#[ignore]\nfn works() {}\n\n#[tokio::test(start_paused = true)]\nasync fn waits() {}\nfn aid() {}\n"
        change = {"crates/engine/tests/pit.rs": tests}
        for name in ["works", "waits"]:
            self.assertEqual(self.problems(change | {"docs/a.md": f"`crates/engine/tests/pit.rs::{name}`"}), [])
        for absent in ["pit.rs::aid", "pit.rs::absent", "fib.rs::works"]:
            self.caught(change | {"docs/a.md": f"`crates/engine/tests/{absent}`"}, absent)

    def test_unsafe_outside_the_list(self):
        self.caught({"crates/engine/src/fib.rs": "unsafe impl Send for X {}\n"}, "fib.rs", "unsafe")

    def test_listed_file_without_unsafe(self):
        self.caught({"crates/engine/src/ring.rs": "fn f() {}\n"}, "ring.rs", "no `unsafe`")

    def test_missing_list(self):
        self.caught({"ARCHITECTURE.md": "# Rooms\n"}, UNSAFE_HEADING)

    def test_arrow_against_the_plan(self):
        manifest = '[package]\nname = "namewire-engine"\n[dependencies]\nnamewire-faces = {}\n'
        self.caught({"crates/engine/Cargo.toml": manifest}, "engine may not use faces")
        manifest = '[package]\nname = "namewire-engine"\n[target.\'cfg(unix)\'.dependencies]\nnamewire-client = {}\n'
        self.caught({"crates/engine/Cargo.toml": manifest}, "engine may not use client")

    def test_tests_may_not_use_the_lab(self):
        manifest = '[package]\nname = "namewire-engine"\n[dev-dependencies]\nnamewire-lab = {}\n'
        self.caught({"crates/engine/Cargo.toml": manifest}, "nothing uses lab")

    def test_crate_without_arrows(self):
        self.caught({"crates/new/Cargo.toml": '[package]\nname = "namewire-new"\n'}, "new has no arrows")

    def test_banned_names(self):
        self.caught({"crates/engine/src/name_utils.rs": ""}, "name_utils.rs")
        self.caught({"crates/engine/src/common/pit.rs": ""}, "common")

    def test_place_outside_the_repository(self):
        self.caught({"crates/engine/src/fib.rs": "// see /" + "work/plan.md\n"}, "fib.rs:1")

    def test_long_files_are_counted(self):
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "long.rs").write_text("\n" * (LINES_WARN + 1))
            (root / "short.rs").write_text("\n" * LINES_WARN)
            self.assertEqual(len(long_files(root, [Path("long.rs"), Path("short.rs")])), 1)


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(Checks)
        result = unittest.TextTestRunner(verbosity=0).run(suite)
        return 0 if result.wasSuccessful() else 1
    if sys.argv[1:]:
        print("usage: tools/tidy.py [--self-test]", file=sys.stderr)
        return 2
    root = Path(__file__).resolve().parent.parent
    for line in long_files(root, repository_files(root)):
        print(f"long   {line}")
    problems = check_all(root)
    for problem in problems:
        print(f"FAILED {problem}")
    print(f"tidy: {len(problems)} problems" if problems else "tidy: all rules hold")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
