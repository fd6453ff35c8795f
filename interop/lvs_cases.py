#!/usr/bin/env python3
"""Makes the table of verdicts to which crates/security/tests/lvs_verdicts.rs compares ours: python-ndn decides.

    interop/.venv/bin/python interop/lvs_cases.py               # writes crates/security/tests/lvs
    interop/.venv/bin/python interop/lvs_cases.py --live DIR    # compiles OWN to DIR, verdicts to standard output
    interop/.venv/bin/python interop/lvs_cases.py --compile SOURCE.trust MODEL.tlv

Run the first by hand, with the python-ndn of requirements.txt, when schemas or names change; the results are committed.
The schemas of OWN are compiled here. Those of PUBLISHED are files of other projects, as crates/security/tests/lvs/README.md
says; they are compiled already, except that of Ownly, which the third command compiled.
"""
import json
import sys
from pathlib import Path

from ndn.app_support.light_versec import DEFAULT_USER_FNS, Checker, LvsModel, compile_lvs
from ndn.encoding import Component, Name

HERE = Path(__file__).resolve().parent
TABLE = HERE.parent / "crates" / "security" / "tests" / "lvs"

# What the models call beside $eq and $eq_type; the test has the same.
USER_FUNCTIONS = {
    "$fn": lambda component, args: len(args) == 2 and component != args[1],
    "$isValidID": lambda component, args: len(Component.get_value(component)) == 6,
    "$isValidYear": lambda component, args: len(Component.get_value(component)) == 4,
}

# Our own schemas: what the published ones leave out.
OWN = {
    # Commands and announcements of a site, as docs/trust.md shows them.
    "site": r'''
        #key: "KEY"/_/_/_
        #root: "site"/#key
        #operator: "site"/"op"/who/#key <= #root
        #router: "site"/"router"/name/#key <= #operator
        #register: "localhop"/"nfd"/"rib"/verb/_ & {verb: "register"|"unregister"} <= #router | #operator
        #announced1: "site"/name/"32=PA"/_/_ <= #router
        #announced2: "site"/_/name/"32=PA"/_/_ <= #router
    ''',
    # Administrators command a router of their machine, and publish files.
    "admin": r'''
        #key: "KEY"/_/_/_
        #admin: "admin"/_/#key
        #rib: "localhost"/"nfd"/"rib"/_verb/_ & {_verb: "register"|"unregister"} <= #admin
        #file: "files"/_/_version/_segment & {_version: $eq_type("v=0"), _segment: $eq_type("seg=0")} <= #admin
        #metadata: "files"/_/"32=metadata"/_/_ <= #admin
    ''',
    # Members of a site write letters.
    "letters": r'''
        #key: "KEY"/_/_/_
        #root: "site"/#key
        #member: "site"/who/#key <= #root
        #letter: "site"/who/_ <= #member
    ''',
    # Values of patterns that constraints compare: by tag, by call, and with a value that comes later.
    "constraints": r'''
        #key: "k"/who
        #same: "same"/who/what & {what: who} <= #key
        #other: "either"/who/what & {what: who|"x"} <= #key
        #call: "eq"/who/what & {what: $eq(who)} <= #key
        #both: "both"/who/what & {what: $eq_type("v=0"), what: $eq("v=7")} <= #key
        #later: "later"/what/who & {what: who|"x"} <= #key
        #latereq: "latereq"/what/who & {what: $eq(who)|"x"} <= #key
        #none: "none"/who/what & {what: $eq()} <= #key
        #typed: "typed"/who/_v & {_v: $eq_type("seg=0", "seg=9")} <= #key
    ''',
    # $eq_type with a value that comes later ends python-ndn's check with an exception.
    "unbound": r'''
        #key: "k"/who
        #first: "a"/what/who & {what: "x"|$eq_type(who)} <= #key
        #second: "a"/who/_ <= #key
    ''',
    # One name by several rules, with other values, so that a match must be taken back.
    "backtracking": r'''
        #k1: "k"/a
        #k2: "k"/a/b
        #k3: "k"/b/a
        #one: a/"x"/b <= #k2
        #two: "y"/a/b <= #k3
        #three: a/b/a <= #k1
        #four: a/a/b & {b: "y"|"z"} <= #k1
        #tmp: _x/_x/b & {_x: "x"|"z"} <= #k3
        #site: a/b
        #deep: #site/#site/"end" <= #k2
    ''',
}

# Model, packets, keys: each packet with each key is a case.
PUBLISHED = {
    "pyndn0": (["/a/blog/article/math/2022/03", "/a/blog/article/math/2022", "/a/blog/author/xinyu/KEY/1/admin/1",
                "/a/blog/reader/xinyu/KEY/1/admin/1", "/a/blog/admin/admin/KEY/1/root/1", "/b/blog/article/m/2022/03"],
               ["/a/blog/author/xinyu/KEY/1/admin/1", "/a/blog/admin/admin/KEY/1/root/1", "/a/blog/KEY/1/self/1",
                "/a/blog/author/xinyu/KEY/1", "/a/blog/role/xinyu/KEY/1/admin/1"]),
    "pyndn1": (["/article/eco/day1", "/article/spo/day1", "/article/sci/day1", "/la/author/1/KEY/1/la-signer/1",
                "/ny/author/2/KEY/1/ny-signer/1", "/sf/author/2/KEY/1/x/1", "/la/admin/9/KEY/1/x/1"],
               ["/la/author/1/KEY/1/la-signer/1", "/ny/author/2/KEY/1/ny-signer/1", "/la/admin/9/KEY/1/x/1",
                "/sf/author/2/KEY/1/x/1", "/la/KEY/1/self/1", "/ny/KEY/1/self/1", "/sf/KEY/1/self/1"]),
    "pyndn2": (["/lvs-test/article/xinyu/hello/v=1", "/lvs-test/article/xinyu/hello/1", "/lvs-test/article/xinyu/hello/v=0",
                "/lvs-test/article/xinyu/hello/seg=1", "/lvs-test/author/xinyu/KEY/1/admin1/v=1",
                "/lvs-test/admin/admin1/KEY/1/root/v=1"],
               ["/lvs-test/author/xinyu/KEY/1/admin1/v=1", "/lvs-test/author/yekta/KEY/1/admin1/v=1",
                "/lvs-test/admin/admin1/KEY/1/root/v=1", "/lvs-test/admin/admin2/KEY/1/root/v=1",
                "/lvs-test/KEY/1/self/v=1"]),
    "pyndn3": (["/x/y", "/x/x", "/x"], ["/x/y"]),
    "pyndn4": (["/a/b/c", "/x/y/z", "/x/x/x", "/a/a/a", "/a/c/a", "/a/x/x", "/b/y/b", "/x/b/c"],
               ["/xxx/yyy/zzz", "/xxx/xxx/xxx", "/yyy/yyy/zzz", "/a/b/c"]),
    "pyndn5": (["/ndn/ucla/KEY/2/ndn/3", "/ndn/ucla/%C1.Operator/13/KEY/2/ndn/3",
                "/ndn/ucla/cs/%C1.Operator/13/KEY/2/ndn/3", "/ndn/ucla/cs/irl/%C1.Router/r1/KEY/2/ndn/3",
                "/ndn/ucla/cs/irl/%C1.Router/r1/nlsr/lsdb/adj/1/0", "/ndn/ucla/a/b/c/KEY/2/ndn/3",
                "/yoursunny/ucla/KEY/2/ndn/3", "/other/ucla/KEY/2/ndn/3"],
               ["/ndn/KEY/1/self/1", "/ndn/ucla/KEY/2/ndn/3", "/ndn/ucla/cs/KEY/2/ndn/3", "/ndn/arizona/KEY/2/ndn/3",
                "/yoursunny/ucla/KEY/2/ndn/3", "/yoursunny/KEY/1/self/1", "/ndn/ucla/cs/irl/%C1.Router/r1/KEY/2/ndn/3",
                "/ndn/ucla/cs/irl/%C1.Operator/13/KEY/2/ndn/3"]),
    "tutorial": (["/ndn/blog/admin/000001/KEY/1/root/1", "/ndn/blog/admin/000001/key/1/root/1",
                  "/ndn/blog/author/100001/KEY/1/000001/1", "/ndn/blog/author/1000/KEY/1/000001/1",
                  "/ndn/blog/reader/200001/KEY/1/000001/1", "/ndn/blog/100001/post/2022/1",
                  "/ndn/blog/100001/post/202/1", "/ndn/blog/200001/post/2022/1"],
                 ["/ndn/blog/KEY/1/self/1", "/ndn/blog/admin/000001/KEY/1/root/1", "/ndn/blog/author/100001/KEY/1/000001/1",
                  "/ndn/blog/author/100002/KEY/1/000001/1", "/ndn/blog/reader/200001/KEY/1/000001/1"]),
    "ndnd-dv": (["/localhop/net/r1/32=DV/32=ADV/seg=1", "/localhop/net/r1/32=DV/32=ADV",
                 "/localhop/ndn/net/r1/32=DV/32=ADV/t=5", "/net/32=DV/32=PFS/net/r1/t=1/seq=2",
                 "/net/32=DV/32=PFS/net/r2/t=1/seq=2", "/a/b/32=DV/32=PFS/a/b/r1/t=1/seq=2",
                 "/net/r1/32=DV/KEY/k/net/v=1", "/a/b/c/r/32=DV/KEY/k/net/v=1", "/net/KEY/k/self/v=1"],
                ["/net/r1/32=DV/KEY/k/net/v=1", "/net/r2/32=DV/KEY/k/net/v=1", "/ndn/net/r1/32=DV/KEY/k/net/v=1",
                 "/a/b/r1/32=DV/KEY/k/net/v=1", "/net/KEY/k/self/v=1", "/a/b/c/KEY/k/self/v=1",
                 "/net/r1/DV/KEY/k/net/v=1"]),
    "ownly": (["/ndn/alice/wksp1/ndn/bob/KEY/k/alice/v=1", "/ndn/alice/wksp1/ndn/alice/KEY/k/alice/v=1",
               "/ndn/alice/KEY/k/root/v=1", "/ndn/edu/ucla/alice/KEY/k/site/v=1", "/ndn/edu/ucla/KEY/k/root/v=1",
               "/ndn/alice/wksp1/project/ndn/bob/seg=1/v=2", "/ndn/alice/wksp1/project/ndn/bob/t=1/32=blob/v=2",
               "/ndn/alice/wksp1/32=KD", "/ndn/alice/wksp1/root/32=INVITE/ndn/bob", "/ndnd/ucla/repo/cmd"],
              ["/ndn/alice/wksp1/ndn/alice/KEY/k/alice/v=1", "/ndn/alice/wksp1/ndn/bob/KEY/k/alice/v=1",
               "/ndn/alice/wksp1/ndn/bob/KEY/k", "/ndn/alice/wksp2/ndn/bob/KEY/k/alice/v=1", "/ndn/alice/KEY/k/root/v=1",
               "/ndn/KEY/k/self/v=1", "/ndn/edu/ucla/KEY/k/root/v=1"]),
}
OWN_NAMES = {
    "site": (["/localhop/nfd/rib/register/p", "/localhop/nfd/rib/unregister/p", "/localhop/nfd/rib/announce/p",
              "/localhop/nfd/fib/register/p", "/site/r1/32=PA/v=1/seg=0", "/site/a/r1/32=PA/v=1/seg=0",
              "/site/router/r1/KEY/1/op/v=1", "/site/op/ann/KEY/1/root/v=1"],
             ["/site/router/r1/KEY/1/op/v=1", "/site/router/r2/KEY/1/op/v=1", "/site/op/ann/KEY/1/root/v=1",
              "/site/KEY/1/self/v=1", "/else/KEY/1/self/v=1",
              "/site/op/ann/KEY/1/root/v=1/sha256digest=" + "00" * 32]),
    "admin": (["/localhost/nfd/rib/register/p", "/localhost/nfd/rib/announce/p", "/files/a/v=1/seg=0", "/files/a/1/seg=0",
               "/files/a/v=1/v=1", "/files/a/32=metadata/v=1/seg=0", "/admin/ann/KEY/1/self/v=1"],
              ["/admin/ann/KEY/1/self/v=1", "/admin/ann/KEY/1", "/other/ann/KEY/1/self/v=1"]),
    "letters": (["/site/bob/1", "/site/bob/1/2", "/site/bob/KEY/1/issuer/v=1"],
                ["/site/bob/KEY/1/issuer/v=1", "/site/ann/KEY/1/issuer/v=1", "/site/KEY/1/self/v=1"]),
    "constraints": ([f"/{verb}/{names}" for verb in ["same", "either", "eq", "later", "latereq", "none"]
                     for names in ["ann/ann", "ann/x", "x/ann", "ann/bob"]]
                    + ["/both/ann/v=7", "/both/ann/v=8", "/both/ann/7", "/typed/ann/seg=3", "/typed/ann/v=3"],
                    ["/k/ann", "/k/x"]),
    "unbound": (["/a/x/ann", "/a/y/ann", "/b/x/ann", "/a/ann/ann"], ["/k/ann", "/k/x", "/k/y"]),
    "backtracking": (["/y/x/y", "/y/x/x", "/x/x/y", "/x/x/z", "/z/x/z", "/x/y/x", "/y/y/y", "/a/b/a/b/end",
                      "/a/b/b/a/end", "/a/a/a/a/end"],
                     ["/k/x", "/k/y", "/k/x/y", "/k/y/x", "/k/y/y", "/k/a/b", "/k/b/a", "/k/a/a"]),
}


def verdict(checker: Checker, packet: str, key: str) -> bool:
    """python-ndn's verdict. An exception lets nothing pass."""
    try:
        return checker.check(packet, key)
    except (TypeError, AttributeError, ValueError, IndexError):
        return False


def matches(checker: Checker, name: str) -> list | None:
    """Rules and values of patterns, in the order in which python-ndn finds them; None if it raised."""
    try:
        found = list(checker.match(name))
    except (TypeError, AttributeError, ValueError, IndexError):
        return None
    return [[rules, {tag: Component.to_str(value) for tag, value in values.items()}] for rules, values in found]


def uri(name: str) -> str:
    return Name.to_str(Name.from_str(name))


def table(title: str, checker: Checker, packets: list[str], keys: list[str]) -> dict:
    names = list(dict.fromkeys([*packets, *keys]))
    return {
        "model": title,
        "roots": sorted(checker.root_of_trust()),
        "matches": {uri(name): matches(checker, name) for name in names},
        "cases": [[uri(packet), uri(key), verdict(checker, packet, key)] for packet in packets for key in keys],
    }


def functions() -> dict:
    return DEFAULT_USER_FNS | USER_FUNCTIONS


def own(folder: Path) -> list[dict]:
    """Compiles our schemas, and asks for verdicts."""
    tables = []
    for title, source in OWN.items():
        model = compile_lvs(source)
        (folder / f"{title}.tlv").write_bytes(bytes(model.encode()))
        tables.append(table(title, Checker(model, functions()), *OWN_NAMES[title]))
    return tables


def published() -> list[dict]:
    tables = []
    for title, (packets, keys) in PUBLISHED.items():
        model = LvsModel.parse((TABLE / f"{title}.tlv").read_bytes())
        tables.append(table(title, Checker(model, functions()), packets, keys))
    return tables


def text(tables: list[dict]) -> str:
    """JSON with one line for each case, so that differences can be read."""
    def lines(items: list[str]) -> str:
        return ",\n   ".join(items)

    parts = []
    for one in tables:
        names = lines([f"{json.dumps(name)}: {json.dumps(found)}" for name, found in one["matches"].items()])
        cases = lines([json.dumps(case) for case in one["cases"]])
        parts.append(f' {{"model": {json.dumps(one["model"])}, "roots": {json.dumps(one["roots"])},\n'
                     f'  "matches": {{\n   {names}}},\n  "cases": [\n   {cases}]}}')
    return "[\n" + ",\n".join(parts) + "\n]\n"


def main() -> int:
    match sys.argv[1:]:
        case []:
            tables = [*published(), *own(TABLE)]
            (TABLE / "verdicts.json").write_text(text(tables))
            cases = [case for one in tables for case in one["cases"]]
            print(f"{len(cases)} cases, {sum(case[2] for case in cases)} allowed")
        case ["--live", folder]:
            print(json.dumps(own(Path(folder))))
        case ["--compile", source, model]:
            Path(model).write_bytes(bytes(compile_lvs(Path(source).read_text()).encode()))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
