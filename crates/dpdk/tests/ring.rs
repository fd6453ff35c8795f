//! A device of net_ring, whose frames come back to it: it receives all frames that it sends. And a full device.
#![cfg(feature = "dpdk")]

mod dpdk_process;

use namewire_dpdk::{Eal, Port};
use std::sync::Arc;

/// Frames that a device of net_ring holds: its ring has 1,024 slots, one of which stays empty.
const RING_FRAMES: usize = 1_023;

#[test]
fn frames_come_back_through_a_ring() {
    let Some(eal) = dpdk_process::start() else { return };
    for _ in 0..3 {
        // Closed and opened under the same name.
        let mut port = Port::open(&eal, "net_ring0", &dpdk_process::small()).expect("a ring");
        assert_eq!((port.name(), port.driver(), port.mtu()), ("net_ring0", "net_ring", 1_500));
        assert!(port.is_up());
        frames_come_back_whole(&mut port);
        short_frames_get_zeroes_and_long_ones_are_refused(&mut port);
        a_full_ring_keeps_frames_in_order(&mut port);
        assert!(port.send(&[&[1; 60]]), "dropped with the port");
        assert_eq!(port.flush(), 1);
    }
    a_panic_loses_no_buffer(&eal);
    another_thread_may_go_on(&eal);
}

fn frames_come_back_whole(port: &mut Port) {
    for bytes in [60, 61, 1_514, 9_000, 9_216] {
        let sent = dpdk_process::frame(bytes, bytes);
        let (head, rest) = sent.split_at(14);
        assert!(port.send(&[head, &[], rest]));
        assert_eq!((port.waiting(), port.flush(), port.waiting()), (1, 1, 0));
        assert_eq!(dpdk_process::receive(port, 1), [sent]);
    }
    assert_eq!((port.flush(), port.receive(64, |_| panic!("a frame"))), (0, 0));
}

fn short_frames_get_zeroes_and_long_ones_are_refused(port: &mut Port) {
    let long = vec![1; port.frame_bytes_max() + 1];
    assert!(!port.send(&[&long]) && !port.send(&[&long[1..], &[1]]));
    assert!(port.send(&[&[9; 20]]) && port.send(&[]));
    assert_eq!(port.flush(), 2);
    let mut padded = [0; 60];
    assert_eq!(dpdk_process::receive(port, 2)[1], padded);
    padded[..20].fill(9);
    assert!(port.send(&[&[9; 20]]));
    port.flush();
    assert_eq!(dpdk_process::receive(port, 1), [padded]);
}

fn a_full_ring_keeps_frames_in_order(port: &mut Port) {
    let mut sent = 0;
    let fill = |port: &mut Port, sent: &mut usize| {
        while port.send(&[&dpdk_process::frame(*sent, 60)]) {
            *sent += 1;
        }
        port.flush()
    };
    while fill(port, &mut sent) > 0 {}
    assert_eq!((port.waiting(), sent), (64, RING_FRAMES + 64));
    assert!(!port.send(&[&[0; 60]]), "the burst is full");
    assert_eq!(port.flush(), 0);

    // Room for some, so that part of the burst leaves.
    let mut received = Vec::new();
    assert_eq!(port.receive(10, |frame| received.push(frame.to_vec())), 10);
    assert_eq!((port.flush(), port.waiting()), (10, 54));
    fill(port, &mut sent);
    while !received.len().eq(&sent) {
        port.receive(64, |frame| received.push(frame.to_vec()));
        port.flush();
    }
    let expected: Vec<_> = (0..sent).map(|number| dpdk_process::frame(number, 60)).collect();
    assert!(received == expected, "all frames, in order");
}

/// Many more panics than there are buffers.
fn a_panic_loses_no_buffer(eal: &Arc<Eal>) {
    let mut port = Port::open(eal, "net_ring0", &dpdk_process::small()).expect("a ring");
    std::panic::set_hook(Box::new(|_| ()));
    for _ in 0..3_000 {
        assert!(port.send(&[&[1; 60]]));
        assert_eq!(port.flush(), 1);
        let visit = std::panic::AssertUnwindSafe(|| port.receive(1, |_| panic!("a visitor's fault")));
        assert!(std::panic::catch_unwind(visit).is_err());
    }
    let _ = std::panic::take_hook();
    assert_eq!(port.counters().transmit_no_buffer, 0);
}

/// More threads, one after the other, than DPDK has ids for.
fn another_thread_may_go_on(eal: &Arc<Eal>) {
    let mut port = Port::open(eal, "net_ring0", &dpdk_process::small()).expect("a ring");
    for number in 0..300 {
        assert!(port.send(&[&dpdk_process::frame(number, 100)]));
        let turn = move || {
            assert_eq!(port.flush(), 1);
            assert_eq!(dpdk_process::receive(&mut port, 1), [dpdk_process::frame(number, 100)]);
            port
        };
        port = std::thread::spawn(turn).join().expect("the thread ends well");
    }
}
