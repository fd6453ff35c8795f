//! How long do send and receive take for a frame of 100 bytes, in batches of 64, on one thread?
//!
//! ```text
//! cargo run --release -p namewire-memif --example time_per_frame
//! ```
//!
//! Limit: both ends are in the caches of one processor. Between two processors, their lines travel as well.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use namewire_memif::{Accept, ClientOptions, Listener, Port, Progress};

const BATCHES: u32 = 200_000;
const BATCH_FRAMES: usize = 64;
const FRAME: [u8; 100] = [7; 100];

fn main() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let (mut client, mut server) = connect(&folder.path().join("memif.sock"))?;
    client.mask_interrupts();
    server.mask_interrupts();
    for _ in 0..2 {
        measure("client to server", &mut client, &mut server)?;
        measure("server to client", &mut server, &mut client)?;
    }
    Ok(())
}

fn connect(path: &Path) -> io::Result<(Port, Port)> {
    let listener = Listener::bind(path, 0o600, Accept::default())?;
    let at = path.to_owned();
    let client =
        std::thread::spawn(move || namewire_memif::connect(&at, &ClientOptions::default(), Duration::from_secs(5)));
    let mut handshake = loop {
        match listener.accept()? {
            Some(handshake) => break handshake,
            None => std::thread::yield_now(),
        }
    };
    let server = loop {
        match handshake.step()? {
            Progress::Ready(port) => break port,
            Progress::Pending => std::thread::yield_now(),
        }
    };
    Ok((client.join().map_err(|_| io::Error::other("the client panicked"))??, server))
}

fn measure(direction: &str, from: &mut Port, to: &mut Port) -> io::Result<()> {
    let (mut sending, mut receiving, mut out) = (Duration::ZERO, Duration::ZERO, [0; 2_048]);
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..BATCH_FRAMES {
            assert!(from.send(&[&FRAME[..14], &FRAME[14..]]), "the ring has room");
        }
        from.flush()?;
        let middle = Instant::now();
        let taken = to.receive(BATCH_FRAMES, |frame| {
            std::hint::black_box(frame.copy_to(&mut out));
        });
        receiving += middle.elapsed();
        sending += middle - start;
        assert_eq!(taken, BATCH_FRAMES);
    }
    let per_frame = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(BATCHES) / BATCH_FRAMES as f64;
    println!("{direction}: send {:.1} ns, receive {:.1} ns", per_frame(sending), per_frame(receiving));
    Ok(())
}
