//! `namewire get` when something fails: nobody answers, or it is cut short and goes on.

use crate::{
    router_process::{NAMEWIRE, Router, eventually, text},
    tools::Running,
};
use serde_json::Value;
use std::{
    fs,
    net::UdpSocket,
    path::PathBuf,
    process::{Command, Output},
};

fn content(bytes: usize) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(5);
    (0..bytes).map(|_| dice.u8(..)).collect()
}

/// A folder with a file in it.
struct Place {
    directory: tempfile::TempDir,
    content: Vec<u8>,
}

impl Place {
    fn new(bytes: usize) -> Place {
        let place = Place { directory: tempfile::tempdir().unwrap(), content: content(bytes) };
        fs::write(place.path("film"), &place.content).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Serves the file as version 7.
    fn put(&self, router: &Router) -> Running {
        let put = Running::start(router.command().arg("put").arg(self.path("film")).args(["/film", "--version", "7"]));
        put.wait_for("serving /film");
        put
    }

    fn lines_of_index(&self) -> usize {
        fs::read_to_string(self.path("copy.part.index")).unwrap_or_default().lines().count()
    }
}

fn code_and_reason(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), text(&output.stderr))
}

/// The story: a version that nobody has was "100 %  0 B … 0s left" for 45 s, and a silent neighbour nothing for 14.5 s.
#[test]
fn what_nobody_has_ends_with_the_reason_and_its_exit_code() {
    let place = Place::new(20_000);
    // It receives, and never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("udp4://{}", silent.local_addr().unwrap());
    let router = Router::run(place.directory.path(), &["--route", &format!("/silent={uri}")]);
    let copy = place.path("copy");
    let get = |arguments: &[&str]| {
        code_and_reason(&router.tool(&[&["get", "-o", copy.to_str().unwrap()], arguments].concat()))
    };

    for name in ["/nowhere", "/nowhere/v=1"] {
        let (code, reason) = get(&[name]);
        assert_eq!(code, Some(6), "{reason}");
        assert!(reason.contains("no next hop") && reason.contains(" explain /nowhere"), "{reason}");
    }
    for name in ["/silent/film", "/silent/film/v=1"] {
        let (code, reason) = get(&[name]);
        assert_eq!(code, Some(5), "{reason}");
        assert!(reason.contains(&format!("nothing found under {name}")) && reason.contains(&uri), "{reason}");
    }
    let _put = place.put(&router);
    for name in ["/film/v=8", "/film/v=8/x"] {
        let (code, reason) = get(&[name]);
        assert!(code == Some(7) || code == Some(5), "{code:?} {reason}");
    }
    let (code, reason) = get(&["/film", "--version", "7"]);
    assert_eq!(code, Some(0), "{reason}");
    assert!(fs::read(&copy).unwrap() == place.content);
    let left: Vec<_> = fs::read_dir(place.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains(".part")), "{left:?}");
}

#[test]
fn a_get_waits_for_its_producer() {
    let place = Place::new(20_000);
    let router = Router::run(place.directory.path(), &[]);
    let mut get = Running::start(router.command().args(["get", "--wait", "/film", "-o"]).arg(place.path("copy")));
    let nacks = || {
        let faces: Value = serde_json::from_str(&router.ask(&["face", "list", "--json"])).unwrap();
        faces.as_array().unwrap().iter().any(|face| face["out_nacks"].as_u64() > Some(8))
    };
    eventually("nobody has the file several times", nacks);
    let _put = place.put(&router);
    assert_eq!(get.wait(), Some(0));
    assert!(fs::read(place.path("copy")).unwrap() == place.content);
}

/// The story: Ctrl-C, or a restart of the router for 0.8 s, threw a download away.
#[test]
fn a_download_goes_on_after_ctrl_c_a_kill_and_restarts() {
    let place = Place::new(40_000_000);
    let mut router = Router::run(place.directory.path(), &[]);
    let mut put = place.put(&router);
    let start = |router: &Router| {
        let copy = place.path("copy");
        let arguments = ["get", "/film", "--limit-rate", "16MiB", "--json", "-o", copy.to_str().unwrap()];
        Running::start(router.command().args(arguments))
    };
    let grows = |what: &str| {
        let before = place.lines_of_index();
        eventually(what, || place.lines_of_index() > before.max(3));
    };
    let mut get = start(&router);
    grows("a part has come");
    assert_eq!(get.interrupt(), Some(130));
    get.wait_for("copy.part keeps the first");
    assert!(!place.path("copy").exists());

    let mut get = start(&router);
    get.wait_for("of it; going on");
    grows("more has come");
    get.process.kill().unwrap();
    get.process.wait().unwrap();

    let mut get = start(&router);
    get.wait_for("of it; going on");
    grows("more has come before the producer ends");
    assert_eq!(put.interrupt(), Some(0));
    put = place.put(&router);
    grows("more has come of the new producer");
    router.signal("-KILL");
    router.process.wait().unwrap();
    get.wait_for("the connection to the forwarder was lost; trying again");
    let router = Router::run(place.directory.path(), &[]);
    put.wait_for("connected again");
    get.wait_for("connected again");
    let number = |key: &str| -> u64 {
        let line = get.wait_for(&format!("  \"{key}\": "));
        line.trim().rsplit(' ').next().unwrap().trim_end_matches(',').parse().unwrap()
    };
    let resumed = number("resumed_bytes");
    assert!(resumed > 1 << 20, "{resumed}");
    // The last segment of the copy, at least.
    let (again, again_bytes) = (number("repeated_segments"), number("repeated_bytes"));
    assert!(again >= 1 && again_bytes >= 8000, "{again} {again_bytes}");
    assert_eq!(get.wait(), Some(0));
    assert!(fs::read(place.path("copy")).unwrap() == place.content);
    assert!(!place.path("copy.part").exists() && !place.path("copy.part.index").exists());
    drop(router);
}

#[test]
fn another_version_begins_anew_and_two_gets_do_not_mix() {
    let place = Place::new(8_000_000);
    let router = Router::run(place.directory.path(), &[]);
    let put = place.put(&router);
    let copy = place.path("copy");
    let slow = ["get", "/film", "--limit-rate", "4MiB", "-o", copy.to_str().unwrap()];
    let mut first = Running::start(router.command().args(slow));
    eventually("a part has come", || place.lines_of_index() > 4);
    let (code, reason) = code_and_reason(&router.tool(&slow));
    assert_eq!(code, Some(1));
    assert!(reason.contains("another program is writing"), "{reason}");
    assert_eq!(first.interrupt(), Some(130));
    drop(put);
    fs::write(place.path("film"), b"a new film").unwrap();
    let _put = Running::start(router.command().arg("put").arg(place.path("film")).args(["/film", "--version", "9"]));
    _put.wait_for("serving /film/v=9");
    let output = router.tool(&["get", "/film", "-o", copy.to_str().unwrap()]);
    let (code, said) = code_and_reason(&output);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("of /film/v=7; starting again"), "{said}");
    assert_eq!(fs::read(&copy).unwrap(), b"a new film");
}

/// After its producer has ended, a version is still cached.
#[test]
fn a_cached_version_is_fetched_and_called_so() {
    let place = Place::new(20_000);
    let router = Router::run(place.directory.path(), &[]);
    let film = place.path("film");
    let options = ["/film", "--freshness", "1"];
    let mut put = Running::start(router.command().arg("put").arg(&film).args(options));
    put.wait_for("serving /film");
    assert_eq!(router.tool(&["get", "-q", "/film"]).stdout, place.content);
    assert_eq!(put.interrupt(), Some(0));
    eventually("its route is gone", || !router.ask(&["route", "list"]).contains("/film"));
    let output = router.tool(&["get", "/film"]);
    let (code, said) = code_and_reason(&output);
    assert_eq!((code, output.stdout == place.content), (Some(0), true), "{said}");
    assert!(said.contains("no producer answers"), "{said}");
}

/// Router a has no route for the name; the hint leads to b, which is in its region.
#[test]
fn a_source_is_tried_when_nobody_answers_for_the_name() {
    let place = Place::new(200_000);
    fs::create_dir(place.path("b")).unwrap();
    let socket = place.path("b/nfd.sock");
    let mut run = Command::new(NAMEWIRE);
    run.args(["run", "--no-tcp", "--listen-udp", "127.0.0.1:0", "--set", "tables.regions=[\"/site/b\"]", "--socket"]);
    let b = Router::start(&socket, run.arg(&socket));
    let port = udp_port(&b);
    let route = format!("/site/b=udp4://127.0.0.1:{port}");
    let a = Router::run(place.directory.path(), &["--route", &route]);
    let _put = place.put(&b);
    let copy = place.path("copy");
    let get = |more: &[&str]| a.tool(&[&["get", "/film", "-o", copy.to_str().unwrap()], more].concat());
    assert_eq!(get(&[]).status.code(), Some(6));
    let (code, said) = code_and_reason(&get(&["--source", "/nowhere", "--source", "/site/b"]));
    assert_eq!(code, Some(0), "{said}");
    assert!(fs::read(&copy).unwrap() == place.content);
}

fn udp_port(router: &Router) -> u16 {
    let channels: Value = serde_json::from_str(&router.ask(&["channel", "list", "--json"])).unwrap();
    let uris = channels.as_array().unwrap().iter().filter_map(|channel| channel["local_uri"].as_str());
    uris.filter_map(|uri| uri.strip_prefix("udp4://127.0.0.1:")?.parse().ok()).next().unwrap()
}
