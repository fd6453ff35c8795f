//! Peers that break the rules on purpose.

use std::io::ErrorKind;
use std::os::fd::AsFd;

use proptest::prelude::*;
use rustix::io::pwrite;

use super::*;
use crate::message::{MESSAGE_BYTES, Message};
use crate::{doorbell, memfd};

/// Bytes of both rings of `Pair::small`, which come first in the memory.
const RING_BYTES: u64 = 2 * 256;

/// Writes into the shared memory as the peer could.
fn poke(pair: &Pair, offset: u64, bytes: &[u8]) {
    pwrite(&pair.memory, bytes, offset).expect("the memory can be written");
}

/// A descriptor's bytes.
fn descriptor(flags: u16, region: u16, length: u32, offset: u32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[0..2].copy_from_slice(&flags.to_ne_bytes());
    bytes[2..4].copy_from_slice(&region.to_ne_bytes());
    bytes[4..8].copy_from_slice(&length.to_ne_bytes());
    bytes[8..12].copy_from_slice(&offset.to_ne_bytes());
    bytes
}

#[test]
fn wrong_descriptors_are_counted_and_the_rest_goes_on() {
    let mut pair = Pair::small();
    let bytes_of_region = rustix::fs::fstat(&pair.memory).expect("stat").st_size as u32;
    let wrong = [
        descriptor(0, 1, 1, 0),
        descriptor(0, 0, 65_536, 0),
        descriptor(0, 0, u32::MAX, u32::MAX),
        descriptor(0, 0, 2, bytes_of_region - 1),
        descriptor(0, u16::MAX, 0, 0),
    ];
    for number in 0..8 {
        assert!(pair.client.send(&[&[number]]));
    }
    pair.client.flush().expect("flushed");
    for (slot, bytes) in (1..).zip(wrong) {
        poke(&pair, 128 + 16 * slot, &bytes);
    }
    assert_eq!(frames(&mut pair.server), [[0], [6], [7]]);
    assert_eq!((pair.server.malformed(), pair.client.room()), (5, 8));
    pair.server.check_peer().expect("still connected");
}

#[test]
fn wrong_chains_are_counted_once() {
    let mut pair = Pair::small();
    for chain in [
        &[descriptor(1, 0, 10, 512), descriptor(1, 9, 10, 512), descriptor(0, 0, 10, 512)][..], // A wrong region.
        &[descriptor(1, 0, 40_000, 0), descriptor(0, 0, 40_000, 0)],                            // Too long, and out.
        &[descriptor(1, 0, 10, 512); 3],                                                        // No end.
    ] {
        let before = pair.server.malformed();
        let first = pair.client.room();
        assert_eq!(first, 8);
        let slot = u64::from(pair_head(&pair));
        for _ in 0..chain.len() {
            assert!(pair.client.send(&[b"x"]));
        }
        pair.client.flush().expect("flushed");
        for (ahead, bytes) in (0..).zip(chain) {
            poke(&pair, 128 + 16 * ((slot + ahead) % 8), bytes);
        }
        assert!(frames(&mut pair.server).is_empty());
        assert_eq!(pair.server.malformed(), before + 1);
    }
    assert!(pair.client.send(&[b"good"]));
    pair.client.flush().expect("flushed");
    assert_eq!(frames(&mut pair.server), [b"good"]);
}

fn pair_head(pair: &Pair) -> u16 {
    let mut bytes = [0; 2];
    rustix::io::pread(&pair.memory, &mut bytes[..], 6).expect("readable");
    u16::from_ne_bytes(bytes)
}

#[test]
fn impossible_indices_end_the_connection() {
    // Offsets of S2M's head and tail, and of M2S's.
    for (offset, server_sees_it) in [(6, true), (64, false), (256 + 6, true), (256 + 64, false)] {
        for index in [9u16, 0x8000, 0xFFF0] {
            let mut pair = Pair::small();
            poke(&pair, offset, &(if offset == 64 { 0u16.wrapping_sub(index) } else { index + 8 }).to_ne_bytes());
            let (victim, other) = match server_sees_it {
                true => (&mut pair.server, &mut pair.client),
                false => (&mut pair.client, &mut pair.server),
            };
            assert!(frames(victim).is_empty());
            while victim.send(&[b"x"]) {}
            victim.flush().expect("flushed");
            assert!(victim.is_broken(), "{offset} {index}");
            assert_eq!((victim.receive(9, |_| panic!("broken")), victim.has_input()), (0, false));
            let error = victim.check_peer().expect_err("broken");
            assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
            assert!(other.check_peer().expect_err("told").to_string().contains("index of a ring"), "{offset}");
        }
    }
}

#[test]
fn a_server_writes_only_into_regions() {
    let region_bytes = |pair: &Pair| rustix::fs::fstat(&pair.memory).expect("stat").st_size as u32;
    let end = region_bytes(&Pair::small());
    for bytes in [descriptor(0, 1, 256, 0), descriptor(0, 0, 256, end - 255), descriptor(0, 0, 0, 0)] {
        let mut pair = Pair::small();
        assert!(pair.server.send(&[b"right"]));
        poke(&pair, 256 + 128 + 16, &bytes);
        assert!(!pair.server.send(&[b"wrong"]));
        assert!(pair.server.is_broken() && pair.server.room() == 0);
        let error = pair.server.check_peer().expect_err("broken");
        assert!(error.to_string().contains("a buffer is not within its region"), "{error}");
    }
}

/// Writes some random bytes somewhere over both rings.
fn scribble(memory: &OwnedFd, random: &mut fastrand::Rng) {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    // Small numbers hit more often.
    bytes.iter_mut().for_each(|byte| *byte &= random.choice([0, 1, 3, 255]).unwrap_or(0));
    let length = random.usize(1..=16);
    pwrite(memory, &bytes[..length], random.u64(0..RING_BYTES)).expect("written");
}

/// A peer that writes random bytes over both rings while both ends run, and that places buffers over the rings. This
/// thread scribbles too, so that much happens also where the other one hardly runs.
#[test]
fn nothing_a_peer_writes_stops_this_process() {
    let mut outcomes = [0u64; 2];
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut pair = Pair::small();
        let vandal = std::thread::spawn({
            let memory = pair.memory.try_clone().expect("a file");
            let mut random = fastrand::Rng::with_seed(!seed);
            move || {
                (0..300).for_each(|_| scribble(&memory, &mut random));
            }
        });
        let mut out = [0; 70_000];
        for _ in 0..100 {
            scribble(&pair.memory, &mut random);
            for port in [&mut pair.client, &mut pair.server] {
                let _ = port.send(&[&out[..random.usize(0..700)]]);
                port.flush().expect("flushed");
                port.receive(random.usize(0..20), |frame| {
                    assert!(frame.copy_to(&mut out) <= frame.len());
                });
                assert!(port.room() <= 8 && port.waiting() <= 8 && port.frame_bytes_max() <= 65_535);
            }
        }
        vandal.join().expect("no panic");
        outcomes[0] += pair.client.malformed() + pair.server.malformed();
        outcomes[1] += u64::from(pair.client.is_broken()) + u64::from(pair.server.is_broken());
    }
    assert!(outcomes.iter().all(|count| *count > 0), "the vandal did nothing: {outcomes:?}");
}

/// A message of a valid type with random content, and a file of any kind.
fn any_step() -> impl Strategy<Value = (u16, Vec<u8>, u8)> {
    (
        prop_oneof![1u16..9, any::<u16>()],
        prop::collection::vec(prop_oneof![Just(0u8), 0..3u8, any::<u8>()], 126),
        0..4u8,
    )
}

proptest! {
    #[test]
    fn no_message_stops_a_server(steps in prop::collection::vec(any_step(), 1..20), first_is_right in any::<bool>()) {
        let (here, there) = control::tests::pair();
        let mut handshake = Handshake::new(there, Accept::default());
        for (number, (kind, content, file)) in steps.into_iter().enumerate() {
            let mut bytes = [0; MESSAGE_BYTES];
            bytes[..2].copy_from_slice(&kind.to_ne_bytes());
            bytes[2..].copy_from_slice(&content);
            if number == 0 && first_is_right {
                bytes[..9].copy_from_slice(&[3, 0, 0, 2, 0, 0, 0, 0, 0]);
            }
            let file = match file {
                0 => None,
                1 => memfd::create(4_096).ok(),
                2 => doorbell::create().ok(),
                _ => std::io::pipe().ok().map(|(reader, _)| reader.into()),
            };
            if let Some(message) = Message::decode(&bytes) {
                let _ = control::send(here.as_fd(), &message, file.as_ref().map(AsFd::as_fd));
            } else {
                let _ = rustix::net::send(&here, &bytes, rustix::net::SendFlags::empty());
            }
            match handshake.step() {
                Ok(Progress::Pending) => {}
                Ok(Progress::Ready(_)) => unreachable!("no random ring has the cookie"),
                Err(error) => {
                    prop_assert!(matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::ConnectionReset));
                    break;
                }
            }
        }
    }

    #[test]
    fn no_message_stops_a_client(steps in prop::collection::vec(any_step(), 1..5), hello_is_right in any::<bool>()) {
        let (here, there) = control::tests::pair();
        if hello_is_right {
            control::send(there.as_fd(), &crate::server::hello(), None).expect("sent");
        }
        for (kind, content, _) in &steps {
            let bytes = [&kind.to_ne_bytes()[..], content].concat();
            rustix::net::send(&there, &bytes, rustix::net::SendFlags::empty()).expect("sent");
        }
        rustix::net::shutdown(&there, rustix::net::Shutdown::Write).expect("shut");
        let options = ClientOptions { ring_log2: 2, ..ClientOptions::default() };
        let result = connect_socket(here, &options, PATIENCE);
        // Four acks and "connected" in a row are not random.
        prop_assert!(result.is_err());
    }
}

/// The other end of the connection in a process of its own, killed while frames flow.
#[test]
fn a_peer_that_is_killed_is_noticed() {
    const VARIABLE: &str = "MEMIF_TEST_SOCKET";
    if let Some(path) = std::env::var_os(VARIABLE) {
        let mut port = crate::connect(path.as_ref(), &ClientOptions::default(), PATIENCE).expect("connects");
        loop {
            let _ = port.send(&[b"alive"]);
            port.flush().expect("flushed");
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("memif.sock");
    let listener = crate::Listener::bind(&path, 0o600, Accept::default()).expect("listens");
    let program = std::env::current_exe().expect("this test");
    let mut child = std::process::Command::new(program)
        .args(["--exact", "tests::hostile::a_peer_that_is_killed_is_noticed"])
        .env(VARIABLE, &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("starts");
    wait(&listener);
    let mut port = serve(listener.accept().expect("accepts").expect("a client")).expect("connected");
    let mut taken = 0;
    while taken < 10_000 {
        taken += port.receive(64, |frame| assert_eq!(frame.len(), 5));
    }
    port.check_peer().expect("alive");
    child.kill().expect("killed");
    child.wait().expect("gone");
    wait(&port.control());
    assert_eq!(port.check_peer().expect_err("gone").kind(), ErrorKind::ConnectionReset);
    while port.receive(64, |frame| assert_eq!(frame.len(), 5)) > 0 {}
    assert!(port.send(&[b"to nobody"]));
    port.flush().expect("no signal");
}
