//! The tables allocate nothing once they are made, not even at their limits. The test is in a separate file, because it
//! counts the allocations of the whole process.

use namewire_designs::policies::admission::Admission;
use namewire_designs::policies::catalogue::CachePolicy;
use namewire_designs::policies::catalogue::{AdmissionName, EvictionName, PolicyChoice};
use namewire_designs::policies::filter::{Filter, FilterOptions};
use namewire_designs::policies::tiny_lfu::{TinyLfu, TinyLfuOptions};
use namewire_tables::CsPolicy;
use namewire_tables::content_store::MAX_INDIRECT;
use namewire_tables::cs_policy::named_entry::NamedEntry;
use namewire_tables::cs_policy::{Newcomer, RemovalReason};
use namewire_tables::fingerprint_pit::{FaceList, FingerprintPit, FingerprintPitConfig, FingerprintPitRefusal};
use namewire_tables::{
    CsArrival, CsInsert, DeadNonceList, HashKey, PageSize, PitCs, PitCsConfig, PitRefusal, PrefixLookup, Recycle,
    TimerWheel, Variant, hash_name,
};
use namewire_testbed::counting_allocator::{CountingAllocator, without_allocation};
use std::sync::LazyLock;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// In place of a forwarder's state, without buffers.
#[derive(Default)]
struct Downstreams(u64);

impl Recycle for Downstreams {
    fn recycle(&mut self) {
        self.0 = 0;
    }
}

static CONFIG: LazyLock<PitCsConfig> = LazyLock::new(|| PitCsConfig {
    pit_capacity_entries: 500,
    interest_overflow_bytes: 5_000,
    cs_capacity_bytes: 300_000,
    cs_capacity_packets: 700,
    cs_policy: CsPolicy::default(),
    cs_prefix_lookup: PrefixLookup::Own,
    pages: PageSize::Transparent,
});

/// One component; every seventh name is too long to be kept inline.
fn name(number: u32, buffer: &mut [u8; 200]) -> &[u8] {
    let bytes = if number.is_multiple_of(7) { 150 } else { 4 };
    buffer[..2].copy_from_slice(&[8, bytes as u8]);
    buffer[2..6].copy_from_slice(&number.to_be_bytes());
    &buffer[..2 + bytes]
}

/// Interests arrive, are joined by others of the same name, are satisfied or time out; until the PIT is
/// full, and then until its room for large ones is.
fn pend_and_satisfy(
    tables: &mut PitCs<Downstreams>,
    timers: &mut TimerWheel,
    dead: &mut DeadNonceList,
    wire: &mut Vec<u8>,
    round: u32,
) {
    let buffer = &mut [0; 200];
    let mut refused = [0; 2];
    for number in 0..1000 {
        let name = name(round * 500 + number, buffer);
        let hash = hash_name(tables.key(), name);
        for variant in [Variant::Exact, Variant::Exact, Variant::CanBePrefix] {
            let rest = &[6; 200][..if number % 5 == 0 { 200 } else { 20 }];
            match tables.pit_insert(hash, name, variant, rest) {
                Ok((id, _)) => {
                    tables.pit_mut(id).state.0 += 1;
                    timers.arm(id.0, u64::from(round) * 1_000_000 + u64::from(number) * 1000);
                }
                Err(PitRefusal::Full) => refused[0] += 1,
                Err(PitRefusal::OverflowFull) => refused[1] += 1,
            }
        }
        dead.insert(hash, number, u64::from(round) * 1_000_000);
    }
    assert!(refused.iter().all(|&count| count > 0), "a limit was not met: {refused:?}");
    for id in tables.pit_iter_ids() {
        wire.clear();
        tables.pit_interest(id, wire);
    }
    let mut visits = u32::MAX;
    while let Some(id) = timers.pop_expired(u64::from(round + 1) * 1_000_000, &mut visits) {
        tables.pit_remove(namewire_tables::PitId(id));
    }
}

/// Data is stored, found, found under other names, replaced and evicted.
fn store_and_evict(tables: &mut PitCs<Downstreams>, round: u32) {
    let buffer = &mut [0; 200];
    let data = [7; 9000];
    for number in 0..2000 {
        let name = name(round * 1000 + number, buffer);
        let hash = hash_name(tables.key(), name);
        (0..number % 4).for_each(|_| tables.cs_request(hash));
        let bytes = (number as usize * 37 + round as usize) % 1500;
        // Some are requested often enough to come in under every policy.
        let requests = number % 5;
        for _ in 0..requests {
            tables.cs_request(hash);
        }
        let arrival = CsArrival {
            requests,
            fresh_until_ns: u64::from(number),
            now_ns: u64::from(number / 2),
            ..Default::default()
        };
        if let CsInsert::Stored(id) | CsInsert::Replaced(id) = tables.cs_insert(hash, name, &data[..bytes], arrival) {
            for indirect in 0..=MAX_INDIRECT as u32 {
                let other = &mut [0; 200];
                let other = self::name(0x8000_0000 + number * 8 + indirect, other);
                let _ = tables.cs_add_indirect(hash_name(tables.key(), other), other, id);
            }
        }
        let _ = tables.cs_insert(hash, name, &data[..bytes / 2], arrival);
        tables.prefetch_victims(64);
        let older = self::name(round * 1000 + number / 2, buffer);
        let older_hash = hash_name(tables.key(), older);
        tables.cs_request(older_hash);
        tables.cs_first_under(older, Some(u64::from(number)));
        if let Some(hit) = tables.find(older_hash, older).and_then(|group| tables.cs_lookup(group)) {
            assert!(tables.cs(hit.id).data().len() <= 1500);
            tables.cs_touch(hit.id);
        }
        if number % 64 == 0 {
            tables.end_of_batch();
        }
    }
}

fn run(cs_policy: PolicyChoice, cs_prefix_lookup: PrefixLookup) {
    let key = HashKey::from_seed(1);
    let mut tables =
        PitCs::new(PitCsConfig { cs_policy: cs_policy.into(), cs_prefix_lookup, ..CONFIG.clone() }, key).unwrap();
    let mut timers = TimerWheel::new(1000, 64, tables.pit_capacity_entries(), PageSize::Transparent).unwrap();
    let mut dead = DeadNonceList::new(1500, 3_000_000, key, PageSize::Transparent).unwrap();
    let mut wire = Vec::with_capacity(1000);
    without_allocation("pending and storing", || {
        for round in 1..8 {
            pend_and_satisfy(&mut tables, &mut timers, &mut dead, &mut wire, round);
            store_and_evict(&mut tables, round);
        }
    });
    let is_every_data_admitted = cs_policy.admission == AdmissionName::All;
    assert!(tables.cs_evictions() > if is_every_data_admitted { 10_000 } else { 100 }, "{cs_policy:?}");
    assert!(dead.evicted_early() > 1000);
    assert!(tables.cs_bytes() <= CONFIG.cs_capacity_bytes);
    without_allocation("a smaller store", || {
        tables.cs_set_capacity(1000, 2).unwrap();
        tables.end_of_batch();
        tables.cs_erase_prefix(b"", usize::MAX);
    });
    assert_eq!(tables.cs_len(), 0);
}

#[test]
fn tables_allocate_nothing_after_the_start() {
    for eviction in EvictionName::ALL {
        for admission in AdmissionName::ALL {
            for lookup in PrefixLookup::ALL {
                run(PolicyChoice { eviction, admission, ..PolicyChoice::default() }, lookup);
            }
        }
    }
}

fn ask(admission: &mut impl Admission) {
    for number in 0..400_000_u64 {
        // Half of all requests are for one name.
        let hash = (number % 2) * number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        admission.request(hash);
        admission.admits(&Newcomer { hash, ..Newcomer::default() }, || Some(number));
    }
}

/// Nothing is allocated even where a counter is at its end.
#[test]
fn admission_allocates_nothing_after_the_start() {
    let mut filter = Filter::new(200_000, FilterOptions::default(), PageSize::Transparent).unwrap();
    let mut tiny_lfu = TinyLfu::new(1000, TinyLfuOptions::default(), PageSize::Transparent).unwrap();
    without_allocation("filter", || ask(&mut filter));
    without_allocation("TinyLFU", || ask(&mut tiny_lfu));
}

fn spread(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[test]
fn policies_allocate_nothing_after_the_start() {
    const SLOTS: u32 = 1_000;
    for eviction in EvictionName::ALL {
        for admission in AdmissionName::ALL {
            let name = PolicyChoice { eviction, admission, ..PolicyChoice::default() };
            let mut policy = CachePolicy::new(name, SLOTS, 1, PageSize::Transparent).unwrap();
            let mut entries = vec![<NamedEntry>::default(); SLOTS as usize];
            let mut upcoming = Vec::with_capacity(1_000);
            let mut random = fastrand::Rng::with_seed(1);
            let mut admitted = 0;
            without_allocation("a cache policy", || {
                for number in 0..20 * SLOTS {
                    let newcomer = Newcomer { hash: spread(random.u64(..5_000)), requests: 2, ..Newcomer::default() };
                    for _ in 0..number % 5 {
                        policy.request(newcomer.hash);
                    }
                    let slot = if number < SLOTS {
                        number
                    } else {
                        policy.hit(&mut entries, random.u32(..SLOTS));
                        upcoming.clear();
                        policy.upcoming(8, &mut upcoming);
                        if !policy.admits(&mut entries, &newcomer) {
                            continue;
                        }
                        policy.arriving(&newcomer);
                        let victim = match number % 5 {
                            0 => random.u32(..SLOTS),
                            _ => policy.victim(&mut entries, &newcomer).unwrap(),
                        };
                        let why = if number % 5 == 0 { RemovalReason::Erased } else { RemovalReason::Evicted };
                        policy.remove(&mut entries, victim, why);
                        admitted += 1;
                        victim
                    };
                    entries[slot as usize] = NamedEntry::new(newcomer.hash, ());
                    policy.insert(&mut entries, slot, &newcomer);
                }
            });
            // Guards against an idle test: a policy that refuses almost every newcomer would run no eviction here. If a
            // new policy fails this, let the requests above (up to 4 before an arrival, 2 that waited for it)
            // suffice for its default options, or ask more often; do not lower the number.
            assert!(admitted > 100, "{name:?}");
        }
    }
}

#[test]
fn the_fingerprint_pit_allocates_nothing_after_the_start() {
    for faces in [FaceList::Bits, FaceList::Sets { max_sets: 100 }] {
        let config = FingerprintPitConfig { segments: 2, faces, ..FingerprintPitConfig::new(1024) };
        let mut pit = FingerprintPit::new(config, 1).unwrap();
        let mut random = fastrand::Rng::with_seed(2);
        let mut refused = [0; 4];
        without_allocation("fingerprints", || {
            for number in 0..100_000_u64 {
                let now_ns = number * 100_000;
                let (hash, port) = (random.u64(..), random.u16(..40));
                if let Err(refusal) = pit.insert(hash, port, now_ns, now_ns + random.u64(..400_000_000)) {
                    refused[refusal as usize] += 1;
                }
                if random.bool() {
                    pit.prefetch(hash);
                    pit.satisfy(hash, now_ns, random.bool());
                }
                if number % 10_000 == 0 {
                    pit.remove_ports([random.u16(..32)]);
                }
                pit.sweep(now_ns);
            }
        });
        assert!(refused[FingerprintPitRefusal::OverflowFull as usize] > 0, "never full");
        assert!(pit.counters().expired_lazily > 10_000 && pit.counters().overflows > 100);
    }
}
