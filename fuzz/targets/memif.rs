//! A client of shared memory that says anything: the bytes are its messages, one after the other. The server must
//! answer or end the connection, and serve the next one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_memif::{Accept, Handshake, Listener, Progress};
use socket2::{Domain, SockAddr, Socket, Type};
use std::{
    path::PathBuf,
    sync::OnceLock,
    time::{Duration, Instant},
};

/// Bytes of a message. A length byte in front of each makes shorter ones.
const MESSAGE_BYTES: usize = 128;

fn listener() -> &'static (Listener, PathBuf) {
    static LISTENER: OnceLock<(Listener, PathBuf)> = OnceLock::new();
    LISTENER.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("namewire-fuzz-memif-{}.sock", std::process::id()));
        (Listener::bind(&path, 0o600, Accept::default()).expect("a listener"), path)
    })
}

fn accept() -> (Socket, Handshake) {
    let (listener, path) = listener();
    let client = Socket::new(Domain::UNIX, Type::SEQPACKET, None).expect("a socket");
    client.connect(&SockAddr::unix(path).expect("a path")).expect("a connection");
    let handshake = loop {
        if let Some(handshake) = listener.accept().expect("a client") {
            break handshake;
        }
    };
    (client, handshake)
}

fuzz_target!(|input: &[u8]| {
    namewire_memif::fuzzing::message(input);
    let (client, mut handshake) = accept();
    client.set_nonblocking(true).expect("a socket");
    let (mut rest, began) = (input, Instant::now());
    while let Some((&length, after)) = rest.split_first() {
        let (message, after) = after.split_at(after.len().min(usize::from(length).min(MESSAGE_BYTES)));
        rest = after;
        let mut padded = message.to_vec();
        if length >= 200 {
            padded.resize(MESSAGE_BYTES, 0);
        }
        if client.send(&padded).is_err() {
            break;
        }
        match handshake.step() {
            Ok(Progress::Pending) => {}
            Ok(Progress::Ready(_)) => panic!("no client without memory is ready"),
            Err(_) => break,
        }
    }
    assert!(began.elapsed() < Duration::from_secs(5), "the server waits for a client");
});
