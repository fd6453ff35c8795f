//! How connections begin and end.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::message::{AddRing, Init, MODE_ETHERNET, Message, VERSION};
use crate::{Listener, connect, doorbell, memfd};

fn accept(listener: &Listener) -> Handshake {
    wait(listener);
    listener.accept().expect("accepts").expect("a client waits")
}

#[test]
fn clients_connect_by_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("memif.sock");
    let secret = Some(b"open sesame".to_vec());
    let listener = Listener::bind(&path, 0o640, Accept { id: Some(7), secret: secret.clone() }).expect("listens");
    assert_eq!(path.metadata().expect("exists").permissions().mode() & 0o777, 0o640);
    assert!(listener.accept().expect("accepts").is_none());
    let right = ClientOptions { id: 7, name: "tester".into(), secret, ..ClientOptions::default() };
    for (options, refusal) in [
        (right.clone(), None),
        (ClientOptions { id: 8, ..right.clone() }, Some("unknown interface id")),
        (ClientOptions { secret: Some(b"open".to_vec()), ..right.clone() }, Some("incorrect secret")),
        (ClientOptions { secret: None, ..right }, Some("incorrect secret")),
    ] {
        let client = std::thread::spawn({
            let path = path.clone();
            move || connect(&path, &options, PATIENCE)
        });
        let server = serve(accept(&listener));
        let client = client.join().expect("no panic");
        match refusal {
            None => {
                let (server, mut client) = (server.expect("accepted"), client.expect("accepted"));
                assert_eq!((server.id(), server.peer_name()), (7, "tester"));
                client.check_peer().expect("connected");
                drop(server);
                let error = client.check_peer().expect_err("closed");
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                assert!(error.to_string().contains("interface closed"), "{error}");
                assert_eq!(client.check_peer().expect_err("still").to_string(), error.to_string());
            }
            Some(reason) => {
                let (server, client) = (server.expect_err("refused"), client.expect_err("refused"));
                assert_eq!((server.kind(), client.kind()), (ErrorKind::InvalidData, ErrorKind::ConnectionRefused));
                assert!(server.to_string().contains(reason) && client.to_string().contains(reason), "{client}");
            }
        }
    }
}

#[test]
fn a_listener_replaces_a_stale_socket_only_and_removes_its_own_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("memif.sock");
    let bind = || Listener::bind(&path, 0o600, Accept::default());
    let first = bind().expect("listens");
    assert_eq!(bind().expect_err("in use").kind(), ErrorKind::AddrInUse);
    std::fs::remove_file(&path).expect("removed");
    let second = bind().expect("listens");
    drop(first);
    assert!(path.exists(), "the second one's");
    drop(second);
    assert!(!path.exists());

    let stale = crate::server::new_socket().expect("a socket");
    rustix::net::bind(&stale, &rustix::net::SocketAddrUnix::new(&path).expect("short")).expect("bound");
    drop(stale);
    drop(bind().expect("replaces it"));
    std::fs::write(&path, "precious").expect("written");
    assert_eq!(bind().expect_err("a file").kind(), ErrorKind::AddrInUse);
    assert!(path.exists());
    let secret = Some(vec![b'x'; 25]);
    assert_eq!(
        Listener::bind(&directory.path().join("x"), 0o600, Accept { id: None, secret }).expect_err("long").kind(),
        ErrorKind::InvalidInput
    );
}

#[test]
fn options_out_of_range_are_refused() {
    let nowhere = std::path::Path::new("/nonexistent/socket");
    let default = ClientOptions::default;
    for options in [
        ClientOptions { ring_log2: 15, ..default() },
        ClientOptions { ring_log2: 14, ..default() },
        ClientOptions { buffer_bytes: 63, ..default() },
        ClientOptions { buffer_bytes: 65_536, ..default() },
        ClientOptions { name: "x".repeat(32), ..default() },
        ClientOptions { secret: Some(vec![]), ..default() },
    ] {
        let error = connect(nowhere, &options, PATIENCE).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{options:?}");
    }
    assert_eq!(connect(nowhere, &default(), PATIENCE).expect_err("nothing there").kind(), ErrorKind::NotFound);
}

#[test]
fn the_smallest_and_the_largest_ring_work() {
    for (ring_log2, buffer_bytes) in [(0, 64), (14, 2_048)] {
        let options = ClientOptions { ring_log2, buffer_bytes, ..ClientOptions::default() };
        let mut pair = Pair::new(&options);
        for _ in 0..3 {
            for _ in 0..1u32 << ring_log2 {
                assert!(pair.client.send(&[b"frame"]) && pair.server.send(&[b"frame"]));
            }
            assert!(!pair.client.send(&[b"frame"]) && !pair.server.send(&[b"frame"]));
            pair.client.flush().expect("flushed");
            pair.server.flush().expect("flushed");
            assert_eq!(frames(&mut pair.server).len(), 1 << ring_log2);
            assert_eq!(frames(&mut pair.client).len(), 1 << ring_log2);
        }
    }
}

#[test]
fn a_silent_server_times_out() {
    let (here, _there) = control::tests::pair();
    let error = connect_socket(here, &ClientOptions::default(), Duration::from_millis(20)).expect_err("silent");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

/// What a client sends, right except for one thing.
#[derive(Default)]
struct Script {
    messages: Vec<(Message, Option<OwnedFd>)>,
}

impl Script {
    const REGION_BYTES: u64 = 8_192;

    fn right() -> Script {
        let region = memfd::create(Self::REGION_BYTES).expect("a file");
        for offset in [0, 4_096] {
            rustix::io::pwrite(&region, &0x3E3_1F20u32.to_ne_bytes(), offset).expect("written");
        }
        let init = Init { version: VERSION, id: 0, mode: MODE_ETHERNET, secret: [0; 24], name: "script".into() };
        let mut script = Script::default();
        script.push(Message::Init(init), None);
        script.push(Message::AddRegion { index: 0, bytes: Self::REGION_BYTES }, Some(region));
        script.push(Message::AddRing(Self::ring(true)), doorbell::create().ok());
        script.push(Message::AddRing(Self::ring(false)), doorbell::create().ok());
        script.push(Message::Connect { name: "script".into() }, None);
        script
    }

    fn ring(is_s2m: bool) -> AddRing {
        let offset = if is_s2m { 0 } else { 4_096 };
        AddRing { is_s2m, index: 0, region: 0, offset, ring_log2: 7, private_header_bytes: 0 }
    }

    fn push(&mut self, message: Message, file: Option<OwnedFd>) {
        self.messages.push((message, file));
    }

    /// What the server says.
    fn run(self) -> std::io::Result<Port> {
        let (here, there) = control::tests::pair();
        let mut handshake = Handshake::new(there, Accept::default());
        for (message, file) in &self.messages {
            // A server that has given up does not read.
            let _ = control::send(here.as_fd(), message, file.as_ref().map(AsFd::as_fd));
        }
        match handshake.step()? {
            Progress::Ready(port) => Ok(port),
            Progress::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }
}

type Change = fn(&mut Script);
type Case<'a> = (Box<dyn Fn(&mut Script)>, &'a str);

#[test]
fn each_wrong_step_is_refused_by_name() {
    Script::right().run().expect("the script is right");
    let init = |change: fn(&mut Init)| {
        move |script: &mut Script| match &mut script.messages[0].0 {
            Message::Init(init) => change(init),
            _ => unreachable!("the first message"),
        }
    };
    let ring = |change: fn(&mut AddRing)| {
        move |script: &mut Script| match &mut script.messages[2].0 {
            Message::AddRing(ring) => change(ring),
            _ => unreachable!("the third message"),
        }
    };
    let other: [(Change, &str); 15] = [
        (|s| drop(s.messages.remove(0)), "unexpected message"),
        (|s| s.messages.insert(1, (Message::Ack, None)), "unexpected message"),
        (|s| s.messages.insert(0, (Message::Connected { name: String::new() }, None)), "unexpected message"),
        (|s| s.messages.swap(0, 4), "connect before one ring each way"),
        (|s| drop(s.messages.remove(3)), "connect before one ring each way"),
        (|s| drop(s.messages.remove(1)), "ring is not within its region"),
        (|s| s.messages[1].1 = None, "missing region file"),
        (|s| s.messages[2].1 = None, "missing interrupt file"),
        (|s| s.messages[2].1 = memfd::create(8).ok(), "no eventfd"),
        (|s| s.messages[3] = (Message::AddRing(Script::ring(true)), doorbell::create().ok()), "one ring each way"),
        (|s| s.messages[1].1 = memfd::create(8_191).ok(), "shorter than the region"),
        (|s| s.messages[1].1 = memfd::create(8_192).ok(), "wrong cookie"),
        (|s| s.messages[1].1 = doorbell::create().ok(), "no memory file"),
        (|s| s.messages[1].0 = Message::AddRegion { index: 1, bytes: 8_192 }, "invalid region index"),
        (|s| s.messages[1].0 = Message::AddRegion { index: 0, bytes: 0 }, "region is empty"),
    ];
    let mut cases: Vec<Case> = vec![
        (Box::new(init(|init| init.version = 1)), "version"),
        (Box::new(init(|init| init.mode = 1)), "only ethernet"),
        (Box::new(ring(|ring| ring.index = 1)), "one ring each way"),
        (Box::new(ring(|ring| ring.private_header_bytes = 1)), "private headers"),
        (Box::new(ring(|ring| ring.region = 1)), "not within its region"),
        (Box::new(ring(|ring| ring.offset = 8)), "not aligned"),
        (Box::new(ring(|ring| ring.offset = 8_192)), "not within its region"),
        (Box::new(ring(|ring| ring.ring_log2 = 9)), "not within its region"),
        (Box::new(ring(|ring| ring.ring_log2 = 15)), "too large"),
        (Box::new(ring(|ring| ring.ring_log2 = 255)), "too large"),
    ];
    cases.extend(other.into_iter().map(|(change, reason)| (Box::new(change) as Box<dyn Fn(&mut Script)>, reason)));
    for (change, reason) in cases {
        let mut script = Script::right();
        change(&mut script);
        let error = script.run().expect_err(reason);
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        assert!(error.to_string().contains(reason), "{error} is not {reason}");
    }
}

#[test]
fn regions_are_limited() {
    let many = |count: u16, bytes: u64| {
        let mut script = Script::right();
        for index in 1..count {
            let file = memfd::create(bytes).expect("a file"); // Sparse: no page is touched.
            script.messages.insert(1 + usize::from(index), (Message::AddRegion { index, bytes }, Some(file)));
        }
        script.run()
    };
    many(16, 4_096).expect("sixteen");
    assert!(many(17, 4_096).expect_err("seventeen").to_string().contains("invalid region index"));
    many(3, 100 << 20).expect("200 MiB");
    assert!(many(4, 100 << 20).expect_err("300 MiB").to_string().contains("too large"));
}

#[test]
fn a_client_that_leaves_is_noticed() {
    let mut script = Script::right();
    script.messages.truncate(3);
    script.push(Message::Disconnect { code: 0, reason: "changed\x1b my mind".into() }, None);
    let error = script.run().expect_err("left");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(error.to_string().ends_with("changed? my mind"), "{error}");

    let mut pair = Pair::small();
    control::send(pair.client.control(), &Message::Ack, None).expect("sent");
    assert_eq!(pair.server.check_peer().expect_err("wrong").kind(), ErrorKind::ConnectionAborted);
    assert!(pair.client.check_peer().expect_err("told").to_string().contains("unexpected message"));
}
