//! `namewire capture` as a user meets it: a router, its applications, and files that other software reads.

use crate::router_process::{NAMEWIRE, PATIENCE, Router, eventually, namewire, text};
use namewire_packet::{Data, Interest, lp::LpPacket};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapNGSlice, traits::PcapNGPacketBlock};
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

/// A tool that runs beside the test, ended with it.
struct Tool {
    process: Child,
    /// The lines of its standard error.
    said: Receiver<String>,
}

impl Tool {
    fn start(mut command: Command, arguments: &[&str]) -> Tool {
        let command = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (sender, said) = channel();
        let stderr = process.stderr.take().unwrap();
        std::thread::spawn(move || {
            let lines = BufReader::new(stderr).lines().map_while(Result::ok);
            lines.for_each(|line| drop(sender.send(line)));
        });
        Tool { process, said }
    }

    /// A capture that has begun.
    fn capture(router: &Router, arguments: &[&str]) -> Tool {
        let tool = Tool::start(router.command(), &[&["capture"], arguments].concat());
        tool.wait_for("capturing");
        tool
    }

    /// Waits for a line with these words; gives all up to it.
    fn wait_for(&self, words: &str) -> String {
        let (mut seen, end) = (String::new(), Instant::now() + PATIENCE);
        while let Ok(line) = self.said.recv_timeout(end.saturating_duration_since(Instant::now())) {
            seen += &format!("{line}\n");
            if line.contains(words) {
                return seen;
            }
        }
        panic!("not {words}, but {seen}");
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap().success());
    }

    /// Waits for its good end; gives what it printed.
    fn output(&mut self) -> String {
        let mut out = String::new();
        self.process.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert!(self.process.wait().unwrap().success(), "{}", self.said.iter().collect::<Vec<_>>().join("\n"));
        out
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Answers pings under this name.
fn ping_server(router: &Router, name: &str) -> Tool {
    let server = Tool::start(router.command(), &["pingserver", name]);
    eventually("the name is registered", || router.ask(&["route", "list"]).contains(name));
    server
}

/// True if a capture can begin.
fn may_capture(router: &Router) -> bool {
    let tool = Tool::start(router.command(), &["capture", "all", "--prefix", "/none"]);
    tool.said.recv_timeout(PATIENCE).unwrap().contains("capturing")
}

fn ping(router: &Router, name: &str, count: u64) {
    router.ask(&["ping", name, "--count", &count.to_string(), "--interval", "5"]);
}

/// A file as an independent reader sees it.
#[derive(Default)]
struct File {
    /// Names of its interfaces.
    interfaces: Vec<String>,
    /// Interface, direction (1: in, 2: out), kind of packet, name.
    frames: Vec<(u32, u32, &'static str, String)>,
    times_ns: Vec<u64>,
    /// Received and dropped, by interface.
    statistics: BTreeMap<u32, [u64; 2]>,
}

impl File {
    fn read(path: &Path) -> File {
        let bytes = std::fs::read(path).unwrap();
        let mut file = File::default();
        for block in PcapNGSlice::from_slice(&bytes).unwrap() {
            let PcapBlockOwned::NG(block) = block.unwrap() else { panic!("a legacy block") };
            file.add(&block);
        }
        file
    }

    fn add(&mut self, block: &Block<'_>) {
        match block {
            Block::SectionHeader(_) => {}
            Block::InterfaceDescription(of) => {
                assert_eq!((of.linktype, of.if_tsresol), (Linktype::ETHERNET, 9));
                let name = of.options.iter().find(|option| option.code.0 == 2).unwrap();
                self.interfaces.push(text(name.as_bytes().unwrap()));
            }
            Block::EnhancedPacket(of) => {
                let flags = of.options.iter().find(|option| option.code.0 == 2).unwrap();
                let flags = u32::from_le_bytes(flags.as_bytes().unwrap().try_into().unwrap());
                let frame = of.packet_data();
                assert_eq!((of.caplen, of.origlen, &frame[12..14]), (of.origlen, of.caplen, &[0x86, 0x24][..]));
                let (kind, name) = packet(&frame[14..]);
                self.frames.push((of.if_id, flags, kind, name));
                self.times_ns.push(u64::from(of.ts_high) << 32 | u64::from(of.ts_low));
            }
            Block::InterfaceStatistics(of) => {
                let number = |code| {
                    let option = of.options.iter().find(|option| option.code.0 == code).unwrap();
                    u64::from_le_bytes(option.as_bytes().unwrap().try_into().unwrap())
                };
                self.statistics.insert(of.if_id, [number(4), number(5)]);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Kind and name of the packet in a frame.
fn packet(frame: &[u8]) -> (&'static str, String) {
    let payload = LpPacket::parse(frame).map_or(frame, |lp| lp.fragment.expect("no signs of life on streams"));
    match Interest::parse(payload) {
        Ok(interest) => ("Interest", interest.name().to_string()),
        Err(_) => ("Data", Data::parse(payload).expect("Data").name().to_string()),
    }
}

#[test]
fn a_file_has_every_packet_once_for_each_face_and_direction() {
    let directory = tempfile::tempdir().unwrap();
    for workers in ["1", "2"] {
        let router = Router::run(directory.path(), &["--workers", workers]);
        let _servers = (ping_server(&router, "/x"), ping_server(&router, "/y"));
        let path = directory.path().join(format!("{workers}.pcapng"));
        let arguments = ["all", "--prefix", "/x/ping", "--count", "20", "-w", path.to_str().unwrap()];
        let mut capture = Tool::capture(&router, &arguments);
        ping(&router, "/y", 3);
        ping(&router, "/x", 5);
        assert_eq!(capture.output(), "");
        capture.wait_for("captured 20 frames");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "packets are confidential");

        let file = File::read(&path);
        let mut by_name: BTreeMap<&str, Vec<(u32, u32, &str)>> = BTreeMap::new();
        for (interface, direction, kind, name) in &file.frames {
            by_name.entry(name).or_default().push((*interface, *direction, kind));
        }
        assert_eq!(by_name.len(), 5, "{by_name:?}");
        for (name, frames) in by_name {
            assert!(name.starts_with("/x/ping/"), "{name}");
            let consumer = frames.iter().find(|frame| (frame.1, frame.2) == (1, "Interest")).unwrap().0;
            let producer = frames.iter().find(|frame| (frame.1, frame.2) == (2, "Interest")).unwrap().0;
            assert_ne!(consumer, producer);
            let mut frames = frames;
            frames.sort_unstable();
            let mut expected =
                [(consumer, 1, "Interest"), (producer, 2, "Interest"), (producer, 1, "Data"), (consumer, 2, "Data")];
            expected.sort_unstable();
            assert_eq!(frames, expected);
        }
        assert!(file.interfaces.iter().all(|name| name.starts_with("fd://")), "{:?}", file.interfaces);
        let (received, dropped) =
            file.statistics.values().fold((0, 0), |sum, [received, dropped]| (sum.0 + received, sum.1 + dropped));
        assert_eq!((file.statistics.len(), received, dropped), (file.interfaces.len(), 20, 0));
        let now_ns = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
        let is_recent = |at_ns: &u64| (now_ns - 100_000_000_000..=now_ns).contains(at_ns);
        assert!(file.times_ns.iter().all(is_recent), "{:?}", file.times_ns);
        check_by_tshark(&path);
    }
}

/// Wireshark, another independent reader, finds 20 frames of the type of NDN, with names of faces.
fn check_by_tshark(path: &Path) {
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "eth.type"];
    let output = Command::new("tshark").arg("-r").arg(path).args(fields).output();
    let Ok(output) = output else { return eprintln!("SKIPPED: tshark is not installed") };
    let lines = text(&output.stdout);
    assert_eq!(lines.lines().count(), 20, "{output:?}");
    assert!(lines.lines().all(|line| line.starts_with("fd://") && line.ends_with("0x8624")), "{lines}");
}

#[test]
fn packets_are_shown_as_they_pass_until_it_is_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let _server = ping_server(&router, "/x");
    let mut capture = Tool::capture(&router, &["all"]);
    let mut lines = BufReader::new(capture.process.stdout.take().unwrap()).lines();
    ping(&router, "/x", 1);
    // What other tools ask management is captured, too.
    let is_ping = |line: &std::io::Result<String>| line.as_ref().unwrap().contains("  /x/ping/");
    let shown: Vec<String> = lines.by_ref().filter(is_ping).take(4).map(Result::unwrap).collect();
    for (line, direction, kind) in [
        (&shown[0], "in ", "Interest"),
        (&shown[1], "out", "Interest"),
        (&shown[2], "in ", "Data"),
        (&shown[3], "out", "Data"),
    ] {
        assert!(line.contains(&format!(" {direction} ")) && line.contains(&format!("  {kind}  ")), "{line}");
        assert!(line.contains(" B"), "{line}");
    }
    capture.signal("-INT");
    assert!(lines.all(|line| line.is_ok()));
    assert!(capture.process.wait().unwrap().success());
    let said = capture.wait_for("captured ");
    assert!(said.contains("frames of face ") && said.contains("none missed"), "{said}");
}

#[test]
fn programs_get_one_object_per_frame_and_a_sample_is_a_part() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let _server = Tool::start(router.command(), &["traffic", "serve", "/t"]);
    eventually("the name is registered", || router.ask(&["route", "list"]).contains("/t"));
    let mut capture = Tool::capture(&router, &["all", "--json", "--sample", "20", "--prefix", "/t", "--snaplen", "60"]);
    router.ask(&["--json", "traffic", "send", "/t", "--count", "2000"]);
    capture.signal("-INT");
    let output = capture.output();
    let objects: Vec<serde_json::Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (summary, frames) = objects.split_last().unwrap();
    assert_eq!((&summary["frames"], &summary["missed"]), (&frames.len().into(), &0.into()), "{summary}");
    assert!((100..1000).contains(&frames.len()), "{} of 8000", frames.len());
    assert!(frames.iter().all(|frame| frame["name"].as_str().unwrap().starts_with("/t/")));
    let of = |packet: &str| frames.iter().filter(|frame| frame["packet"] == packet).count();
    assert!(of("Interest") > 20 && of("Data") > 20, "{} Interests, {} Data", of("Interest"), of("Data"));
}

#[test]
fn the_capture_of_a_face_ends_when_the_face_closes() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let server = ping_server(&router, "/x");
    let routes = router.ask(&["route", "list"]);
    let route = routes.lines().find(|line| line.starts_with("/x/ping ")).expect("the server's route");
    let face = route.split_whitespace().nth(1).unwrap();
    let mut capture = Tool::capture(&router, &[face, "--prefix", "/x"]);
    ping(&router, "/x", 2);
    drop(server);
    assert_eq!(capture.output().lines().count(), 4, "on that face alone");
    let said = capture.wait_for("captured 4 frames");
    assert!(said.contains(&format!("face {face} has closed (closed by the peer)")), "{said}");
}

/// A client that stops reading holds nothing up, and the router keeps no more for it than its limit.
#[test]
fn a_client_that_stops_reading_misses_frames_and_nobody_waits_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let _server = Tool::start(router.command(), &["traffic", "serve", "/t", "--size", "1000"]);
    eventually("the name is registered", || router.ask(&["route", "list"]).contains("/t"));
    let send = |count: &str| {
        let report = router.ask(&["--json", "traffic", "send", "/t", "--count", count]);
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!((&report["lost"], &report["nacked"]), (&0.into(), &0.into()), "{report}");
    };
    // So that the store and the queues have their size.
    send("20000");
    let mut capture = Tool::capture(&router, &["all", "-w", "/dev/null"]);
    send("100");
    capture.wait_for("frames of face");
    capture.signal("-STOP");
    let before_kib = router.status_kib("VmRSS");
    send("20000");
    let grown_kib = router.status_kib("VmRSS").saturating_sub(before_kib);
    let status = router.ask(&["status"]);
    let missed = status.split("capture.frames-missed ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let missed: u64 = missed.expect("missed frames are counted").parse().unwrap();
    assert!(missed > 10_000, "{missed} of 80,000");
    assert!(grown_kib < 20_000, "{grown_kib} KiB more");
    capture.signal("-CONT");
    capture.signal("-INT");
    let said = capture.wait_for("captured ");
    // On a slow machine the router has ended the capture.
    assert!(said.contains(" missed: ") || said.contains("missed is not known"), "{said}");
    let _ = capture.process.wait();
    eventually("the capture is over", || may_capture(&router));
}

/// The story: each piece for one client was a frame of the other one's capture, so two captures of an idle router kept
/// each other busy without end.
#[test]
fn clients_that_capture_do_not_capture_each_other() {
    let directory = tempfile::tempdir().unwrap();
    // With one worker, the first client's capture has left the second one out before that client asks for a piece.
    let router = Router::run(directory.path(), &["--workers", "1"]);
    let pieces = ["all", "--prefix", "/localhost/nfd/capture/piece"];
    let mut captures = [Tool::capture(&router, &pieces), Tool::capture(&router, &pieces)];
    let faces: serde_json::Value = serde_json::from_str(&router.ask(&["face", "list", "--json"])).unwrap();
    let is_application = |face: &&serde_json::Value| face["remote_uri"].as_str().unwrap().starts_with("fd://");
    let is_refused = |face: &&serde_json::Value| {
        let output = router.tool(&["capture", &face["face_id"].to_string()]);
        text(&output.stderr).contains("is of a client that captures, and cannot be captured (409)")
    };
    // The third application was the one that asked for the list.
    assert_eq!(faces.as_array().unwrap().iter().filter(is_application).filter(is_refused).count(), 2, "{faces}");
    std::thread::sleep(Duration::from_secs(1));
    for capture in &mut captures {
        capture.signal("-INT");
        assert_eq!(capture.output(), "");
        capture.wait_for("captured 0 frames");
    }
}

/// The story: while the router did not answer, Ctrl-C had no effect for four seconds, however often it was pressed, and
/// the summary then said that no frame was missed.
#[test]
fn a_second_interrupt_ends_it_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let mut capture = Tool::capture(&router, &["all"]);
    router.signal("-STOP");
    capture.signal("-INT");
    // Two signals that are pending together count as one.
    std::thread::sleep(Duration::from_millis(500));
    let begin = Instant::now();
    capture.signal("-INT");
    let status = capture.process.wait().unwrap();
    let waited = begin.elapsed();
    router.signal("-CONT");
    assert_eq!(status.code(), Some(130));
    assert!(waited < Duration::from_secs(2), "{waited:?}");
    let said = capture.wait_for("interrupted before");
    assert!(said.contains("how many were missed is not known"), "{said}");
}

#[test]
fn what_cannot_be_captured_is_refused_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let missing = format!("unix://{}/nfd.sock", directory.path().display());
    let no_router = namewire(&["--transport", &missing, "capture", "all"]);
    assert_eq!(no_router.status.code(), Some(4));
    assert!(text(&no_router.stderr).contains("Start one with `namewire run`"), "{no_router:?}");

    let router = Router::run(directory.path(), &[]);
    for (arguments, code, reason) in [
        (&["999999"][..], 3, "no face 999999"),
        (&["nowhere0"], 1, "There is no network interface nowhere0 (404)"),
        (&["all", "eth0"], 2, "give faces, or one network interface"),
        (&["all", "-w", "/nonexistent/file"], 1, "cannot write /nonexistent/file"),
    ] {
        let output = router.tool(&[&["capture"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(text(&output.stderr).contains(reason), "{output:?}");
    }
    let captures: Vec<Tool> = (0..4).map(|_| Tool::capture(&router, &["all", "--prefix", "/none"])).collect();
    let fifth = router.tool(&["capture", "all"]);
    assert!(text(&fifth.stderr).contains("4 captures run already, which is the limit (503)"), "{fifth:?}");
    drop(captures);
    eventually("their places are free", || may_capture(&router));
}

#[test]
fn another_user_may_not_capture() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("SKIPPED: only root can start a program as another user");
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let router = Router::run(directory.path(), &[]);
    std::fs::set_permissions(&router.socket, std::fs::Permissions::from_mode(0o777)).unwrap();
    // Another process makes the copy, so that no test beside this one has it open for writing.
    let binary = directory.path().join("namewire");
    assert!(Command::new("cp").arg(NAMEWIRE).arg(&binary).status().unwrap().success());
    let mut command = Command::new(&binary);
    command.args(["--transport", &router.uri(), "capture", "all"]).env("HOME", "/nonexistent").uid(4000).gid(4000);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = text(&output.stderr);
    assert!(message.contains("capture needs a trusted signature") && message.contains("(403)"), "{message}");
}
