//! `namewire put` of files that change, of pipes and of files that grow.

use crate::router_process::{NAMEWIRE, PATIENCE, Router, eventually, text};
use crate::tools::Running;
use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    process::Command,
    time::{Duration, SystemTime},
};

/// Writes a file that was changed so many seconds ago.
fn write(path: &Path, content: &[u8], age_s: u64) {
    fs::write(path, content).unwrap();
    let time = SystemTime::now() - Duration::from_secs(age_s);
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

fn put(router: &Router, arguments: &[&str]) -> Running {
    let running = Running::start(router.command().arg("put").args(arguments));
    running.wait_for("serving ");
    running
}

fn bytes(count: usize) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(5);
    std::iter::repeat_with(|| dice.u8(..)).take(count).collect()
}

/// The story: a version that nobody had took 45 s, and then "segment 0 did not arrive after 16 attempts".
#[test]
fn a_version_that_nobody_has_is_an_application_nack() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    write(&file, b"what is published", 100);
    let router = Router::run(directory.path(), &[]);
    let _put = put(&router, &[file.to_str().unwrap(), "/me/file", "--version", "7"]);
    let refused = router.tool(&["get", "/me/file/v=8", "-q"]);
    assert_eq!(refused.status.code(), Some(7), "{refused:?}");
    assert_eq!(router.ask(&["get", "/me/file/v=7", "-q"]), "what is published");
}

#[test]
fn a_file_is_served_under_the_time_of_its_last_change_and_again_when_it_changes() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    write(&file, b"first", 200);
    let router = Router::run(directory.path(), &[]);
    let put = || Running::start(router.command().arg("put").arg(&file).arg("/me/file"));
    let first = put().wait_for("serving /me/file/v=");
    let putting = put();
    assert_eq!(putting.wait_for("serving /me/file/v="), first, "the same after a restart");
    write(&file, b"second", 100);
    let second = putting.wait_for("serving /me/file/v=");
    assert!(second > first, "{second}");
    assert_eq!(router.ask(&["get", "/me/file", "-q"]), "second");
}

/// Starts a producer that finds another one, and what it says about that. Its first look takes 0.3 s at most, which may
/// be too short on a busy machine.
fn put_beside(router: &Router, file: &str, name: &str) -> (Running, String) {
    for _ in 0..50 {
        let (second, mut said, mut is_serving) =
            (Running::start(router.command().args(["put", file, name])), String::new(), false);
        while let Some(line) = second.next_line(if is_serving { Duration::from_secs(1) } else { PATIENCE }) {
            is_serving |= line.starts_with("serving ");
            if line.contains("another producer answers for") {
                said = line;
            }
            if is_serving && !said.is_empty() {
                return (second, said);
            }
        }
    }
    panic!("it does not find the other producer");
}

/// The story: of two producers of one name the one with the oldest version was heard, always, without a word.
#[test]
fn two_producers_of_one_name_say_so_and_the_newest_is_found() {
    for newest_first in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let path = |file: &str| directory.path().join(file).to_str().unwrap().to_owned();
        write(path("old").as_ref(), b"old", 200);
        write(path("new").as_ref(), b"new", 100);
        let router = Router::run(directory.path(), &[]);
        let (first, second) = if newest_first { ("new", "old") } else { ("old", "new") };
        let first = put(&router, &[&path(first), "/me/file"]);
        let (second, said) = put_beside(&router, &path(second), "/me/file");
        let expected = if newest_first { "newer than this one" } else { "older than this one" };
        assert!(said.contains(expected) && said.contains("not signed by a key"), "{said}");
        if !newest_first {
            first.wait_for("another producer answers for /me/file with a newer version");
        }
        eventually("the newest is found", || router.tool(&["get", "/me/file", "-q"]).stdout == b"new");
        drop(if newest_first { first } else { second });
        eventually("the other one is found", || router.tool(&["get", "/me/file", "-q"]).stdout == b"old");
    }
}

#[test]
fn a_pipe_arrives_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    let content = bytes(9_000_001);
    fs::write(&from, &content).unwrap();
    let router = Router::run(directory.path(), &[]);
    let mut putting = Running::start(Command::new("sh").args([
        "-c",
        "cat \"$2\" | \"$0\" --transport \"$1\" put - /me/pipe --once",
        NAMEWIRE,
        &router.uri(),
        from.to_str().unwrap(),
    ]));
    putting.wait_for("serving /me/pipe/v=");
    router.ask(&["get", "/me/pipe", "-q", "-o", to.to_str().unwrap()]);
    assert!(fs::read(to).unwrap() == content);
    putting.wait_for("the whole stream has been sent once");
    assert_eq!(putting.wait(), Some(0));
}

#[test]
fn a_fifo_is_a_stream() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let router = Router::run(directory.path(), &[]);
    let mut putting = put(&router, &[fifo.to_str().unwrap(), "/me/fifo"]);
    let get = std::thread::spawn({
        let mut command = router.command();
        move || command.args(["get", "/me/fifo", "-q"]).output().unwrap()
    });
    let mut pipe = File::options().write(true).open(&fifo).unwrap();
    for line in ["one\n", "two\n"] {
        pipe.write_all(line.as_bytes()).unwrap();
    }
    drop(pipe);
    assert_eq!(text(&get.join().unwrap().stdout), "one\ntwo\n");
    putting.wait_for("the input has ended: 8 B in ");
    assert_eq!(router.ask(&["get", "/me/fifo", "-q"]), "one\ntwo\n", "it is served on");
    assert_eq!(putting.interrupt(), Some(0));
}

#[test]
fn a_file_that_grows_is_followed_until_ctrl_c() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("log");
    fs::write(&file, "one\n").unwrap();
    let router = Router::run(directory.path(), &[]);
    let mut putting = Running::start(router.command().args(["put", "--follow", file.to_str().unwrap(), "/me/log"]));
    let line = putting.wait_for("serving /me/log/v=");
    let versioned = line.split_whitespace().nth(1).unwrap();
    let peek = |segment: u64| router.ask(&["peek", &format!("{versioned}/seg={segment}"), "--lifetime", "100s"]);
    assert_eq!(peek(0), "one\n");
    File::options().append(true).open(&file).unwrap().write_all(b"two\n").unwrap();
    assert_eq!(peek(1), "two\n");
    assert_eq!(putting.interrupt(), Some(0));
    putting.wait_for("8 B in ");
}

#[test]
fn options_of_streams_are_refused_for_files() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "content").unwrap();
    let router = Router::run(directory.path(), &[]);
    for option in [&["--once"][..], &["--keep", "1MiB"]] {
        let refused = router.tool(&[&["put", file.to_str().unwrap(), "/me"], option].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    assert_eq!(router.tool(&["put", "--follow", "/dev/null", "/me"]).status.code(), Some(1));
    // A folder has many files, and each has a version of its own.
    for option in [&["--once"][..], &["--version", "7"]] {
        let refused = router.tool(&[&["put", directory.path().to_str().unwrap(), "/me"], option].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
}
