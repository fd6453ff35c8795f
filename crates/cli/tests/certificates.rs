//! Certificates are found: by `put --identity`, `key serve` and the router itself.

use crate::router_process::{
    NAMEWIRE, Router, eventually, free_port, make_identity, namewire_of, run_command, text, text_of_failure,
};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader, Lines},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

/// Runs a command of the user with this home, which must succeed.
pub(crate) fn ok(home: &Path, arguments: &[&str]) -> String {
    let output = namewire_of(home).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    text(&output.stdout)
}

fn certificate_name(home: &Path, name: &str) -> String {
    let shown: Value = serde_json::from_str(&ok(home, &["--json", "key", "show", name])).unwrap();
    shown["certificate"].as_str().unwrap().to_owned()
}

/// A router that listens on UDP, at this port.
fn router(folder: &Path, port: u16, arguments: &[&str]) -> Router {
    fs::create_dir_all(folder).unwrap();
    let socket = folder.join("nfd.sock");
    let mut command = Command::new(NAMEWIRE);
    let listen = format!("127.0.0.1:{port}");
    command.args(["run", "--no-tcp", "--listen-udp", &listen, "--socket"]).arg(&socket).args(arguments);
    Router::start(&socket, &mut command)
}

/// A command that runs until the test ends, and the lines that it prints.
pub(crate) struct Service {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Service {
    pub(crate) fn start(router: &Router, home: &Path, arguments: &[&str]) -> Service {
        let mut command = namewire_of(home);
        command.args(["--transport", &router.uri()]).args(arguments);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Service { process, lines }
    }

    pub(crate) fn line(&mut self) -> String {
        self.lines.next().expect("a line").unwrap()
    }

    pub(crate) fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    fn interrupt(mut self) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A home with the keys of a site and of Alice, whom the site has certified. Gives the site's certificate, as a file.
fn site(home: &Path) -> PathBuf {
    let (site, alice, issued) = (home.join("site.cert"), home.join("alice.cert"), home.join("issued.cert"));
    make_identity(home, "/site", &site);
    make_identity(home, "/site/alice", &alice);
    let path = |file: &Path| file.to_str().unwrap().to_owned();
    ok(home, &["--identity", "/site", "key", "issue", &path(&alice), "--issuer-id", "site", "-o", &path(&issued)]);
    ok(home, &["key", "import", &path(&issued)]);
    let list: Value = serde_json::from_str(&ok(home, &["--json", "key", "list"])).unwrap();
    let identities = list.as_array().unwrap().iter();
    let keys = identities.flat_map(|identity| identity["keys"].as_array().unwrap());
    let certificates = keys.flat_map(|key| key["certificates"].as_array().unwrap());
    let mut names = certificates.map(|certificate| certificate["certificate"].as_str().unwrap());
    let issued = names.rfind(|name| name.contains("/site/v=")).expect("it was imported");
    ok(home, &["key", "default", issued]);
    site
}

/// Two routers and a route; then one command for the producer, and one for the consumer.
#[test]
fn what_an_identity_puts_is_verified_behind_another_router_without_further_set_up() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    let anchor = site(&home);
    let (west, east) = (free_port(), free_port());
    let east_router = router(&folder.path().join("east"), east, &[]);
    let route = format!("/site=udp4://127.0.0.1:{east}");
    let west_router = router(&folder.path().join("west"), west, &["--route", &route]);
    let file = folder.path().join("file");
    fs::write(&file, [7; 20_000]).unwrap();
    let file = file.to_str().unwrap();
    let put = ["--identity", "/site/alice", "put", file, "/site/alice/file"];
    let mut putting = Service::start(&east_router, &home, &put);
    let line = putting.line();
    assert!(line.starts_with("serving /site/alice/file/v=") && line.contains(", 3 certificates)"), "{line}");
    let copy = folder.path().join("copy");
    let (copy_path, anchor_path) = (copy.to_str().unwrap(), anchor.to_str().unwrap());
    west_router.ask(&["get", "/site/alice/file", "--anchor", anchor_path, "-o", copy_path]);
    assert_eq!(fs::read(&copy).unwrap(), [7; 20_000]);
    putting.interrupt();
    // A folder and a stream, too.
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("one"), "one").unwrap();
    let serve = ["--json", "--identity", "/site/alice", "serve", shared.to_str().unwrap(), "/site/alice/shared"];
    let mut serving = Service::start(&east_router, &home, &serve);
    assert_eq!(serving.json()["certificates"], 3);
    let get = ["get", "/site/alice/shared/one", "--anchor", anchor_path, "-o", copy_path];
    west_router.ask(&get);
    assert_eq!(fs::read(&copy).unwrap(), b"one");
}

#[test]
fn key_serve_follows_the_key_chain() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let router = Router::run(home, &[]);
    let none = router.tool_of(home, &["key", "serve"]);
    assert!(text_of_failure(&none).contains("there is no key chain"), "{none:?}");
    make_identity(home, "/alice", &home.join("alice.cert"));
    let unknown = router.tool_of(home, &["key", "serve", "/carol"]);
    assert_eq!(text_of_failure(&unknown), "namewire: /carol is not in the key chain\n");

    let mut serving = Service::start(&router, home, &["--json", "key", "serve"]);
    let alice = certificate_name(home, "/alice");
    let line = serving.json();
    assert_eq!((&line["event"], &line["certificates"]), (&"serving".into(), &1.into()));
    let key = line["key"].as_str().unwrap().to_owned();
    assert_eq!(serving.json(), serde_json::json!({"event": "ready", "keys": 1, "certificates": 1}));
    assert!(alice.starts_with(&key), "{alice} {key}");
    let peeked: Value = serde_json::from_str(&router.ask(&["--json", "peek", "-p", &key])).unwrap();
    assert_eq!(peeked["name"], alice.as_str());
    ok(home, &["key", "make", "/bob"]);
    assert_eq!(serving.json()["event"], "serving");
    assert_eq!(serving.json()["keys"], 2);
    ok(home, &["key", "delete", "/alice"]);
    assert_eq!(serving.json(), serde_json::json!({"event": "withdrawn", "key": key}));
    serving.interrupt();

    let file = home.join("alice.cert");
    let mut files = Service::start(&router, home, &["key", "serve", "/bob", "--file", file.to_str().unwrap()]);
    let lines = [files.line(), files.line(), files.line()];
    let is_alice = |line: &&String| line.starts_with("serving /alice/KEY/") && line.ends_with(" (1 certificate)");
    assert_eq!(lines.iter().filter(is_alice).count(), 1, "{lines:?}");
    assert_eq!(lines[2], "serving 2 certificates of 2 keys; Ctrl-C to stop");
    router.ask(&["--json", "peek", &alice]);
}

#[test]
fn the_router_serves_its_users_certificates_and_all_anchors() {
    let folder = tempfile::tempdir().unwrap();
    let (home, other) = (folder.path().join("home"), folder.path().join("other"));
    fs::create_dir_all(&home).unwrap();
    fs::create_dir_all(&other).unwrap();
    make_identity(&home, "/router", &home.join("router.cert"));
    make_identity(&other, "/anchor", &folder.path().join("anchor.cert"));
    let rules = r#"rule
{
    id all
    for interest
    checker
    {
        type hierarchical
        sig-type ecdsa-sha256
    }
}
trust-anchor
{
    type file
    file-name anchor.cert
}
"#;
    fs::write(folder.path().join("rules"), rules).unwrap();
    let settings = |is_on: bool| {
        let text = format!("[router]\nserve_certificates = {is_on}\n[trust]\nlocalhop_rib = \"rules\"\n");
        fs::write(folder.path().join("namewire.toml"), text).unwrap();
    };
    settings(true);
    let socket = folder.path().join("nfd.sock");
    let mut command = run_command(&socket);
    command.env("HOME", &home).env_remove("NDN_CLIENT_PIB").env_remove("NDN_CLIENT_TPM");
    let mut router = Router::start(&socket, command.arg("--config").arg(folder.path().join("namewire.toml")));
    let names = [certificate_name(&home, "/router"), certificate_name(&other, "/anchor")];
    let is_served = |router: &Router, name: &str| router.tool(&["peek", "--timeout", "500ms", name]).status.success();
    for name in &names {
        eventually("the router serves it", || is_served(&router, name));
    }
    let key = make_key(&home);
    eventually("a new key is served", || is_served(&router, &key));

    // A reload ends it, and starts it again.
    settings(false);
    assert!(!router.hang_up().contains("restart"));
    eventually("nothing is served", || router.ask(&["route", "list"]).lines().all(|line| !line.contains("/KEY/")));
    settings(true);
    router.hang_up();
    eventually("it is served again", || is_served(&router, &names[0]));

    // Another program takes over, and serves them as well.
    router.ask(&["upgrade"]);
    eventually("the new program serves it", || is_served(&router, &names[1]));
    let has_one_service = |faces: &str| {
        faces.lines().filter(|line| line.contains(" fd://") && line.contains(" internal://")).count() == 1
    };
    eventually("the connection of the old program is closed", || has_one_service(&router.ask(&["face", "list"])));
    router.terminate();
}

/// The certificate of another key in this home.
fn make_key(home: &Path) -> String {
    let made: Value = serde_json::from_str(&ok(home, &["--json", "key", "make", "/later"])).unwrap();
    made["certificate"].as_str().unwrap().to_owned()
}
