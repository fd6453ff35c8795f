#!/usr/bin/env python3
"""House rules that a program can check. `tools/tidy.py --self-test` tests the checks.

1. Documents: every relative link, its `#anchor` and every path in backticks exists; pages of docs/
   link only to pages of docs/, because they are a book too, and SUMMARY.md has them all; a backticked
   `crate::item` or `Type::item` names something that is defined in the sources;
   a backticked `path/file.rs::name` names a test of that file.
2. `unsafe` stands only in the files listed in docs/unsafe.md, and every file
   listed there has some.
3. Crates use each other only along the arrows in ARROWS.
4. No file has a name that says nothing (BANNED_NAMES).
5. Nothing in the repository names the machine it was written on.
6. A function has at most 60 lines of code, or a reason in LONG_FUNCTIONS.
7. A parameter is no tuple of more than two parts.
8. No more than three files of a crate use each other in a circle, directly or by way of others. No two of its folders
   use each other, unless one contains the other.
9. A comment ends at column 120.
10. Every arrow in ARROWS is used (an arrow that nobody uses is stale).
11. A source file over LINES_WARN lines is mentioned, without failing.
12. The Rust files of a crate's `src` have at most CRATE_LINES_MAX lines, or its number in LARGE_CRATES.
13. Where a crate names its tests itself (`autotests = false`), each file beside them belongs to one.

Only files that git tracks or would add are looked at. Exit status 1 if a rule is broken.
"""
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

import rust_shape

LINES_WARN = 700
CRATE_LINES_MAX = 10_000
BANNED_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "misc"}
UNSAFE_HEADING = "Files that may contain `unsafe`"
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/**/*.md"]

# Who may use whom (ARCHITECTURE.md, "Crates"). Tests and benches (dev-dependencies) may use more,
# but nothing may use what stands at the top of the house.
ARROWS = {
    "packet": set(),
    "node-model": {"packet"},
    "power": set(),
    "shares": {"packet"},
    "tables": {"packet"},
    "designs": {"packet", "tables"},
    "dispatch": {"packet", "tables"},
    "counters": {"packet", "tables"},
    "engine": {"packet", "shares", "tables", "dispatch", "counters"},
    "afxdp": set(),
    "memif": set(),
    "dpdk": set(),
    "links": {"packet", "shares"},
    "faces": {"packet", "shares", "links", "afxdp", "memif", "dpdk"},
    "handover": {"packet", "faces"},
    "load": {"packet", "afxdp", "memif", "faces"},
    "tag-matching": {"packet", "tables"},
    "tagnet": {"packet", "tables", "tag-matching"},
    "security": {"packet"},
    "management": {"packet", "security", "shares"},
    "ndncert": {"packet", "security"},
    "client": {"packet", "security"},
    "certificates": {"packet", "security", "ndncert", "client"},
    "repo": {"packet", "security", "client"},
    "capture": {"packet"},
    "files": {"packet", "client"},
    "configuration": {"packet", "node-model", "tables", "designs", "engine", "security", "management"},
    "network": {"packet", "node-model"},
    "observe": {"packet", "node-model", "network"},
    "logging": {"packet", "node-model", "configuration", "management"},
    "websocket": {"packet", "shares", "faces", "configuration"},
    "worker": {"packet", "shares", "tables", "engine", "faces", "tagnet"},
    "router": {"packet", "shares", "handover", "configuration", "tables", "designs", "engine", "faces", "management",
               "node-model", "logging", "observe", "tagnet", "websocket", "worker"},
    "declarations": {"packet", "configuration", "engine", "management", "router"},
    "printing": set(),
    "nfdc": {"packet", "client", "security", "printing"},
    "ndnsec": {"packet", "client", "security", "printing"},
    "ndn-tools": {"packet", "capture", "client", "security", "printing", "nfdc"},
    "probing": {"packet", "client"},
    "routers": {"packet", "configuration", "node-model", "client"},
    "tools": {"packet", "capture", "configuration", "load", "node-model", "client", "certificates", "repo", "files",
              "security", "printing", "ndn-tools", "probing", "routers"},
    "overview": {"packet", "configuration", "node-model", "client", "printing", "routers", "network", "tools"},
    "diagnosis": {"packet", "node-model", "client", "certification", "configuration", "security", "printing", "tools"},
    "certification": {"packet", "security", "shares", "ndncert", "client", "certificates", "configuration", "printing",
                      "tools"},
    "cli": {"packet", "handover", "configuration", "node-model", "diagnosis", "logging", "router", "declarations", "client",
            "certificates", "certification", "printing", "nfdc", "ndnsec", "ndn-tools", "tools", "overview"},
    "testbed": {"packet", "shares", "tables", "engine", "management"},
    "sim": {"packet", "tables", "designs", "engine", "management", "links", "tagnet", "testbed"},
    "drawing": set(),
    "scenario": {"packet", "designs", "engine", "configuration", "capture", "client", "drawing", "sim"},
}
MAY_USE_EVERYTHING = {"lab", "fuzz", "worker-loom", "tables-loom"}
# Functions with more than 60 lines of code, and why.
LONG_FUNCTIONS = {
    "crates/links/tests/link_service.rs::header_vectors_are_read": "a table of vectors",
    "crates/management/tests/commands.rs::face_creation_refusals": "a table of refusals",
}
# Crates whose `src` has more than CRATE_LINES_MAX lines, the most that each may have, and why.
LARGE_CRATES = {
    "lab": (37_000, "an experiment for each figure of the papers, apart from each other; nothing depends on it"),
    "crates/designs": (21_000, "a module for each FIB design and cache policy of the literature, apart from each other"),
    "crates/tables": (17_000, "PIT, Content Store and FIB stand on one arena, one index and one set of pages"),
}
# Circles of more files than the limit, by folder; each is to go.
CIRCLES_TODAY = {
}
NOTHING_USES = {"lab", "fuzz", "worker-loom", "tables-loom", "cli"}


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
LOOKS_LIKE_COMMAND = re.compile(r"^(?:faces|fib|rib|cs|strategy-choice|status|tags)/[a-z-]+$")
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


def check_links(root: Path, files: list[Path]) -> list[str]:
    problems = []
    for here in (path for path in files if path.suffix == ".md"):
        for target in LINK.findall(FENCE.sub("", (root / here).read_text())):
            path, _, anchor = target.partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            linked = root / here.parent / path if path else root / here
            if not linked.exists():
                problems.append(f"{here}: link to {target}, which does not exist")
            elif anchor and linked.suffix == ".md" and anchor not in anchors(linked.read_text()):
                problems.append(f"{here}: link to {target}, which has no such heading")
            elif here.parts[0] == "docs" and not linked.resolve().is_relative_to((root / "docs").resolve()):
                problems.append(f"{here}: link to {target}, which the book does not have: name the file in backticks")
    return problems


def anchors(text: str) -> set[str]:
    """What `#…` may name in a document: its headings as GitHub and mdBook write them, and `<a id>`."""
    found, prose = set(re.findall(r'<a id="([^"]+)">', text)), FENCE.sub("", text)
    for heading in re.findall(r"^#+ +(.*?) *#*$", prose, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = "".join("-" if letter == " " else letter for letter in words if letter.isalnum() or letter in " -_")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return found


def check_book(root: Path, files: list[Path]) -> list[str]:
    """Every page of docs/ is in the book."""
    summary = Path("docs/SUMMARY.md")
    if summary not in files:
        return []
    listed = set(LINK.findall((root / summary).read_text()))
    pages = {path.relative_to("docs").as_posix() for path in files if path.parts[0] == "docs" and path.suffix == ".md"}
    return [f"docs/SUMMARY.md: lacks {page}" for page in sorted(pages - listed - {"SUMMARY.md"})]


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


def unsafe_allow_list(document: str) -> set[Path] | None:
    """The backticked .rs paths in the section with UNSAFE_HEADING; None if there is no such section."""
    section = re.search(rf"^(#+)\s*(?:[\d.]+\s*)?{re.escape(UNSAFE_HEADING)}\s*$(.*?)(?=^#{{1,6}}\s|\Z)",
                        document, re.MULTILINE | re.DOTALL)
    if section is None:
        return None
    return {Path(quoted) for quoted in BACKTICKED.findall(section.group(2)) if quoted.endswith(".rs")}


def check_unsafe(root: Path, files: list[Path]) -> list[str]:
    document = root / "docs/unsafe.md"
    allowed = unsafe_allow_list(document.read_text()) if document.exists() else None
    if allowed is None:
        return [f"docs/unsafe.md: has no section \"{UNSAFE_HEADING}\""]
    found = {path for path in files if path.suffix == ".rs"
             and UNSAFE_CODE.search(without_comments_and_text((root / path).read_text(errors="replace")))}
    problems = [f"{path}: contains `unsafe` but is not listed in docs/unsafe.md" for path in sorted(found - allowed)]
    return problems + [f"docs/unsafe.md: lists {path}, which contains no `unsafe`" for path in sorted(allowed - found)]


# --- 3. crate arrows ------------------------------------------------------------------------

def ours(dependencies: dict) -> set[str]:
    return {name.removeprefix("namewire-") for name in dependencies if name.startswith("namewire-")}


def manifests(root: Path, files: list[Path]):
    """Every crate of ours: its manifest's path, its name, what it uses, and what its tests use."""
    for path in files:
        if path.name != "Cargo.toml":
            continue
        manifest = tomllib.loads((root / path).read_text())
        package = manifest.get("package", {}).get("name", "")
        if not package.startswith("namewire-"):
            continue
        tables = [manifest] + list(manifest.get("target", {}).values())
        used = set().union(*(ours(table.get(kind, {})) for table in tables
                             for kind in ("dependencies", "build-dependencies")))
        tested_with = set().union(*(ours(table.get("dev-dependencies", {})) for table in tables))
        yield path, package.removeprefix("namewire-"), used, tested_with


def check_arrows(root: Path, files: list[Path]) -> list[str]:
    problems = []
    for path, crate, used, tested_with in manifests(root, files):
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


def stale_arrows(arrows: dict[str, set[str]], used: dict[str, set[str]]) -> list[str]:
    gone = [f"tools/tidy.py: ARROWS has {crate}, which is no crate" for crate in sorted(arrows.keys() - used.keys())]
    return gone + [f"tools/tidy.py: ARROWS lets {crate} use {other}, but it does not"
                   for crate in sorted(arrows.keys() & used.keys()) for other in sorted(arrows[crate] - used[crate])]


# --- 4., 5., 6. files -----------------------------------------------------------------------

# Written in pieces, so that this file passes its own check.
MACHINE_PATH = re.compile(r"(?<![\w.])/" + r"work/|/tmp/" + r"nw\b|\.\./" + r"shared/")
TEXT_SUFFIXES = {".rs", ".md", ".toml", ".py", ".sh", ".mjs", ".yml", ".service", ".socket", ""}


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


def check_tests(root: Path, files: list[Path]) -> list[str]:
    problems = []
    for manifest in (path for path in files if path.name == "Cargo.toml"):
        crate = tomllib.loads((root / manifest).read_text())
        if crate.get("package", {}).get("autotests", True):
            continue
        folder = manifest.parent / "tests"
        programs = {Path(test.get("path", f"tests/{test['name']}.rs")) for test in crate.get("test", [])}
        modules = set()
        for program in programs:
            modules |= set(re.findall(r"^mod (\w+);", (root / manifest.parent / program).read_text(), re.MULTILINE))
        names = {path.stem for path in files if path.parent == folder and path.suffix == ".rs"}
        names |= {path.parent.name for path in files if path.parent.parent == folder and path.name == "mod.rs"}
        names -= {program.stem for program in programs}
        problems += [f"{folder}/{name}.rs: no test of {manifest} contains it" for name in sorted(names - modules)]
    return problems


def long_files(root: Path, files: list[Path]) -> list[str]:
    counted = [(len((root / path).read_text(errors="replace").splitlines()), path)
               for path in files if path.suffix in {".rs", ".py", ".mjs"}]
    return [f"{path}: {lines} lines" for lines, path in sorted(counted, reverse=True) if lines > LINES_WARN]


def check_all(root: Path) -> list[str]:
    files = repository_files(root)
    return (check_documents(root, files) + check_links(root, files) + check_book(root, files) + check_unsafe(root, files)
            + check_arrows(root, files) + check_files(root, files) + check_tests(root, files)
            + check_shape(root, files))


# --- 6. to 9. the shape of Rust sources ---------------------------------------------------------

def check_shape(root: Path, files: list[Path]) -> list[str]:
    problems, long_ones = [], set()
    sources = {path: (root / path).read_text(errors="replace") for path in files if path.suffix == ".rs"}
    for path, source in sources.items():
        for function in rust_shape.functions(source):
            place = f"{path}::{function.name}"
            if function.body_lines > rust_shape.FUNCTION_LINES_MAX:
                long_ones.add(place)
                if place not in LONG_FUNCTIONS:
                    problems.append(f"{path}:{function.line}: {function.name} has {function.body_lines} lines of code, "
                                    f"more than {rust_shape.FUNCTION_LINES_MAX}")
            tuple_parts = rust_shape.widest_tuple(function.parameters)
            if tuple_parts > rust_shape.TUPLE_PARTS_MAX:
                problems.append(f"{path}:{function.line}: a parameter of {function.name} is a tuple of {tuple_parts} parts")
        problems += [f"{path}:{line}: the comment goes beyond column {rust_shape.COMMENT_COLUMNS_MAX}"
                     for line in rust_shape.wide_comments(source)]
    problems += [f"tools/tidy.py: LONG_FUNCTIONS lists {place}, which is short or gone"
                 for place in sorted(set(LONG_FUNCTIONS) - long_ones) if (root / "tools").exists() or path_of(place) in sources]
    for crate in sorted(crates_of(sources)):
        problems += check_circles(crate, sources) + check_size(crate, sources)
    return problems


def path_of(place: str) -> Path:
    return Path(place.split("::")[0])


def crates_of(sources: dict[Path, str]) -> set[Path]:
    """The `src` folders."""
    return {Path(*path.parts[:path.parts.index("src") + 1]) for path in sources if "src" in path.parts}


def lines_of(folder: Path, sources: dict[Path, str]) -> int:
    return sum(len(source.splitlines()) for path, source in sources.items() if path.is_relative_to(folder))


def check_size(folder: Path, sources: dict[Path, str]) -> list[str]:
    lines, (limit, _) = lines_of(folder, sources), LARGE_CRATES.get(folder.parent.as_posix(), (CRATE_LINES_MAX, ""))
    if lines <= limit:
        return []
    return [f"{folder}: {lines} lines, more than {limit}: find a wall that stands, and move one side of it out"]


def no_longer_large(root: Path, files: list[Path]) -> list[str]:
    sources = {path: (root / path).read_text(errors="replace") for path in files if path.suffix == ".rs"}
    sizes = {crate: lines_of(Path(crate, "src"), sources) for crate in LARGE_CRATES}
    return [f"tools/tidy.py: LARGE_CRATES lists {crate}, which has {lines} lines"
            for crate, lines in sorted(sizes.items()) if lines <= CRATE_LINES_MAX]


def check_circles(folder: Path, sources: dict[Path, str]) -> list[str]:
    crate = rust_shape.Crate({path.relative_to(folder): source for path, source in sources.items()
                              if path.is_relative_to(folder)})
    allowed = CIRCLES_TODAY.get(str(folder), rust_shape.CIRCLE_FILES_MAX)
    pairs = [f"{folder}: the folders {a} and {b} use each other" for a, b in crate.folder_pairs()]
    return pairs + [f"{folder}: {len(circle)} files use each other in a circle: {', '.join(map(str, circle))}"
                    for circle in crate.circles() if len(circle) > allowed]


# --- tests of the checks --------------------------------------------------------------------

class Checks(unittest.TestCase):
    """Each rule passes a tidy repository and catches one that breaks it."""

    def problems(self, change: dict[str, str]) -> list[str]:
        tidy = {
            "README.md": "See [the plan](ARCHITECTURE.md#rooms), `crates/engine/src/pit.rs` and `pit::Entry`.\n",
            "ARCHITECTURE.md": "# Rooms\n",
            "docs/unsafe.md": f"# Unsafe\n\n## {UNSAFE_HEADING}\n\n- `crates/engine/src/ring.rs`\n\n## Next\n",
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

    def test_dead_anchor(self):
        page = "# A `b` of the [c](d.md), e\n# Twice\n# Twice\n<a id=\"here\"></a>\n```sh\n# no heading\n```\n"
        pages = {"docs/a.md": page, "docs/d.md": ""}
        for anchor in ["a-b-of-the-c-e", "twice", "twice-1", "here"]:
            self.assertEqual(self.problems(pages | {"CONTRIBUTING.md": f"[x](docs/a.md#{anchor})"}), [])
        for anchor in ["no-heading", "twice-2"]:
            self.caught(pages | {"CONTRIBUTING.md": f"[x](docs/a.md#{anchor})"}, anchor)
        self.caught({"CONTRIBUTING.md": "# Rooms\n[x](#houses)"}, "#houses")

    def test_link_out_of_the_book(self):
        self.caught({"docs/a.md": "[x](../README.md)"}, "backticks")

    def test_page_that_the_book_lacks(self):
        book = {"docs/SUMMARY.md": "- [a](a.md)\n- [u](unsafe.md)\n", "docs/a.md": ""}
        self.assertEqual(self.problems(book), [])
        self.caught(book | {"docs/b.md": ""}, "SUMMARY.md", "b.md")

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
        self.caught({"docs/unsafe.md": "# Unsafe\n"}, UNSAFE_HEADING)

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

    def test_file_that_no_test_contains(self):
        manifest = ('[package]\nname = "namewire-engine"\nautotests = false\n'
                    '[[test]]\nname = "pipelines"\npath = "tests/main.rs"\n[[test]]\nname = "alone"\n')
        crate = {"crates/engine/Cargo.toml": manifest, "crates/engine/tests/main.rs": "mod a;\n",
                 "crates/engine/tests/a.rs": "", "crates/engine/tests/alone.rs": ""}
        self.assertEqual(self.problems(crate), [])
        self.caught(crate | {"crates/engine/tests/b.rs": ""}, "tests/b.rs", "no test")

    def test_place_outside_the_repository(self):
        self.caught({"crates/engine/src/fib.rs": "// see /" + "work/plan.md\n"}, "fib.rs:1")

    def test_long_function(self):
        text = "fn short() {\n" + "// why\n\n    f();\n" * 60 + "}\nfn long<F: Fn(u8) -> u8>(_: F) {\n" + "    f();\n" * 61 + "}\n"
        self.caught({"crates/engine/src/fib.rs": text}, "fib.rs:183", "long has 61 lines")

    def test_listed_function_that_is_short(self):
        LONG_FUNCTIONS["crates/engine/src/pit.rs::find"] = "a test"
        try:
            self.caught({}, "pit.rs::find", "short or gone")
        finally:
            del LONG_FUNCTIONS["crates/engine/src/pit.rs::find"]

    def test_wide_tuple(self):
        allowed = "fn f(a: (u8, u8), b: impl Fn(u8, u8, u8), c: [(u8, Vec<(u8, u8)>); 2]) {}\n"
        self.assertEqual(self.problems({"crates/engine/src/fib.rs": allowed}), [])
        self.caught({"crates/engine/src/fib.rs": "fn f(a: Option<&(u8, u8, u8)>) {}\n"}, "fib.rs:1", "tuple of 3")

    def test_folders_that_use_each_other(self):
        lib = {"crates/engine/src/lib.rs": "mod a; mod b;\n", "crates/engine/src/a/mod.rs": "pub mod x;\n",
               "crates/engine/src/b/mod.rs": "pub mod y;\n", "crates/engine/src/a/x.rs": "use crate::b::y::f;\nfn g() {}\n"}
        self.caught(lib | {"crates/engine/src/b/y.rs": "use crate::a::x::g;\nfn f() {}\n"}, "a and b use each other")
        self.assertEqual(self.problems(lib | {"crates/engine/src/b/y.rs": "fn f() {}\n"}), [])

    def test_circle_of_files(self):
        lib = {"crates/engine/src/lib.rs": "mod a;\nmod b;\npub use a::f;\n" + "".join(f"mod c{n};\n" for n in range(6))}
        circle = {f"crates/engine/src/c{n}.rs": f"use crate::c{(n + 1) % 6}::{{self, f}};\nfn f() {{}}\n" for n in range(6)}
        row = circle | {"crates/engine/src/c0.rs": "fn f() {}\n"}
        self.caught(lib | circle, "6 files", "c0.rs, c1.rs")
        self.assertEqual(self.problems(lib | row), [])
        # By way of a re-export, and as a path without `use`.
        shut = row | {"crates/engine/src/a.rs": "fn f() { crate::c1::f() }\n", "crates/engine/src/c0.rs": "fn f() { crate::f() }\n"}
        self.caught(lib | shut, "7 files", "a.rs")

    def test_large_crate(self):
        def source(lines: int) -> str:
            return "const A: u8 = 1;\n" * lines

        small = {"crates/new/src/a.rs": source(6000), "crates/new/tests/a.rs": source(6000)}
        large = small | {"crates/new/src/b.rs": source(4001)}
        self.assertEqual(self.problems(small), [])
        self.caught(large, "crates/new/src: 10001 lines")
        LARGE_CRATES["crates/new"] = (10_500, "a test")
        try:
            self.assertEqual(self.problems(large), [])
            self.caught(large | {"crates/new/src/c.rs": source(500)}, "more than 10500")
            with tempfile.TemporaryDirectory() as directory:
                self.assertIn("tools/tidy.py: LARGE_CRATES lists crates/new, which has 0 lines",
                              no_longer_large(Path(directory), []))
        finally:
            del LARGE_CRATES["crates/new"]

    def test_tests_may_look_up(self):
        test = "#[cfg(test)]\nmod tests {\n    use crate::c1::f;\n}\nfn f() {}\n"
        circle = {f"crates/engine/src/c{n}.rs": f"use crate::c{(n + 1) % 6}::f;\nfn f() {{}}\n" for n in range(1, 6)}
        self.assertEqual(self.problems(circle | {"crates/engine/src/c0.rs": test}), [])

    def test_wide_comment(self):
        self.caught({"crates/engine/src/fib.rs": "    // " + "word " * 23 + "\n"}, "fib.rs:1", "column 120")
        self.assertEqual(self.problems({"crates/engine/src/fib.rs": "// see https://example.org/" + "a" * 120 + "\n"}), [])

    def test_stale_arrow(self):
        problems = stale_arrows({"engine": {"packet", "tables"}, "packet": set()}, {"engine": {"packet"}, "packet": set()})
        self.assertEqual(problems, ["tools/tidy.py: ARROWS lets engine use tables, but it does not"])
        problems = stale_arrows({"gone": set()}, {})
        self.assertEqual(problems, ["tools/tidy.py: ARROWS has gone, which is no crate"])

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
    files = repository_files(root)
    for line in long_files(root, files):
        print(f"long   {line}")
    problems = check_all(root) + no_longer_large(root, files)
    problems += stale_arrows(ARROWS, {crate: used for _, crate, used, _ in manifests(root, files)})
    for problem in problems:
        print(f"FAILED {problem}")
    print(f"tidy: {len(problems)} problems" if problems else "tidy: all rules hold")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
