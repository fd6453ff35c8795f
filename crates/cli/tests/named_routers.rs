//! Routers with names: `namewire router`, `--router`, and which router a command talks to.

use crate::router_process::{NAMEWIRE, Router, eventually, make_identity, text, text_of_failure};
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

/// A command of a user whose home is this folder.
fn namewire(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(NAMEWIRE);
    command.env("HOME", home).args(arguments);
    for variable in ["NAMEWIRE_ROUTER", "NAMEWIRE_ROUTERS", "NDN_CLIENT_TRANSPORT", "XDG_CONFIG_HOME"] {
        command.env_remove(variable);
    }
    command
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    namewire(home, arguments).output().unwrap()
}

fn ask(home: &Path, arguments: &[&str]) -> String {
    let output = run(home, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    text(&output.stdout)
}

/// Routers that are told apart by a route each.
fn three(home: &Path) -> Vec<Router> {
    let router = |name: &str| {
        let folder = home.join(name);
        fs::create_dir(&folder).unwrap();
        Router::run(&folder, &["--route", &format!("/{name}=udp4://127.0.0.1:9")])
    };
    ["one", "two", "conf"].map(router).into()
}

/// Which of the routers answers this command.
fn answers(command: &mut Command) -> String {
    let output = command.args(["route", "list", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let routes: Value = serde_json::from_slice(&output.stdout).unwrap();
    let known = ["/one", "/two", "/conf"];
    let prefixes = routes.as_array().unwrap().iter().filter_map(|route| route["prefix"].as_str());
    prefixes.filter(|prefix| known.contains(prefix)).collect()
}

#[test]
fn names_are_added_listed_shown_and_removed() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    assert!(ask(home, &["router", "list"]).contains("namewire router add NAME TRANSPORT"));
    let lab = ["router", "add", "lab", "unix:///run/nfd/nfd.sock", "--observer", "http://lab.example:9695"];
    assert_eq!(ask(home, &[&lab[..], &["--identity", "/alice"]].concat()), "added: lab\n");
    assert_eq!(ask(home, &["router", "add", "far", "tcp://far.example"]), "added: far\n");
    assert_eq!(ask(home, &["router", "add", "far", "tcp://far.example:7000"]), "changed: far\n");
    assert_eq!(ask(home, &["router", "default", "far"]), "default: far\n");
    let listed = ask(home, &["router", "list"]);
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["far*", "tcp://far.example:7000", "-", "-"]);
    assert_eq!(rows[2], ["lab", "unix:///run/nfd/nfd.sock", "http://lab.example:9695", "/alice"]);
    let shown: Value = serde_json::from_str(&ask(home, &["router", "show", "lab", "--json"])).unwrap();
    let expected = json!({
        "name": "lab", "is_default": false, "transport": "unix:///run/nfd/nfd.sock", "identity": "/alice",
        "observer": "http://lab.example:9695"
    });
    assert_eq!(shown, expected);
    assert_eq!(ask(home, &["router", "remove", "far"]), "removed: far\n");
    let file = fs::read_to_string(home.join(".config/namewire/routers.toml")).unwrap();
    assert!(!file.contains("default") && file.contains("[routers.lab]"), "{file}");
    let gone = run(home, &["router", "remove", "lap"]);
    assert_eq!(gone.status.code(), Some(3));
    assert!(text(&gone.stderr).contains("did you mean \"lab\"?"), "{gone:?}");
}

#[test]
fn the_nearest_name_wins() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let routers = three(home);
    let bare = |takes: &[&str]| namewire(home, takes);
    fs::create_dir(home.join(".ndn")).unwrap();
    fs::write(home.join(".ndn/client.conf"), format!("transport={}\n", routers[2].uri())).unwrap();
    for (name, router) in [("one", &routers[0]), ("two", &routers[1])] {
        ask(home, &["router", "add", name, &router.uri()]);
    }
    assert_eq!(answers(&mut bare(&[])), "/conf", "names alone change nothing");
    assert_eq!(answers(&mut bare(&["--router", "one"])), "/one");
    assert_eq!(answers(bare(&[]).env("NAMEWIRE_ROUTER", "two")), "/two");
    assert_eq!(answers(bare(&["--router", "one"]).env("NAMEWIRE_ROUTER", "two")), "/one");
    assert_eq!(answers(bare(&["--transport", &routers[2].uri()]).env("NAMEWIRE_ROUTER", "two")), "/conf");
    let variable = routers[2].uri();
    assert_eq!(answers(bare(&[]).env("NAMEWIRE_ROUTER", "two").env("NDN_CLIENT_TRANSPORT", &variable)), "/two");
    ask(home, &["router", "default", "one"]);
    assert_eq!(answers(&mut bare(&[])), "/one");
    assert_eq!(answers(bare(&[]).env("NDN_CLIENT_TRANSPORT", &variable)), "/conf");
    // What was written for NFD goes where NFD's own tool would.
    let nfdc = |command: &mut Command| text(&command.args(["nfdc", "route", "list"]).output().unwrap().stdout);
    assert!(nfdc(&mut bare(&[])).contains("prefix=/conf"));
    assert!(nfdc(&mut bare(&["--router", "two"])).contains("prefix=/two"));
    assert!(nfdc(bare(&[]).env("NAMEWIRE_ROUTER", "one")).contains("prefix=/one"));
    ask(home, &["router", "default", "--none"]);
    assert_eq!(answers(&mut bare(&[])), "/conf");
}

#[test]
fn what_is_wrong_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    ask(home, &["router", "add", "campus", "unix:///nowhere/nfd.sock"]);
    let mistyped = run(home, &["--router", "campsu", "status"]);
    assert_eq!(mistyped.status.code(), Some(3));
    assert_eq!(
        text(&mistyped.stderr),
        "namewire: no router is named \"campsu\"; did you mean \"campus\"?\nThere are: campus\n"
    );
    let away = run(home, &["--router", "campus", "status"]);
    assert_eq!(away.status.code(), Some(4));
    let said = text(&away.stderr);
    assert!(said.contains("/nowhere/nfd.sock") && said.contains("the router \"campus\" (named by --router)"), "{said}");
    let both = run(home, &["--router", "campus", "--transport", "udp://h", "status"]);
    assert_eq!(both.status.code(), Some(2), "{both:?}");
    assert_eq!(run(home, &["--router", "campus", "status", "--transport", "udp://h"]).status.code(), Some(2));
    assert_eq!(run(home, &["--router", "campus", "router", "list"]).status.code(), Some(2));
    assert!(text_of_failure(&run(home, &["run", "--router", "campus"])).contains("see --socket"));

    let file = home.join(".config/namewire/routers.toml");
    fs::write(&file, "[routers.lab]\ntransport = \"udp://h\"\ntranport = 1\n").unwrap();
    let wrong = text_of_failure(&run(home, &["status"]));
    assert!(wrong.contains("routers.toml: line 3: ") && wrong.contains("did you mean"), "{wrong}");
    // A file of ours does not stop programs that do not need it.
    let other = namewire(home, &["status"]).env("NDN_CLIENT_TRANSPORT", "unix:///nowhere").output().unwrap();
    assert!(text_of_failure(&other).contains("no forwarder answers"));
}

/// A key of the named router signs, and `--identity` comes before it.
#[test]
fn a_named_router_may_name_who_signs() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    make_identity(home, "/alice", &home.join("alice.cert"));
    let router = Router::run(home, &[]);
    for (name, identity) in [("alices", "/alice"), ("nobodys", "/nobody")] {
        ask(home, &["router", "add", name, &router.uri(), "--identity", identity]);
    }
    let signature_type = |arguments: &[&str]| {
        let poke = [arguments, &["poke", "/data", "--freshness", "3600000"]].concat();
        let mut poke = namewire(home, &poke).stdin(std::process::Stdio::piped()).spawn().unwrap();
        drop(poke.stdin.take());
        eventually("it serves", || router.ask(&["route", "list"]).contains("/data"));
        let fetched: Value = serde_json::from_str(&router.ask(&["peek", "/data", "-v", "--json"])).unwrap();
        poke.wait().unwrap();
        router.ask(&["cs", "erase", "/"]);
        fetched["signature_type"].as_u64()
    };
    let (digest, ecdsa) = (Some(0), Some(3));
    assert_eq!(signature_type(&["--transport", &router.uri()]), digest);
    assert_eq!(signature_type(&["--router", "alices"]), ecdsa);
    assert_eq!(signature_type(&["--router", "nobodys", "--identity", "/alice"]), ecdsa);
    let nobody = text_of_failure(&run(home, &["--router", "nobodys", "status"]));
    assert!(nobody.contains("/nobody"), "{nobody}");
}
