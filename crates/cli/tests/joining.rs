//! A bare machine joins a network: a certificate of its authority, a signed route at its router, and Data that a third
//! machine verifies.

use crate::{
    certificates::{Service, ok},
    router_process::{NAMEWIRE, Router, eventually, free_port, namewire_of, text, text_of_failure},
};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Members of the site, whom its certificate vouches for, may register prefixes.
const RULES: &str = r#"
rule {
    id "members" for interest
    filter { type name name /localhop/nfd/rib relation is-prefix-of }
    checker { type customized sig-type ecdsa-sha256 key-locator { type name name /site relation is-prefix-of } }
}
rule {
    id "certificates" for data
    filter { type name regex ^<>*<KEY><><><>$ }
    checker { type hierarchical sig-type ecdsa-sha256 }
}
trust-anchor { type file file-name "site.cert" }
"#;

/// A machine: a home, and its router.
struct Machine {
    home: PathBuf,
    port: u16,
    router: Router,
}

impl Machine {
    fn new(home: PathBuf, arguments: &[&str]) -> Self {
        fs::create_dir_all(&home).unwrap();
        let port = free_port();
        Machine { router: Machine::run(&home, port, arguments), home, port }
    }

    /// `namewire run`.
    fn run(home: &Path, port: u16, arguments: &[&str]) -> Router {
        let (socket, listen) = (home.join("nfd.sock"), format!("127.0.0.1:{port}"));
        let mut command = Command::new(NAMEWIRE);
        command.env("HOME", home).current_dir(home);
        command.args(["run", "--no-tcp", "--listen-udp", &listen, "--socket"]).arg(&socket).args(arguments);
        Router::start(&socket, &mut command)
    }

    fn uri(&self) -> String {
        format!("udp4://127.0.0.1:{}", self.port)
    }

    fn command(&self, arguments: &[&str]) -> Output {
        namewire_of(&self.home).args(["--transport", &self.router.uri()]).args(arguments).output().unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        text(&output.stdout)
    }

    fn has_route(&self, prefix: &str) -> bool {
        let routes: Value = serde_json::from_str(&self.ok(&["route", "list", "--json"])).unwrap();
        routes.as_array().unwrap().iter().any(|route| route["prefix"] == prefix)
    }

    fn state_of_network(&self) -> Value {
        let kept: Value = serde_json::from_str(&self.ok(&["join", "--json"])).unwrap();
        kept["networks"][0].clone()
    }
}

/// The machine of a site, with its authority, and its certificate in a file.
fn site(folder: &Path) -> (Machine, Service, PathBuf) {
    let home = folder.join("site");
    fs::create_dir_all(&home).unwrap();
    ok(&home, &["key", "make", "/site"]);
    let certificate = home.join("site.cert");
    ok(&home, &["key", "export-cert", "/site", "-o", certificate.to_str().unwrap()]);
    fs::write(home.join("rules.conf"), RULES).unwrap();
    fs::write(home.join("nw.toml"), "[trust]\nlocalhop_rib = \"rules.conf\"\n").unwrap();
    let site = Machine::new(home, &["-c", "nw.toml"]);
    let authority = Service::start(&site.router, &site.home, &["--json", "cert", "ca", "/site"]);
    eventually("the authority serves", || site.has_route("/site/CA"));
    (site, authority, certificate)
}

#[test]
fn three_commands_bring_a_bare_machine_into_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let (site, mut authority, certificate) = site(folder.path());
    let anchor = certificate.to_str().unwrap();
    let carol = Machine::new(folder.path().join("carol"), &["--route", &format!("/=udp4://127.0.0.1:{}", site.port)]);
    let code = site.ok(&["cert", "pin", "/site/bob"]);
    let file = folder.path().join("letter");
    fs::write(&file, [3; 20_000]).unwrap();

    // One: namewire run.
    let mut bob = Machine::new(folder.path().join("bob"), &[]);
    // Two: namewire join.
    let router = site.uri();
    let joined = bob.ok(&["join", &router, "/site/bob", "--code", code.trim(), "--anchor", anchor]);
    assert!(joined.starts_with(&format!("joined the network of {router}\n  certificate /site/bob/KEY/")), "{joined}");
    // Three: namewire put.
    let put = ["--json", "--identity", "/site/bob", "put", file.to_str().unwrap(), "/site/bob/letter"];
    let mut putting = Service::start(&bob.router, &bob.home, &put);
    assert_eq!(putting.json()["certificates"], 2);

    let copy = folder.path().join("copy");
    carol.ok(&["get", "/site/bob/letter", "--anchor", anchor, "-o", copy.to_str().unwrap()]);
    assert_eq!(fs::read(&copy).unwrap(), [3; 20_000]);
    assert_eq!(authority.json()["event"], "code");
    assert!(authority.json()["certificate"].as_str().unwrap().starts_with("/site/bob/KEY/"));
    assert!(site.has_route("/site/bob"));
    eventually("the router has joined", || bob.state_of_network()["is_joined"] == true);

    // The network stays joined over a restart, without anybody.
    drop(bob.router);
    bob.router = Machine::run(&bob.home, bob.port, &[]);
    eventually("the router has joined again", || bob.command(&["join"]).status.success());
    eventually("the router has joined again", || bob.state_of_network()["is_joined"] == true);
    // The certificate is renewed over the network.
    let renewed = bob.ok(&["cert", "renew", "/site/bob"]);
    assert!(renewed.starts_with("/site/bob/KEY/"), "{renewed}");

    bob.ok(&["leave", "/site/bob"]);
    assert!(!site.has_route("/site/bob") && !bob.has_route("/"));
    let faces: Value = serde_json::from_str(&bob.ok(&["face", "list", "--json"])).unwrap();
    assert!(faces.as_array().unwrap().iter().all(|face| face["remote_uri"] != router), "{faces}");

    // Whoever has a certificate joins again without a code, whatever else the host's routes say.
    bob.ok(&["route", "add", "/", &format!("udp4://127.0.0.1:{}", carol.port)]);
    let joined = bob.ok(&["join", &router, "/site/bob", "--route", "/site"]);
    assert!(!joined.contains("certificate"), "{joined}");
    // What the operator revokes is not renewed, and others find the record.
    let revoked = site.ok(&["cert", "revoke", "/site/bob", "--reason", "key-compromise"]);
    assert!(revoked.starts_with("revoked /site/bob/KEY/"), "{revoked}");
    eventually("the authority knows it", || !bob.command(&["cert", "renew", "/site/bob"]).status.success());
    eventually("the record is served", || {
        let get = ["get", "/site/bob/letter", "--anchor", anchor, "-o", copy.to_str().unwrap()];
        let output = carol.command(&get);
        !output.status.success() && text(&output.stderr).contains("revoked")
    });
}

#[test]
fn who_does_not_join_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (site, _authority, certificate) = site(folder.path());
    let bob = Machine::new(folder.path().join("bob"), &[]);
    let router = site.uri();
    let join = |more: &[&str]| {
        let output = bob.command(&[&["join", &router, "/site/bob"], more].concat());
        assert!(!output.status.success() && !bob.has_route("/"), "{more:?}: {output:?}");
        text_of_failure(&output)
    };
    let (anchor, zeros) = (certificate.to_str().unwrap(), "00".repeat(32));
    let unknown = join(&["--code", "123456"]);
    assert!(unknown.contains("If its operator told you the same, add --digest"), "{unknown}");
    let other = join(&["--code", "123456", "--digest", &zeros]);
    assert!(other.contains("is not the authority that you trust: its certificate has another digest"), "{other}");
    let wrong = join(&["--code", "000000", "--anchor", anchor]);
    assert!(wrong.contains("the code is wrong"), "{wrong}");
    let elsewhere = join(&["--ca", "/other", "--code", "1", "--anchor", anchor]);
    assert!(elsewhere.contains("the authority of /other does not answer"), "{elsewhere}");
    // Nor does a router that is not there, or whose host only fetches.
    let nowhere = bob.command(&["join", &format!("udp4://127.0.0.1:{}", free_port())]);
    assert!(text_of_failure(&nowhere).contains("does not answer"), "{nowhere:?}");
    let keys = bob.command(&["key", "list"]);
    assert!(!text(&keys.stdout).contains("/site/bob"), "{keys:?}");
    assert_eq!(bob.ok(&["join"]), "no network is joined\n");
    let faces: Value = serde_json::from_str(&bob.ok(&["face", "list", "--json"])).unwrap();
    assert!(faces.as_array().unwrap().iter().all(|face| face["remote_uri"] != router), "{faces}");
    let none = bob.command(&["leave", "/site/bob"]);
    assert!(text_of_failure(&none).contains("this host has not joined /site/bob"), "{none:?}");
}
