//! A busy reliable link does not allocate, and a silent one does not keep the memory that it needed. The test has a
//! separate process, because its allocator counts for the whole process.

use cap::Cap;
use namewire_faces::{DriverConfig, RxArena, SocketDriver};
use namewire_links::{LinkOptions, LinkPolicy, LinkService, Received};
use namewire_packet::{
    FaceId,
    lp::{LinkFields, LpHeaders, write_headers},
    nfd::FacePersistency,
    tlv,
};
use std::{alloc::System, net::UdpSocket, time::Duration};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Packets sent before the first is acknowledged.
const WINDOW: u64 = 40;

/// Sends packets of `from` to `to`, and the Acks of both, with every 20th frame lost.
fn exchange(ends: &mut [LinkService; 2], packets: std::ops::Range<u64>, wires: &mut [Vec<Vec<u8>>; 2], packet: &[u8]) {
    for number in packets {
        let now_ns = number * 1_000_000;
        let [first, second] = &mut *ends;
        let [forth, back] = &mut *wires;
        let mut used = 0;
        let mut put = |wire: &mut Vec<Vec<u8>>, header: &[u8], slice: &[u8]| {
            wire[used].clear();
            wire[used].extend_from_slice(header);
            wire[used].extend_from_slice(slice);
            used += 1;
        };
        first.encode(now_ns, &LpHeaders::default(), packet, |header, slice| put(forth, header, slice)).unwrap();
        first.pump(now_ns, true, |header, slice| put(forth, header, slice));
        for (i, frame) in forth[..used].iter().enumerate() {
            if !(number as usize * 7 + i).is_multiple_of(20) {
                assert!(second.receive(now_ns, frame).is_ok_and(|received| received != Received::Idle));
            }
        }
        used = 0;
        if number.is_multiple_of(WINDOW) {
            second.pump(now_ns + 5_000_000, true, |header, slice| {
                back[used].clear();
                back[used].extend_from_slice(header);
                back[used].extend_from_slice(slice);
                used += 1;
            });
            for frame in &back[..used] {
                assert_eq!(first.receive(now_ns, frame), Ok(Received::Idle));
            }
        }
    }
}

/// Lets `from` retransmit lost frames until `to` has acknowledged all of them.
fn settle([from, to]: &mut [LinkService; 2], mut now_ns: u64) {
    while let Some(due_ns) = from.retransmission_due_ns() {
        now_ns = due_ns.max(now_ns + 5_000_000);
        let mut wire = Vec::new();
        from.pump(now_ns, true, |header, slice| wire.push([header, slice].concat()));
        for frame in wire.drain(..) {
            let _ = to.receive(now_ns, &frame); // it may have been there before
        }
        to.pump(now_ns + 5_000_000, true, |header, slice| wire.push([header, slice].concat()));
        for frame in wire {
            assert_eq!(from.receive(now_ns, &frame), Ok(Received::Idle));
        }
    }
}

/// A face that sends packets, gets them acknowledged and then has nothing to do.
fn fall_silent(policy: LinkPolicy, packet: &[u8]) {
    const FACE: FaceId = FaceId(300);
    const PACKETS: u64 = 100;
    let mut driver = SocketDriver::new(DriverConfig::default()).unwrap();
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (local, remote) = ("127.0.0.1:0".parse().unwrap(), peer.local_addr().unwrap());
    let info = driver.add_udp_face(FACE, local, remote, FacePersistency::Persistent, 8800).unwrap();
    driver.set_policy(FACE, policy);
    for _ in 0..PACKETS {
        driver.send(0, FACE, &LpHeaders::default(), packet).unwrap();
    }
    driver.flush();
    let acks: Vec<u64> = (0..PACKETS).collect();
    let mut frame = Vec::new();
    write_headers(&mut frame, &LpHeaders::default(), &LinkFields { acks: &acks, ..LinkFields::default() }, 0);
    peer.send_to(&frame, info.local.to_string().strip_prefix("udp4://").unwrap()).unwrap();
    assert!(driver.wait(Some(Duration::from_secs(5))).unwrap());
    driver.receive(1_000_000, &mut RxArena::new(), &mut Vec::new(), 64);
    driver.flush();
    let busy = ALLOCATOR.allocated();
    driver.run_timers(2_000_000_000);
    let freed = busy - ALLOCATOR.allocated();
    assert!(freed > PACKETS as usize * packet.len() / 2, "{freed} bytes were given back");
}

#[test]
fn a_busy_reliable_link_does_not_allocate_and_a_silent_one_keeps_little() {
    let policy = LinkPolicy { reliability: true, ..LinkPolicy::default() };
    let options = LinkOptions { fragmentation: true, mtu: 1400, policy, ..LinkOptions::default() };
    let mut ends = [LinkService::new(options), LinkService::new(options)];
    let mut wires = [(); 2].map(|()| (0..2000).map(|_| Vec::with_capacity(1500)).collect::<Vec<_>>());
    let mut packet = Vec::new();
    tlv::write_tlv(&mut packet, 6, &[7; 4000]);
    // More than the remembered Sequences, so that all tables reach their size.
    exchange(&mut ends, 0..12_000, &mut wires, &packet);
    let before = ALLOCATOR.total_allocated();
    exchange(&mut ends, 12_000..16_000, &mut wires, &packet);
    assert_eq!(ALLOCATOR.total_allocated() - before, 0, "bytes allocated for 4000 packets");
    let counters = ends[0].counters();
    assert!(counters.acknowledged > 0 && counters.retransmitted > 100, "{counters:?}");
    ends[0].rest();
    assert_eq!(ALLOCATOR.total_allocated() - before, 0, "frames are under way");
    settle(&mut ends, 16_000_000_000);
    let busy = ALLOCATOR.allocated();
    ends[0].rest();
    let freed = busy - ALLOCATOR.allocated();
    assert!(freed > WINDOW as usize * packet.len(), "{freed} bytes were given back");
    exchange(&mut ends, 30_000..30_100, &mut wires, &packet);
    fall_silent(policy, &packet);
}
