#!/usr/bin/env python3
"""Tests tools/setup.sh on machines made of fake commands: what does it install, run and print if something is missing?

A machine is a directory, the only one in PATH. It has links to small real tools (sed, mkdir, …), and scripts in place of
id, uname, curl, apt-get, rustup, cc and others, which record their calls. The checkout is a copy of the files that
setup.sh reads. Nothing is fetched, installed or changed outside a temporary directory.

`tools/setup_test.py --self-test` tests these tests: each of MUTATIONS breaks setup.sh in one place, and a test must fail.
Without an option both run. Exit status 1 if a test fails or a mutation passes.
"""
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETUP = (ROOT / "tools" / "setup.sh").read_text()
REAL_TOOLS = ["sh", "sed", "tr", "cat", "mkdir", "rm", "ln", "chmod", "cut", "basename", "dirname", "mktemp", "grep", "env"]
WANTED = re.search(r'channel = "(.*)"', (ROOT / "rust-toolchain.toml").read_text())[1]
TRIPLE = "x86_64-unknown-linux-gnu"
VERSION = re.search(r"rustup_version=(.*)", SETUP)[1]

# The toolchain that rustup installs, by either of its programs.
MAKE_TOOLCHAIN = f"""
bin=$RUSTUP_HOME/toolchains/{WANTED}-{TRIPLE}/bin
mkdir -p "$bin"
for program in cargo rustc; do
    printf '#!/bin/sh\\necho "$(basename "$0") {WANTED} (fake)"\\n' >"$bin/$program"
    chmod +x "$bin/$program"
done
"""
INSTALLER = "#!/bin/sh\necho \"rustup-init $*\" >>\"$CALLS\"\n" + MAKE_TOOLCHAIN

# Each is a text of setup.sh and its replacement; a test must notice the change.
MUTATIONS = [
    ('if [ "$found" != "$sum" ]; then', "if false; then"),
    ('is_root || fail "missing', 'true || fail "missing'),
    ("is_root && ! has rustup && ! has rustup-init", "! has rustup && ! has rustup-init"),
    ("if has rustup || has rustup-init; then need cc; else need cc curl; fi", "need cc"),
    ("if has rustup || has rustup-init; then need cc; else need cc curl; fi", ":"),
    ('if ! at_least "$version" "$(oldest_version)"; then', "if false; then"),
    ('[ "$minor" -ge "$oldest_minor" ]', '[ "$minor" -gt "$oldest_minor" ]'),
    ("    if copied_toolchain; then", "    if false; then"),
    ('RUSTUP_HOME=$toolchain/rustup CARGO_HOME=$toolchain/cargo RUSTUP', "RUSTUP"),
    ('|| rm -f "$toolchain/bin/cargo" "$toolchain/bin/rustc"', ""),
    ("--no-modify-path", ""),
    ("Candidate: [^(]", "Candidate: "),
    ('cc) has cc && compiles cc c ;;', "cc) has cc ;;"),
    ("apt-get:cc) echo gcc libc6-dev ;;", "apt-get:cc) echo gcc ;;"),
    ("apt-get:redis-server) echo redis-server ;;", ""),
    ("*:redis-server) echo redis ;;", ""),
    ('|| not_tested "this failed', '|| fail "this failed'),
    ('|| { rm -f "$installer"; say', '|| { say'),
    ('[ ! -d "$folder" ] || return 0', "return 0"),
    ('grep -qs "^\\"$1 $2 "', 'grep -qs "^\\"$1 "'),
    ("${RUSTUP_UPDATE_ROOT:-https://static.rust-lang.org/rustup}", "https://static.rust-lang.org/rustup"),
    ('export CARGO_HOME="${CARGO_HOME:-$toolchain/cargo}" PATH', "export PATH"),
]


class Machine:
    """A checkout, and a PATH with only the commands that a test put there."""

    def __init__(self, directory: str, setup: str, is_root: bool):
        self.checkout, self.bin, self.calls = (Path(directory) / name for name in ("checkout", "bin", "calls"))
        (self.checkout / "tools").mkdir(parents=True)
        self.bin.mkdir()
        self.calls.touch()
        for name in ("rust-toolchain.toml", "Cargo.toml"):
            shutil.copy(ROOT / name, self.checkout)
        for name in REAL_TOOLS:
            (self.bin / name).symlink_to(shutil.which(name))
        # The fake installer has the expected sum.
        self.installer = INSTALLER
        for sum_name in ("rustup_sha256_x86_64", "rustup_sha256_aarch64"):
            digest = hashlib.sha256((INSTALLER if "x86" in sum_name else "other").encode()).hexdigest()
            setup, count = re.subn(rf"{sum_name}=[0-9a-f]{{64}}", f"{sum_name}={digest}", setup)
            assert count == 1, sum_name
        (self.checkout / "tools" / "setup.sh").write_text(setup)
        (self.bin / "sha256sum").symlink_to(shutil.which("sha256sum"))
        self.has("id", f"echo {0 if is_root else 1000}")
        self.has("uname", f'[ "$1" = -m ] && echo {TRIPLE.split("-")[0]} || echo Linux')

    def has(self, command: str, does: str = ":", note: bool = False):
        """Puts a command on the machine; with `note`, each call adds a line to `calls`."""
        record = f'echo "{command} $*" >>"$CALLS"\n' if note else ""
        path = self.bin / command
        path.write_text(f"#!/bin/sh\n{record}{does}\n")
        path.chmod(0o755)

    def brings(self, *commands: str) -> str:
        """Shell text that puts working commands on the machine, as a package manager does."""
        paths = [self.bin / command for command in commands]
        return "\n".join(f"printf '#!/bin/sh\\n:\\n' >{path}; chmod +x {path}" for path in paths)

    def has_curl(self, served: str | None = None, status: int = 0):
        served_file = self.bin.parent / "served"
        served_file.write_text(self.installer if served is None else served)
        self.has("curl", f'for last in "$@"; do url=$last; done\necho "curl $url" >>"$CALLS"\n'
                 f'[ {status} = 0 ] || {{ echo partly >"$6"; exit {status}; }}\ncat {served_file} >"$6"')

    def setup(self, *parts: str, **environment: str) -> "Machine":
        home = self.bin.parent / "home"
        home.mkdir(exist_ok=True)
        env = {"PATH": str(self.bin), "HOME": str(home), "CALLS": str(self.calls), "TMPDIR": str(home)} | environment
        done = subprocess.run(["sh", "tools/setup.sh", *parts], cwd=self.checkout, env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        self.status, self.said = done.returncode, done.stdout + done.stderr
        return self

    def called(self) -> list[str]:
        return self.calls.read_text().splitlines()

    def cargo(self, **environment: str) -> str:
        """The output of the checkout's cargo, run like a step of the Makefile."""
        env = {"PATH": str(self.bin), "CALLS": str(self.calls)} | environment
        return subprocess.run([self.checkout / ".toolchain/bin/cargo"], env=env, capture_output=True, text=True).stdout


class SetUp(unittest.TestCase):
    text = SETUP

    def machine(self, is_root: bool = False) -> Machine:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        return Machine(directory.name, self.text, is_root)

    def assert_installed(self, machine: Machine):
        self.assertEqual(machine.status, 0, machine.said)
        self.assertEqual(machine.cargo(), f"cargo {WANTED} (fake)\n")

    def test_a_machine_with_everything_is_left_alone(self):
        for version in (WANTED, "99.0.0"):
            machine = self.machine()
            machine.has("cc")
            machine.has("cargo", f"echo 'cargo {version} (abc 2026-01-01)'")
            self.assertEqual(machine.setup("rust").status, 0, machine.said)
            self.assertFalse((machine.checkout / ".toolchain").exists())
            self.assertEqual("tested with" in machine.said, version != WANTED, machine.said)

    def test_without_root_the_official_installer_is_announced_checked_and_kept_inside(self):
        machine = self.machine()
        machine.has("cc")
        machine.has_curl()
        self.assert_installed(machine.setup("rust"))
        url = f"https://static.rust-lang.org/rustup/archive/{VERSION}/{TRIPLE}/rustup-init"
        fetched, ran = machine.called()
        self.assertEqual(fetched, f"curl {url}")
        for option in ("-y", "--no-modify-path", f"--default-toolchain {WANTED}", "-c rustfmt -c clippy"):
            self.assertIn(option, ran)
        self.assertIn(url, machine.said)
        self.assertIn(hashlib.sha256(INSTALLER.encode()).hexdigest(), machine.said)
        self.assertEqual(list((machine.bin.parent / "home").iterdir()), [], "nothing in the home directory")
        # A second run has nothing to do.
        machine.calls.write_text("")
        self.assertEqual(machine.setup("rust").status, 0, machine.said)
        self.assertEqual(machine.called(), [])

    def test_programs_under_the_checkouts_cargo_keep_their_files_there_too(self):
        machine = self.machine()
        machine.has("cc")
        machine.has_curl()
        self.assert_installed(machine.setup("rust"))
        real = machine.checkout / ".toolchain/rust/bin/cargo"
        real.write_text('#!/bin/sh\necho "$CARGO_HOME $PATH"\n')
        inside = f"{machine.checkout}/.toolchain"
        home, path = machine.cargo().split()
        self.assertEqual((home, path.split(":")[0]), (f"{inside}/cargo", f"{inside}/rust/bin"))
        self.assertEqual(machine.cargo(CARGO_HOME="/mine").split()[0], "/mine")

    def test_an_installer_with_another_sum_never_runs(self):
        machine = self.machine()
        machine.has("cc")
        machine.has_curl(served=INSTALLER + "# changed\n")
        self.assertEqual(machine.setup("rust").status, 1)
        self.assertEqual([call.split()[0] for call in machine.called()], ["curl"])
        self.assertIn("was not run", machine.said)
        self.assertFalse((machine.checkout / ".toolchain/rustup-init").exists())
        self.assertFalse((machine.checkout / ".toolchain/bin").exists())

    def test_a_named_server_is_used(self):
        machine = self.machine()
        machine.has("cc")
        machine.has_curl()
        self.assert_installed(machine.setup("rust", RUSTUP_UPDATE_ROOT="https://mirror.example/r"))
        self.assertTrue(machine.called()[0].startswith("curl https://mirror.example/r/archive/"), machine.called())

    def test_without_a_server_a_copied_toolchain_is_used(self):
        machine = self.machine()
        machine.has("cc")
        machine.has_curl(status=7)
        self.assertEqual(machine.setup("rust").status, 1)
        self.assertFalse((machine.checkout / ".toolchain/rustup-init").exists(), "half a download")
        self.assertIn(".toolchain/rust", machine.said)
        copy = machine.checkout / ".toolchain/rust/bin"
        copy.mkdir(parents=True)
        for program in ("cargo", "rustc"):
            (copy / program).write_text(f'#!/bin/sh\necho "{program} {WANTED} (fake)"\n')
            (copy / program).chmod(0o755)
        machine.calls.write_text("")
        self.assert_installed(machine.setup("rust"))
        self.assertEqual(machine.called(), [])
        # After its removal, the shims do not pass for a cargo.
        shutil.rmtree(copy.parent)
        self.assertEqual(machine.setup("rust").status, 1)
        self.assertIn("cargo is missing", machine.said)

    def test_a_cargo_too_old_for_the_sources_is_not_used(self):
        machine = self.machine()
        machine.has("cc")
        machine.has("cargo", "echo 'cargo 1.65.0'")
        machine.has_curl()
        self.assert_installed(machine.setup("rust"))
        self.assertIn("1.65.0; the sources need", machine.said)

    def test_rustup_of_the_machine_is_used_with_its_homes_in_the_checkout(self):
        machine = self.machine()
        machine.has("cc")
        machine.has("rustup", MAKE_TOOLCHAIN, note=True)
        self.assert_installed(machine.setup("rust"))
        self.assertEqual(machine.called(), [f"rustup toolchain install {WANTED} --profile minimal -c rustfmt -c clippy "
                                            "--no-self-update"])

    def test_root_gets_the_compiler_and_the_distribution_s_rustup(self):
        machine = self.machine(is_root=True)
        machine.has("apt-cache", "echo '  Candidate: 1.27.1-3'")
        rustup = f"cat >{machine.bin}/rustup <<'END'\n#!/bin/sh\n{MAKE_TOOLCHAIN}\nEND\nchmod +x {machine.bin}/rustup"
        machine.has("apt-get", f'case $* in *gcc*) {machine.brings("cc")} ;; *rustup*) {rustup}\n;; esac', note=True)
        self.assert_installed(machine.setup("rust"))
        self.assertEqual(machine.called(), ["apt-get update", "apt-get install -y gcc libc6-dev",
                                            "apt-get update", "apt-get install -y rustup"])

    def test_root_gets_the_official_installer_where_the_distribution_has_no_rustup(self):
        machine = self.machine(is_root=True)
        machine.has("cc")
        machine.has("apt-cache", "echo '  Candidate: (none)'")
        machine.has("apt-get", note=True)
        machine.has_curl()
        self.assert_installed(machine.setup("rust"))
        self.assertEqual([call.split()[0] for call in machine.called()], ["curl", "rustup-init"])

    def test_without_root_one_line_names_all_that_is_missing_before_anything_is_fetched(self):
        lines = {
            "apt-get": "apt-get update && apt-get install -y gcc libc6-dev curl ca-certificates",
            "dnf": "dnf install -y gcc glibc-devel curl",
            "apk": "apk add gcc musl-dev curl",
            "pacman": "pacman -Sy --needed --noconfirm gcc curl",
        }
        for manager, line in lines.items():
            for become_root in ("su", "sudo"):
                machine = self.machine()
                machine.has(manager, note=True)
                machine.has(become_root, note=True)
                self.assertEqual(machine.setup("rust").status, 1)
                self.assertIn(f"    {'sudo sh' if become_root == 'sudo' else 'su'} -c '{line}'\n", machine.said)
                self.assertEqual(machine.called(), [], "nothing was run")
        machine = self.machine()
        self.assertEqual(machine.setup("rust").status, 1)
        self.assertIn("missing: cc curl. Install them", machine.said)

    def test_a_compiler_that_cannot_link_counts_as_missing(self):
        machine = self.machine()
        machine.has("cargo", f"echo 'cargo {WANTED}'")
        machine.has("apt-get", note=True)
        machine.has("cc", "exit 1")
        self.assertEqual(machine.setup("rust").status, 1)
        self.assertIn("apt-get install -y gcc libc6-dev'", machine.said)

    def test_root_gets_a_message_if_a_package_lacks_the_command(self):
        machine = self.machine(is_root=True)
        machine.has("dnf", note=True)
        self.assertEqual(machine.setup("cxx").status, 1)
        self.assertEqual(machine.called(), ["dnf install -y gcc-c++"])
        self.assertIn("c++ is still missing", machine.said)

    def test_root_gets_redis_by_its_name_in_the_distribution(self):
        for manager, line in {"apt-get": "apt-get install -y redis-server", "dnf": "dnf install -y redis"}.items():
            machine = self.machine(is_root=True)
            machine.has(manager, machine.brings("redis-server"), note=True)
            self.assertEqual(machine.setup("redis").status, 0, machine.said)
            self.assertEqual(machine.called()[-1], line)

    def test_without_prometheus_the_test_is_left_out_with_one_line(self):
        machine = self.machine(is_root=False)
        machine.has("apt-get", note=True)
        self.assertEqual(machine.setup("prometheus").status, 3, machine.said)
        self.assertEqual(len(machine.said.splitlines()), 1)
        self.assertIn("Prometheus is not tested here", machine.said)
        self.assertEqual(machine.called(), [])

    def test_root_gets_prometheus_without_what_it_only_recommends(self):
        machine = self.machine(is_root=True)
        machine.has("apt-get", "false", note=True)
        self.assertEqual(machine.setup("prometheus").status, 3, machine.said)
        self.assertEqual(machine.called(), ["apt-get update"])
        self.assertIn("apt-get install -y --no-install-recommends prometheus", machine.said)
        self.assertIn("Prometheus is not tested here: this failed", machine.said)

    def test_mininet_comes_without_switches_or_its_test_is_left_out(self):
        machine = self.machine(is_root=True)
        machine.has("apt-get", machine.brings("mnexec"), note=True)
        self.assertEqual(machine.setup("mininet").status, 0, machine.said)
        self.assertEqual(machine.called()[-1], "apt-get install -y --no-install-recommends mininet")
        machine = self.machine(is_root=False)
        machine.has("apt-get", note=True)
        self.assertEqual(machine.setup("mininet").status, 3, machine.said)
        self.assertEqual(len(machine.said.splitlines()), 1)
        self.assertEqual(machine.called(), [])

    def test_without_root_other_processors_and_workflows_are_left_out(self):
        for part, said in (("arm64", "programs for arm64 are not tested"), ("workflows", "the workflows are not checked")):
            machine = self.machine()
            machine.has("apt-get", note=True)
            self.assertEqual(machine.setup(part).status, 3, machine.said)
            self.assertEqual(len(machine.said.splitlines()), 1)
            self.assertIn(said, machine.said)
            self.assertEqual(machine.called(), [])

    def test_a_static_program_needs_rust_s_standard_library_and_zig(self):
        for rustup_works in (True, False):
            for pip_works in (True, False):
                machine = self.machine()
                machine.has("cc")
                machine.has("cargo", f"echo 'cargo {WANTED}'")
                machine.has("cksum", "echo sum")
                (machine.checkout / "packaging").mkdir()
                shutil.copy(ROOT / "packaging/requirements-zig.txt", machine.checkout / "packaging")
                library = machine.bin.parent / "library"
                machine.has("rustc", f"echo {library}")
                machine.has("rustup", f"mkdir {library}" if rustup_works else "false", note=True)
                # The virtual environment's python is the machine's: the pip that it runs works or not.
                python = machine.bin / "python3"
                machine.has("python3", f"""case "$*" in
                    *venv\\ *) mkdir -p "$3/bin"; ln -s {python} "$3/bin/python" ;;
                    *pip\\ *) {"true" if pip_works else "false"} ;;
                    *ziglang*) echo /wheel ;;
                esac""")
                machine.setup("static-aarch64")
                self.assertEqual(machine.status, 0 if rustup_works and pip_works else 3, machine.said)
                self.assertEqual(machine.called(), ["rustup target add aarch64-unknown-linux-musl"])
                zig = machine.checkout / ".tools/zig/bin/zig"
                self.assertEqual(zig.is_symlink() and str(zig.readlink()), machine.status == 0 and "/wheel/zig")
                if machine.status == 0:
                    machine.has("python3", "exit 1") # a second run needs no pip
                    machine.has("python3.12")
                    self.assertEqual(machine.setup("static-aarch64").status, 0, machine.said)

    def test_both_first_builds_are_estimated_and_the_demo_s_is_shorter(self):
        minutes = []
        for part in "estimate-quick", "estimate":
            machine = self.machine(is_root=False)
            machine.has("getconf", "echo 2")
            self.assertEqual(machine.setup(part).status, 0, machine.said)
            minutes.append(int(re.search(r"takes some (\d+) minutes on 2 cores", machine.said)[1]))
        self.assertLess(*minutes)

    def test_a_tool_of_the_right_version_is_not_installed_again(self):
        machine = self.machine()
        machine.has("cc")
        version = re.search(r"tool cargo-deny ([0-9.]+)", SETUP)[1]
        tools = machine.checkout / ".tools/.crates.toml"
        tools.parent.mkdir()
        machine.has("cargo", f"""[ "$1" = --version ] && echo 'cargo {WANTED}' ||
            echo '"cargo-deny {version} (registry)" = ["cargo-deny"]' >{tools}""", note=True)
        install = f"cargo install --quiet --locked --root .tools --version {version} --debug cargo-deny"
        for older in ("", '"cargo-deny 0.1.0 (registry)" = ["cargo-deny"]\n'):
            tools.write_text(older)
            machine.calls.write_text("")
            for _ in range(2):
                self.assertEqual(machine.setup("deny").status, 0, machine.said)
            self.assertEqual([call for call in machine.called() if "install" in call], [install])

    def test_an_unknown_part_is_refused(self):
        self.assertEqual(self.machine().setup("rusty").status, 1)
        self.assertEqual(self.machine().setup().status, 1)


def run(text: str, failfast: bool = False) -> unittest.TestResult:
    SetUp.text = text
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(SetUp)
    return unittest.TextTestRunner(stream=io.StringIO(), failfast=failfast).run(suite)


def main() -> int:
    if sys.argv[1:] not in ([], ["--self-test"]):
        print("usage: tools/setup_test.py [--self-test]", file=sys.stderr)
        return 2
    failed = 0
    if not sys.argv[1:]:
        result = run(SETUP)
        for test, trace in result.failures + result.errors:
            print(f"{test}\n{trace}", file=sys.stderr)
        failed = len(result.failures) + len(result.errors)
        print(f"setup_test: {result.testsRun} machines tried, {failed} went wrong")
        if failed:
            return 1
    for before, after in MUTATIONS:
        if before not in SETUP:
            print(f"setup_test: setup.sh has no more: {before}", file=sys.stderr)
            failed += 1
        elif run(SETUP.replace(before, after, 1), failfast=True).wasSuccessful():
            print(f"setup_test: no test notices that «{before}» became «{after}»", file=sys.stderr)
            failed += 1
    print(f"setup_test: {len(MUTATIONS)} mutations, {failed} not noticed")
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.pop("RUSTUP_UPDATE_ROOT", None)
    sys.exit(main())
