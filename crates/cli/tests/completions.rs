//! Shells complete command lines of `namewire`: real shells, with a real router behind the line.
//!
//! A router that is slow to answer completes nothing, and a user presses the key again. So do these tests.

use crate::{
    router_process::{NAMEWIRE, Router, eventually, namewire, text},
    terminal::Terminal,
};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

const FAR: &str = "udp4://127.0.0.1:9";

/// Prefixes with a strategy choice: the one that is made here, and those that the router makes.
const CHOICES: [&str; 5] = ["/", "/chosen", "/localhost", "/localhost/nfd", "/ndn/broadcast"];

/// A folder with a script, a router named `lab`, and a shell that finds `namewire` first.
struct Bench {
    folder: tempfile::TempDir,
    script: PathBuf,
    shell: &'static str,
    router: Router,
}

impl Bench {
    /// `None`, with a message, if this machine lacks the shell.
    fn new(shell: &'static str) -> Option<Bench> {
        if Command::new(shell).arg("--version").output().is_err() {
            eprintln!("not tested: there is no {shell} here");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        let made = namewire(&["completions", shell]);
        assert!(made.status.success(), "{made:?}");
        std::fs::write(&script, made.stdout).unwrap();
        let router = Router::run(folder.path(), &["--route", &format!("/far/away={FAR}")]);
        router.ask(&["strategy", "set", "/chosen", "asf"]);
        let bench = Bench { folder, script, shell, router };
        for (name, transport) in [("lab", bench.router.uri()), ("campus", "unix:///nowhere/nfd.sock".to_owned())] {
            let added = bench.command(NAMEWIRE).args(["router", "add", name, &transport]).output().unwrap();
            assert!(added.status.success(), "{added:?}");
        }
        Some(bench)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:{}", Path::new(NAMEWIRE).parent().unwrap().display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("NAMEWIRE_ROUTERS", self.folder.path().join("routers.toml"));
        command.env("HOME", self.folder.path()).current_dir(self.folder.path());
        command.env_remove("NAMEWIRE_ROUTER").env_remove("NDN_CLIENT_TRANSPORT");
        command
    }

    /// What the shell completes when it is given this text to run.
    fn run(&self, text_of_shell: &str) -> Vec<String> {
        let output = self.command(self.shell).args(["-c", text_of_shell]).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        text(&output.stdout).lines().map(str::to_owned).collect()
    }
}

/// Asks until the answer is this one: the router may be slow.
fn expect(ask: impl Fn() -> Vec<String>, expected: &[&str]) {
    eventually(&format!("{expected:?}"), || ask() == expected);
}

#[test]
fn bash_completes_commands_names_and_what_the_router_knows() {
    let Some(bench) = Bench::new("bash") else { return };
    // Bash splits words at ":" and "=", and wants only what follows the last of them.
    let completed = |line: &str| {
        let words = line.replace(':', " : ").replace('=', " = ");
        let ask = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _namewire; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            bench.script.display()
        );
        bench.run(&ask)
    };
    assert_eq!(completed("namewire stat"), ["status"]);
    assert_eq!(completed("namewire face w"), ["watch"]);
    assert_eq!(completed("namewire face create --rel"), ["--reliability"]);
    assert_eq!(completed("namewire --router la"), ["lab"]);
    assert_eq!(completed("namewire --router=la"), ["lab"]);
    assert_eq!(completed("namewire router remove c"), ["campus"]);
    assert_eq!(completed("namewire strategy set /a mul"), ["multicast"]);
    expect(|| completed("namewire --router lab face destroy udp4:"), &["//127.0.0.1:9"]);
    expect(|| completed("namewire --router lab strategy unset ''"), &CHOICES);
    expect(|| completed("namewire --router=lab face destroy udp4:"), &["//127.0.0.1:9"]);
    expect(|| completed("namewire --router lab route remove /f"), &["/far/away"]);
    expect(|| completed("namewire --router lab strategy unset /c"), &["/chosen"]);
    expect(|| completed("namewire route list --router lab --under /fa"), &["/far/away"]);
    // A router that is not there, a name that is none, a line that is none.
    for line in ["namewire --router campus face show 2", "namewire --router x face show 2", "namewire nonsense x y"] {
        assert_eq!(completed(line), [""], "{line}");
    }
}

#[test]
fn a_completion_of_a_router_that_does_not_answer_is_short_and_silent() {
    let folder = tempfile::tempdir().unwrap();
    // It accepts connections, as it is never served, and says nothing.
    let socket = folder.path().join("deaf.sock");
    let _deaf = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let transport = format!("unix://{}", socket.display());
    let line = ["namewire", "--transport", &transport, "face", "show", "2"];
    let asked = ["complete", "--shell", "fish", "--index", "5", "--"];
    let output = namewire(&[&asked[..], &line].concat());
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn bash_completes_at_its_prompt() {
    let Some(bench) = Bench::new("bash") else { return };
    let mut command = bench.command("bash");
    let mut terminal = Terminal::of_width(200, command.args(["--norc", "--noprofile", "-i"]).env("PS1", "> "));
    types_at_the_prompt(&mut terminal, &format!("source {}\r", bench.script.display()));
}

#[test]
fn zsh_completes_at_its_prompt() {
    let Some(bench) = Bench::new("zsh") else { return };
    let mut command = bench.command("zsh");
    let mut terminal = Terminal::of_width(200, command.args(["-f", "-i"]).env("PS1", "> "));
    let load = format!("autoload -Uz compinit; compinit -u -D; source {}\r", bench.script.display());
    types_at_the_prompt(&mut terminal, &load);
}

/// Presses the key until the line is complete.
fn types_at_the_prompt(terminal: &mut Terminal, load: &str) {
    terminal.press(load);
    terminal.press("echo rea''dy\r");
    terminal.wait_for("the prompt", |lines| lines.iter().any(|line| line == "ready"));
    let rows = [
        ("namewire --rou", "namewire --router"),
        (" la", "namewire --router lab"),
        (" face destroy udp4:", "namewire --router lab face destroy udp4://127.0.0.1:9"),
    ];
    for (typed, expected) in rows {
        terminal.press(typed);
        let mut presses = 0;
        eventually(expected, || {
            // Not at every look, or one key comes before the answer to the one before it.
            if presses % 25 == 0 {
                terminal.press("\t");
            }
            presses += 1;
            terminal.lines().iter().any(|line| line.trim_end().ends_with(expected))
        });
        // Shells add a space after a word that can be no other.
        terminal.press("\u{7f}");
        terminal.press(" \u{7f}");
        let end = &expected[..expected.len() - 1];
        eventually("the line without its last letter", || {
            terminal.lines().iter().any(|line| line.trim_end().ends_with(end) || line.trim_end().ends_with(expected))
        });
        if !terminal.lines().iter().any(|line| line.trim_end().ends_with(expected)) {
            terminal.press(&expected[end.len()..]);
        }
    }
    terminal.program.kill().unwrap();
    terminal.program.wait().unwrap();
}

#[test]
fn fish_completes_commands_names_and_what_the_router_knows() {
    let Some(bench) = Bench::new("fish") else { return };
    let completed = |line: &str| bench.run(&format!("source {}; complete -C '{line}'", bench.script.display()));
    let lab = format!("lab\t{}", bench.router.uri());
    let far = format!("{FAR}\tface {}", bench.router.face(FAR).unwrap());
    assert!(completed("namewire stat").iter().any(|line| line.starts_with("status\t")));
    assert_eq!(completed("namewire --router la"), [&*lab]);
    expect(|| completed("namewire --router lab face destroy udp4"), &[&*far]);
    expect(|| completed("namewire --router lab route remove /f"), &["/far/away"]);
    assert!(completed("namewire --router campus face show 2").is_empty());
}
