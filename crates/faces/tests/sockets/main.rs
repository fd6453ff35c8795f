//! The socket driver over real Unix, TCP and UDP sockets of this machine.

mod handover;
mod lent_packets;
mod outages;
mod shares;
mod stream_faces;
mod turns;
mod udp_faces;
mod udp_offload;
mod worker;

use std::io::Write;
use std::time::{Duration, Instant};

use namewire_faces::{DriverConfig, RxArena, SocketDriver};
use namewire_packet::FaceId;

use worker::*;

#[test]
fn garbage_on_streams_and_datagrams_never_panics() {
    let mut random = fastrand::Rng::with_seed(7);
    let config = DriverConfig { udp_idle_timeout: Duration::from_millis(50), ..DriverConfig::default() };
    let (mut worker, address) = udp_worker(config);
    for i in 0..300 {
        let face = FaceId(1000 + i);
        let mut application = worker.application(face);
        let datagrams = peer();
        for _ in 0..8 {
            let mut bytes: Vec<u8> = (0..random.usize(..300)).map(|_| random.u8(..)).collect();
            if random.bool() {
                // A well-formed outer element with arbitrary content.
                bytes = element([5, 6, 100, 80][random.usize(..4)], 0, 0);
                bytes[1] = random.u8(..=252);
                bytes.extend(
                    (0..bytes[1]).map(|_| [80, 81, 82, 83, 98, 1, 0, 253, 255, random.u8(..)][random.usize(..10)]),
                );
            }
            let _ = application.write_all(&bytes); // the face may have closed
            datagrams.send_to(&bytes, address).unwrap();
        }
        worker.now_ns += ROUND_NS;
        let now_ns = worker.now_ns;
        worker.driver.run_timers(now_ns);
        worker.driver.wait(Some(Duration::ZERO)).unwrap();
        worker.driver.receive(now_ns, &mut worker.arena, &mut worker.packets, 64);
        for packet in &worker.packets {
            assert!(matches!(worker.arena.packet(packet)[0], 5 | 6));
        }
        worker.driver.flush();
        worker.driver.remove_face(face);
        worker.driver.events().for_each(drop);
    }
    assert_eq!(worker.driver.queued_bytes(), 0);
}

#[test]
fn a_waker_ends_an_endless_wait() {
    let mut worker = Worker::new(DriverConfig::default());
    let waker = worker.driver.waker();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        waker.wake();
    });
    worker.driver.wait(None).unwrap();
    thread.join().unwrap();
    let start = Instant::now();
    worker.driver.wait(Some(Duration::from_millis(100))).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(99), "a wake-up counts once");
}

#[test]
fn a_driver_can_move_to_its_thread() {
    fn assert_send<T: Send>() {}
    assert_send::<SocketDriver>();
    assert_send::<RxArena>();
    assert_send::<namewire_faces::Waker>();
}
