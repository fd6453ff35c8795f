"""The shape of Rust sources, as `tools/tidy.py` limits it: long functions, wide tuples, circles of files, wide comments.

This is no parser of Rust. It blanks comments and literals, and matches brackets in what is left.
"""
import re
from dataclasses import dataclass
from pathlib import Path

FUNCTION_LINES_MAX = 60
TUPLE_PARTS_MAX = 2
CIRCLE_FILES_MAX = 3
COMMENT_COLUMNS_MAX = 120

NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|\bb?r(#*)".*?"\1|\bb?"(?:\\.|[^"\\])*"|"(?:\\.|[^"\\])*"|b?\'(?:\\[^\n]{1,9}?|[^\'\\\n])\'',
    re.DOTALL)


def blanked(source: str) -> str:
    """The source without comments and literals, every line and column where it was."""
    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", " ", match.group(0))
    return NOT_CODE.sub(blank, source)


CLOSING = {"(": ")", "[": "]", "{": "}"}


def end_of_bracket(code: str, start: int) -> int:
    """The place after the bracket that closes the one at `start`."""
    opening, closing, depth = code[start], CLOSING[code[start]], 0
    for match in re.compile(rf"[{re.escape(opening + closing)}]").finditer(code, start):
        depth += 1 if match.group(0) == opening else -1
        if depth == 0:
            return match.end()
    return len(code)


@dataclass
class Function:
    name: str
    line: int
    parameters: str
    body_lines: int


FUNCTION = re.compile(r"\bfn\s+(\w+)")


def functions(source: str) -> list[Function]:
    """Every `fn` with a name, also in macros. A line of the body counts if it has code."""
    code = blanked(source)
    found = []
    for match in FUNCTION.finditer(code):
        start = code.find("(", match.end())
        if start < 0:
            continue
        # A generic bound may have parentheses of its own: `<F: Fn(u8)>`.
        generics = code[match.end():start]
        while generics.count("<") > len(re.findall(r"(?<!-)>", generics)):
            start = code.find("(", end_of_bracket(code, start))
            if start < 0:
                break
            generics = code[match.end():start]
        if start < 0:
            continue
        end = end_of_bracket(code, start)
        brace, semicolon = code.find("{", end), code.find(";", end)
        if brace < 0 or 0 <= semicolon < brace and "[" not in code[end:semicolon]:
            body = ""
        else:
            body = code[brace + 1:end_of_bracket(code, brace) - 1]
        lines = sum(1 for line in body.split("\n") if line.strip())
        found.append(Function(match.group(1), code.count("\n", 0, match.start()) + 1, code[start + 1:end - 1], lines))
    return found


TUPLE = re.compile(r"(?<![\w>!])\(")


def parts(inside: str) -> int:
    """How many parts a list has between its brackets."""
    depth, commas = 0, 0
    for at, letter in enumerate(inside):
        if letter in "([{<":
            depth += 1
        elif letter in ")]}" or letter == ">" and inside[at - 1] != "-":
            depth -= 1
        elif letter == "," and depth == 0 and inside[at + 1:].strip():
            commas += 1
    return commas + 1


def widest_tuple(parameters: str) -> int:
    """The number of parts of the largest tuple among the parameters."""
    if " in " in parameters:
        return 0  # what a property test draws, not types
    inside = [parameters[match.end():end_of_bracket(parameters, match.start()) - 1]
              for match in TUPLE.finditer(parameters)]
    return max((parts(text) for text in inside), default=0)


COMMENT = re.compile(r"\s*//[/!]?(.*)")


def wide_comments(source: str) -> list[int]:
    """Lines that are comments and too wide, unless they cannot be broken: rows of tables, and single long words."""
    found = []
    for number, line in enumerate(source.split("\n"), 1):
        comment = COMMENT.match(line)
        if comment and len(line.rstrip()) > COMMENT_COLUMNS_MAX:
            text = comment.group(1).strip()
            if not text.startswith("|") and " " in line[:COMMENT_COLUMNS_MAX].lstrip(" /!").removeprefix("see "):
                found.append(number)
    return found


# --- who uses whom within a crate -----------------------------------------------------------

TEST_MODULE = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{")
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w:])((?:crate|super|self)(?:\s*::\s*\w+)+)")
ITEM = re.compile(r"\b(?:fn|struct|enum|trait|type|const|static|union|macro_rules!|mod)\s+(\w+)")


def expanded(tree: str) -> list[tuple[list[str], str]]:
    """The paths of a `use`, each with the name that it has afterwards."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, alias = tree.partition(" as ")
        segments = [segment.strip() for segment in path.split("::") if segment.strip()]
        if segments and segments[-1] == "self":
            segments.pop()
        return [(segments, alias.strip() or (segments[-1] if segments else ""))]
    front = [segment.strip() for segment in tree[:brace].split("::") if segment.strip()]
    inside = tree[brace + 1:end_of_bracket(tree, brace) - 1]
    branches, depth, start = [], 0, 0
    for at, letter in enumerate(inside):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            branches.append(inside[start:at])
            start = at + 1
    branches.append(inside[start:])
    return [(front + path, name or front[-1]) for branch in branches if branch.strip() for path, name in expanded(branch)]


class Crate:
    """The files of a crate's `src` as modules, and what each names of the others."""

    def __init__(self, source_of: dict[Path, str]):
        self.code, self.file_of = {}, {}
        for file, source in source_of.items():
            code = blanked(source)
            while (match := TEST_MODULE.search(code)):
                code = code[:match.start()] + code[end_of_bracket(code, match.end() - 1):]
            module = tuple(part for part in file.with_suffix("").parts if part not in ("lib", "main", "mod"))
            self.code[module], self.file_of[module] = code, file
        self.items = {module: set(ITEM.findall(code)) for module, code in self.code.items()}
        self.names = {module: {} for module in self.code}
        for module, code in self.code.items():
            for _, tree in USE.findall(code):
                for path, name in expanded(tree):
                    target = self.absolute(module, path)
                    if target is not None:
                        self.names[module][name] = target
                        if name == "*":
                            self.names[module].setdefault("*all", []).append(target[:-1])

    def absolute(self, module: tuple, path: list[str]) -> tuple | None:
        """The path from the crate's root; None if it leads to another crate."""
        if path[0] == "crate":
            return tuple(path[1:])
        if path[0] not in ("super", "self"):
            return module + tuple(path) if module + (path[0],) in self.code else None
        base, rest = module, path
        while rest and rest[0] in ("super", "self"):
            base, rest = (base[:-1] if rest[0] == "super" else base), rest[1:]
        return base + tuple(rest)

    def home(self, path: tuple, depth: int = 0) -> tuple | None:
        """The module whose file defines what the path names; re-exports are followed."""
        module = ()
        while len(module) < len(path) and module + (path[len(module)],) in self.code:
            module += (path[len(module)],)
        rest = path[len(module):]
        if not rest or depth > 8 or rest[0] in self.items[module]:
            return module
        exported = self.names[module].get(rest[0])
        if exported is not None and exported != path:
            return self.home(exported + rest[1:], depth + 1)
        for glob in self.names[module].get("*all", []):
            home = self.home(glob + rest[:1], depth + 1)
            if home is not None and rest[0] in self.items.get(home, ()):
                return home
        return module

    def folder_pairs(self) -> list[tuple[Path, Path]]:
        """The folders that use each other both ways. A folder and one inside of it are one room."""
        arrows = {(self.file_of[module].parent, self.file_of[used].parent)
                  for module, all_used in self.uses().items() for used in all_used}
        return sorted((a, b) for a, b in arrows
                      if a < b and (b, a) in arrows and not a.is_relative_to(b) and not b.is_relative_to(a))

    def uses(self) -> dict[tuple, set[tuple]]:
        """The modules whose items each module names, itself and mere re-exports left out."""
        found = {module: set() for module in self.code}
        for module, code in self.code.items():
            without_exports = USE.sub(lambda match: " " if match.group(1) else match.group(0), code)
            paths = [path for _, tree in USE.findall(without_exports) for path, _ in expanded(tree)]
            bodies = USE.sub(" ", without_exports)
            paths += [[segment.strip() for segment in path.split("::")] for path in PATH.findall(bodies)]
            for path in paths:
                target = self.absolute(module, path)
                home = self.home(target) if target is not None else None
                if home is not None and home != module:
                    found[module].add(home)
        return found

    def circles(self) -> list[list[Path]]:
        """Groups of files that use each other, directly or by way of others; the largest first."""
        uses = self.uses()
        def reached(start: tuple) -> set[tuple]:
            seen, left = set(), [start]
            while left:
                for next_module in uses[left.pop()] - seen:
                    seen.add(next_module)
                    left.append(next_module)
            return seen
        reach = {module: reached(module) for module in uses}
        groups = {frozenset(other for other in reach[module] if module in reach[other])
                  for module in uses if module in reach[module]}
        return sorted((sorted(self.file_of[module] for module in group) for group in groups), key=len, reverse=True)
