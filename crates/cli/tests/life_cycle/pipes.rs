//! Configuration, rules, certificates, keys and state that are not regular files.
//!
//! The story: opening a pipe waits for a writer, and the router waited in the thread that handles signals. So neither
//! SIGTERM nor SIGINT ended the router, at the start or after a SIGHUP.

use super::{NAMEWIRE, Router, end_of, eventually, run, terminate, until_sigterm_is_caught};
use std::{
    fs::{self, OpenOptions},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

fn make_pipe(path: PathBuf) -> PathBuf {
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

const ROUTE: &str = "[[route]]\nprefix = \"/by/pipe\"\nface = \"udp4://127.0.0.1:7001\"\n";

#[test]
fn sigterm_ends_a_start_that_waits_for_a_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = make_pipe(directory.path().join("pipe"));
    for option in ["--config", "--nfd-conf"] {
        let mut process = run(directory.path(), &[option, pipe.to_str().unwrap()]).spawn().unwrap();
        until_sigterm_is_caught(&process);
        assert!(terminate(&mut process).success(), "{option}");
    }
}

#[test]
fn a_configuration_may_come_through_a_pipe() {
    let directory = tempfile::tempdir().unwrap();
    // As `… | namewire run --config /dev/stdin`, and as `--config <(…)` does with another number.
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(ROUTE.as_bytes()).unwrap();
    drop(writer);
    let socket = directory.path().join("nfd.sock");
    let router = Router::start(&socket, run(directory.path(), &["--config", "/dev/stdin"]).stdin(reader));
    assert!(router.ask(&["route", "list"]).contains("/by/pipe"));
    drop(router);
    // A program that wrote nothing has failed.
    let (reader, writer) = std::io::pipe().unwrap();
    let mut process = run(directory.path(), &["--config", "/dev/stdin"]).stdin(reader).spawn().unwrap();
    drop(writer);
    assert_eq!(end_of(&mut process).code(), Some(1));
    // More than a configuration may have.
    let mut check = Command::new(NAMEWIRE);
    let check = check.args(["config", "check", "/dev/zero"]).output().unwrap();
    let why = String::from_utf8(check.stderr).unwrap();
    assert!(check.status.code() == Some(1) && why.contains("larger than 8 MiB"), "{why}");
}

#[test]
fn sighup_with_a_pipe_waits_without_a_hold_on_signals() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    fs::write(&file, "").unwrap();
    let mut router = Router::run(directory.path(), &["--config", file.to_str().unwrap()]);
    fs::remove_file(&file).unwrap();
    make_pipe(file.clone());
    let writing = std::thread::spawn({
        let file = file.clone();
        move || OpenOptions::new().write(true).open(file).unwrap().write_all(ROUTE.as_bytes()).unwrap()
    });
    let said = router.hang_up();
    assert!(said.contains("was read"), "{said}");
    writing.join().unwrap();
    assert!(router.ask(&["route", "list"]).contains("/by/pipe"));
    router.signal("-HUP");
    std::thread::sleep(Duration::from_millis(500)); // until it reads; if it does not yet, this proves less
    assert!(terminate(&mut router.process).success());
}

/// What a configuration names is read while others wait: it has to be there.
#[test]
fn what_a_configuration_names_is_a_regular_file() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = make_pipe(directory.path().join("pipe"));
    let (file, pipe) = (directory.path().join("file"), pipe.to_str().unwrap().to_owned());
    let checked = |option: Option<&str>, text: &str, code| {
        fs::write(&file, text).unwrap();
        let mut command = Command::new(NAMEWIRE);
        command.args(["config", "check"]).args(option).arg(&file);
        what_it_says(&mut command, code)
    };
    let check = |option, text: &str| checked(option, text, 1);
    let anchor = format!(
        "authorizations\n{{\nauthorize\n{{\ncertfile any\nprivileges\n{{\nfaces\n}}\n}}\n}}\nrib\n{{\n\
         localhop_security\n{{\nrule\n{{\nid x\nfor interest\nchecker\n{{\ntype hierarchical\nsig-type ecdsa-sha256\n}}\n}}\n\
         trust-anchor\n{{\ntype file\nfile-name \"{pipe}\"\n}}\n}}\n}}\n"
    );
    for said in [
        check(None, &format!("[trust]\nlocalhost_rib = \"{pipe}\"\n")),
        check(None, &format!("[[trust.authorize]]\ncertificate = \"{pipe}\"\nprivileges = [\"rib\"]\n")),
        check(Some("--nfd-conf"), &format!("#include \"{pipe}\"\n")),
        checked(Some("--nfd-conf"), &anchor, 0), // a warning: it may be a file at the next look
        refusal(&mut run(directory.path(), &["--state", &pipe])),
        refusal(&mut run(directory.path(), &["--listen-wss", "127.0.0.1:0", "--tls-cert", &pipe, "--tls-key", &pipe])),
    ] {
        assert!(said.contains("it is a pipe, not a regular file"), "{said}");
    }
}

/// What a command says that must fail.
fn refusal(command: &mut Command) -> String {
    what_it_says(command, 1)
}

/// What a command says that ends with this code.
fn what_it_says(command: &mut Command, code: i32) -> String {
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(end_of(&mut process).code(), Some(code), "{command:?}");
    let mut said = String::new();
    process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    said
}

/// Of a file that is replaced again and again, one version or another is taken, never a mixture.
#[test]
fn a_file_that_is_replaced_meanwhile_is_taken_whole() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    replace(&file, "a");
    let router = Router::run(directory.path(), &["--config", file.to_str().unwrap()]);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let replacing = std::thread::spawn({
        let file = file.clone();
        move || {
            for version in ["b", "a"].iter().cycle() {
                replace(&file, version);
                if stopped.try_recv().is_ok() {
                    return;
                }
            }
        }
    });
    for _ in 0..20 {
        // The second comes while the first is carried out, or with it.
        router.signal("-HUP");
        let said = router.hang_up();
        assert!(said.contains("was read") && !said.contains("stays"), "{said}");
        eventually("one version is in effect", || is_whole(&routes(&router)));
    }
    stop.send(()).unwrap();
    replacing.join().unwrap();
    replace(&file, "c");
    router.signal("-HUP");
    eventually("the last version is in effect, and nothing of the others", || {
        let routes = routes(&router);
        routes.matches("/c/").count() == 40 && is_whole(&routes) && !routes.contains("/a/") && !routes.contains("/b/")
    });
}

/// Forty routes of one version.
fn replace(file: &Path, version: &str) {
    let route =
        |number: i32| format!("[[route]]\nprefix = \"/{version}/{number}\"\nface = \"udp4://127.0.0.1:7001\"\n");
    let new = file.with_extension("new");
    fs::write(&new, (0..40).map(route).collect::<String>()).unwrap();
    fs::rename(&new, file).unwrap();
}

fn routes(router: &Router) -> String {
    router.ask(&["route", "list"])
}

/// Every version is there wholly or not at all; while one goes and another comes, that is not so yet.
fn is_whole(routes: &str) -> bool {
    ["/a/", "/b/", "/c/"].iter().all(|version| {
        let count = routes.matches(version).count();
        count == 0 || count == 40
    })
}
