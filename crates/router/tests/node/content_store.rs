//! The Content Store as its users see it: which Data it keeps and serves, what it counts, and which Data remain after a
//! change of policy or capacity.

use crate::application::{Application, eventually, name, start_with};
use namewire_configuration::{Configuration, text::Prefix};
use namewire_designs::policies::catalogue::{AdmissionName, EvictionName, PolicyChoice};
use namewire_packet::{
    DataBuilder, FaceId, InterestBuilder,
    nfd::{ControlParameters, CsInfo, CsPolicyUsage, CsUsage},
};
use namewire_router::{RouterHandle, operator::CsChange};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};
use std::time::Duration;

const CAPACITY: u64 = 20;

/// A router, a consumer, and a producer of `/a` that answers every Interest. Its Data is fresh for an hour, except for
/// names that end in `stale`. It answers CanBePrefix with a longer name.
struct Bench {
    operator: Application,
    consumer: Application,
    is_over: Arc<AtomicBool>,
    router: RouterHandle,
    _directory: tempfile::TempDir,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
    }
}

fn produce(mut producer: Application, is_over: &AtomicBool) {
    while !is_over.load(Relaxed) {
        let Some(packet) = producer.receive_within(Duration::from_millis(100)) else { continue };
        let interest = packet.interest();
        let mut answer = interest.name().to_buf();
        if interest.can_be_prefix() {
            answer.push_generic(b"first");
        }
        let is_stale = interest.name().to_string().ends_with("stale");
        let data = DataBuilder::new(answer).freshness_ms(if is_stale { 0 } else { 3_600_000 }).content(b"new");
        producer.send(&data.sign_digest());
    }
}

impl Bench {
    fn new(workers: usize, change: impl FnOnce(&mut Configuration)) -> Self {
        let (router, directory) = start_with(workers, |config| {
            config.settings.cs.packets = Some(CAPACITY);
            change(config);
        });
        let connect = || Application::connect(&router);
        let (operator, mut consumer, mut producer) = (connect(), connect(), connect());
        consumer.turn_on_local_fields();
        producer.register("/a");
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        std::thread::spawn(move || produce(producer, &until));
        Self { operator, consumer, is_over, router, _directory: directory }
    }

    fn with_policy(policy: PolicyChoice) -> Self {
        Self::new(1, |config| {
            let cs = &mut config.settings.cs;
            (cs.policy.0, cs.admission.0) = (policy.eviction, policy.admission);
            cs.filter_counters = policy.options.filter.counters_log2.map(|log2| 1 << log2);
            config.settings.cs.count = vec![Prefix(name("/a/x")), Prefix(name("/a"))];
        })
    }

    /// True if the store answers, not the producer.
    fn is_stored(&mut self, uri: &str) -> bool {
        self.is_answered_by_store(uri, |interest| interest)
    }

    fn is_answered_by_store(&mut self, uri: &str, change: impl FnOnce(InterestBuilder) -> InterestBuilder) -> bool {
        let interest = change(self.consumer.interest(name(uri))).build();
        self.consumer.send(&interest);
        let answer = self.consumer.receive().expect("Data");
        assert!(name(uri).as_name().is_prefix_of(&answer.data().name()), "{uri}");
        answer.headers.incoming_face_id == Some(FaceId::CONTENT_STORE)
    }

    fn ask_all(&mut self, group: &str, count: u64) -> usize {
        (0..count).filter(|number| self.is_stored(&format!("/a/{group}/{number}"))).count()
    }

    fn info(&mut self) -> CsInfo {
        self.operator.dataset("/cs/info")[0]
    }

    fn usage(&mut self) -> CsUsage {
        self.operator.dataset("/cs/usage").remove(0)
    }

    fn configure(&mut self, parameters: ControlParameters) -> ControlParameters {
        self.operator.succeed("/cs/config", parameters)
    }

    fn set_policy(&mut self, text: &str) {
        let done = self.configure(ControlParameters { cs_policy: Some(text.to_owned()), ..Default::default() });
        let full = done.cs_policy.expect("the policy");
        eventually("the policy is in force", || {
            let usage = self.usage();
            format!("{}/{}", usage.admission, usage.policy) == full
        });
    }

    fn set_capacity(&mut self, packets: u64) {
        let done = self.configure(ControlParameters { capacity: Some(packets), ..Default::default() });
        assert_eq!(done.capacity, Some(packets));
        assert_eq!(done.cs_policy, None, "nfdc refuses an answer with fields that it did not send");
    }
}

/// A policy with few counters, so that a router does not take 32 MiB for them.
fn policy(eviction: EvictionName, admission: AdmissionName) -> PolicyChoice {
    let mut policy = PolicyChoice { eviction, admission, ..PolicyChoice::default() };
    policy.options.filter.counters_log2 = Some(20);
    policy
}

/// Every Interest is a hit or a miss, and the Data of a miss is stored or not admitted. (The counts of the whole store
/// include Interests of management; the counts under a prefix do not.)
#[test]
fn every_policy_fills_the_store_and_serves_from_it() {
    const FIRST: u64 = CAPACITY / 2;
    for eviction in EvictionName::ALL {
        for admission in [AdmissionName::All, AdmissionName::Filter] {
            let what = format!("{admission:?} {eviction:?}");
            let mut bench = Bench::with_policy(policy(eviction, admission));
            assert_eq!(bench.ask_all("x", FIRST), 0, "{what}");
            assert_eq!(bench.ask_all("x", FIRST), FIRST as usize, "{what}: all that fits is kept");
            assert_eq!(bench.ask_all("y", 30), 0, "{what}: not requested before");
            let z = [(); 3].map(|()| bench.is_stored("/a/z"));
            let hits_of_z = z.into_iter().filter(|is_hit| *is_hit).count() as u64;
            // This policy compares newcomers with the Data that would leave for them, whatever the admission says.
            let has_its_own_mind = eviction == EvictionName::AdaptiveWindow;
            let is_admitted_at_once = admission == AdmissionName::All && !has_its_own_mind;
            assert!(z == [false, is_admitted_at_once, true] || has_its_own_mind && !z[0], "{what}: {z:?}");
            eventually(&what, || {
                let prefixes = bench.usage().prefixes;
                let under = |place: usize| (prefixes[place].hits, prefixes[place].misses);
                under(0) == (FIRST, FIRST) && under(1) == (FIRST + hits_of_z, FIRST + 33 - hits_of_z)
            });
            let (info, usage) = (bench.info(), bench.usage());
            let [counts] = &usage.policies[..] else { panic!("{what}: one policy, {:?}", usage.policies) };
            assert_eq!((&counts.policy[..], &counts.admission[..]), (eviction.name(), admission.name()));
            let all = &usage.prefixes[1];
            assert_eq!(all.prefix, name("/a"));
            assert_eq!(usage.prefixes[0].insertions, FIRST, "{what}");
            // Data of management is not stored.
            assert_eq!(all.insertions + counts.not_admitted, all.misses, "{what}");
            assert_eq!(counts.insertions, all.insertions, "{what}");
            assert_eq!(counts.insertions - counts.evictions, CAPACITY, "{what}");
            match admission {
                AdmissionName::All if !has_its_own_mind => assert_eq!(counts.not_admitted, 0, "{what}"),
                // All Data came in until the store was full; of the rest only the last came in.
                AdmissionName::Filter => assert!(counts.not_admitted >= 20, "{what}: {counts:?}"),
                _ => {}
            }
            assert!(counts.hits >= all.hits && counts.misses >= all.misses, "{what}");
            assert_eq!(info.n_cs_entries, CAPACITY, "{what}");
            assert!(usage.policy_bytes > 0 && usage.bytes > 0, "{what}");
        }
    }
}

#[test]
fn freshness_prefixes_and_erasure_with_every_policy() {
    for eviction in EvictionName::ALL {
        let mut bench = Bench::with_policy(eviction.into());
        for uri in ["/a/x/1", "/a/x/stale"] {
            assert!(!bench.is_stored(uri) && bench.is_stored(uri), "{eviction:?} {uri}");
        }
        assert!(bench.is_answered_by_store("/a/x/1", |interest| interest.must_be_fresh(true)));
        assert!(!bench.is_answered_by_store("/a/x/stale", |interest| interest.must_be_fresh(true)));
        let by_prefix = |interest: InterestBuilder| interest.can_be_prefix(true);
        assert!(!bench.is_answered_by_store("/a/y", by_prefix) && bench.is_answered_by_store("/a/y", by_prefix));
        assert!(bench.is_stored("/a/y/first"), "{eviction:?}");
        let erase = ControlParameters { name: Some(name("/a/x")), ..Default::default() };
        assert_eq!(bench.operator.succeed("/cs/erase", erase).count, Some(2), "{eviction:?}");
        assert!(!bench.is_stored("/a/x/1") && !bench.is_stored("/a/x/stale"), "{eviction:?}");
        assert!(bench.is_answered_by_store("/a/y", by_prefix), "{eviction:?}");
        // The store goes on as if no Data had been erased from its middle.
        bench.ask_all("z", 2 * CAPACITY);
        eventually("full", || bench.info().n_cs_entries == CAPACITY);
    }
}

/// A change from each policy to the next loses no Data, and each policy's counts appear under its name.
#[test]
fn a_change_of_policy_keeps_what_is_stored() {
    for workers in [1, 3] {
        let mut bench = Bench::new(workers, |config| {
            config.settings.cs.packets = Some(CAPACITY * 30);
            config.settings.cs.count = vec![Prefix(name("/a"))];
        });
        bench.ask_all("x", CAPACITY);
        let mut rounds = 0;
        for text in EvictionName::ALL.iter().map(|eviction| eviction.name()).chain(["request-count/fifo", "all/lru"]) {
            bench.set_policy(text);
            assert_eq!(bench.ask_all("x", CAPACITY), CAPACITY as usize, "{text}");
            rounds += 1;
        }
        eventually("all are counted", || bench.usage().prefixes[0].hits == rounds * CAPACITY);
        let usage = bench.usage();
        assert_eq!(usage.policies.len() as u64, rounds - 1, "LRU was in force twice: {usage:?}");
        assert!(usage.policies.iter().all(|policy| policy.hits >= CAPACITY), "{usage:?}");
        let sum = |of: fn(&CsPolicyUsage) -> u64| usage.policies.iter().map(of).sum::<u64>();
        assert!(sum(|p| p.hits) >= rounds * CAPACITY && sum(|p| p.insertions) >= CAPACITY, "{usage:?}");
        let unknown = ControlParameters { cs_policy: Some("best".to_owned()), ..Default::default() };
        assert_eq!(bench.operator.command("/cs/config", unknown).code, 400);
    }
}

#[test]
fn a_change_of_capacity_keeps_what_fits() {
    let mut bench = Bench::with_policy(EvictionName::Lru.into());
    bench.ask_all("x", CAPACITY);
    bench.set_capacity(5);
    eventually("smaller", || bench.info().n_cs_entries == 5);
    bench.set_capacity(100);
    let newest = (15..20).filter(|number| bench.is_stored(&format!("/a/x/{number}"))).count();
    assert_eq!(newest, 5, "the least recently used went");
    assert_eq!(bench.ask_all("y", 95), 0);
    assert_eq!(bench.ask_all("y", 95), 95);
    // A configuration that is read again makes this change.
    let change = CsChange {
        capacity_bytes: Some(3_000),
        admission: Some(AdmissionName::Filter),
        options: Some(policy(EvictionName::Lru, AdmissionName::Filter).options),
        counted_prefixes: Some(vec![name("/a/z")]),
        ..CsChange::default()
    };
    bench.router.operator().configure_cs(change).unwrap();
    eventually("smaller in bytes", || bench.usage().capacity_bytes == 3_000 && bench.usage().bytes <= 3_000);
    eventually("another policy", || bench.usage().admission == "filter");
    let usage = bench.usage();
    assert_eq!((usage.policy.as_str(), bench.info().capacity), ("lru", 100), "what is not said stays");
    let kept = bench.info().n_cs_entries;
    assert!((3..20).contains(&kept), "{kept}");
    bench.ask_all("z", 4);
    eventually("other prefixes", || bench.usage().prefixes.iter().map(|prefix| prefix.misses).eq([4]));
}

/// NFD's order: stale Data goes before Data that came earlier and is fresh.
#[test]
fn priority_fifo_lets_the_stale_go_first() {
    let mut bench = Bench::with_policy(EvictionName::PriorityFifo.into());
    bench.set_capacity(3);
    for uri in ["/a/1", "/a/2/stale", "/a/3", "/a/4"] {
        assert!(!bench.is_stored(uri));
    }
    assert!(bench.is_stored("/a/1") && bench.is_stored("/a/3") && bench.is_stored("/a/4"));
    assert!(!bench.is_stored("/a/2/stale"));
    assert!(!bench.is_stored("/a/1"), "the first that came went for it, though it was used last");
}
