//! Frames between two ports.

use super::*;

fn pattern(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.u8(..)).take(bytes).collect()
}

/// Sends and receives frames of many sizes, in both directions.
fn check_sizes(pair: &mut Pair, sizes: &[usize]) {
    for (seed, size) in (0..).zip(sizes) {
        let frame = pattern(*size, seed);
        let (head, tail) = frame.split_at(size / 3);
        assert!(pair.client.send(&[head, b"", tail]), "{size}");
        assert!(pair.server.send(&[&frame]), "{size}");
        assert!(!pair.server.has_input() && !pair.client.has_input(), "not shown yet");
        pair.client.flush().expect("flushed");
        pair.server.flush().expect("flushed");
        assert!(pair.server.has_input() && pair.client.has_input());
        assert!(pair.client.waiting() > 0 && pair.server.waiting() > 0);
        assert_eq!(frames(&mut pair.server), std::slice::from_ref(&frame), "{size}");
        assert_eq!(frames(&mut pair.client), [frame], "{size}");
        assert_eq!((pair.client.waiting(), pair.server.waiting()), (0, 0));
    }
    assert_eq!((pair.client.malformed(), pair.server.malformed()), (0, 0));
    pair.client.check_peer().expect("connected");
    pair.server.check_peer().expect("connected");
}

#[test]
fn frames_of_all_sizes_arrive() {
    let mut pair = Pair::new(&ClientOptions::default());
    assert_eq!((pair.client.room(), pair.server.room()), (1_024, 1_024));
    assert_eq!((pair.client.frame_bytes_max(), pair.server.frame_bytes_max()), (9_216, 9_216));
    check_sizes(&mut pair, &[0, 1, 60, 63, 64, 65, 1_500, 9_000, 9_216, 9_217, 40_000, 65_535]);
    assert!(!pair.client.send(&[&[0; 65_535], &[0]]), "too long");
    assert!(!pair.server.send(&[&[0; 65_536]]), "too long");
    assert_eq!((pair.client.id(), pair.client.peer_name(), pair.server.peer_name()), (0, "namewire", "namewire"));
}

#[test]
fn long_frames_take_several_buffers() {
    let mut pair = Pair::small();
    let sizes: Vec<_> = [255, 256, 257, 511, 512, 513, 2_047, 2_048].into_iter().cycle().take(100).collect();
    check_sizes(&mut pair, &sizes);
    for port in [&mut pair.client, &mut pair.server] {
        assert!(!port.send(&[&[0; 2_049]]), "longer than all buffers");
        assert!(port.send(&[&[0; 1_537]]), "seven buffers");
        assert_eq!(port.room(), 1);
        assert!(!port.send(&[&[0; 257]]), "one buffer is left");
        assert!(port.send(&[&[1; 256]]));
        assert!(!port.send(&[&[0]]) && !port.send(&[]), "full");
        assert_eq!((port.room(), port.waiting()), (0, 8));
        port.flush().expect("flushed");
    }
    for port in [&mut pair.client, &mut pair.server] {
        assert_eq!(frames(port), [vec![0; 1_537], vec![1; 256]]);
    }
    check_sizes(&mut pair, &[1, 2_048]);
}

#[test]
fn a_call_takes_at_most_what_it_is_told_to() {
    let mut pair = Pair::small();
    for number in 0..8 {
        assert!(pair.client.send(&[&[number]]));
    }
    pair.client.flush().expect("flushed");
    let mut seen = Vec::new();
    for (at_most, taken) in [(0, 0), (1, 1), (3, 3), (100, 4), (1, 0)] {
        let count = pair.server.receive(at_most, |frame| {
            let mut bytes = [0; 4];
            assert_eq!(frame.copy_to(&mut bytes), 1);
            seen.push(bytes[0]);
        });
        assert_eq!(count, taken);
    }
    assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_copy_takes_the_start_of_a_frame() {
    let mut pair = Pair::small();
    let frame = pattern(1_000, 1);
    assert!(pair.client.send(&[&frame]));
    pair.client.flush().expect("flushed");
    pair.server.receive(1, |received| {
        for size in [0, 1, 255, 256, 257, 600, 1_000, 2_000] {
            let mut out = vec![0; size];
            let copied = received.copy_to(&mut out);
            assert_eq!((copied, &out[..copied]), (size.min(1_000), &frame[..copied]));
        }
    });
}

/// Indices have 16 bits, so 260,000 frames pass their end three times. Both ends sleep by doorbell whenever nothing
/// waits: a lost wake ends the test by [`PATIENCE`].
#[test]
fn two_threads_exchange_frames_and_no_wake_is_lost() {
    const FRAMES: u64 = 260_000;
    let pair = Pair::new(&ClientOptions { ring_log2: 6, buffer_bytes: 64, ..ClientOptions::default() });
    let ends = [pair.client, pair.server].map(|mut port| {
        std::thread::spawn(move || {
            let (mut sent, mut received) = (0u64, 0u64);
            while received < FRAMES || sent < FRAMES {
                // A window smaller than the ring, so that the sender never waits for room: room rings no bell.
                while sent < FRAMES && sent < received + 48 && port.send(&[&sent.to_ne_bytes(), &[7; 60]]) {
                    sent += 1;
                    if sent % 7 == 0 {
                        port.flush().expect("flushed");
                    }
                }
                port.flush().expect("flushed");
                port.mask_interrupts();
                let taken = port.receive(usize::MAX, |frame| {
                    let mut bytes = [0; 8];
                    assert_eq!((frame.copy_to(&mut bytes), frame.len()), (8, 68));
                    assert_eq!(u64::from_ne_bytes(bytes), received);
                    received += 1;
                });
                let idle = taken == 0 && received < FRAMES && (sent == FRAMES || sent >= received + 16);
                if idle && !port.unmask_interrupts() {
                    wait(&port.doorbell());
                    port.clear_doorbell();
                }
            }
            assert_eq!(port.malformed(), 0);
            port
        })
    });
    let ports = ends.map(|end| end.join().expect("all frames in order"));
    drop(ports);
}

#[test]
fn a_doorbell_rings_only_if_it_is_not_masked() {
    let mut pair = Pair::small();
    let send = |port: &mut Port| {
        assert!(port.send(&[b"x"]));
        port.flush().expect("flushed");
    };
    send(&mut pair.client);
    assert!(is_readable(pair.server.doorbell()));
    pair.server.clear_doorbell();
    assert!(!is_readable(pair.server.doorbell()));
    pair.server.mask_interrupts();
    send(&mut pair.client);
    assert!(!is_readable(pair.server.doorbell()));
    assert!(pair.server.unmask_interrupts(), "two frames wait");
    assert_eq!(frames(&mut pair.server).len(), 2);
    assert!(!pair.server.unmask_interrupts());
    pair.client.flush().expect("nothing to show");
    assert!(!is_readable(pair.server.doorbell()));
    send(&mut pair.server);
    assert!(is_readable(pair.client.doorbell()) && !is_readable(pair.server.doorbell()));
}
