//! `namewire put DIR`, `serve` and `get -r`, with processes and real sockets.

use crate::{
    router_process::{Router, eventually, make_identity, namewire_of, text, text_of_failure},
    tools::Running,
};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

/// A command that serves a folder; ended when the test is over.
struct Serving {
    process: Child,
    line: String,
}

impl Serving {
    fn start(command: &mut Command) -> Serving {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Serving { process, line }
    }

    fn end(&mut self, signal: rustix::process::Signal) -> ExitStatus {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.process), signal).unwrap();
        self.process.wait().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn path(directory: &tempfile::TempDir, name: &str) -> String {
    directory.path().join(name).to_str().unwrap().to_owned()
}

/// 2,000 files of 0 to 20 kB in 40 folders; all bytes together.
fn make_files(folder: &Path) -> u64 {
    let mut dice = fastrand::Rng::with_seed(43);
    let mut size = 0;
    for number in 0..2000 {
        let inner = folder.join(format!("{}/{}", number % 5, number % 8));
        fs::create_dir_all(&inner).unwrap();
        let bytes: Vec<u8> = (0..dice.usize(..20_000)).map(|_| dice.u8(..)).collect();
        fs::write(inner.join(format!("file {number}")), &bytes).unwrap();
        size += bytes.len() as u64;
    }
    size
}

fn assert_same(one: &str, other: &str) {
    let compared = Command::new("diff").args(["-r", one, other]).output().unwrap();
    assert!(compared.status.success(), "{compared:?}");
}

#[test]
fn two_thousand_files_arrive_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let (source, copy) = (path(&directory, "source"), path(&directory, "copy"));
    let size = make_files(Path::new(&source));
    let router = Router::run(directory.path(), &[]);
    let mut put = Serving::start(router.command().args(["put", &source, "/example/files"]));
    let line = format!("serving /example/files (2000 files, {:.1} MiB); Ctrl-C to stop\n", size as f64 / 1_048_576.0);
    assert_eq!(put.line, line);
    let get = |more: &[&str]| -> Value {
        let arguments = [&["get", "-r", "/example/files", "--json", "--preserve"], more].concat();
        serde_json::from_str(&router.ask(&arguments)).unwrap()
    };
    let got = get(&[&copy]);
    assert_same(&source, &copy);
    let counts = |got: &Value| {
        ["files_written", "files_present", "folders", "refused", "size_bytes"].map(|key| got[key].as_u64().unwrap())
    };
    assert_eq!(counts(&got), [2000, 0, 46, 0, size]);
    let again = get(&["-o", &copy]);
    assert_eq!(counts(&again), [0, 2000, 46, 0, 0]);
    assert!(put.end(rustix::process::Signal::INT).success());
}

/// One signature covers all files.
#[test]
fn a_folder_with_a_manifest_is_checked_while_it_is_fetched() {
    let directory = tempfile::tempdir().unwrap();
    let (source, home) = (path(&directory, "source"), directory.path().join("home"));
    let (certificate, other) = (directory.path().join("alice.ndncert"), directory.path().join("bob.ndncert"));
    let size = make_files(Path::new(&source));
    fs::write(format!("{source}/large"), vec![7; 3_000_000]).unwrap();
    make_identity(&home, "/alice", &certificate);
    make_identity(&directory.path().join("other home"), "/bob", &other);
    let router = Router::run(directory.path(), &[]);
    let mut command = namewire_of(&home);
    let put = ["put", &source, "/alice/files", "--manifest"];
    let _serving = Serving::start(command.args(["--transport", &router.uri(), "--identity", "/alice"]).args(put));
    let get = |copy: &str, more: &[&str]| {
        let output = router.tool(&[&["get", "-r", "/alice/files", copy, "--json"], more].concat());
        assert!(output.status.success(), "{output:?}");
        assert_same(&source, copy);
        let got: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(got["size_bytes"], size + 3_000_000);
        got["unverified_segments"].as_u64().unwrap()
    };
    let anchor = ["--anchor", certificate.to_str().unwrap()];
    assert_eq!(get(&path(&directory, "checked"), &anchor), 0);
    get(&path(&directory, "unchecked"), &[]);
    let copy = path(&directory, "copy");
    let output = router.tool(&["get", "-r", "/alice/files", &copy, "--anchor", other.to_str().unwrap()]);
    assert!(text_of_failure(&output).contains("not trusted"), "{output:?}");
    router.ask(&[&["get", "/alice/files/large", "-o", &copy], &anchor[..]].concat());
    assert_eq!(fs::read(&copy).unwrap(), vec![7; 3_000_000]);
}

/// The story: Ctrl-C in the middle of a folder threw away what had come of a large file.
#[test]
fn a_folder_that_was_cut_short_goes_on_within_its_large_file() {
    let directory = tempfile::tempdir().unwrap();
    let (source, copy) = (path(&directory, "source"), path(&directory, "copy"));
    fs::create_dir_all(format!("{source}/inner")).unwrap();
    let mut dice = fastrand::Rng::with_seed(47);
    let film: Vec<u8> = (0..20_000_000).map(|_| dice.u8(..)).collect();
    fs::write(format!("{source}/inner/film"), film).unwrap();
    fs::write(format!("{source}/note"), b"content").unwrap();
    let router = Router::run(directory.path(), &[]);
    let _put = Serving::start(router.command().args(["put", &source, "/example"]));
    let mut get = Running::start(router.command().args(["get", "-r", "/example", &copy, "--limit-rate", "8MiB"]));
    let lines = || fs::read_to_string(format!("{copy}/inner/film.part.index")).unwrap_or_default().lines().count();
    eventually("a part has come", || lines() > 5);
    assert_eq!(get.interrupt(), Some(130));
    assert!(!fs::exists(format!("{copy}/inner/film")).unwrap());
    let got: Value = serde_json::from_str(&router.ask(&["get", "-r", "/example", &copy, "--json"])).unwrap();
    assert!(got["resumed_bytes"].as_u64().unwrap() > 2_000_000, "{got}");
    assert_eq!(got["size_bytes"], 20_000_007, "{got}");
    assert_same(&source, &copy);
}

#[test]
fn a_service_follows_its_folder_and_survives_its_router() {
    let directory = tempfile::tempdir().unwrap();
    let (source, copy, socket) = (path(&directory, "source"), path(&directory, "copy"), path(&directory, "notify"));
    fs::create_dir_all(&source).unwrap();
    fs::write(format!("{source}/first"), b"first").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", format!("{source}/link")).unwrap();
    let notices = UnixDatagram::bind(&socket).unwrap();
    let mut router = Router::run(directory.path(), &[]);
    let mut command = router.command();
    command.args(["serve", &source, "/example/service", "--json"]).env("NOTIFY_SOCKET", &socket);
    let mut serve = Serving::start(&mut command);
    let line: Value = serde_json::from_str(&serve.line).unwrap();
    assert_eq!((&line["files"], &line["size_bytes"], &line["not_served"]), (&1.into(), &5.into(), &1.into()));
    let mut notice = [0; 100];
    let length = notices.recv(&mut notice).unwrap();
    assert_eq!(text(&notice[..length]).trim(), "READY=1");
    router.ask(&["get", "-r", "/example/service", &copy]);
    assert_eq!(fs::read_dir(&copy).unwrap().count(), 1);

    router.terminate();
    let router = Router::run(directory.path(), &[]);
    fs::create_dir(format!("{source}/inner")).unwrap();
    fs::write(format!("{source}/inner/second"), b"second").unwrap();
    fs::write(format!("{source}/first"), b"changed").unwrap();
    eventually("the service is back", || router.tool(&["get", "-r", "/example/service", &copy]).status.success());
    assert_eq!(fs::read(format!("{copy}/inner/second")).unwrap(), b"second");
    assert_eq!(fs::read(format!("{copy}/first")).unwrap(), b"changed");
    assert!(serve.end(rustix::process::Signal::TERM).success());
}

#[test]
fn failures_have_their_exit_codes() {
    let directory = tempfile::tempdir().unwrap();
    let (source, copy) = (path(&directory, "source"), path(&directory, "copy"));
    fs::create_dir_all(format!("{source}/inner")).unwrap();
    fs::write(format!("{source}/file"), b"content").unwrap();
    fs::write(format!("{source}/inner/file"), b"content").unwrap();
    let router = Router::run(directory.path(), &[]);
    let _serving = Serving::start(router.command().args(["serve", &source, "/example"]));
    let fails = |arguments: &[&str], code: i32, words: &str| {
        let output = router.tool(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
        assert!(text_of_failure(&output).contains(words), "{arguments:?}: {output:?}");
    };
    fails(&["get", "-r", "/example/absent", &copy], 7, "application Nack");
    fails(&["get", "-r", "/example/file", &copy], 1, "without -r");
    fails(&["get", "-r", "/elsewhere", &copy], 6, "Nack");
    assert!(!fs::exists(&copy).unwrap(), "no folder for nothing");
    fails(&["get", "-r", "/example"], 2, "a folder needs a place");
    fails(&["get", "-r", "/example", "-o", "-"], 2, "a folder needs a place");
    fails(&["get", "/example", &copy], 2, "--recursive");
    fails(&["put", &source, "/example/other", "--version", "5"], 2, "--version is for files");
    fails(&["serve", &path(&directory, "absent"), "/example/other"], 1, "cannot read");
    // One refused entry does not end the rest.
    fs::create_dir_all(format!("{copy}/file")).unwrap();
    fails(&["get", "-r", "/example", &copy], 1, "file is a folder, which is not replaced");
    assert_eq!(fs::read(format!("{copy}/inner/file")).unwrap(), b"content");
    // A file of a folder is an object like others.
    router.ask(&["get", "/example/file", "-o", &path(&directory, "alone")]);
    assert_eq!(fs::read(path(&directory, "alone")).unwrap(), b"content");
}

#[test]
fn signed_folders_are_fetched_with_an_anchor() {
    let directory = tempfile::tempdir().unwrap();
    let (source, copy, home) = (path(&directory, "source"), path(&directory, "copy"), directory.path().join("home"));
    let (certificate, other) = (directory.path().join("alice.ndncert"), directory.path().join("bob.ndncert"));
    fs::create_dir_all(&source).unwrap();
    fs::write(format!("{source}/file"), b"content").unwrap();
    make_identity(&home, "/alice", &certificate);
    make_identity(&directory.path().join("other home"), "/bob", &other);
    let router = Router::run(directory.path(), &[]);
    let mut command = namewire_of(&home);
    command.args(["--transport", &router.uri(), "--identity", "/alice", "serve", &source, "/alice/files"]);
    let _serving = Serving::start(&mut command);
    let get = |anchor: &Path| router.tool(&["get", "-r", "/alice/files", &copy, "--anchor", anchor.to_str().unwrap()]);
    let output = get(&other);
    assert_eq!(output.status.code(), Some(1));
    assert!(text_of_failure(&output).contains("not trusted"), "{output:?}");
    assert!(!fs::exists(&copy).unwrap());
    let output = get(&certificate);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read(format!("{copy}/file")).unwrap(), b"content");
}
