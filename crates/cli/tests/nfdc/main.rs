//! `namewire nfdc` against the recorded output of NFD's own `nfdc`.
//!
//! The files of `tests/nfdc_golden` are sessions: commands (`$ …`), their standard output (`> …`) and standard error
//! (`2> …`), and their exit codes (`= …`), recorded with NFD 24.07-31 and its nfdc. Each test runs one session with our
//! nfdc against our router and compares. Text that varies from run to run has a placeholder (`normalise`); so has text
//! that differs on purpose (`docs/nfdc.md`).
//!
//! To record again, with an NFD that has the usual ports and nothing else on its addresses:
//!
//! ```sh
//! NFDC=/usr/bin/nfdc NFDC_SESSION=faces cargo test -p namewire-cli --test commands record -- --ignored
//! ```

pub(crate) mod fake_forwarder;
mod normalise;
pub(crate) mod router;
pub(crate) mod session;

use crate::router_process::NAMEWIRE;
use normalise::Normaliser;
use session::{Session, Tool};
use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nfdc_golden").join(format!("{name}.txt"))
}

/// A TCP listener for faces to connect to; it takes nothing off its queue.
fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Runs a session against our router; every step must print what NFD's nfdc printed.
fn replay(name: &str) {
    let directory = tempfile::tempdir().unwrap();
    let (router, router_port) = router::start(directory.path());
    let (_listener, port) = listener();
    let tool = Tool {
        program: router::link(directory.path()),
        transport: router.uri(),
        directory: directory.path().to_owned(),
        pause: Duration::ZERO,
    };
    let golden = Session::read(&golden(name));
    let mut normaliser = Normaliser::new(port, Some(router_port));
    let mut differences = Vec::new();
    for step in &golden.steps {
        let found = tool.run(step, &mut normaliser);
        let expected = step.with_documented_differences();
        if found != expected {
            differences.push(format!("--- NFD's nfdc\n{expected}--- ours\n{found}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {} steps:\n{}",
        differences.len(),
        golden.steps.len(),
        differences.join("\n")
    );
    assert!(golden.steps.len() > 5, "the session was read");
}

#[test]
fn faces() {
    replay("faces");
}

#[test]
fn link_properties() {
    replay("link_properties");
}

#[test]
fn routes() {
    replay("routes");
}

#[test]
fn strategies() {
    replay("strategies");
}

#[test]
fn content_store() {
    replay("content_store");
}

#[test]
fn usage() {
    replay("usage");
}

#[test]
fn batch() {
    replay("batch");
}

#[test]
fn status() {
    replay("status");
}

/// Writes down what another nfdc prints: see above.
#[test]
#[ignore = "needs NFD and its nfdc"]
fn record() {
    let program = std::env::var("NFDC").expect("NFDC: path of NFD's nfdc");
    let name = std::env::var("NFDC_SESSION").expect("NFDC_SESSION: name of a session");
    let directory = tempfile::tempdir().unwrap();
    let (_listener, port) = listener();
    let tool = Tool {
        program: program.into(),
        transport: std::env::var("NDN_CLIENT_TRANSPORT").unwrap_or_else(|_| "unix:///run/nfd/nfd.sock".to_owned()),
        directory: directory.path().to_owned(),
        // NFD's datasets are up to a second old.
        pause: Duration::from_millis(1100),
    };
    let path = golden(&name);
    let mut session = Session::read(&path);
    let mut normaliser = Normaliser::new(port, None);
    for step in &mut session.steps {
        *step = tool.run(step, &mut normaliser);
    }
    std::fs::write(path, session.to_string()).unwrap();
}

/// By `namewire nfdc` as by a link.
#[test]
fn the_subcommand_is_the_same_tool() {
    let directory = tempfile::tempdir().unwrap();
    let (router, _) = router::start(directory.path());
    let run = |arguments: &[&str]| {
        let output =
            Command::new(NAMEWIRE).args(["--transport", &router.uri(), "nfdc"]).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let version = format!("namewire-{}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["-V"]), (Some(0), version.clone(), String::new()));
    assert_eq!(run(&["--version"]).1, version);
    assert!(run(&[]).1.contains("strategy unset"));
    assert!(run(&["face", "create", "--help"]).1.contains("[persistency]"));
    assert_eq!(run(&["strategy", "unset", "/"]).0, Some(2));
    let (code, text, _) = run(&["strategy", "show", "/"]);
    assert_eq!((code, text.as_str()), (Some(0), "  prefix=/\nstrategy=/localhost/nfd/strategy/best-route/v=5\n"));
    // An option of ours after the word nfdc belongs to nfdc.
    assert_eq!(run(&["status", "--json"]), (Some(2), String::new(), "No such command: status --json\n".to_owned()));
}

#[test]
fn without_a_forwarder() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(router::link(directory.path()))
            .env("NDN_CLIENT_TRANSPORT", "unix:///nowhere/nfd.sock")
            .args(arguments)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let message = "could not connect to NDN forwarder at /nowhere/nfd.sock (No such file or directory)\n".to_owned();
    assert_eq!(run(&["face", "list"]), (Some(1), message.clone()));
    assert_eq!(run(&["status"]), (Some(1), message));
    assert_eq!(run(&["face", "create", "fd://1"]).0, Some(4), "found out without one");
}

/// The report is XML that a parser takes, with everything below one namespace.
#[test]
fn the_report_is_xml() {
    let directory = tempfile::tempdir().unwrap();
    let (router, _) = router::start(directory.path());
    let output = Command::new(router::link(directory.path()))
        .env("NDN_CLIENT_TRANSPORT", router.uri())
        .args(["status", "report", "xml"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let root = document.root_element();
    let namespace = "ndn:/localhost/nfd/status/1";
    assert!(root.has_tag_name((namespace, "nfdStatus")));
    assert!(
        root.descendants().filter(|node| node.is_element()).all(|node| node.tag_name().namespace() == Some(namespace))
    );
    let sections: Vec<&str> = root.children().map(|node| node.tag_name().name()).collect();
    assert_eq!(sections, ["generalStatus", "channels", "faces", "fib", "rib", "cs", "strategyChoices"]);
}
