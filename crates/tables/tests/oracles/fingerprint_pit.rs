//! Fingerprint-only PIT against a plain list of (segment, class) with times.

use namewire_tables::PageSize;
use namewire_tables::fingerprint_pit::{
    FaceList, FingerprintPit, FingerprintPitConfig, FingerprintPitRefusal, Inserted, PortSet, Satisfied,
};
use proptest::prelude::*;

const TICK_NS: u64 = 16_000_000;
const SECOND_NS: u64 = 1_000_000_000;

const CONFIG: FingerprintPitConfig = FingerprintPitConfig {
    capacity_entries: 64,
    subtables: 2,
    segments: 1,
    fingerprint_bits: 16,
    overflow_entries: 1000,
    faces: FaceList::Bits,
    pages: PageSize::Base,
};

/// An entry as the paper describes it, with whole times.
struct Entry {
    segment: u16,
    class: u64,
    /// The first tick at which it is expired.
    expires_tick: u64,
    ports: PortSet,
    collided: bool,
}

/// A table that never forgets too early and is never full.
struct Naive {
    segments: u16,
    class_bits: u32,
    entries: Vec<Entry>,
}

impl Naive {
    fn of(pit: &FingerprintPit, segments: u8) -> Self {
        Self { segments: segments.into(), class_bits: pit.class_bits(), entries: Vec::new() }
    }

    fn class(&self, hash: u64) -> u64 {
        hash >> (64 - self.class_bits)
    }

    fn expire(&mut self, now_ns: u64) {
        self.entries.retain(|entry| entry.expires_tick > now_ns / TICK_NS);
    }

    /// Only the table refuses; refused Interests do not reach this model.
    fn insert(&mut self, hash: u64, port: u16, now_ns: u64, expires_ns: u64, marks_collided: bool) -> Inserted {
        self.expire(now_ns);
        let now_tick = now_ns / TICK_NS;
        let expires_tick = expires_ns.div_ceil(TICK_NS).clamp(now_tick + 1, now_tick + 1023);
        let (segment, class) = (port % self.segments, self.class(hash));
        let same = |entry: &&mut Entry| (entry.segment, entry.class) == (segment, class);
        if let Some(entry) = self.entries.iter_mut().find(same) {
            let joins = !(marks_collided || entry.collided || entry.ports.contains(port));
            entry.ports.insert(port);
            if joins {
                return Inserted::Aggregated;
            }
            entry.collided |= marks_collided;
            entry.expires_tick = entry.expires_tick.max(expires_tick);
            return Inserted::Collided;
        }
        let mut ports = PortSet::EMPTY;
        ports.insert(port);
        self.entries.push(Entry { segment, class, expires_tick, ports, collided: false });
        Inserted::New
    }

    /// Several entries of a class count as one collided entry. Interests of different segments do not see
    /// each other, and the names may be two, each with Data to come.
    fn lookup(&mut self, hash: u64, now_ns: u64) -> Option<Satisfied> {
        self.expire(now_ns);
        let class = self.class(hash);
        let entries: Vec<&Entry> = self.entries.iter().filter(|entry| entry.class == class).collect();
        let mut ports = PortSet::EMPTY;
        entries.iter().for_each(|entry| ports.extend(&entry.ports));
        let was_collided = entries.iter().any(|entry| entry.collided);
        let collided = was_collided || entries.len() > 1;
        (!entries.is_empty()).then_some(Satisfied { ports, collided, was_collided })
    }

    fn satisfy(&mut self, hash: u64, now_ns: u64, collided_upstream: bool) -> Option<Satisfied> {
        let found = self.lookup(hash, now_ns)?;
        let collided = found.collided || collided_upstream;
        let class = self.class(hash);
        for entry in self.entries.iter_mut().filter(|entry| entry.class == class) {
            entry.collided = collided;
        }
        self.entries.retain(|entry| entry.class != class || collided);
        Some(Satisfied { collided, ..found })
    }

    fn remove_ports(&mut self, ports: &PortSet) {
        self.entries.iter_mut().for_each(|entry| entry.ports.remove(ports));
    }
}

/// One step of a test, or of the fuzz target.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Insert { name: usize, port: u16, lifetime_ns: u64, aggregates: bool },
    Satisfy { name: usize, collided_upstream: bool },
    Advance { by_ns: u64 },
    Sweep,
    RemovePorts { ports: [u16; 2] },
}

const NAMES: usize = 60;

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    let lifetime_ns = prop_oneof![0..3 * TICK_NS, 0..5 * SECOND_NS, 0..20 * SECOND_NS, Just(u64::MAX >> 1)];
    let by_ns = prop_oneof![0..2 * TICK_NS, 0..SECOND_NS, 0..20 * SECOND_NS, 0..200 * SECOND_NS];
    let insert = (0..NAMES, 0..40_u16, lifetime_ns, any::<bool>());
    prop_oneof![
        10 => insert.prop_map(|(name, port, lifetime_ns, aggregates)| Operation::Insert { name, port, lifetime_ns, aggregates }),
        5 => (0..NAMES, prop::bool::weighted(0.2))
            .prop_map(|(name, collided_upstream)| Operation::Satisfy { name, collided_upstream }),
        4 => by_ns.prop_map(|by_ns| Operation::Advance { by_ns }),
        1 => Just(Operation::Sweep),
        1 => [0..40_u16, 0..40_u16].prop_map(|ports| Operation::RemovePorts { ports }),
    ]
}

/// Hashes of thirty classes, two each, that differ in bucket, in fingerprint or in both.
fn hash(name: usize, class_bits: u32) -> u64 {
    let number = name as u64 / 2;
    ((number | ((number % 4) << 16)) << (64 - class_bits)) | (name as u64 % 2)
}

/// Plays the operations on both. Every answer, and what is found for every name, must be the same.
pub(crate) fn both_agree(config: FingerprintPitConfig, operations: Vec<Operation>) -> Result<(), TestCaseError> {
    let mut pit = FingerprintPit::new(config, 7).unwrap();
    let mut naive = Naive::of(&pit, config.segments);
    let mut now_ns = 0;
    for operation in operations {
        match operation {
            Operation::Insert { name, port, lifetime_ns, aggregates } => {
                let hash = hash(name, naive.class_bits);
                let expires_ns = now_ns + lifetime_ns;
                let answer = if aggregates {
                    pit.insert_aggregating(hash, port, now_ns, expires_ns)
                } else {
                    pit.insert(hash, port, now_ns, expires_ns)
                };
                match answer {
                    Ok(inserted) => {
                        prop_assert_eq!(inserted, naive.insert(hash, port, now_ns, expires_ns, !aggregates));
                    }
                    Err(FingerprintPitRefusal::UnknownPort) => prop_assert!(port >= pit.ports()),
                    Err(FingerprintPitRefusal::PortLeaving) => prop_assert!(pit.is_port_leaving(port)),
                    Err(FingerprintPitRefusal::OverflowFull) => {
                        prop_assert_eq!(pit.overflow_len(), config.overflow_entries as usize);
                    }
                    Err(FingerprintPitRefusal::FaceSetsFull) => prop_assert!(config.faces != FaceList::Bits),
                }
            }
            Operation::Satisfy { name, collided_upstream } => {
                let hash = hash(name, naive.class_bits);
                let satisfied = pit.satisfy(hash, now_ns, collided_upstream);
                let expected = naive.satisfy(hash, now_ns, collided_upstream);
                prop_assert_eq!(satisfied, expected);
            }
            Operation::Advance { by_ns } => now_ns += by_ns,
            Operation::Sweep => pit.sweep(now_ns),
            Operation::RemovePorts { ports } => {
                pit.remove_ports(ports);
                naive.remove_ports(&ports.into_iter().filter(|&port| port < pit.ports()).collect());
            }
        }
        for name in 0..NAMES {
            let hash = hash(name, naive.class_bits);
            prop_assert_eq!(pit.lookup(hash, now_ns), naive.lookup(hash, now_ns), "name {} at {}", name, now_ns);
        }
        prop_assert!(pit.occupied() >= naive.entries.len() as u64);
    }
    // After two turns of the sweep no expired entry is left.
    for _ in 0..4 {
        now_ns += 20 * SECOND_NS;
        pit.sweep(now_ns);
    }
    prop_assert_eq!((pit.occupied(), pit.overflow_len()), (0, 0));
    Ok(())
}

proptest! {
    #[test]
    fn one_segment_equals_the_naive_table(operations in prop::collection::vec(operation(), 1..150)) {
        both_agree(CONFIG, operations)?;
    }

    #[test]
    fn four_subtables_with_short_fingerprints_equal_the_naive_table(operations in prop::collection::vec(operation(), 1..150)) {
        let config = FingerprintPitConfig { subtables: 4, capacity_entries: 128, fingerprint_bits: 3, ..CONFIG };
        both_agree(config, operations)?;
    }

    #[test]
    fn segments_equal_the_naive_table(operations in prop::collection::vec(operation(), 1..150), segments in 2..=16_u8) {
        both_agree(FingerprintPitConfig { segments, ..CONFIG }, operations)?;
    }

    /// Two buckets: most names are in the overflow table, which is full at times.
    #[test]
    fn an_overflowing_table_equals_the_naive_table(operations in prop::collection::vec(operation(), 1..250)) {
        let config = FingerprintPitConfig { capacity_entries: 1, overflow_entries: 8, ..CONFIG };
        both_agree(config, operations)?;
    }

    #[test]
    fn face_sets_equal_the_naive_table(operations in prop::collection::vec(operation(), 1..150), max_sets in 3..60_u16, segments in 1..4_u8) {
        let config = FingerprintPitConfig { faces: FaceList::Sets { max_sets }, segments, ..CONFIG };
        both_agree(config, operations)?;
    }
}
