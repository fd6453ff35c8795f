#!/usr/bin/env python3
"""Tests packaging/install.sh with releases made of a script in place of the program: what is installed, and when nothing?

A machine is a folder of links to real tools, the only one in PATH, with fakes in place of `uname` and `id`. It has an
empty home. Releases are in a folder, or come from a web server of the test. Exit status 1 if a test fails.
"""
import hashlib
import http.server
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
from functools import partial
from pathlib import Path

INSTALLER = Path(__file__).resolve().parent / "install.sh"
TOOLS = ["sed", "grep", "cut", "cat", "cp", "mv", "rm", "mkdir", "mktemp", "tar", "gzip", "sha256sum", "curl"]
COMPLETIONS = ["share/bash-completion/completions/namewire", "share/zsh/site-functions/_namewire",
               "share/fish/vendor_completions.d/namewire.fish"]
DOCUMENTS = ["share/man/man1/namewire.1", "share/man/man1/namewire-run.1", "share/doc/namewire/LICENSE"]
FILES = {"bin/namewire", *COMPLETIONS, *DOCUMENTS}


def release(folder: Path, version: str = "1.2.3", machine: str = "x86_64") -> Path:
    """Adds an archive, and its line in SHA256SUMS, to the folder."""
    name = f"namewire-{version}-{machine}-linux"
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        for file in sorted(FILES):
            content = f"#!/bin/sh\necho namewire {version} {machine}\n".encode()
            entry = tarfile.TarInfo(f"{name}/{file}")
            entry.size, entry.mode = len(content), 0o755 if file.startswith("bin/") else 0o644
            archive.addfile(entry, io.BytesIO(content))
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.tar.gz").write_bytes(written.getvalue())
    with (folder / "SHA256SUMS").open("a") as sums:
        sums.write(f"{hashlib.sha256(written.getvalue()).hexdigest()}  {name}.tar.gz\n")
    return folder


class Installer(unittest.TestCase):
    shell = "/bin/sh"

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name)
        self.bin, self.home, self.temporary = (self.folder / name for name in ("bin", "home", "temporary"))
        for folder in (self.bin, self.home, self.temporary):
            folder.mkdir()
        for tool in TOOLS:
            if found := shutil.which(tool):
                (self.bin / tool).symlink_to(found)
        (self.bin / "sh").symlink_to(self.shell) # by this name, bash keeps to POSIX
        self.fake("id", "echo 1000")
        self.machine("x86_64")

    def fake(self, tool: str, does: str):
        (self.bin / tool).unlink(missing_ok=True)
        (self.bin / tool).write_text(f"#!/bin/sh\n{does}\n")
        (self.bin / tool).chmod(0o755)

    def machine(self, name: str, system: str = "Linux"):
        self.fake("uname", f'[ "$1" = -m ] && echo {name} || echo {system}')

    def run_it(self, *arguments, text: bytes | None = None, **environment: str) -> tuple[int, str]:
        env = {"PATH": str(self.bin), "HOME": str(self.home), "TMPDIR": str(self.temporary)} | environment
        done = subprocess.run([self.bin / "sh", "-s", "--", *map(str, arguments)], env=env, cwd=self.folder,
                              input=INSTALLER.read_bytes() if text is None else text, capture_output=True, timeout=60)
        self.assertEqual(list(self.temporary.iterdir()), [], "temporary files are left")
        return done.returncode, (done.stdout + done.stderr).decode()

    def installed(self, prefix: Path | None = None) -> set[str]:
        prefix = prefix or self.home / ".local"
        return {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}

    def assert_refused(self, said: str, *arguments, **environment: str):
        status, found = self.run_it(*arguments, **environment)
        self.assertEqual(status, 1, found)
        self.assertIn(said, found)
        self.assertEqual(list(self.home.iterdir()), [], "something was installed")

    def serve(self, folder: Path) -> str:
        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
        threading.Thread(target=server.serve_forever).start()
        self.addCleanup(lambda: (server.shutdown(), server.server_close()))
        return f"http://127.0.0.1:{server.server_port}"

    def test_a_release_in_a_folder_is_installed_for_the_user_alone(self):
        status, said = self.run_it("--from", release(self.folder / "release"))
        self.assertEqual(status, 0, said)
        self.assertEqual(self.installed(), FILES)
        self.assertEqual(list(self.home.iterdir()), [self.home / ".local"])
        self.assertIn("namewire 1.2.3 x86_64 is in", said)
        line = f'export PATH="{self.home}/.local/bin:$PATH"'
        self.assertIn(line, said)
        # The line that it says is the line that the shell needs.
        shell = subprocess.run(["/bin/sh", "-c", f"{line}; namewire"], env={"PATH": ""}, capture_output=True, text=True)
        self.assertEqual(shell.stdout, "namewire 1.2.3 x86_64\n")
        status, said = self.run_it("--from", self.folder / "release", PATH=f"{self.bin}:{self.home}/.local/bin")
        self.assertEqual((status, "export PATH" in said), (0, False), said)

    def test_prefix_and_the_place_of_releases_by_a_variable(self):
        status, said = self.run_it("--prefix", "in/a folder", NAMEWIRE_RELEASES=f"{release(self.folder / 'release')}/")
        self.assertEqual(status, 0, said)
        self.assertEqual(self.installed(self.folder / "in/a folder"), FILES)
        self.assertEqual(list(self.home.iterdir()), [])

    def test_a_release_on_a_server_comes_by_curl_or_wget(self):
        url = self.serve(release(self.folder / "release"))
        for tool in ("curl", "wget"):
            if not (real := shutil.which(tool)):
                continue
            for other in ("curl", "wget"):
                (self.bin / other).unlink(missing_ok=True)
            (self.bin / tool).symlink_to(real)
            status, said = self.run_it("--from", url)
            self.assertEqual(status, 0, said)
            self.assertEqual(self.installed(), FILES)
            shutil.rmtree(self.home / ".local")
            self.assert_refused("cannot get SHA256SUMS", "--from", f"{url}/elsewhere")

    def test_the_machine_chooses_the_archive(self):
        for machine in ("x86_64", "aarch64"):
            release(self.folder / "release", machine=machine)
        for name, machine in (("aarch64", "aarch64"), ("arm64", "aarch64"), ("amd64", "x86_64")):
            self.machine(name)
            status, said = self.run_it("--from", self.folder / "release")
            self.assertEqual((status, f"namewire 1.2.3 {machine} is in" in said), (0, True), said)

    def test_unknown_machines_are_refused(self):
        folder = release(self.folder / "release")
        self.machine("riscv64")
        self.assert_refused("no program for riscv64", "--from", folder)
        self.machine("x86_64", "Darwin")
        self.assert_refused("this is Darwin", "--from", folder)
        self.machine("aarch64")
        self.assert_refused("has no archive for aarch64", "--from", folder)

    def test_of_several_versions_one_must_be_chosen(self):
        for version in ("1.2.3", "1.10.0"):
            release(self.folder / "release", version)
        self.assert_refused("several versions", "--from", self.folder / "release")
        self.assert_refused("no archive of version 1.2.4", "--from", self.folder / "release", "--version", "1.2.4")
        status, said = self.run_it("--from", self.folder / "release", "--version", "1.10.0")
        self.assertEqual((status, "namewire 1.10.0" in said), (0, True), said)

    def test_another_sum_is_refused_with_each_tool(self):
        folder = release(self.folder / "release")
        archive = next(folder.glob("*.tar.gz"))
        right = archive.read_bytes()
        for tool in ("sha256sum", "shasum", "openssl"):
            if not (real := shutil.which(tool)):
                continue
            (self.bin / "sha256sum").unlink(missing_ok=True)
            (self.bin / "sha256sum" if tool == "sha256sum" else self.bin / tool).symlink_to(real)
            (self.bin / "perl").unlink(missing_ok=True)
            (self.bin / "perl").symlink_to(shutil.which("perl") or "perl") # shasum is written in it
            archive.write_bytes(right + b"\0")
            self.assert_refused("Nothing was installed", "--from", folder)
            archive.write_bytes(right)
            status, said = self.run_it("--from", folder)
            self.assertEqual(status, 0, f"{tool}: {said}")
            shutil.rmtree(self.home / ".local")
            (self.bin / tool).unlink()
        self.assert_refused("is needed to check", "--from", folder)

    def test_missing_tools_are_named(self):
        folder = release(self.folder / "release")
        for tool in ("tar", "gzip"):
            (self.bin / tool).rename(self.folder / tool)
            self.assert_refused(f"{tool} is missing", "--from", folder)
            (self.folder / tool).rename(self.bin / tool)
        (self.bin / "curl").unlink(missing_ok=True)
        self.assert_refused("curl or wget is needed", "--from", "http://127.0.0.1:9")

    def test_without_a_network_or_a_place_it_says_so(self):
        (self.bin / "curl").unlink(missing_ok=True)
        self.fake("curl", "echo 'could not resolve host' >&2; exit 6")
        self.assert_refused("cannot get SHA256SUMS from https://forge.invalid", "--from", "https://forge.invalid")
        self.assert_refused("cannot get SHA256SUMS", "--from", self.folder / "nothing")
        self.assert_refused("NAMEWIRE_RELEASES")

    def test_wrong_options_are_refused(self):
        self.assert_refused("unknown option --fro", "--fro", "x")
        self.assert_refused("--from needs a value", "--from")
        self.assertEqual(self.run_it("--help")[0], 0)

    def test_half_of_the_script_does_nothing(self):
        release(self.folder / "release")
        whole = INSTALLER.read_bytes()
        for part in (2, 3, 10):
            self.run_it("--from", self.folder / "release", text=whole[:len(whole) * (part - 1) // part])
            self.assertEqual(list(self.home.iterdir()), [])

    def test_an_upgrade_leaves_no_old_page_and_no_running_program_in_the_way(self):
        self.run_it("--from", release(self.folder / "one", "1.0.0"))
        prefix = self.home / ".local"
        (prefix / "share/man/man1/namewire-gone.1").touch()
        program = prefix / "bin/namewire"
        program.unlink()
        shutil.copy("/bin/sleep", program)
        with subprocess.Popen([program, "60"]) as running:
            status, said = self.run_it("--from", release(self.folder / "two", "2.0.0"))
            self.assertIsNone(running.poll())
            running.kill()
        self.assertEqual(status, 0, said)
        self.assertEqual(self.installed(), FILES)
        self.assertIn("2.0.0", program.read_text())

    def test_a_program_that_does_not_run_is_said(self):
        folder = self.folder / "release"
        release(folder)
        self.fake("mv", 'shift; rm "$1"; printf "#!/bin/sh\\nexit 1\\n" >"$2"; exec chmod +x "$2"')
        (self.bin / "chmod").symlink_to(shutil.which("chmod"))
        status, said = self.run_it("--from", folder)
        self.assertEqual((status, "does not run here" in said), (1, True), said)

    def test_root_installs_for_all(self):
        self.fake("id", "echo 0")
        self.fake("mkdir", 'echo "mkdir $*" >&2; exit 1') # nothing of this machine is touched
        status, said = self.run_it("--from", release(self.folder / "release"))
        self.assertEqual((status, "/usr/local cannot be written" in said), (1, True), said)

    def test_what_was_installed_can_be_removed(self):
        self.run_it("--from", release(self.folder / "release"))
        mine = self.home / ".local/bin/mine"
        mine.touch()
        status, said = self.run_it("--uninstall")
        self.assertEqual(status, 0, said)
        self.assertEqual(self.installed(), {"bin/mine"})
        status, said = self.run_it("--uninstall")
        self.assertEqual((status, "has no Namewire" in said), (1, True), said)


def main() -> int:
    tried = wrong = 0
    for Installer.shell in filter(None, map(shutil.which, ("dash", "bash"))):
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(Installer)
        result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
        for test, trace in result.failures + result.errors:
            print(f"{Installer.shell}: {test}\n{trace}", file=sys.stderr)
        tried, wrong = tried + result.testsRun, wrong + len(result.failures) + len(result.errors)
    print(f"test_installer: {tried} installations tried, {wrong} went wrong")
    return 1 if wrong or not tried else 0


if __name__ == "__main__":
    os.environ.pop("NAMEWIRE_RELEASES", None)
    sys.exit(main())
