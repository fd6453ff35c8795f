//! `namewire run` as a user meets it: the real binary, real sockets, real processes.

use crate::router_process::{NAMEWIRE, PATIENCE, Router, eventually, run_command};
use namewire_client::{Client, TransportUri};
use namewire_packet::{Component, DataBuilder, InterestBuilder, NameBuf, content_type};
use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// The memory of an idle router, without the pages of the program: a build for tests has three times as many.
const IDLE_KIB_MAX: u64 = 10 * 1000;

#[test]
fn says_where_to_connect_stays_small_and_cleans_up() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("made/for/me/nfd.sock");
    let mut router = Router::run_at(&socket, &[]);
    assert!(router.line.contains(&format!("unix://{}", socket.display())), "{}", router.line);
    let status = router.tool(&["status", "--json"]);
    assert!(status.status.success(), "{status:?}");
    let json: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(json["drops"], serde_json::json!({}));
    assert_eq!((&json["fib"]["design"], &json["fib"]["is_lossy"]), (&"one-bucket".into(), &false.into()));

    let own_kib = router.status_kib("RssAnon");
    assert!(own_kib < IDLE_KIB_MAX, "{own_kib} KiB while idle");

    router.terminate();
    assert!(!socket.exists(), "the socket is removed");
}

/// Without a directory of its own from the session (cron, containers) and without the right to
/// write to /run, a user got no router: the directory of last resort was looked for, never made.
#[test]
fn an_ordinary_user_needs_no_preparation() {
    use std::os::unix::{fs::PermissionsExt, process::CommandExt};
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let binary = directory.path().join("namewire");
    // Another process makes the copy. While this one has it open for writing, a test beside it may fork, and Linux
    // executes no file that some process can write.
    assert!(Command::new("cp").arg(NAMEWIRE).arg(&binary).status().unwrap().success());
    let as_user = |command: &mut Command| {
        command.env_remove("XDG_RUNTIME_DIR").env_remove("NDN_CLIENT_TRANSPORT").env("TMPDIR", directory.path());
        command.env("HOME", directory.path());
        if rustix::process::geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
    };
    let mut command = Command::new(&binary);
    as_user(command.args(["run", "--no-udp", "--no-tcp"]).stdout(Stdio::piped()));
    let mut router = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(router.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut command = Command::new(&binary);
    as_user(command.arg("status"));
    let status = command.output().unwrap();
    let _ = router.kill();
    let _ = router.wait();
    assert!(line.contains("unix:///"), "{line}");
    assert!(status.status.success(), "the tools find it where it is: {status:?}");
}

#[test]
fn without_tagnet_the_tag_tools_say_how_to_turn_it_on() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    for line in ["tag routes", "tag locator", "tag push news --payload rain", "tag advertise news", "tag routes --json"]
    {
        let output = router.tool(&line.split(' ').collect::<Vec<_>>());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}: {message}");
        assert!(message.contains("TagNet is off; the setting [tagnet] trees turns it on (503)"), "{line}: {message}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}

#[test]
fn refuses_a_live_socket_and_recovers_a_stale_one() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nfd.sock");
    drop(UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    let router = Router::run_at(&socket, &[]);
    let second = run_command(&socket).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let message = String::from_utf8(second.stderr).unwrap();
    assert!(message.contains("another forwarder is running"), "{message}");
    assert!(router.tool(&["status"]).status.success(), "the first one goes on");
}

#[test]
fn faces_routes_and_strategies_of_the_command_line_are_there_from_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--route", "/far=udp4://127.0.0.1:9", "--strategy", "/far=multicast"];
    let router = Router::run(directory.path(), &arguments);
    assert!(router.ask(&["route", "list"]).contains("/far"));
    assert!(router.ask(&["face", "list"]).contains("udp4://127.0.0.1:9"));
    let strategies = router.ask(&["strategy", "list"]);
    assert!(strategies.contains("/far") && strategies.contains("multicast"), "{strategies}");
}

/// Older versions run as the present one, and who asks for what there is not is told what there is.
#[test]
fn strategies_are_chosen_by_name_version_and_parameters() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    for (asked, chosen) in [
        ("asf", "asf/v=5"),
        ("asf/v=4", "asf/v=5"),
        ("access", "access/v=1"),
        ("/localhost/nfd/strategy/asf/%FD%04/max-timeouts~2", "asf/v=5/max-timeouts~2"),
    ] {
        let said = router.ask(&["strategy", "set", "/x", asked]);
        assert!(said.ends_with(&format!("/localhost/nfd/strategy/{chosen}\n")), "{said}");
    }
    for (asked, why) in [
        ("asf/v=6", "Unknown strategy; known are access/v=1, asf/v=5, best-route/v=5, multicast/v=5, random/v=1"),
        ("nonsense", "self-learning/v=1"),
        ("asf/v=5/max-timeouts~0", "max-timeouts must be 1 or more"),
        ("random/v=1/x~1", "random takes no parameters"),
    ] {
        let refused = router.tool(&["strategy", "set", "/x", asked]);
        let error = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(1) && error.contains(why), "{asked}: {error}");
    }
}

#[test]
fn tools_tell_their_failures_apart() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let code = |arguments: &[&str]| router.tool(arguments).status.code();
    assert_eq!(code(&["route", "add", "/a", "999"]), Some(3), "no such face");
    assert_eq!(code(&["peek", "/nobody/here"]), Some(6), "Nack");
    assert_eq!(code(&["face", "create", "tcp4://127.0.0.1:1"]), Some(1), "nobody listens there");
    assert_eq!(code(&["face", "fly"]), Some(2), "bad usage");
    let elsewhere =
        Command::new(NAMEWIRE).args(["--transport", "unix:///nowhere/nfd.sock", "status"]).output().unwrap();
    assert_eq!(elsewhere.status.code(), Some(4), "no forwarder");
}

/// The documentation of `register_prefix` said that the route works some time after the answer, as in NFD. Here the
/// first Interest after it is forwarded, whichever worker has it: without a route it would get a Nack at once.
#[test]
fn the_first_interest_after_the_answer_to_register_is_forwarded() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &["--workers", "4"]);
    let uri: TransportUri = router.uri().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let producer = Client::connect_to(uri.clone()).await.unwrap();
        let consumer = Client::connect_to(uri).await.unwrap();
        for round in 0..300 {
            let prefix: NameBuf = format!("/round/{round}").parse().unwrap();
            let mut stream = producer.interests(&prefix).await.unwrap();
            let interest = InterestBuilder::new(prefix.join(Component::generic(b"x"))).lifetime_ms(60_000);
            let respond = async {
                let incoming = stream.next().await.unwrap();
                let data = DataBuilder::new(incoming.interest().name()).sign_digest();
                incoming.respond(&data).await.unwrap();
            };
            tokio::select! {
                answer = consumer.express(&interest) => drop(answer.unwrap_or_else(|error| panic!("{round}: {error}"))),
                () = async { respond.await; std::future::pending().await } => unreachable!(),
            }
        }
    });
}

/// Answers Interests under /app on a thread of its own until the router ends: "gone" by an application Nack, "torn" by
/// one in the place of its second segment.
fn serve_application_nacks(router: &Router) {
    let uri = router.uri().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (registered, is_registered) = std::sync::mpsc::channel();
    let serve = async move {
        let client = Client::connect_to(uri).await.unwrap();
        let prefix = "/app".parse().unwrap();
        let mut stream = client.interests(&prefix).await.unwrap();
        registered.send(()).unwrap();
        while let Some(incoming) = stream.next().await {
            let asked = incoming.interest().name();
            let is_torn = asked.get(1).unwrap().value == b"torn" && asked.last().unwrap().segment() != Some(1);
            let content_type = if is_torn { 0 } else { content_type::NACK };
            let data = DataBuilder::new(asked).content_type(content_type).final_segment(1).content(b"no such thing");
            incoming.respond(&data.sign_digest()).await.unwrap();
        }
    };
    std::thread::spawn(move || runtime.block_on(serve));
    is_registered.recv().unwrap();
}

/// `get` wrote the words of an application Nack (Data of ContentType 3) into the file as the object, and ended with 0.
#[test]
fn an_application_nack_is_no_content_and_has_its_own_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    serve_application_nacks(&router);
    let copy = directory.path().join("copy");
    for uri in ["/app/gone", "/app/gone/v=1", "/app/torn/v=1"] {
        let get = router.tool(&["get", uri, "-o", copy.to_str().unwrap()]);
        let message = String::from_utf8_lossy(&get.stderr);
        assert_eq!(get.status.code(), Some(7), "{uri}: {message}");
        assert!(message.contains("application Nack") && message.contains(uri), "{message}");
        // Of the torn one two segments came.
        let left = ["copy.part", "copy.part.index"].map(|name| directory.path().join(name));
        assert!(!copy.exists() && left.iter().all(|path| path.exists() == uri.contains("torn")), "{uri}: {message}");
    }
    let peek = |options: &[&str]| router.tool(&[&["peek", "/app/gone"], options].concat());
    let plain = peek(&[]);
    assert_eq!((plain.status.code(), &plain.stdout[..]), (Some(7), &b""[..]));
    // Where the packet is shown as a packet it is shown, and the exit code still says what it is.
    let json = peek(&["--json"]);
    assert_eq!(json.status.code(), Some(7));
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&json.stdout).unwrap()["content_type"], 3);
    let wire = peek(&["--wire"]);
    assert_eq!((wire.status.code(), wire.stdout[0]), (Some(7), 6));
}

#[test]
fn a_file_travels_and_a_pinger_is_answered() {
    let directory = tempfile::tempdir().unwrap();
    for workers in ["1", "4"] {
        let socket = directory.path().join(format!("{workers}.sock"));
        let router = Router::run_at(&socket, &["--workers", workers]);
        let file = directory.path().join("file");
        let content: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&file, &content).unwrap();
        let spawn = |arguments: &[&str]| {
            router.command().args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
        };
        let mut put = spawn(&["put", file.to_str().unwrap(), "/me/file"]);
        let mut pingserver = spawn(&["pingserver", "/me"]);
        let mut poke = spawn(&["poke", "/me/note"]);
        poke.stdin.take().unwrap().write_all(b"a note").unwrap();
        eventually("the prefixes are registered", || {
            let routes = router.ask(&["route", "list"]);
            ["/me/file", "/me/ping", "/me/note"].iter().all(|prefix| routes.contains(prefix))
        });
        let copy = directory.path().join("copy");
        let get = router.tool(&["get", "/me/file", "-o", copy.to_str().unwrap()]);
        assert!(get.status.success(), "{get:?}");
        assert_eq!(std::fs::read(&copy).unwrap(), content, "{workers} workers");
        let ping = router.tool(&["ping", "/me", "-c", "5", "-i", "10"]);
        assert!(ping.status.success(), "{ping:?}");
        let peek = router.tool(&["peek", "/me/note"]);
        assert_eq!(peek.stdout, b"a note");
        for child in [&mut put, &mut pingserver, &mut poke] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn an_application_that_says_nonsense_is_disconnected_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let mut stream = UnixStream::connect(&router.socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(&[0; 64]).unwrap();
    assert_eq!(stream.read(&mut [0; 16]).unwrap(), 0, "the router closes the connection");
    let status = router.ask(&["status"]);
    assert!(status.contains("face-closed.malformed-element 1"), "{status}");
}

/// Three Data in a store for two; the first was asked for again before the third came.
#[test]
fn the_policy_of_the_command_line_decides_what_the_store_forgets() {
    let directory = tempfile::tempdir().unwrap();
    for (policy, kept, forgotten) in [("lru", "/x/a", "/x/b"), ("fifo", "/x/b", "/x/a")] {
        let socket = directory.path().join(format!("{policy}.sock"));
        let router = Router::run_at(&socket, &["--set", "cs.packets=2", "--set", &format!("cs.policy={policy}")]);
        let peek = |name: &str| router.tool(&["peek", name, "--lifetime", "1000"]);
        for name in ["/x/a", "/x/b", "/x/c"] {
            publish_once(&router, name);
            assert_eq!(peek(name).stdout, name.as_bytes());
            if name == "/x/b" {
                assert_eq!(peek("/x/a").stdout, b"/x/a", "{policy}: still stored");
            }
        }
        assert_eq!(peek(kept).stdout, kept.as_bytes(), "{policy}");
        assert_eq!(peek(forgotten).status.code(), Some(6), "{policy}: gone, and nobody else has it");
    }
}

/// The producer is gone when a shorter prefix is asked for. NFD answers from its store; so does a router that reads
/// NFD's file, and any other that is told to.
#[test]
fn a_drop_in_router_answers_from_its_store_under_every_prefix() {
    let directory = tempfile::tempdir().unwrap();
    let nfd_conf = directory.path().join("nfd.conf");
    std::fs::write(&nfd_conf, "face_system\n{\n  unix\n  {\n  }\n}\n").unwrap();
    let nfd_conf = ["--nfd-conf", nfd_conf.to_str().unwrap()];
    for (number, (arguments, answers)) in [
        (&[][..], false),
        (&nfd_conf, true),
        (&[nfd_conf[0], nfd_conf[1], "--set", "cs.prefix_lookup=own"], false),
        (&["--set", "cs.prefix_lookup=all"], true),
        (&["--set", "cs.prefix_lookup=all", "--workers", "4"], true),
    ]
    .into_iter()
    .enumerate()
    {
        let router = Router::run_at(&directory.path().join(format!("{number}.sock")), arguments);
        publish_once(&router, "/x/a/b");
        assert_eq!(router.tool(&["peek", "/x/a/b", "--lifetime", "60000"]).stdout, b"/x/a/b");
        eventually("the producer is gone", || !router.ask(&["route", "list"]).contains("/x/a/b"));
        for prefix in ["/x", "/x/a", "/x/a/b"] {
            let peek = router.tool(&["peek", prefix, "--prefix", "--lifetime", "5000"]);
            let is_stored = answers || prefix == "/x/a/b";
            assert_eq!(peek.stdout, if is_stored { &b"/x/a/b"[..] } else { b"" }, "{prefix} with {arguments:?}");
        }
        let info = router.ask(&["cs", "info"]);
        let shown = if answers { "all of its name" } else { "those that fetched it" };
        assert!(info.lines().any(|line| line.contains("Prefixes") && line.contains(shown)), "{info}");
    }
}

/// A producer that answers one Interest for `name` with its own name, once it is registered.
fn publish_once(router: &Router, name: &str) {
    let mut poke = router.command().args(["poke", name, "--timeout", "20000"]).stdin(Stdio::piped()).spawn().unwrap();
    poke.stdin.take().unwrap().write_all(name.as_bytes()).unwrap();
    eventually("the name is registered", || router.ask(&["route", "list"]).contains(name));
    std::thread::spawn(move || poke.wait());
}

#[test]
fn the_store_is_erased_in_as_many_commands_as_it_takes() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &["--workers", "2"]);
    let file = directory.path().join("file");
    std::fs::write(&file, vec![7; 300 * 100]).unwrap();
    let put = ["put", file.to_str().unwrap(), "/erase/file", "--chunk-size", "100"];
    let mut producer = router.command().args(put).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(producer.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(router.tool(&["get", "/erase/file", "-o", "/dev/null"]).status.success());
    producer.kill().unwrap();
    producer.wait().unwrap();
    let erased = |arguments: &[&str]| {
        let text = router.ask(&[&["cs", "erase", "/erase"], arguments].concat());
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!((words[0], words[2..].join(" ")), ("Erased", "packets under /erase".to_owned()));
        words[1].parse::<u64>().unwrap()
    };
    assert_eq!(erased(&["--count", "10"]), 10);
    let rest = erased(&[]);
    assert!(rest >= 290, "{rest} of more than one command's 256");
    assert_eq!(erased(&[]), 0);
}

#[test]
fn base_pages_are_joined_by_nobody_and_transparent_ones_may_be() {
    if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        eprintln!("SKIPPED: this kernel has no transparent huge pages");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (arguments, may_be_joined) in
        [(&[][..], true), (&["--set", "tables.pages=transparent"], true), (&["--set", "tables.pages=base"], false)]
    {
        let router = Router::run(directory.path(), arguments);
        let maps = std::fs::read_to_string(format!("/proc/{}/smaps", router.process.id())).unwrap();
        let mut flags = maps.lines().filter_map(|line| line.strip_prefix("VmFlags:"));
        // "hg": advised to be huge.
        assert_eq!(
            flags.any(|flags| flags.split_whitespace().any(|flag| flag == "hg")),
            may_be_joined,
            "{arguments:?}"
        );
        assert_eq!(router.status_kib("HugetlbPages"), 0);
    }
}

#[test]
fn huge_pages_that_nobody_reserved_are_a_named_error() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nfd.sock");
    for (pages, kib) in [("2MiB", 2048), ("1GiB", 1_048_576)] {
        let run = run_command(&socket)
            .args(["--set", &format!("tables.pages={pages}"), "--cs-capacity", "256 GiB"])
            .output()
            .unwrap();
        let message = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(1), "{message}");
        assert!(message.contains(&format!("on pages of {pages}")), "{message}");
        assert!(message.contains(&format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages")), "{message}");
        assert!(!socket.exists());
    }
}

/// Options that would have no effect, and a processor that is not there, end the start with a reason.
#[test]
fn what_a_router_cannot_have_is_refused_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nfd.sock");
    for (options, code, reason) in [
        (&["--json"][..], 2, "--json"),
        (&["--transport", "unix:///elsewhere.sock"], 2, "see --socket"),
        (&["--identity", "/alice"], 2, "--identity"),
        (&["--set", "router.pin=[999999]"], 1, "cannot run a worker on processor 999999"),
        (&["--set", "router.pin=[999999]"], 1, "; this process may use "),
    ] {
        let run = run_command(&socket).args(options).output().unwrap();
        let message = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(code), "{message}");
        assert!(message.contains(reason), "{message}");
        assert!(!socket.exists());
    }
}

#[test]
fn a_taken_default_port_is_left_out_with_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nfd.sock");
    // Taken by this test, or by another forwarder of the machine.
    let _taken = std::net::UdpSocket::bind("0.0.0.0:6363");
    let mut command = Command::new(NAMEWIRE);
    let mut router = Router::start(&socket, command.args(["run", "--no-tcp", "--socket"]).arg(&socket));
    let warning = router.messages.recv_timeout(PATIENCE).unwrap();
    assert!(warning.contains(" warn  faces: not listening on udp4://0.0.0.0:6363: "), "{warning}");
    assert!(router.tool(&["status"]).status.success(), "the rest runs");
    router.terminate();
}

/// Huge pages beyond those reserved before; given back on drop.
struct Reserved(u64);

impl Reserved {
    const FILE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

    /// `None` if this process may not, or the kernel has no such memory left.
    fn more(pages: u64) -> Option<Self> {
        let read = || std::fs::read_to_string(Self::FILE).ok()?.trim().parse::<u64>().ok();
        let before = read()?;
        std::fs::write(Self::FILE, (before + pages).to_string()).ok()?;
        let reserved = Self(before);
        (read()? >= before + pages).then_some(reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let _ = std::fs::write(Self::FILE, self.0.to_string());
    }
}

#[test]
fn reserved_huge_pages_are_used() {
    let Some(_reserved) = Reserved::more(400) else {
        eprintln!(
            "SKIPPED: 400 huge pages of 2 MiB cannot be reserved here (this needs root and 800 MiB of free memory)"
        );
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    for workers in ["1", "2"] {
        let router = Router::run(directory.path(), &["--set", "tables.pages=2MiB", "--workers", workers]);
        publish_once(&router, "/x/a");
        assert_eq!(router.tool(&["peek", "/x/a"]).stdout, b"/x/a");
        // The FIB's index and entries, and at least one table of a worker.
        let used_kib = router.status_kib("HugetlbPages");
        assert!(used_kib >= 3 * 2048, "{used_kib} KiB of huge pages with {workers} workers");
    }
}
