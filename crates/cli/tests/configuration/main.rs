//! Configuration files, SIGHUP and the state file as a user meets them: the real binary,
//! real files, real signals.

mod lost_faces;
mod replay;
mod state_file;
mod trust;

use crate::router_process::{
    NAMEWIRE, PATIENCE, Router, eventually, free_port, namewire, nfd_conf, text, text_of_failure,
};
use command_fds::{CommandFdExt, FdMapping};
use std::{
    fs,
    io::Read,
    net::TcpListener,
    os::unix::{
        fs::PermissionsExt,
        net::{UnixDatagram, UnixListener, UnixStream},
        process::CommandExt,
    },
    process::{Command, Stdio},
    sync::mpsc::channel,
    time::{Duration, Instant},
};

#[test]
fn a_running_router_follows_its_file_as_a_difference() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    let write = |text: &str| fs::write(&file, text).unwrap();
    write(
        "[[face]]\nuri = \"udp://127.0.0.1:7001\"\nmtu = 1400\n\
         [[route]]\nprefix = \"/stays\"\nface = \"udp://127.0.0.1:7001\"\n\
         [[route]]\nprefix = \"/goes\"\nface = \"udp4://127.0.0.1:7002\"\ncost = 5\n\
         [[strategy]]\nprefix = \"/goes\"\nstrategy = \"multicast\"\n\
         [[strategy]]\nprefix = \"/measured\"\nstrategy = \"asf/v=5/max-timeouts~1\"\n\
         [[strategy]]\nprefix = \"/ndn/broadcast\"\nstrategy = \"best-route\"\n",
    );
    let router = Router::run(directory.path(), &["--config", file.to_str().unwrap()]);
    let kept = router.face("udp4://127.0.0.1:7001").expect("declared");
    assert!(router.face("udp4://127.0.0.1:7002").is_some(), "a route makes its face");
    assert!(router.ask(&["face", "show", &kept.to_string()]).contains("1400"));
    let routes = router.ask(&["route", "list"]);
    assert!(routes.contains("/stays") && routes.contains("/goes"), "{routes}");
    assert!(router.ask(&["strategy", "list"]).contains("asf/v=5/max-timeouts~1"));
    assert!(marks(&router, "udp4://127.0.0.1:7001"), "the default");
    // What somebody makes by hand is nobody else's business.
    router.ask(&["route", "add", "/by-hand", "udp4://127.0.0.1:7003", "--cost", "9"]);
    let by_hand = router.face("udp4://127.0.0.1:7003").unwrap();

    write(
        "[router]\nworkers = 2\n[cs]\npackets = 77\n\
         [[face]]\nuri = \"udp://127.0.0.1:7001\"\nmtu = 1300\n\
         [[route]]\nprefix = \"/stays\"\nface = \"udp://127.0.0.1:7001\"\ncost = 3\n\
         [[route]]\nprefix = \"/comes\"\nface = \"udp4://127.0.0.1:7004\"\n",
    );
    let said = router.hang_up();
    assert!(said.contains("not before the next start: router.workers"), "{said}");
    assert_eq!(router.face("udp4://127.0.0.1:7001"), Some(kept), "the same face");
    assert!(router.ask(&["face", "show", &kept.to_string()]).contains("1300"), "with its new MTU");
    assert_eq!(router.face("udp4://127.0.0.1:7002"), None, "a face that nothing declares any longer");
    assert_eq!(router.face("udp4://127.0.0.1:7003"), Some(by_hand));
    let routes = router.ask(&["route", "list"]);
    assert!(!routes.contains("/goes") && routes.contains("/comes") && routes.contains("/by-hand"), "{routes}");
    let strategies = router.ask(&["strategy", "list"]);
    assert!(!strategies.contains("/goes"), "{strategies}");
    let broadcast = strategies.lines().find(|line| line.starts_with("/ndn/broadcast")).expect("a default again");
    assert!(broadcast.contains("multicast"), "{broadcast}");
    assert!(router.ask(&["cs", "info"]).contains("77"));

    // A broken file changes nothing, and says why.
    let before = (router.ask(&["route", "list"]), router.ask(&["strategy", "list"]));
    for (broken, why) in [
        ("[[route]]\nprefix = \"/a\"\nfcae = \"udp://127.0.0.1:7001\"\n", "did you mean \"face\""),
        ("[[strategy]]\nprefix = \"/a\"\nstrategy = \"teleport\"\n", "teleport"),
        ("[[face]\n", "line 1"),
    ] {
        write(broken);
        let said = router.hang_up();
        assert!(said.contains("stays as it was") && said.contains(why), "{said}");
        assert_eq!((router.ask(&["route", "list"]), router.ask(&["strategy", "list"])), before, "{broken}");
    }

    write("");
    router.hang_up();
    let routes = router.ask(&["route", "list"]);
    assert!(!routes.contains("/stays") && !routes.contains("/comes") && routes.contains("/by-hand"), "{routes}");
    assert_eq!(router.face("udp4://127.0.0.1:7001"), None);
    assert_eq!(router.face("udp4://127.0.0.1:7003"), Some(by_hand));
}

#[test]
fn a_file_opens_websocket_listeners() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    fs::write(&file, "[faces.websocket]\nenabled = true\nlisten = [\"127.0.0.1:0\"]\n").unwrap();
    let router = Router::run(directory.path(), &["--config", file.to_str().unwrap()]);
    assert!(router.line.contains("ws://127.0.0.1:"), "{}", router.line);
}

/// True if the face marks packets while its queue is long.
fn marks(router: &Router, uri: &str) -> bool {
    let face = router.face(uri).unwrap().to_string();
    let shown: serde_json::Value = serde_json::from_str(&router.ask(&["face", "show", &face, "--json"])).unwrap();
    shown["flags"].as_array().unwrap().iter().any(|flag| flag == "congestion-marking")
}

#[test]
fn without_a_file_a_hangup_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut router = Router::run(directory.path(), &["--route", "/a=udp4://127.0.0.1:7001"]);
    router.signal("-HUP");
    router.wait_for(&["SIGHUP", "no configuration file"]);
    assert!(router.ask(&["route", "list"]).contains("/a"));
    router.terminate();
}

#[test]
fn what_cannot_be_reached_is_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let route = format!("/far=tcp://{address}");
    let router = Router::run(directory.path(), &["--route", &route]);
    router.wait_for(&["is not made", "tried again"]);
    assert!(!router.ask(&["route", "list"]).contains("/far"));
    let _listener = TcpListener::bind(address).unwrap();
    eventually("the route comes when the peer does", || router.ask(&["route", "list"]).contains("/far"));
}

#[test]
fn what_nobody_can_do_ends_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nfd.sock");
    let mut command = Command::new(NAMEWIRE);
    command.args(["run", "--no-udp", "--no-tcp", "--face", "udp4://224.0.0.1:6363", "--socket"]).arg(&socket);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("face udp4://224.0.0.1:6363 is not made"), "{output:?}");
}

#[test]
fn routes_permanent_faces_and_strategies_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("lib/state.toml");
    let config = directory.path().join("namewire.toml");
    let declared = "[[route]]\nprefix = \"/declared\"\nface = \"udp4://127.0.0.1:7009\"\n";
    fs::write(&config, format!("{declared}[state]\nfile = \"{}\"\n", state.display())).unwrap();
    let arguments = ["--config", config.to_str().unwrap()];
    let router = Router::run(directory.path(), &arguments);
    // Numbers that will be others next time.
    router.ask(&["face", "create", "udp4://127.0.0.1:7000"]);
    router.ask(&["face", "create", "udp4://127.0.0.1:7001", "--persistency", "permanent", "--mtu", "1400"]);
    router.ask(&["route", "add", "/a/v=1", "udp4://127.0.0.1:7001", "--cost", "7", "--capture"]);
    router.ask(&["route", "add", "/b", "udp4://127.0.0.1:7002", "--no-inherit"]);
    router.ask(&["route", "add", "/short", "udp4://127.0.0.1:7002", "--expires", "3600000"]);
    router.ask(&["route", "add", "/daemon", "udp4://127.0.0.1:7002", "--origin", "nlsr"]);
    router.ask(&["strategy", "set", "/a", "multicast"]);
    router.ask(&["strategy", "unset", "/ndn/broadcast"]);
    eventually("the last change is in the file", || {
        fs::read_to_string(&state).is_ok_and(|text| text.contains("unset_strategies = [\"/ndn/broadcast\"]"))
    });
    drop(router); // killed, not ended

    let mut router = Router::run(directory.path(), &arguments);
    let strategies = router.ask(&["strategy", "list"]);
    assert!(strategies.contains("/a ") && !strategies.contains("/ndn/broadcast"), "{strategies}");
    let routes = router.ask(&["route", "list"]);
    let line = |prefix: &str| routes.lines().find(|line| line.starts_with(prefix)).map(str::to_owned);
    let a = line("/a/v=1 ").expect("there again");
    assert!(a.contains('7') && a.contains("capture") && a.contains("static"), "{a}");
    assert!(!line("/b ").unwrap().contains("inherit"), "{routes}");
    assert!(line("/declared ").is_some(), "{routes}");
    assert_eq!((line("/short "), line("/daemon ")), (None, None), "their makers renew them");
    let permanent = router.face("udp4://127.0.0.1:7001").expect("there again");
    let shown = router.ask(&["face", "show", &permanent.to_string()]);
    assert!(shown.contains("permanent") && shown.contains("1400"), "{shown}");
    assert_eq!(router.face("udp4://127.0.0.1:7000"), None, "it was neither permanent nor of use");

    // What goes stays away, and what the file declares is not kept beside it.
    router.ask(&["route", "remove", "/b", "udp4://127.0.0.1:7002"]);
    router.terminate();
    let kept = fs::read_to_string(&state).unwrap();
    assert!(!kept.contains("\"/b\"") && !kept.contains("/declared") && kept.contains("/a/v=1"), "{kept}");
}

#[test]
fn a_storm_of_commands_is_written_once_a_second() {
    use std::{collections::HashSet, os::unix::fs::MetadataExt};
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state.toml");
    let mut router = Router::run(directory.path(), &["--state", state.to_str().unwrap()]);
    let began = Instant::now();
    let mut files = HashSet::new();
    let mut last = String::new();
    // Each change makes a new file in the place of the old one.
    for number in 0.. {
        last = format!("/a/{number}");
        router.ask(&["strategy", "set", &last, "multicast"]);
        files.extend(fs::metadata(&state).map(|file| (file.ino(), file.mtime(), file.mtime_nsec())));
        if began.elapsed() > Duration::from_millis(1500) && number > 3 {
            break;
        }
    }
    let seconds = began.elapsed().as_secs() as usize;
    assert!(files.len() <= seconds + 2, "{} files in {seconds} s", files.len());
    router.terminate();
    assert!(fs::read_to_string(&state).unwrap().contains(&last), "the last change is not lost");
}

#[test]
fn a_damaged_state_file_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state.toml");
    fs::write(&state, "version = 1\n[[route]]\nprefix = \"/a").unwrap();
    let path = state.to_str().unwrap();
    let socket = directory.path().join("nfd.sock");
    let mut command = Command::new(NAMEWIRE);
    command.args(["run", "--no-udp", "--no-tcp", "--state", path, "--socket"]).arg(&socket);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let why = text(&output.stderr);
    assert!(why.contains("is damaged: line 3") && why.contains("--ignore-state"), "{why}");

    let mut router = Router::run(directory.path(), &["--state", path, "--ignore-state"]);
    router.wait_for(&["is damaged", "state.toml.ignored"]);
    router.terminate();
    assert!(fs::read_to_string(directory.path().join("state.toml.ignored")).unwrap().ends_with("\"/a"));
    assert!(fs::read_to_string(&state).unwrap().contains("version = 1"), "a good one in its place");
}

#[test]
fn an_nfd_conf_starts_a_router_with_its_listeners() {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let file = nfd_conf(directory.path(), port);
    let socket = directory.path().join("nfd.sock");
    let mut router = Router::start(&socket, Command::new(NAMEWIRE).args(["nfd", "-c"]).arg(&file));
    for uri in
        [format!("unix://{}", socket.display()), format!("tcp4://0.0.0.0:{port}"), format!("udp4://0.0.0.0:{port}")]
    {
        assert!(router.line.contains(&uri), "{uri}: {}", router.line);
    }
    let warnings = router.wait_for(&["keep_alive_interval is ignored"]);
    assert!(warnings.contains(": local is ignored") && !warnings.contains("log is ignored"), "{warnings}");
    assert!(router.ask(&["cs", "info"]).contains("1000"));
    router.ask(&["face", "create", "udp4://127.0.0.1:7001"]);
    assert!(!marks(&router, "udp4://127.0.0.1:7001"), "enable_congestion_marking no");
    router.terminate();

    // Without a protocol's section, nothing listens and no face is made.
    let text = fs::read_to_string(&file).unwrap().replace("\n  tcp\n", "\n  netdev_bound\n");
    fs::write(&file, text).unwrap();
    let router = Router::start(&socket, Command::new(NAMEWIRE).args(["run", "--nfd-conf"]).arg(&file));
    assert!(!router.line.contains("tcp4://"), "{}", router.line);
    let create = router.tool(&["face", "create", &format!("tcp4://127.0.0.1:{port}")]);
    assert!(text_of_failure(&create).contains("makes no face of scheme tcp4: its configuration"), "{create:?}");
}

#[test]
fn the_nfd_command_ends_as_nfd_does() {
    let directory = tempfile::tempdir().unwrap();
    let code = |arguments: &[&str]| namewire(arguments).status.code();
    assert_eq!(code(&["nfd", "-h"]), Some(0));
    assert_eq!(code(&["nfd", "-V"]), Some(0));
    assert_eq!(code(&["nfd", "--modules"]), Some(0));
    assert_eq!(code(&["nfd", "--fly"]), Some(2));
    assert_eq!(code(&["nfd", "-c", "/nowhere/nfd.conf"]), Some(1));
    let file = directory.path().join("nfd.conf");
    fs::write(&file, "face_system { tcp { listen maybe } }").unwrap();
    assert_eq!(code(&["nfd", "--config", file.to_str().unwrap()]), Some(1));

    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can give up its rights to see what is not allowed");
        return;
    }
    let closed = directory.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&file, format!("face_system {{ unix {{ path {}/nfd.sock }} }}", closed.display())).unwrap();
    let binary = directory.path().join("namewire");
    // Not by this process: a test beside this one that forks would keep the copy open for writing.
    assert!(Command::new("cp").arg(NAMEWIRE).arg(&binary).status().unwrap().success());
    let output = Command::new(&binary).args(["nfd", "-c"]).arg(&file).uid(65534).gid(65534).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
}

#[test]
fn files_are_checked_and_shown_without_a_router() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    let path = file.to_str().unwrap();
    let defaults = namewire(&["config", "default"]);
    assert!(defaults.status.success());
    fs::write(&file, &defaults.stdout).unwrap();
    let check = namewire(&["config", "check", path]);
    assert_eq!((check.status.code(), text(&check.stdout)), (Some(0), format!("{path}: good\n")));
    let shown = text(&namewire(&["config", "show", "-c", path, "--workers", "3", "--face", "udp://a"]).stdout);
    assert!(shown.contains("workers = 3") && shown.contains("uri = \"udp://a\""), "{shown}");
    fs::write(&file, &shown).unwrap();
    assert_eq!(text(&namewire(&["config", "show", "--config", path]).stdout), shown, "it can be read again");

    fs::write(&file, "[faces.udp]\noutgoing = false\n[[face]]\nuri = \"udp://a\"\n").unwrap();
    let check = namewire(&["config", "check", path]);
    assert_eq!((check.status.code(), text(&check.stdout)), (Some(0), format!("{path}: good, with 1 warning\n")));
    assert!(text(&check.stderr).contains("face udp://a cannot be made"), "{check:?}");

    fs::write(&file, "[router]\n\nworkers = 99\n").unwrap();
    let check = namewire(&["config", "check", path]);
    assert_eq!(check.status.code(), Some(1));
    assert!(text(&check.stderr).contains("namewire.toml: line 3: router.workers: 99 is not from 1 to 64"), "{check:?}");
    assert_eq!(namewire(&["config", "check", "/nowhere"]).status.code(), Some(1));
    assert_eq!(namewire(&["config", "check"]).status.code(), Some(2));

    let conf = nfd_conf(directory.path(), 6363);
    let check = namewire(&["config", "check", "--nfd-conf", conf.to_str().unwrap()]);
    assert_eq!(check.status.code(), Some(0));
    assert!(text(&check.stdout).contains("good, with 2 warnings"));
}

#[test]
fn any_setting_can_be_given_as_an_option() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    fs::write(&file, "[cs]\npolicy = \"fifo\"\n").unwrap();
    let set = ["--set", "cs.policy=lru", "--set", "tables.pit_capacity=4096"];
    let router = Router::run(directory.path(), &[&["--config", file.to_str().unwrap()], &set[..]].concat());
    let in_force = || router.ask(&["config", "show", "--running"]);
    let line = |key: &str| in_force().lines().find(|line| line.starts_with(key)).map(str::to_owned).expect("a setting");
    for (key, value) in [("cs.policy", "lru"), ("tables.pit_capacity", "4096")] {
        let line = line(key);
        assert!(line.contains(value) && line.contains("--set"), "{line}");
    }
    fs::write(&file, "[cs]\npolicy = \"lfu\"\npackets = 77\n").unwrap();
    router.hang_up();
    assert!(line("cs.packets").contains("77"));
    assert!(line("cs.policy").contains("lru"), "an option overrides the file, also when it is read again");

    let error = text_of_failure(&namewire(&["run", "--set", "cs.polcy=lru"]));
    assert!(error.contains("unknown setting cs.polcy; did you mean cs.policy?"), "{error}");
}

#[test]
fn systemd_is_told_what_happens() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("notify");
    let socket = UnixDatagram::bind(&place).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = || {
        let mut buffer = [0; 256];
        let size = socket.recv(&mut buffer).unwrap();
        text(&buffer[..size]).trim().to_owned()
    };
    let file = directory.path().join("namewire.toml");
    fs::write(&file, "").unwrap();
    let path = directory.path().join("nfd.sock");
    let mut command = Command::new(NAMEWIRE);
    command.args(["run", "--no-udp", "--no-tcp", "-c"]).arg(&file).arg("--socket").arg(&path);
    let mut router = Router::start(&path, command.env("NOTIFY_SOCKET", &place));
    assert_eq!(next(), "READY=1");
    router.hang_up();
    let reloading = next();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(next(), "READY=1");
    router.terminate();
    assert_eq!(next(), "STOPPING=1");
}

/// An application that connects before the router runs is served once it does, and the socket outlives the router.
#[test]
fn systemd_may_pass_the_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nfd.sock");
    let listener = UnixListener::bind(&path).unwrap();
    for _ in 0..2 {
        let _early = UnixStream::connect(&path).unwrap();
        let mut command = Command::new("sh");
        // The shell knows the process that it becomes.
        command.args(["-c", "LISTEN_PID=$$ exec \"$@\"", "sh", NAMEWIRE, "run", "--no-udp", "--no-tcp"]);
        // A socket of the configuration's own does not count.
        command.arg("--socket").arg(directory.path().join("other.sock")).env("LISTEN_FDS", "1");
        let passed = FdMapping { parent_fd: listener.try_clone().unwrap().into(), child_fd: 3 };
        command.fd_mappings(vec![passed]).unwrap();
        let mut router = Router::start(&path, &mut command);
        // Its face, and that of the command.
        let faces = || text(&router.tool(&["face", "list"]).stdout).matches("fd://").count();
        eventually("the early application has a face", || faces() == 2);
        assert!(!directory.path().join("other.sock").exists());
        router.terminate();
        assert!(path.exists(), "the file is systemd's");
    }
}

/// A socket that is no place for applications is refused.
#[test]
fn another_socket_than_a_listening_unix_one_is_refused() {
    let mut command = Command::new("sh");
    command.args(["-c", "LISTEN_PID=$$ exec \"$@\"", "sh", NAMEWIRE, "run", "--no-udp", "--no-tcp"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let passed = FdMapping { parent_fd: listener.into(), child_fd: 3 };
    let ended = command.env("LISTEN_FDS", "1").fd_mappings(vec![passed]).unwrap().output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(text(&ended.stderr).contains("cannot take the socket that systemd passed"), "{ended:?}");
}

#[test]
fn a_quiet_router_prints_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    fs::write(&file, "[router]\nquiet = true\n").unwrap();
    let socket = directory.path().join("nfd.sock");
    let mut command = Command::new(NAMEWIRE);
    command.args(["run", "--no-udp", "--no-tcp", "-c"]).arg(&file).arg("--socket").arg(&socket);
    let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut router = Router { process, line: String::new(), messages: channel().1, socket };
    eventually("it answers", || router.tool(&["status"]).status.success());
    router.terminate();
    let mut printed = String::new();
    router.process.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    router.process.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
    assert_eq!(printed, "");
}
