//! The router decides the first Interest of a new UDP neighbour, whichever worker owns its name.
//!
//! The story: a worker looked at the face table when its turn began and decided the packets of its sockets. Then it
//! took the packets that other workers had just put into its rings. If such a packet came from a face made after the
//! look, the worker dropped it: `engine.unknown-face`.

use crate::application::{Application, name, start_with};
use std::{
    net::UdpSocket,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Faces made at once: enough that each of the other workers owns a name.
const NEW_FACES: usize = 8;

/// Long enough for a handful of losses before the repair; a busy machine takes longer to make [`FACES_LEAST`].
const TRIED: Duration = Duration::from_secs(8);
const FACES_LEAST: usize = 10 * NEW_FACES;

#[test]
fn the_first_interest_of_a_new_face_is_decided() {
    let (router, _directory) = start_with(4, |_| ());
    let is_over = Arc::new(AtomicBool::new(false));
    // Workers with much to decide take long turns. No face has a route for these names.
    let mut loads = Vec::new();
    for load in 0..3 {
        let (mut asking, over) = (Application::connect(&router), Arc::clone(&is_over));
        let mut reading = asking.split();
        loads.push(std::thread::spawn(move || {
            for number in 0_u64.. {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let interests = (0..64).map(|of_batch| name(&format!("/none/{load}/{number}/{of_batch}")));
                let batch: Vec<u8> = interests.flat_map(|name| asking.interest(name).build()).collect();
                asking.send(&batch);
            }
        }));
        let over = Arc::clone(&is_over);
        loads.push(std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                reading.receive_within(Duration::from_millis(100));
            }
        }));
    }
    let mut status = Application::connect(&router);
    let (started, mut made) = (Instant::now(), 0);
    while started.elapsed() < TRIED || made < FACES_LEAST {
        let neighbours: Vec<UdpSocket> =
            (0..NEW_FACES).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a free port")).collect();
        for neighbour in &neighbours {
            let interest = status.interest(name(&format!("/new/{made}"))).build();
            neighbour.send_to(&interest, router.udp()[0]).expect("loopback takes it");
            made += 1;
        }
        // A Nack, or no answer if a ring of the flood was full. Only the reason of the drop matters here.
        let last = neighbours.last().expect("some");
        last.set_read_timeout(Some(Duration::from_millis(10))).expect("a timeout");
        let _ = last.recv(&mut [0; 1024]);
    }
    is_over.store(true, Ordering::Relaxed);
    loads.into_iter().for_each(|load| load.join().expect("a load"));
    assert_eq!(status.drops("engine.unknown-face"), 0, "of {made} new faces");
}
