//! Privileges of a router that root starts: which privileges does each thread keep, and does the router still do its
//! work?
//!
//! Only root has privileges to give up. Other users, and machines without network namespaces, skip these tests with a
//! message.

use crate::router_process::{Router, eventually, free_port, http_get, run_command, text};
use std::{
    fs::{self, File},
    net::UdpSocket,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
};

/// The number of capability X is the bit that it has in /proc.
const NET_BIND_SERVICE: u64 = 1 << 10;
const NET_ADMIN: u64 = 1 << 12;
const NET_RAW: u64 = 1 << 13;
const IPC_LOCK: u64 = 1 << 14;
const BPF: u64 = 1 << 39;
const DAC_OVERRIDE: u64 = 1 << 1;
/// A user that every Linux has, and its number.
const NOBODY: (&str, u32) = ("nobody", 65534);

fn is_root() -> bool {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        eprintln!("skipped: only root has privileges to give up");
    }
    is_root
}

/// A line of /proc/…/status of each thread of the router. All must agree.
fn of_each_thread(router: &Router, line: &str) -> String {
    let tasks = fs::read_dir(format!("/proc/{}/task", router.process.id())).unwrap();
    let value = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).ok()?; // the thread may have ended
        status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':')).map(|value| value.trim().to_owned())
    };
    let mut values: Vec<String> = tasks.filter_map(|task| value(task.unwrap())).collect();
    assert!(values.len() > 2, "control and workers have threads: {values:?}");
    values.dedup();
    assert_eq!(values.len(), 1, "{line} differs between threads: {values:?}");
    values.remove(0)
}

fn capabilities(router: &Router, set: &str) -> u64 {
    u64::from_str_radix(&of_each_thread(router, set), 16).unwrap()
}

/// All five sets have at most these; effective, permitted and bounding set have all of them.
fn assert_kept(router: &Router, wanted: u64) {
    for set in ["CapEff", "CapPrm", "CapBnd"] {
        assert_eq!(capabilities(router, set), wanted, "{set}");
    }
    for set in ["CapInh", "CapAmb"] {
        assert_eq!(capabilities(router, set), 0, "{set}");
    }
    assert_eq!(of_each_thread(router, "NoNewPrivs"), "1");
}

/// What the observer answers.
fn status_json(observer: &str) -> serde_json::Value {
    let body = http_get(observer, "/status.json");
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// What a router prints until it is ready.
fn printed(directory: &Path, arguments: &[&str]) -> String {
    let file = directory.join("printed");
    let mut command = run_command(&directory.join("other.sock"));
    let mut process = command.args(arguments).stdout(File::create(&file).unwrap()).spawn().unwrap();
    let contents = || fs::read_to_string(&file).unwrap();
    eventually("the router says what it keeps", || contents().contains("privileges: "));
    process.kill().unwrap();
    process.wait().unwrap();
    contents()
}

#[test]
fn a_router_of_root_keeps_nothing_that_it_does_not_need() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (config, state) = (directory.path().join("c.toml"), directory.path().join("state/state.toml"));
    fs::create_dir(state.parent().unwrap()).unwrap();
    fs::write(&config, "[[route]]\nprefix = \"/one\"\nface = \"udp://127.0.0.1:9\"\n").unwrap();
    let observer = format!("127.0.0.1:{}", free_port());
    let paths = ["--config", config.to_str().unwrap(), "--state", state.to_str().unwrap()];
    let files = [&paths[..], &["--workers", "2", "--observe", &observer]].concat();

    let mut router = Router::run(directory.path(), &files);
    assert_kept(&router, 0);
    let status: serde_json::Value = serde_json::from_str(&router.ask(&["status", "--json"])).unwrap();
    let shown = serde_json::json!({ "user": 0, "capabilities": [], "no_new_privileges": true });
    assert_eq!(status["privileges"], shown);
    assert!(router.ask(&["status"]).contains("no capability"));
    assert_eq!(status_json(&observer)["privileges"], shown);

    // It reads its files again, makes what they declare, and writes its state.
    fs::write(&config, "[[route]]\nprefix = \"/two\"\nface = \"udp://127.0.0.1:9\"\n").unwrap();
    router.hang_up();
    let routes = || router.ask(&["route", "list"]);
    eventually("the reload takes effect", || routes().contains("/two") && !routes().contains("/one"));
    router.ask(&["route", "add", "/kept", "udp://127.0.0.1:10"]);
    eventually("the state is on disk", || fs::read_to_string(&state).is_ok_and(|text| text.contains("/kept")));
    assert_kept(&router, 0);
    router.terminate();
    assert!(!router.socket.exists(), "the router removed its socket");

    let router = Router::run(directory.path(), &files);
    assert!(router.ask(&["route", "list"]).contains("/kept"));

    let said = printed(directory.path(), &[]);
    assert!(said.contains("privileges: keeps no capability; gave up ") && said.contains(" others"), "{said}");
}

#[test]
fn privileges_stay_if_the_administrator_says_so() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let ours = fs::read_to_string("/proc/self/status").unwrap();
    let ours = ours.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim().to_owned();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let as_other = format!("user = \"{}\"\n", NOBODY.0);
    for (arguments, user) in
        [(&["--keep-privileges"][..], ""), (&["--config", "keep.toml"], ""), (&["--config", "keep.toml"], &*as_other)]
    {
        let config = directory.path().join("keep.toml");
        fs::write(&config, format!("[router]\n{user}privileges = \"keep\"\n")).unwrap();
        let arguments: Vec<&str> =
            arguments.iter().map(|word| if *word == "keep.toml" { config.to_str().unwrap() } else { word }).collect();
        let mut router = Router::run(directory.path(), &arguments);
        assert_eq!(of_each_thread(&router, "CapEff"), ours);
        assert_eq!(of_each_thread(&router, "NoNewPrivs"), "0");
        router.terminate();
    }
}

#[test]
fn a_place_of_another_user_stays_open() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("theirs");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    chown(&folder, Some(NOBODY.1), None).unwrap();
    let state = folder.join("state.toml");
    let router = Router::run(directory.path(), &["--state", state.to_str().unwrap()]);
    assert_kept(&router, DAC_OVERRIDE);
    router.ask(&["route", "add", "/kept", "udp://127.0.0.1:10"]);
    eventually("the state is on disk", || fs::read_to_string(&state).is_ok_and(|text| text.contains("/kept")));
}

/// A UDP port below 1024 that is free.
fn low_port() -> Option<u16> {
    (600..1024).find(|port| UdpSocket::bind(("127.0.0.1", *port)).is_ok())
}

#[test]
fn the_router_becomes_another_user_and_keeps_its_low_port() {
    let Some(port) = low_port().filter(|_| is_root()) else { return };
    let directory = tempfile::tempdir().unwrap();
    // The user can come here, but not write here.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (sockets, state) = (directory.path().join("sockets"), directory.path().join("state/state.toml"));
    let config = directory.path().join("c.toml");
    let listen = format!("127.0.0.1:{port}");
    let text = format!(
        "[router]\nuser = \"{}\"\n[faces.udp]\nlisten = [\"{listen}\"]\n[faces.tcp]\nenabled = false\n[state]\nfile = {state:?}\n",
        NOBODY.0
    );
    fs::write(&config, text).unwrap();
    let socket = sockets.join("nfd.sock");
    let mut command = Command::new(crate::router_process::NAMEWIRE);
    command.args(["run", "--config", config.to_str().unwrap(), "--socket", socket.to_str().unwrap()]);
    let mut router = Router::start(&socket, &mut command);
    assert!(router.line.contains(&format!("udp4://{listen}")), "{}", router.line);
    assert_kept(&router, NET_BIND_SERVICE);
    let uids: Vec<String> = of_each_thread(&router, "Uid").split_whitespace().map(str::to_owned).collect();
    assert_eq!(uids, [NOBODY.1.to_string().as_str(); 4]);
    assert_ne!(of_each_thread(&router, "Gid").split_whitespace().next(), Some("0"));

    // A UDP face needs a socket on the low port, after the start.
    router.ask(&["route", "add", "/kept", "udp://127.0.0.1:10"]);
    let face = router.ask(&["face", "list"]);
    assert!(face.contains(&format!("udp4://{listen}")), "{face}");
    eventually("the state is on disk", || fs::read_to_string(&state).is_ok_and(|text| text.contains("/kept")));
    assert_eq!(fs::metadata(&state).unwrap().uid(), NOBODY.1);
    router.hang_up();
    router.terminate();
    assert!(!socket.exists(), "the router removed its socket");
}

#[test]
fn a_user_that_cannot_be_had_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("c.toml");
    let refused = |user: &str| -> Output {
        fs::write(&config, format!("[router]\nuser = {user:?}\n")).unwrap();
        let mut command = run_command(&directory.path().join("nfd.sock"));
        command.args(["--config", config.to_str().unwrap()]).output().unwrap()
    };
    let output = refused("no-such-user-here");
    assert!(text(&output.stderr).contains("this machine has no user no-such-user-here"), "{output:?}");
    if is_root() {
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let output = refused(NOBODY.0);
        assert!(text(&output.stderr).contains("the configured user cannot use "), "{output:?}");
    }
}

#[test]
fn nfd_conf_names_the_user() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let config = crate::router_process::nfd_conf(directory.path(), free_port());
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("general\n{{\n  user {}\n}}\n{text}", NOBODY.0)).unwrap();
    let socket = directory.path().join("sockets/nfd.sock");
    let mut command = Command::new(crate::router_process::NAMEWIRE);
    command.args(["run", "--nfd-conf", config.to_str().unwrap(), "--socket", socket.to_str().unwrap()]);
    let router = Router::start(&socket, &mut command);
    assert!(of_each_thread(&router, "Uid").starts_with(&NOBODY.1.to_string()));
    assert_kept(&router, NET_RAW); // the sample has a section `ether`
}

/// Two network namespaces, joined by a cable; removed when the test ends.
struct Cable([String; 2]);

impl Cable {
    /// `None`, with a message, where namespaces cannot be made.
    fn new() -> Option<Cable> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let names = ["a", "b"].map(|end| format!("nwp{}-{number}{end}", std::process::id()));
        let cable = Cable(names);
        for name in &cable.0 {
            if !ip(&["netns", "add", name]) {
                eprintln!("skipped: no network namespaces here");
                return None;
            }
        }
        Some(cable)
    }

    fn connect(&self) {
        let [a, b] = &self.0;
        assert!(ip(&["link", "add", "wire", "netns", a, "type", "veth", "peer", "name", "wire", "netns", b]));
        for name in &self.0 {
            assert!(ip(&["-n", name, "link", "set", "wire", "up"]));
        }
    }

    fn cut(&self) {
        assert!(ip(&["-n", &self.0[0], "link", "delete", "wire"]));
    }

    fn router(&self, end: usize, directory: &Path, arguments: &[&str]) -> Router {
        let socket = directory.join(format!("{end}.sock"));
        let run = run_command(&socket);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[end]]).arg(run.get_program()).args(run.get_args()).args(arguments);
        Router::start(&socket, &mut command)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.0 {
            ip(&["netns", "delete", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> bool {
    Command::new("ip").args(arguments).output().is_ok_and(|output| output.status.success())
}

#[test]
fn ethernet_links_come_back_after_the_router_gave_up_the_rest() {
    links_come_back("socket", NET_RAW);
}

/// NDN-DPDK's instructions for NFD have a section `ether` with `listen no` and `mcast no`, and make the faces by nfdc.
/// The router gave up CAP_NET_RAW, because the configuration had no Ethernet face, and no command could make one.
#[test]
fn ethernet_faces_come_by_command_alone() {
    let Some(cable) = Some(()).filter(|()| is_root()).and_then(|()| Cable::new()) else { return };
    let directory = tempfile::tempdir().unwrap();
    cable.connect();
    let sections = [
        ("--nfd-conf", "face_system { ether { listen no\n mcast no } }\n", NET_RAW),
        ("--config", "[faces.ethernet]\nby_command = true\n", NET_RAW),
        ("--nfd-conf", "face_system { }\n", 0),
        ("--config", "[faces.ethernet]\n", 0),
    ];
    for (option, text, kept) in sections {
        let file = directory.path().join("file");
        fs::write(&file, text).unwrap();
        let router = cable.router(0, directory.path(), &[option, file.to_str().unwrap()]);
        assert_kept(&router, kept);
        let create = ["nfdc", "face", "create", "ether://[02:00:00:00:00:09]", "local", "dev://wire"];
        let output = router.tool(&create);
        assert_eq!(output.status.success(), kept == NET_RAW, "{text}: {output:?}");
    }
}

/// AF_XDP where this machine has it. Its program is loaded again for each new interface.
#[test]
fn links_by_af_xdp_come_back_too() {
    links_come_back("auto", NET_RAW | NET_ADMIN | IPC_LOCK | BPF);
}

fn links_come_back(io: &str, kept: u64) {
    let Some(cable) = Some(()).filter(|()| is_root()).and_then(|()| Cable::new()) else { return };
    let directory = tempfile::tempdir().unwrap();
    cable.connect();
    let links = ["--ethernet", "--set", &format!("faces.ethernet.io={io}"), "--interface", "wire"];
    let [near, far] = [0, 1].map(|end| cable.router(end, directory.path(), &links));
    assert_kept(&near, kept);
    let mut server = far.command().args(["pingserver", "/far"]).spawn().unwrap();
    const GROUP: &str = "ether://[01:00:5e:00:17:aa]";
    let answers = |when: &str| {
        eventually(when, || {
            near.face(GROUP)
                .is_some_and(|face| near.tool(&["route", "add", "/far", &face.to_string()]).status.success())
        });
        eventually(when, || near.tool(&["ping", "/far", "--count", "1", "--timeout", "500"]).status.success());
    };
    answers("pings pass");
    let before = near.face(GROUP);

    // The interfaces are gone, and new ones of the same name come: the routers need new packet sockets.
    cable.cut();
    eventually("the face is gone", || near.face(GROUP).is_none());
    cable.connect();
    answers("pings pass again");
    assert_ne!(near.face(GROUP), before);
    assert_kept(&near, kept);

    // The link goes down and comes up.
    assert!(ip(&["-n", &cable.0[0], "link", "set", "wire", "down"]));
    assert!(ip(&["-n", &cable.0[0], "link", "set", "wire", "up"]));
    answers("pings pass after the link was down");
    server.kill().unwrap();
    server.wait().unwrap();
}
