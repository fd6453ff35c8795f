//! Attacks by streams that write as fast as the router takes: they take turns of its workers, and the way to a
//! producer.
//!
//! | attack | streams | asks for |
//! | --- | --- | --- |
//! | `many-streams` | 2,000 over TCP, 600 over Unix sockets | new names |
//! | `greedy` | one | new names of the producers of the honest load, [`HONEST_STREAMS`] |
//! | `unread-producer` | 150, which never read | the same |
//!
//! The streams are written in turn, each as much as its socket takes.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use namewire_packet::{InterestBuilder, Nonce};

use super::{ATTACK_PREFIX, Attack, AttackPlan, Way, interest, name_of};

const MANY_TCP: usize = 2_000;
const MANY_UNIX: usize = 600;
const UNREAD: usize = 150;
/// Interests that are made at a time.
const BATCH: u64 = 64;
/// Pause when no socket takes anything.
const PAUSE: Duration = Duration::from_micros(200);
/// Streams of the honest load during an attack: the third components of their names, `/bench/run/<stream>`.
pub const HONEST_STREAMS: [u16; 2] = [2, 3];

trait Stream: Read + Write {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

/// A stream, and what it has not taken yet of its last batch.
struct Writer {
    stream: Box<dyn Stream>,
    rest: Vec<u8>,
    reads: bool,
}

impl Writer {
    /// Writes as much as the socket takes; false if it took nothing.
    fn write(&mut self, next: impl FnOnce() -> Vec<u8>) -> anyhow::Result<bool> {
        if self.rest.is_empty() {
            self.rest = next();
        }
        if self.reads {
            while self.stream.read(&mut [0; 65_536]).is_ok_and(|length| length > 0) {}
        }
        match self.stream.write(&self.rest) {
            Ok(written) => {
                self.rest.drain(..written);
                Ok(written > 0)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Runs one of these attacks; returns how many Interests were made.
///
/// # Errors
/// If no stream can be made.
pub(super) fn run(plan: &AttackPlan) -> anyhow::Result<u64> {
    let count = match plan.attack {
        Attack::Greedy => 1,
        Attack::UnreadProducer => UNREAD,
        _ if plan.way == Way::Unix => MANY_UNIX,
        _ => MANY_TCP,
    };
    let reads = plan.attack != Attack::UnreadProducer;
    let mut writers: Vec<Writer> = (0..count).map_while(|_| open(plan, reads).ok()).collect();
    ensure!(!writers.is_empty(), "the router takes no stream");
    let (started, duration, mut made) = (Instant::now(), Duration::from_secs(plan.seconds), 0);
    while started.elapsed() < duration && !writers.is_empty() {
        let mut has_written = false;
        writers.retain_mut(|writer| {
            let written = writer.write(|| {
                made += BATCH;
                (made - BATCH..made).flat_map(|number| packet(plan.attack, number)).collect()
            });
            has_written |= matches!(written, Ok(true));
            written.is_ok()
        });
        if !has_written {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(made)
}

fn open(plan: &AttackPlan, reads: bool) -> anyhow::Result<Writer> {
    let stream: Box<dyn Stream> = if plan.way == Way::Unix {
        let stream = UnixStream::connect(plan.socket.as_ref().context("--socket is missing")?)?;
        stream.set_nonblocking(true)?;
        Box::new(stream)
    } else {
        let stream = TcpStream::connect_timeout(&plan.router.context("--router is missing")?, Duration::from_secs(1))?;
        stream.set_nonblocking(true)?;
        Box::new(stream)
    };
    Ok(Writer { stream, rest: Vec::new(), reads })
}

fn packet(attack: Attack, number: u64) -> Vec<u8> {
    if attack == Attack::ManyStreams {
        return interest(&format!("{ATTACK_PREFIX}/{number}"), number, 0);
    }
    // Numbers above those that the honest load asks for.
    let stream = HONEST_STREAMS[(number % HONEST_STREAMS.len() as u64) as usize];
    let sequence = 0x8000_0000 | (number as u32 & 0x3FFF_FFFF);
    let name = name_of(&format!("/bench/run/{stream:04x}/{sequence:08x}"));
    InterestBuilder::new(name).nonce(Nonce::from_u32(number as u32)).lifetime_ms(1_000).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::Interest;
    use std::os::unix::net::UnixListener;

    #[test]
    fn an_attack_writes_whole_interests_on_all_its_streams() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nfd.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let plan = AttackPlan {
            attack: Attack::UnreadProducer,
            way: Way::Unix,
            router: None,
            socket: Some(path),
            bind: None,
            interface: None,
            station: None,
            seconds: 1,
            rate: 0,
            sets: 0,
        };
        let attack = std::thread::spawn(move || run(&plan).unwrap());
        let accepted: Vec<_> = (0..UNREAD).map(|_| listener.accept().unwrap().0).collect();
        let mut wire = vec![0; 10_000];
        (&accepted[UNREAD - 1]).read_exact(&mut wire).unwrap();
        let size = namewire_packet::tlv::element_size(&wire).unwrap().unwrap();
        let interest = Interest::parse(&wire[..size]).unwrap();
        assert!(interest.name().to_string().starts_with("/bench/run/000"), "{}", interest.name());
        drop(accepted);
        assert!(attack.join().unwrap() >= BATCH * UNREAD as u64);
    }
}
