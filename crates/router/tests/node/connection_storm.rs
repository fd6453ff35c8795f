//! Thousands of connections a second that open, send one command or nothing, and close.
//!
//! The story: workers' events of faces and Interests for management arrived through two channels. Control read events
//! before Interests, but at most 256 at a time. In a storm, an application's first command overtook the event that
//! introduced its face. The answer was 403, "the face is gone". Also, control accepted connections faster than it could
//! make faces of them, so that the event of an honest newcomer waited behind thousands of others.

use crate::application::{Application, name, start};
use namewire_packet::{
    Data,
    nfd::{ControlParameters, ControlResponse},
};
use namewire_router::RouterHandle;
use std::{
    io::Write,
    net::{SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Longer than any step takes here, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Threads that connect, per listener.
const STORMERS: usize = 4;

/// Newcomers that stay, per round.
const NEWCOMERS: usize = 40;

/// Connections that come and go until this is dropped.
struct Storm {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
    began: Instant,
    threads: Vec<JoinHandle<()>>,
}

impl Storm {
    fn on(router: &RouterHandle) -> Storm {
        let mut storm =
            Storm { stop: Arc::default(), made: Arc::default(), began: Instant::now(), threads: Vec::new() };
        let (path, address) = (router.socket().expect("a socket").clone(), router.tcp()[0]);
        for _ in 0..STORMERS {
            let path = path.clone();
            storm.spawn(router, move |command| come_and_go_unix(&path, command));
            storm.spawn(router, move |command| come_and_go_tcp(address, command));
        }
        storm
    }

    /// Every other call of `come_and_go` gets a command.
    fn spawn(&mut self, router: &RouterHandle, come_and_go: impl Fn(Option<&[u8]>) + Send + 'static) {
        let (stop, made) = (Arc::clone(&self.stop), Arc::clone(&self.made));
        let mut signer = Application::connect(router);
        self.threads.push(std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let number = made.fetch_add(1, Ordering::Relaxed);
                let parameters =
                    ControlParameters { name: Some(name(&format!("/storm/{number}"))), ..Default::default() };
                let command = (number % 2 == 0).then(|| signer.command_packet("/rib/register", &parameters));
                come_and_go(command.as_deref());
            }
        }));
    }

    /// Ends the storm; returns its connections per second.
    fn end(self) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        let rate = self.made.load(Ordering::Relaxed) as f64 / self.began.elapsed().as_secs_f64();
        self.threads.into_iter().for_each(|thread| thread.join().expect("a stormer"));
        rate
    }
}

// A connection may fail, and a command may be refused: the storm goes on.
fn come_and_go_unix(path: &Path, command: Option<&[u8]>) {
    if let (Ok(mut socket), Some(command)) = (UnixStream::connect(path), command) {
        let _ = socket.write_all(command);
    }
}

fn come_and_go_tcp(address: SocketAddr, command: Option<&[u8]>) {
    if let Ok(mut socket) = TcpStream::connect(address) {
        if let Some(command) = command {
            let _ = socket.write_all(command);
        }
        // Closed by a reset, or the storm would use up the machine's ports in seconds.
        let _ = socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO));
    }
}

/// Connects and registers a prefix. Returns how long that took, or what went wrong.
fn come_and_stay(
    newcomer: &mut Option<Application>,
    connect: impl Fn() -> Application,
    prefix: &str,
) -> Result<Duration, String> {
    let began = Instant::now();
    let newcomer = newcomer.insert(connect());
    let parameters = ControlParameters { name: Some(name(prefix)), ..Default::default() };
    let command = newcomer.command_packet("/rib/register", &parameters);
    newcomer.send(&command);
    let reply = newcomer.receive_within(PATIENCE).ok_or("no answer")?;
    let response = Data::parse(&reply.bytes).ok().and_then(|data| ControlResponse::decode(data.content()).ok());
    match response {
        Some(response) if response.code == 200 => Ok(began.elapsed()),
        Some(response) => Err(format!("{} {}", response.code, response.text)),
        None => Err(format!("no Data but {:?}", reply.headers.nack)),
    }
}

#[test]
fn who_connects_in_a_storm_and_stays_is_served() {
    for workers in [1, 4] {
        let (router, _directory) = start(workers);
        let mut operator = Application::connect(&router);
        let storm = Storm::on(&router);
        let (mut stayed, mut took, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..NEWCOMERS {
            let mut newcomer = None;
            let connect = || match number % 2 {
                0 => Application::connect(&router),
                _ => Application::connect_tcp(router.tcp()[0]),
            };
            match come_and_stay(&mut newcomer, connect, &format!("/stays/{number}")) {
                Ok(latency) => took.push(latency),
                Err(failure) => {
                    println!("{number}: {failure}");
                    failures.push(failure);
                }
            }
            stayed.push(newcomer);
        }
        let rate = storm.end();
        took.sort();
        let at = |part: usize| took.get((took.len() * part / 100).min(took.len().saturating_sub(1))).copied();
        println!(
            "{workers} workers, {rate:.0} connections/s: {} of {NEWCOMERS} failed, p50 {:?}, p99 {:?}, max {:?}; drops {:?}",
            failures.len(),
            at(50),
            at(99),
            at(100),
            operator.dataset::<namewire_packet::nfd::DropCounter>("/status/drops"),
        );
        assert!(failures.is_empty(), "{failures:?}");
    }
}
