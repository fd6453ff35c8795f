//! Question: does the fingerprint-only PIT find each requested name until it expires or is satisfied, and for exactly
//! the requesting ports, in any order of operations?
//!
//! Input: a shape and a list of operations on few names. A map from (segment, class) to the entry is the model.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary},
    fuzz_target,
};
use namewire_tables::PageSize;
use namewire_tables::fingerprint_pit::{
    FaceList, FingerprintPit, FingerprintPitConfig, FingerprintPitRefusal, Inserted, PortSet, Satisfied,
};

const TICK_NS: u64 = 16_000_000;
const CAPACITY_OVERFLOW: u32 = 12;

#[derive(Arbitrary, Debug)]
struct Input {
    four_subtables: bool,
    segments: u8,
    face_sets: bool,
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Insert { name: u8, port: u8, lifetime_ms: u16, aggregates: bool },
    Satisfy { name: u8, collided_upstream: bool },
    Advance { by_ms: u16 },
    Sweep,
    RemovePorts { ports: [u8; 2] },
}

struct Entry {
    expires_tick: u64,
    ports: PortSet,
    collided: bool,
}

fuzz_target!(|input: Input| {
    let segments = 1 + input.segments % 4;
    let config = FingerprintPitConfig {
        capacity_entries: 1,
        subtables: if input.four_subtables { 4 } else { 2 },
        segments,
        fingerprint_bits: 8,
        overflow_entries: CAPACITY_OVERFLOW,
        faces: if input.face_sets { FaceList::Sets { max_sets: 10 } } else { FaceList::Bits },
        pages: PageSize::Base,
    };
    let mut pit = FingerprintPit::new(config, 1).unwrap();
    let hash = |name: u8| u64::from(name % 64) << (64 - pit_class_bits(segments));
    assert_eq!(pit.class_bits(), pit_class_bits(segments));
    let mut entries = BTreeMap::<(u16, u64), Entry>::new();
    let mut now_ns = 0_u64;
    for operation in input.operations {
        let now_tick = now_ns / TICK_NS;
        entries.retain(|_, entry| entry.expires_tick > now_tick);
        match operation {
            Operation::Insert { name, port, lifetime_ms, aggregates } => {
                let (hash, port) = (hash(name), u16::from(port % 70));
                let expires_ns = now_ns + u64::from(lifetime_ms) * 1_000_000;
                let expires_tick = expires_ns.div_ceil(TICK_NS).clamp(now_tick + 1, now_tick + 1023);
                let answer = if aggregates {
                    pit.insert_aggregating(hash, port, now_ns, expires_ns)
                } else {
                    pit.insert(hash, port, now_ns, expires_ns)
                };
                let key = (port % u16::from(segments), hash);
                match answer {
                    Ok(Inserted::New) => {
                        let mut ports = PortSet::EMPTY;
                        ports.insert(port);
                        let before = entries.insert(key, Entry { expires_tick, ports, collided: false });
                        assert!(before.is_none(), "a second entry of one class");
                    }
                    Ok(Inserted::Aggregated) => {
                        let entry = entries.get_mut(&key).expect("nothing of this class was pending");
                        assert!(aggregates && !entry.collided && !entry.ports.contains(port));
                        entry.ports.insert(port);
                    }
                    Ok(Inserted::Collided) => {
                        let entry = entries.get_mut(&key).expect("nothing of this class was pending");
                        assert!(!aggregates || entry.collided || entry.ports.contains(port));
                        entry.ports.insert(port);
                        entry.collided |= !aggregates;
                        entry.expires_tick = entry.expires_tick.max(expires_tick);
                    }
                    Err(FingerprintPitRefusal::OverflowFull) => {
                        assert_eq!(pit.overflow_len(), CAPACITY_OVERFLOW as usize);
                    }
                    Err(FingerprintPitRefusal::UnknownPort) => assert!(port >= pit.ports()),
                    Err(FingerprintPitRefusal::PortLeaving) => assert!(pit.is_port_leaving(port)),
                    Err(FingerprintPitRefusal::FaceSetsFull) => assert!(input.face_sets),
                }
            }
            Operation::Satisfy { name, collided_upstream } => {
                let hash = hash(name);
                let satisfied = pit.satisfy(hash, now_ns, collided_upstream);
                let keys: Vec<_> = (0..u16::from(segments)).map(|segment| (segment, hash)).collect();
                let found: Vec<&Entry> = keys.iter().filter_map(|key| entries.get(key)).collect();
                let mut ports = PortSet::EMPTY;
                found.iter().for_each(|entry| ports.extend(&entry.ports));
                let was_collided = found.iter().any(|entry| entry.collided);
                // Each of several segments may belong to another name.
                let collided = collided_upstream || was_collided || found.len() > 1;
                let expected = (!found.is_empty()).then_some(Satisfied { ports, collided, was_collided });
                assert_eq!(satisfied, expected);
                for key in keys {
                    if collided {
                        entries.entry(key).and_modify(|entry| entry.collided = true);
                    } else {
                        entries.remove(&key);
                    }
                }
            }
            Operation::Advance { by_ms } => now_ns += u64::from(by_ms) * 1_000_000,
            Operation::Sweep => pit.sweep(now_ns),
            Operation::RemovePorts { ports } => {
                let ports = ports.map(u16::from);
                pit.remove_ports(ports);
                let gone = ports.into_iter().filter(|&port| port < pit.ports()).collect();
                entries.values_mut().for_each(|entry| entry.ports.remove(&gone));
            }
        }
        for name in 0..64 {
            let (hash, now_tick) = (hash(name), now_ns / TICK_NS);
            let mut expected = None;
            for segment in 0..u16::from(segments) {
                let live = entries.get(&(segment, hash)).filter(|entry| entry.expires_tick > now_tick);
                let Some(entry) = live else { continue };
                expected.get_or_insert(PortSet::EMPTY).extend(&entry.ports);
            }
            assert_eq!(pit.lookup(hash, now_ns).map(|found| found.ports), expected, "name {name} at {now_ns}");
        }
    }
});

/// One bucket a subtable: a class is a fingerprint.
fn pit_class_bits(segments: u8) -> u32 {
    8 + segments.next_power_of_two().ilog2()
}
