//! The kernel refuses memory for a larger Content Store. The test runs in a separate process, because the
//! limit holds for the whole process.

use namewire_tables::{CsArrival, CsPolicy, HashKey, PageSize, PitCs, PitCsConfig, PrefixLookup, Recycle};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[derive(Default)]
struct NoRecords;

impl Recycle for NoRecords {
    fn recycle(&mut self) {}
}

#[test]
fn limits_that_cannot_grow_stay_and_the_refusal_is_reported() {
    for lookup in PrefixLookup::ALL {
        limits_stay(lookup);
    }
}

fn limits_stay(cs_prefix_lookup: PrefixLookup) {
    let config = PitCsConfig {
        pit_capacity_entries: 1,
        interest_overflow_bytes: 0,
        cs_capacity_bytes: 1 << 20,
        cs_capacity_packets: 100,
        cs_policy: CsPolicy::default(),
        cs_prefix_lookup,
        pages: PageSize::Base,
    };
    let mut pit_cs: PitCs<NoRecords> = PitCs::new(config, HashKey::from_seed(1)).unwrap();
    pit_cs.cs_insert(1, &[8, 1, 1], b"data", CsArrival::default());
    let before = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some(1 << 20), ..before }).expect("lower than before");
    let refused = [(1 << 30, 50), (1 << 30, 1 << 20)].map(|(bytes, packets)| {
        let is_refused = pit_cs.cs_set_capacity(bytes, packets).is_err();
        (is_refused, pit_cs.cs_capacity())
    });
    let shrunk = pit_cs.cs_set_capacity(1 << 10, 40).is_ok();
    setrlimit(Resource::As, before).expect("the hard limit was not touched");
    assert_eq!(refused, [(true, (1 << 20, 50)), (true, (1 << 20, 50))]);
    assert!(shrunk, "what needs no memory goes on");
    assert_eq!((pit_cs.cs_capacity(), pit_cs.cs_len()), ((1 << 10, 40), 1));
    pit_cs.cs_insert(2, &[8, 1, 2], b"data", CsArrival::default());
    assert_eq!(pit_cs.cs_first_under(&[8, 1, 2], None).is_some(), cs_prefix_lookup == PrefixLookup::All);
    pit_cs.cs_set_capacity(1 << 30, 1 << 20).expect("with memory they grow");
    assert_eq!(pit_cs.cs_capacity(), (1 << 30, 1 << 20));
}
