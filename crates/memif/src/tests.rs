//! Tests of whole connections: client and server in one process.

mod hostile;
mod setup;
mod traffic;

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crate::client::connect_socket;
use crate::{Accept, ClientOptions, Handshake, Port, Progress, control};

const PATIENCE: Duration = Duration::from_secs(20);

/// Two connected ports, and the memory file.
struct Pair {
    client: Port,
    server: Port,
    memory: OwnedFd,
}

impl Pair {
    fn new(options: &ClientOptions) -> Pair {
        let (here, there) = control::tests::pair();
        control::send(there.as_fd(), &crate::server::hello(), None).expect("sent");
        let options = options.clone();
        let client = std::thread::spawn(move || connect_socket(here, &options, PATIENCE));
        let server = serve(Handshake::new(there, Accept::default())).expect("the client keeps the rules");
        let (client, memory) = client.join().expect("no panic").expect("the server keeps the rules");
        Pair { client, server, memory }
    }

    fn small() -> Pair {
        Pair::new(&ClientOptions { ring_log2: 3, buffer_bytes: 256, ..ClientOptions::default() })
    }
}

/// Steps until the connection is made or refused.
fn serve(mut handshake: Handshake) -> std::io::Result<Port> {
    loop {
        match handshake.step()? {
            Progress::Ready(port) => return Ok(port),
            Progress::Pending => wait(&handshake),
        }
    }
}

/// Waits until a file is readable.
fn wait(file: &impl AsFd) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&patience)).expect("poll");
    assert_eq!(ready, 1, "nothing came in time");
}

fn is_readable(file: impl AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&now)).expect("poll") == 1
}

/// All frames that wait.
fn frames(port: &mut Port) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    port.receive(usize::MAX, |frame| {
        let mut bytes = vec![0; frame.len()];
        assert_eq!(frame.copy_to(&mut bytes), frame.len());
        frames.push(bytes);
    });
    frames
}
