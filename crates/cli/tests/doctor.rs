//! `namewire doctor` as a user meets it: real routers, and one prepared fault after the other.

use crate::{
    nfdc::fake_forwarder::{FakeForwarder, Reply, face, refuse},
    router_process::{NAMEWIRE, Router, eventually, free_port, namewire_of, run_command, text},
    tools::Running,
};
use namewire_packet::{
    Interest, NackReason,
    lp::{LinkFields, LpHeaders, LpPacket, write_headers},
    nfd::{DatasetEntry, FibEntry, ForwarderStatus, NextHopRecord, encode_dataset},
};
use namewire_security::{
    PrivateKey,
    key_chain::{KeyChain, KeyChainLocation},
};
use serde_json::Value;
use std::{
    fs,
    net::UdpSocket,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

/// What a doctor said: its exit code and its document.
struct Said {
    code: i32,
    document: Value,
}

impl Said {
    fn of(output: &Output) -> Said {
        let document = serde_json::from_slice(&output.stdout);
        let document = document.unwrap_or_else(|error| panic!("{error}: {output:?}"));
        Said { code: output.status.code().unwrap(), document }
    }

    /// Findings of a check: severity, message and command.
    fn of_check(&self, check: &str) -> Vec<(&str, &str, &str)> {
        let findings = self.document["findings"].as_array().unwrap();
        let text = |finding: &'_ Value, key: &str| finding[key].as_str().unwrap().to_owned();
        let of_check = findings.iter().filter(|finding| text(finding, "check") == check);
        of_check
            .map(|finding| {
                let text = |key: &str| finding[key].as_str().unwrap();
                (text("severity"), text("message"), text("try"))
            })
            .collect()
    }

    fn outcome(&self, check: &str) -> &str {
        let checks = self.document["checks"].as_array().unwrap();
        let line = checks.iter().find(|line| line["check"] == check).unwrap_or_else(|| panic!("no check {check}"));
        line["outcome"].as_str().unwrap()
    }

    /// The exit code is that of the worst finding.
    fn is_consistent(&self) -> bool {
        let expected = match self.document["severity"].as_str().unwrap() {
            "ok" | "note" => 0,
            "warning" => 8,
            "error" => 9,
            other => panic!("{other}"),
        };
        self.code == expected && self.document["exit_code"] == expected
    }
}

fn doctor(router: &Router, arguments: &[&str]) -> Said {
    Said::of(&router.tool(&[&["doctor", "--json"], arguments].concat()))
}

/// Asks until the check has a finding with these words: a busy machine may answer a probe too late.
fn finds(router: &Router, check: &str, severity: &str, words: &str, command: &str) {
    eventually(&format!("{check} finds {words}"), || {
        let said = doctor(router, &[]);
        assert!(said.is_consistent(), "{}", said.document);
        let naming = format!("--transport {} ", router.uri());
        let is_it = |(found, message, typed): &(&str, &str, &str)| {
            *found == severity && message.contains(words) && typed.replacen(&naming, "", 1) == command
        };
        said.of_check(check).iter().any(is_it)
    });
}

/// A router on a port of the loopback.
fn router_on(directory: &Path, name: &str, port: u16) -> Router {
    let socket = directory.join(format!("{name}.sock"));
    let listen = format!("127.0.0.1:{port}");
    let mut command = Command::new(NAMEWIRE);
    command.args(["run", "--no-tcp", "--listen-udp", &listen, "--socket"]).arg(&socket);
    Router::start(&socket, &mut command)
}

#[test]
fn without_a_router_it_says_what_was_tried_and_what_to_type() {
    let home = tempfile::tempdir().unwrap();
    let absent = format!("unix://{}/absent.sock", home.path().display());
    let ask = |arguments: &[&str]| {
        let mut command = namewire_of(home.path());
        command.env("NDN_CLIENT_TRANSPORT", &absent).env("XDG_RUNTIME_DIR", home.path());
        command.args(arguments).output().unwrap()
    };
    let output = ask(&["doctor"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(9), String::new()));
    let said = text(&output.stdout);
    assert!(said.contains(&format!("error    No forwarder answers ({absent}: No such file")), "{said}");
    assert!(
        said.lines().last().unwrap().contains("checks: ") && said.contains("not made (--verbose says why)"),
        "{said}"
    );

    // A router runs, but the variable leads elsewhere.
    let _router = Router::start(&home.path().join("nfd.sock"), &mut run_command(&home.path().join("nfd.sock")));
    let said = Said::of(&ask(&["doctor", "--json"]));
    let findings = said.of_check("client-transport");
    assert_eq!((findings[0].0, findings[0].2), ("error", "unset NDN_CLIENT_TRANSPORT"));
    assert!(findings[0].1.contains(&format!("{}/nfd.sock", home.path().display())), "{findings:?}");
}

#[test]
fn a_configuration_that_a_router_would_reject_is_found_before_it_starts() {
    let home = tempfile::tempdir().unwrap();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let file = home.path().join("router.toml");
    let ask = |content: &str| {
        fs::write(&file, content).unwrap();
        let mut command = namewire_of(home.path());
        command.env("NDN_CLIENT_TRANSPORT", "unix:///nonexistent/nfd.sock");
        Said::of(&command.args(["doctor", "--json", "--config"]).arg(&file).output().unwrap())
    };
    let said = ask("wrokers = 2\n");
    assert!(said.of_check("configuration")[0].1.contains("wrokers"), "{}", said.document);
    let listen = format!("[faces.udp]\nlisten = [\"127.0.0.1:{port}\"]\n[state]\nfile = \"/nonexistent/state.toml\"\n");
    let said = ask(&listen);
    assert_eq!(said.outcome("configuration"), "ok");
    let ports = said.of_check("ports");
    let (severity, message, command) = ports[0];
    assert_eq!((severity, command), ("error", &*format!("sudo ss -ulnp 'sport = :{port}'")));
    assert!(message.contains(&format!("(process {})", std::process::id())), "{message}");
    assert!(said.of_check("state-file")[0].1.contains("cannot be used: No such file"), "{}", said.document);
}

#[test]
fn a_router_in_order_has_no_findings_about_itself() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let said = doctor(&router, &[]);
    assert!(said.is_consistent(), "{}", said.document);
    let of_this_machine = ["memory", "socket", "drops"];
    for check in said.document["checks"].as_array().unwrap() {
        let (name, outcome) = (check["check"].as_str().unwrap(), check["outcome"].as_str().unwrap());
        let is_expected = match name {
            "route-out" => outcome == "note",
            "configuration" | "key-chain" | "key-files" | "default-key" | "certificates" | "ports" => {
                outcome == "not-made"
            }
            _ => outcome == "ok" || of_this_machine.contains(&name),
        };
        assert!(is_expected, "{check}: {}", said.document["findings"]);
    }
    assert_eq!(said.document["forwarder"]["is_namewire"], true);
    let process = router.tool(&["doctor", "--verbose", "--watch", "0"]);
    assert!(text(&process.stdout).contains("ok       descriptors: at most "), "{process:?}");
    assert_eq!(router.tool(&["doctor", "--watch", "-1"]).status.code(), Some(2));
}

#[test]
fn faults_of_routes_and_neighbours_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let [here, there] = [free_port(), free_port()];
    let (router, neighbour) = (router_on(directory.path(), "a", here), router_on(directory.path(), "b", there));
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let [to_there, to_here] = [there, here].map(|port| format!("udp4://127.0.0.1:{port}"));
    let to_silent = format!("udp4://{}", silent.local_addr().unwrap());
    let dead = format!("udp4://127.0.0.1:{}", free_port());
    for (router, prefix, uri) in [
        (&router, "/loop", &to_there),
        (&neighbour, "/loop", &to_here),
        (&router, "/silent", &to_silent),
        (&router, "/dead", &dead),
    ] {
        router.ask(&["route", "add", prefix, uri]);
    }
    // The closed port is noticed when something is sent there.
    router.tool(&["peek", "/dead/x", "--lifetime", "100"]);
    let down = router.face(&dead).unwrap();
    finds(&router, "faces-up", "error", "has been down", &format!("namewire face show {down}"));
    finds(&router, "route-next-hop", "error", "/dead leads nowhere", "namewire explain /dead");
    let face = router.face(&to_silent).unwrap();
    let capture = format!("namewire capture {face} --count 10");
    finds(&router, "neighbour-answers", "error", "has never brought a packet", &capture);
    let said = doctor(&router, &[]);
    assert!(said.of_check("neighbour-answers").iter().all(|(_, message, _)| !message.contains(&to_there)));

    eventually("the neighbour says what it is", || {
        let verbose = text(&router.tool(&["doctor", "--verbose"]).stdout);
        let software = format!("{to_there}): namewire {}, router /", env!("CARGO_PKG_VERSION"));
        verbose.contains(&software)
    });

    // Each router takes the other for the way to /loop.
    router.tool(&["peek", "/loop/x", "--lifetime", "1000"]);
    let back = neighbour.face(&to_here).unwrap();
    let command = format!("namewire explain /loop/x --from {back}");
    finds(&neighbour, "route-loop", "error", "two routers point at each other", &command);
    let explained = neighbour.ask(&["explain", "/loop/x", "--from", &back.to_string()]);
    assert!(explained.contains("the Interest came from there"), "{explained}");

    router.ask(&["strategy", "set", "/nobody", "asf"]);
    finds(&router, "strategy-route", "warning", "(asf) is chosen for /nobody", "namewire route add /nobody FACE");
    router.ask(&["strategy", "set", "/both", "multicast"]);
    router.ask(&["route", "add", "/both", &to_there]);
    router.ask(&["route", "add", "/both", &to_silent]);
    finds(&router, "strategy-multicast", "warning", "/both to 2 neighbours", "namewire strategy set /both best-route");
    let mut servers = [(); 2].map(|()| Running::start(router.command().args(["pingserver", "/twice"])));
    servers.iter().for_each(|server| _ = server.wait_for("ready"));
    let command = "namewire route list --under /twice/ping";
    finds(&router, "route-twice", "warning", "2 applications of this machine registered /twice/ping", command);
    servers.iter_mut().for_each(|server| _ = server.interrupt());
}

/// A neighbour that sends back what it gets, but not large datagrams: its path swallows them.
fn narrow_neighbour() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("udp4://{}", socket.local_addr().unwrap());
    let answering = socket.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 9000];
        while let Ok((count, from)) = answering.recv_from(&mut bytes) {
            let packet =
                LpPacket::parse(&bytes[..count]).ok().and_then(|packet| packet.fragment).unwrap_or(&bytes[..count]);
            if count > 1500 || Interest::parse(packet).is_err() {
                continue;
            }
            let headers = LpHeaders { nack: Some(NackReason::NoRoute), ..LpHeaders::default() };
            let mut nack = Vec::new();
            write_headers(&mut nack, &headers, &LinkFields::default(), packet.len());
            nack.extend_from_slice(packet);
            let _ = answering.send_to(&nack, from);
        }
    });
    (socket, uri)
}

#[test]
fn a_path_that_swallows_large_datagrams_is_found_and_the_advice_helps() {
    let directory = tempfile::tempdir().unwrap();
    let router = router_on(directory.path(), "a", free_port());
    let (_socket, uri) = narrow_neighbour();
    router.ask(&["route", "add", "/narrow", &uri]);
    let face = router.face(&uri).unwrap();
    let command = format!("namewire face update {face} --mtu 1232");
    finds(&router, "mtu", "error", "its path swallows large datagrams", &command);
    router.ask(&["face", "update", &face.to_string(), "--mtu", "1232"]);
    eventually("the path takes what is sent now", || doctor(&router, &[]).of_check("mtu").is_empty());
    let said = doctor(&router, &["--no-probe"]);
    assert_eq!(said.outcome("neighbour-answers"), "not-made");
}

#[test]
fn growing_drops_and_refusals_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let refused = router.tool(&["face", "create", "ether://[08:00:27:01:01:01]"]);
    assert!(!refused.status.success());
    finds(&router, "refused", "note", "The router refused", "namewire events --area trust,management,routes -n 5");
    let mut load = router.command();
    load.args(["traffic", "send", "/nowhere", "--rate", "500", "--duration", "100"]);
    let _load = Running::start(&mut load);
    finds(&router, "drops", "warning", "engine.no-route grew by", "namewire drops --reason no-route");
}

#[test]
fn keys_that_others_read_and_certificates_that_ended_are_found() {
    let home = tempfile::tempdir().unwrap();
    let location = KeyChainLocation::new(None, None, home.path()).unwrap();
    let chain = KeyChain::open_or_create(&location, home.path()).unwrap();
    let identity: namewire_packet::NameBuf = "/old".parse().unwrap();
    let certificate = chain.add_identity_key(identity.as_name(), PrivateKey::generate_ecdsa().unwrap(), 1000).unwrap();
    let file = chain.key_files().path(certificate.key_name());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let router = Router::run(home.path(), &[]);
    let ask = || Said::of(&router.tool_of(home.path(), &["doctor", "--json", "--watch", "0"]));
    let said = ask();
    let ended = said.of_check("certificates");
    assert_eq!((ended[0].0, ended[0].2), ("error", &*format!("namewire key renew {}", certificate.name())));
    assert!(ended[0].1.contains("expired"), "{ended:?}");
    let files = said.of_check("key-files");
    assert_eq!((files[0].0, files[0].2), ("error", &*format!("chmod -R go= {}", file.parent().unwrap().display())));
    let status = Command::new("sh").args(["-c", files[0].2]).status().unwrap();
    assert!(status.success() && ask().of_check("key-files").is_empty(), "the advice helps");
    let renewed = router.tool_of(home.path(), &ended[0].2.split(' ').skip(1).collect::<Vec<_>>());
    assert!(renewed.status.success(), "{renewed:?}");
    assert_eq!(ask().outcome("certificates"), "ok");
}

#[test]
fn a_changed_file_and_a_lost_state_folder_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let (file, folder) = (directory.path().join("router.toml"), directory.path().join("state"));
    fs::write(&file, "[cs]\npackets = 1000\n").unwrap();
    fs::create_dir(&folder).unwrap();
    let state = folder.join("state.toml");
    let arguments = ["--config", file.to_str().unwrap(), "--state", state.to_str().unwrap()];
    let router = Router::run(directory.path(), &arguments);
    let said = doctor(&router, &[]);
    assert_eq!((said.outcome("configuration"), said.outcome("state-file")), ("ok", "ok"), "{}", said.document);
    fs::write(&file, "[cs]\npackets = 2000\n").unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let said = doctor(&router, &[]);
    let changed = said.of_check("configuration");
    assert!(changed[0].1.starts_with("cs.packets differs"), "{changed:?}");
    let reload = format!("namewire --transport {} reload", router.uri());
    assert_eq!(changed[0].2, reload);
    assert_eq!(said.of_check("state-file")[0].0, "error");
}

/// NFD has fewer datasets; what it has is checked.
#[test]
fn a_forwarder_that_is_not_ours_gets_the_checks_that_can_be_made() {
    let forwarder = FakeForwarder::start(|request| match request.verb.as_str() {
        "status/general" => {
            let mut content = Vec::new();
            let status = ForwarderStatus { nfd_version: "24.07".into(), ..ForwarderStatus::default() };
            DatasetEntry::encode(&status, &mut content);
            Reply::Dataset(content)
        }
        "faces/list" => Reply::Dataset(encode_dataset(&[face(300, "udp4://192.0.2.2:6363")])),
        "fib/list" => {
            let hop = NextHopRecord { face_id: namewire_packet::FaceId(299), cost: 0 };
            Reply::Dataset(encode_dataset(&[FibEntry { name: "/gone".parse().unwrap(), next_hops: vec![hop] }]))
        }
        "faces/update" => refuse(403, "authorization rejected"),
        _ => Reply::Dataset(Vec::new()),
    });
    let transport = format!("unix://{}", forwarder.socket().display());
    let ask = |arguments: &[&str]| {
        let mut command = namewire_of(Path::new("/nonexistent"));
        command.args(["--transport", &transport, "doctor"]).args(arguments).output().unwrap()
    };
    let said = Said::of(&ask(&["--json"]));
    assert_eq!(said.document["forwarder"]["is_namewire"], false);
    assert_eq!((said.outcome("drops"), said.outcome("neighbour-answers")), ("not-made", "not-made"));
    let gone = said.of_check("route-next-hop");
    assert!(gone[0].1.contains("/gone leads nowhere") && gone[0].1.contains("face 299, which is gone"), "{gone:?}");
    let output = ask(&[]);
    assert_eq!(output.status.code(), Some(9));
    assert!(text(&output.stdout).contains("not made (the forwarder is not Namewire;"), "{output:?}");
}
