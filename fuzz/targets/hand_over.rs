//! Question: can any bytes on the line make a program that takes over panic, hang, or reserve more memory than it
//! reads?
//!
//! Input: what an old program says. The line closes behind it, so that the conversation ends with an error or with
//! everything taken; then every face is read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_handover::{Handed, Line, TakeOver, faces};
use std::{io::Write, os::unix::net::UnixStream, time::Duration};

fuzz_target!(|bytes: &[u8]| {
    let (line, other) = Line::pair().expect("descriptors");
    let mut other = UnixStream::from(other);
    line.set_timeout(Duration::from_secs(1)).expect("a socket");
    other.write_all(bytes).expect("a socket takes that much");
    other.shutdown(std::net::Shutdown::Write).expect("a socket");
    if let Ok(mut handed) = Handed::receive(TakeOver { line, version: String::new() }, 1) {
        for face in handed.faces.drain(..) {
            let _ = faces::of_line(face);
        }
        handed.listeners.take_unix(None);
        handed.listeners.take_udp(([127, 0, 0, 1], 0).into());
        handed.listeners.take_stream("tcp", ([127, 0, 0, 1], 0).into());
    }
});
