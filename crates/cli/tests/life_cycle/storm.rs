//! SIGHUP and SIGTERM while thousands of connections open and close, and others never complete their handshake.

use super::{Router, end_of, eventually};
use std::{
    fs,
    io::Write,
    net::TcpStream,
    os::unix::net::UnixStream,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

/// Threads that connect.
const STORMERS: usize = 4;

/// Connections that send half of a handshake.
const HALF_OPEN: usize = 300;

/// Connections that come and go until this is dropped.
struct Storm {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Storm {
    fn on(socket: &Path) -> Storm {
        let (stop, made) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let threads = (0..STORMERS).map(|_| {
            let (socket, stop, made) = (socket.to_owned(), Arc::clone(&stop), Arc::clone(&made));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    // Refused once the router ends.
                    if let Ok(mut connection) = UnixStream::connect(&socket) {
                        // An Interest for the list of faces, whose answer is not waited for.
                        let _ = connection.write_all(b"\x05\x07\x07\x05\x08\x03abc");
                        made.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        });
        Storm { threads: threads.collect(), stop, made }
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("a stormer"));
    }
}

#[test]
fn a_router_takes_its_configuration_again_and_ends_in_a_storm() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    let state = directory.path().join("state.toml");
    let write = |routes: &[&str]| {
        let mut text = format!(
            "[faces.websocket]\nenabled = true\nlisten = [\"127.0.0.1:0\"]\n[state]\nfile = \"{}\"\n",
            state.display()
        );
        for route in routes {
            text += &format!("[[route]]\nprefix = \"{route}\"\nface = \"udp4://127.0.0.1:7001\"\n");
        }
        let new = file.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, &file).unwrap();
    };
    write(&["/first"]);
    let mut router = Router::run(directory.path(), &["--config", file.to_str().unwrap()]);
    let websocket = router.line.split("ws://").nth(1).unwrap().trim().to_owned();
    let storm = Storm::on(&router.socket);
    let half_open: Vec<TcpStream> = (0..HALF_OPEN)
        .map(|_| {
            let mut connection = TcpStream::connect(&websocket).unwrap();
            connection.write_all(b"GET / HTTP/1.1\r\n").unwrap();
            connection
        })
        .collect();
    eventually("it is a storm", || storm.made.load(Ordering::Relaxed) > 1000);
    let routes = |router: &Router| router.ask(&["route", "list"]);
    assert!(routes(&router).contains("/first"));

    write(&["/second", "/third"]);
    router.signal("-HUP");
    router.hang_up();
    let seen = routes(&router);
    assert!(!seen.contains("/first") && seen.contains("/second") && seen.contains("/third"), "{seen}");
    router.ask(&["route", "add", "/by-hand", "udp4://127.0.0.1:7002"]);

    fs::write(&file, "[[route]\n").unwrap();
    router.signal("-HUP");
    let said = router.wait_for(&["SIGHUP", "stays as it was", "line 1"]);
    assert!(!said.contains("line 2"), "{said}");
    let seen = routes(&router);
    assert!(seen.contains("/second") && seen.contains("/third") && seen.contains("/by-hand"), "{seen}");
    let status = router.ask(&["status"]);
    assert!(status.contains("websocket.handshake-displaced"), "{status}");

    let before = storm.made.load(Ordering::Relaxed);
    eventually("the storm goes on", || storm.made.load(Ordering::Relaxed) > before + 100);
    router.signal("-TERM");
    assert!(end_of(&mut router.process).success());
    assert!(!router.socket.exists());
    let kept = fs::read_to_string(&state).unwrap();
    assert!(kept.contains("/by-hand") && !kept.contains("/second"), "{kept}");
    drop((storm, half_open));
}
