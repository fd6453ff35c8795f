//! The rules of configuration files about who may command, tested on the running router.

use crate::router_process::{Router, eventually, free_port, make_identity, namewire_of, text_of_failure};
use std::{fs, path::Path, process::Command};

/// Commands for routes pass if a key of `identity` has signed them.
fn rules(identity: &str, module: &str, anchor: &str) -> String {
    format!(
        "rule {{ id commands\n for interest\n filter {{ type name\n name {module}\n relation is-prefix-of }}\n\
         checker {{ type customized\n sig-type ecdsa-sha256\n\
         key-locator {{ type name\n name {identity}\n relation is-prefix-of }} }} }}\n\
         trust-anchor {{ type file\n file-name {anchor}\n refresh 0s }}\n"
    )
}

/// True if the command was carried out; false if it was refused for want of permission.
fn passes(router: &Router, home: &Path, line: &str) -> bool {
    let output = router.tool_of(home, &line.split_whitespace().collect::<Vec<_>>());
    if !output.status.success() {
        let why = text_of_failure(&output);
        assert!(why.contains("authorization rejected"), "{line}: {why}");
    }
    output.status.success()
}

#[test]
fn the_file_says_who_may_command_and_a_hangup_says_it_anew() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    make_identity(home, "/operator", &home.join("keys/operator.ndncert"));
    make_identity(home, "/other", &home.join("keys/other.ndncert"));
    let file = home.join("namewire.toml");
    let write = |text: &str| fs::write(&file, text).unwrap();
    // What the file itself declares needs nobody's leave.
    let declared = "[[route]]\nprefix = \"/declared\"\nface = \"udp4://127.0.0.1:7001\"\n\
                    [[strategy]]\nprefix = \"/declared\"\nstrategy = \"multicast\"\n";
    write(&format!(
        "{declared}[trust]\npeer_credentials = false\n\
         [[trust.authorize]]\ncertificate = \"keys/operator.ndncert\"\nprivileges = [\"faces\", \"rib\"]\n"
    ));
    let router = Router::run(home, &["--config", file.to_str().unwrap()]);
    assert!(router.ask(&["route", "list"]).contains("/declared"));
    assert!(router.ask(&["strategy", "list"]).contains("/declared"));
    assert!(!passes(&router, home, "face create udp4://127.0.0.1:7002"), "credentials do not count");
    assert!(!passes(&router, home, "--identity /other face create udp4://127.0.0.1:7002"));
    assert!(passes(&router, home, "--identity /operator face create udp4://127.0.0.1:7002"));
    assert!(passes(&router, home, "--identity /operator route add /signed udp4://127.0.0.1:7002"));
    assert!(passes(&router, home, "--identity /operator nfdc route add /by-nfdc udp4://127.0.0.1:7002"));
    assert!(!passes(&router, home, "nfdc route add /by-nfdc udp4://127.0.0.1:7002"), "nfdc without a key");
    assert!(!passes(&router, home, "--identity /operator strategy set /x multicast"), "not among the privileges");
    assert!(!router.ask(&["nfdc", "fib", "list"]).contains("/localhop/nfd"));

    fs::write(home.join("rib.conf"), rules("/other", "/localhost/nfd/rib", "keys/other.ndncert")).unwrap();
    fs::write(home.join("localhop.conf"), rules("/other", "/localhop/nfd/rib", "keys/other.ndncert")).unwrap();
    write(&format!("{declared}[trust]\nlocalhost_rib = \"rib.conf\"\nlocalhop_rib = \"localhop.conf\"\n"));
    let said = router.hang_up();
    assert!(!said.contains("next start") && !said.contains("as it was"), "{said}");
    assert!(passes(&router, home, "face create udp4://127.0.0.1:7003"), "credentials count again");
    assert!(!passes(&router, home, "--identity /operator route add /by-operator udp4://127.0.0.1:7003"));
    assert!(passes(&router, home, "--identity /other route add /by-other udp4://127.0.0.1:7003"));
    assert!(router.ask(&["nfdc", "fib", "list"]).contains("/localhop/nfd"));

    // Another certificate in the file that is named, although what names it is the same.
    fs::copy(home.join("keys/operator.ndncert"), home.join("keys/other.ndncert")).unwrap();
    fs::write(home.join("rib.conf"), rules("/operator", "/localhost/nfd/rib", "keys/other.ndncert")).unwrap();
    router.hang_up();
    assert!(passes(&router, home, "--identity /operator route add /by-operator udp4://127.0.0.1:7003"));
    assert!(!passes(&router, home, "--identity /other route remove /by-other udp4://127.0.0.1:7003"));

    fs::remove_file(home.join("keys/other.ndncert")).unwrap();
    write("[trust]\nlocalhost_rib = \"rib.conf\"\n");
    let said = router.hang_up();
    assert!(said.contains("other.ndncert: No such file") && said.contains("at a SIGHUP"), "{said}");
    assert!(!router.ask(&["route", "list"]).contains("/declared"), "the rest of the file was taken over");
    assert!(!passes(&router, home, "--identity /operator route remove /by-operator udp4://127.0.0.1:7003"));
    let check = namewire_of(home).args(["config", "check"]).arg(&file).output().unwrap();
    let said = [check.stdout, check.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    assert!(check.status.success() && said.contains("other.ndncert") && said.contains("1 warning"), "{said}");
}

/// Administrators (`/admin/NAME`) may register routes and publish files: the schema `admin` of `interop/lvs_cases.py`.
#[test]
fn a_schema_says_who_may_command_and_who_may_publish() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let anchor = home.join("ann.ndncert");
    make_identity(home, "/admin/ann", &anchor);
    make_identity(home, "/admin/bob", &home.join("bob.ndncert"));
    make_identity(home, "/other/ann", &home.join("other.ndncert"));
    let schema = home.join("admin.tlv");
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../security/tests/lvs/admin.tlv"), &schema).unwrap();
    let file = home.join("namewire.toml");
    let with = |anchor: &str| {
        let text = format!("[trust]\nschema = \"admin.tlv\"\nanchors = [\"{anchor}\"]\nlocalhost_rib = \"schema\"\n");
        fs::write(&file, text).unwrap();
    };
    with("ann.ndncert");
    let router = Router::run(home, &["--config", file.to_str().unwrap()]);
    let mut routes = 0;
    let mut may = |identity: &str| {
        routes += 1;
        passes(&router, home, &format!("--identity {identity} route add /r/{routes} udp4://127.0.0.1:7003"))
    };
    assert!(may("/admin/ann"));
    assert!(!may("/admin/bob"), "a root of trust of the schema, and no anchor");
    assert!(!may("/other/ann"), "the schema does not let it command");
    with("bob.ndncert");
    router.hang_up();
    assert!(!may("/admin/ann"));
    assert!(may("/admin/bob"));

    // What cannot be used is named, and the settings stay as they were.
    let refused = |says: &[&str]| {
        let check = namewire_of(home).args(["config", "check"]).arg(&file).output().unwrap();
        let said = text_of_failure(&check);
        assert!(!check.status.success() && says.iter().all(|one| said.contains(one)), "{says:?}: {said}");
    };
    with("other.ndncert");
    refused(&["[trust] anchors", "other.ndncert", "is no root of trust of the schema (#admin)"]);
    router.hang_up();
    assert!(may("/admin/bob"));
    with("bob.ndncert");
    let whole = fs::read(&schema).unwrap();
    fs::write(&schema, &whole[..100]).unwrap();
    refused(&["[trust] schema", "admin.tlv", "not a compiled LVS schema"]);
    fs::write(&schema, whole).unwrap();
    fs::write(&file, "[trust]\nlocalhop_rib = \"schema\"\n").unwrap();
    refused(&["[trust] localhop_rib", "needs the schema"]);
    fs::write(&file, "[repo]\ndata = \"schema\"\n").unwrap();
    refused(&["[repo] data", "needs the schema"]);
    fs::write(&file, "[trust]\nschema = \"admin.tlv\"\n").unwrap();
    refused(&["[trust] schema needs anchors"]);
    fs::write(&file, "[trust]\nschema = \"admin.tlv\"\nanchors = [\"bob.ndncert\"]\n[repo]\ndata = \"schema\"\n")
        .unwrap();
    let check = namewire_of(home).args(["config", "check"]).arg(&file).output().unwrap();
    assert!(check.status.success(), "{}", text_of_failure(&check));
}

/// An `nfd.conf` may name certificates that are still to come (the documents of ndn6-tools have `dir /nonexistent`).
/// NFD starts; the router ended with 1.
#[test]
fn an_nfd_conf_may_name_anchors_that_are_not_there_yet() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    make_identity(home, "/operator", &home.join("operator.ndncert"));
    fs::write(home.join("junk"), "no certificate").unwrap();
    let (socket, file) = (home.join("nfd.sock"), home.join("nfd.conf"));
    let rule = rules("/operator", "/localhost/nfd/rib", "junk");
    let text = format!(
        "face_system {{ unix {{ path {} }}\n udp {{ mcast no\n listen no }} }}\nrib {{ localhost_security {{ {rule}\n\
         trust-anchor {{ type file\n file-name later.ndncert\n refresh 1s }}\n\
         trust-anchor {{ type dir\n dir /nonexistent }} }} }}\n",
        socket.display()
    );
    fs::write(&file, text).unwrap();
    let router = Router::start(&socket, Command::new(super::NAMEWIRE).args(["run", "--nfd-conf"]).arg(&file));
    let said = router.hang_up();
    for (path, again) in [("junk", "at a SIGHUP"), ("later.ndncert", "every 1 s"), ("/nonexistent", "every 3600 s")] {
        let line = said.lines().find(|line| line.contains(path)).unwrap_or_else(|| panic!("{path}: {said}"));
        assert!(line.contains("trust anchor") && line.contains(again), "{line}");
    }
    let line = "--identity /operator route add /signed udp4://127.0.0.1:7003";
    assert!(!passes(&router, home, line));
    fs::copy(home.join("operator.ndncert"), home.join("later.ndncert")).unwrap();
    eventually("the certificate is read at its refresh", || passes(&router, home, line));
}

#[test]
fn an_nfd_conf_says_it_as_in_nfd() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    make_identity(home, "/operator", &home.join("keys/operator.ndncert"));
    let (socket, port, file) = (home.join("nfd.sock"), free_port(), home.join("nfd.conf"));
    let write = |privileges: &str| {
        let text = format!(
            "authorizations {{ authorize {{ certfile keys/operator.ndncert\n privileges {{ {privileges} }} }} }}\n\
             face_system {{ unix {{ path {} }}\n tcp {{ port {port}\n enable_v6 no }}\n udp {{ mcast no\n listen no }} }}\n\
             rib {{ localhost_security {{ {} }} }}\n",
            socket.display(),
            rules("/operator", "/localhost/nfd/rib", "keys/operator.ndncert"),
        );
        fs::write(&file, text).unwrap();
    };
    write("faces");
    let router = Router::start(&socket, Command::new(super::NAMEWIRE).args(["run", "--nfd-conf"]).arg(&file));
    // A TCP connection has no credentials: only the section counts.
    let over_tcp = |line: &str| {
        let transport = format!("tcp://127.0.0.1:{port}");
        let mut command = namewire_of(home);
        let output = command.args(["--transport", &transport]).args(line.split_whitespace()).output().unwrap();
        assert!(output.status.success() || text_of_failure(&output).contains("authorization rejected"), "{output:?}");
        output.status.success()
    };
    assert!(!over_tcp("face create udp4://127.0.0.1:7002"));
    assert!(over_tcp("--identity /operator face create udp4://127.0.0.1:7002"));
    assert!(!over_tcp("--identity /operator strategy set /x multicast"));
    // The rules of localhost_security decide alone, also about the router's own user.
    assert!(passes(&router, home, "face create udp4://127.0.0.1:7003"));
    assert!(!passes(&router, home, "route add /unsigned udp4://127.0.0.1:7003"));
    assert!(passes(&router, home, "--identity /operator route add /signed udp4://127.0.0.1:7003"));

    write("strategy-choice");
    router.hang_up();
    assert!(over_tcp("--identity /operator strategy set /x multicast"));
    assert!(!over_tcp("--identity /operator face create udp4://127.0.0.1:7004"));
}
