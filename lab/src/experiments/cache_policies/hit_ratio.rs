//! Hit ratios: how many requests each policy answers, and how many Data it stores.
//!
//! Every contestant in every case is one job. As many threads as processors share the jobs, because nothing is timed.
//! All contestants and cases of a workload get the same requests, which are made once and kept: a thread sees what is
//! next and prefetches what it will touch.
//!
//! Data arrive at once, with one exception: under an admission that counts waiting Interests, Data arrive
//! [`ROUND_TRIP_REQUESTS`] requests after their Interest; requests meanwhile miss and wait too.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::case::{Case, Workload};
use super::contestant::Contestant;
use super::object_store::{ObjectStore, Outcome, Unwatched};
use crate::experiment::Context;
use crate::requests::bound::NextUses;
use crate::requests::{Request, object_hash};

/// 80 ms (Yuan15 §5.2) at a million Interests a second.
pub(super) const ROUND_TRIP_REQUESTS: usize = 80_000;
/// A request's place in the store and the policy's history are fetched this many requests before, its entry half as
/// many.
const FETCHED_AHEAD: usize = 16;
/// Most requests that Belady's rule sees.
const BOUND_REQUESTS_MAX: usize = 40_000_000;

/// Outcomes of the counted requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) hits: usize,
    pub(super) stored: usize,
    pub(super) not_admitted: usize,
    /// Requests for Data that is still outstanding.
    pub(super) waited: usize,
}

impl Tally {
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Hit => self.hits += 1,
            Outcome::Stored => self.stored += 1,
            Outcome::NotAdmitted => self.not_admitted += 1,
        }
    }

    fn requests(&self) -> usize {
        self.hits + self.stored + self.not_admitted + self.waited
    }

    /// p^Hit: the share of Interests that hit.
    pub(super) fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.requests().max(1) as f64
    }

    /// p^Insertion: the share of arriving Data that is stored.
    pub(super) fn insertion_rate(&self) -> f64 {
        self.stored as f64 / (self.stored + self.not_admitted).max(1) as f64
    }
}

/// Runs `count` jobs on as many threads as processors; returns results in the order of the jobs. The last job begins
/// first, so put the longest last.
///
/// # Errors
/// The first error of a job.
pub(super) fn share_out<T: Send>(
    count: usize,
    job: impl Fn(usize) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let (left, done) = (AtomicUsize::new(count), Mutex::new(Vec::with_capacity(count)));
    let work = || -> anyhow::Result<()> {
        loop {
            let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            let Ok(before) = before else { return Ok(()) };
            let result = job(before - 1)?;
            done.lock().unwrap_or_else(PoisonError::into_inner).push((before, result));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = started.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.collect::<anyhow::Result<Vec<()>>>()
    })?;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// Tallies by case, then contestant; bounds by case.
pub(super) type Simulated = (Vec<Vec<Tally>>, Vec<Bounds>);

/// Runs every contestant in every case, and the bounds of each case.
///
/// # Errors
/// If the user interrupted or memory is unavailable.
pub(super) fn run_all(context: &Context, cases: &[Case], contestants: &[Contestant]) -> anyhow::Result<Simulated> {
    let (mut tallies, mut bounds) = (Vec::with_capacity(cases.len()), Vec::with_capacity(cases.len()));
    for cases in cases.chunk_by(|one, next| one.title == next.title) {
        let longest = cases.iter().map(Case::requests).max().unwrap_or(0);
        let requests = cases[0].workload.requests(longest, context.seed);
        let of_cases = share_out(cases.len() * contestants.len(), |job| {
            let (case, contestant) = (&cases[job / contestants.len()], &contestants[job % contestants.len()]);
            context.begin_step(&format!("{} {}", case.title, contestant.name))?;
            run(case, contestant, &requests)
        })?;
        tallies.extend(of_cases.chunks(contestants.len()).map(<[Tally]>::to_vec));
        bounds.extend(share_out(cases.len(), |place| {
            context.begin_step(&format!("{} bounds", cases[place].title))?;
            Ok(self::bounds(&cases[place], &requests))
        })?);
    }
    Ok((tallies, bounds))
}

/// Runs one contestant in one case, with the first of `requests`.
///
/// # Errors
/// If memory is unavailable.
pub(super) fn run(case: &Case, contestant: &Contestant, requests: &[Request]) -> anyhow::Result<Tally> {
    let mut store = ObjectStore::new(contestant.policy, case.workload.objects(), case.capacity, object_hash(1))?;
    let mut tally = Tally::default();
    let mut late = contestant.counts_waiting().then(OnTheWay::default);
    let requests = &requests[..case.requests().min(requests.len())];
    for (place, &request) in requests.iter().enumerate() {
        if place == case.warm_up {
            tally = Tally::default();
        }
        if let Some(ahead) = requests.get(place + FETCHED_AHEAD) {
            store.prefetch_request(ahead.object);
            store.prefetch_entry(requests[place + FETCHED_AHEAD / 2].object);
        }
        match &mut late {
            None => tally.count(store.request(request, &mut Unwatched)),
            Some(on_the_way) => on_the_way.request(request, &mut store, &mut tally),
        }
    }
    Ok(tally)
}

/// Data that was requested and has not come.
#[derive(Default)]
struct OnTheWay {
    due: VecDeque<(usize, Request)>,
    waiting: HashMap<u32, u32>,
    now: usize,
}

impl OnTheWay {
    fn request(&mut self, request: Request, store: &mut ObjectStore, tally: &mut Tally) {
        self.now += 1;
        while let Some((_, due)) = self.due.pop_front_if(|(at, _)| *at <= self.now) {
            let requests = self.waiting.remove(&due.object).unwrap_or(1);
            tally.count(store.data(due, requests, &mut Unwatched));
        }
        if store.interest(request, &mut Unwatched) {
            tally.hits += 1;
            return;
        }
        match self.waiting.entry(request.object) {
            Entry::Occupied(mut waiting) => {
                *waiting.get_mut() += 1;
                tally.waited += 1;
            }
            Entry::Vacant(vacant) => {
                vacant.insert(1);
                self.due.push_back((self.now + ROUND_TRIP_REQUESTS, request));
            }
        }
    }
}

/// The largest hit ratios: of any cache, and of a cache without limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) belady: f64,
    pub(super) without_limit: f64,
    /// The bound for a cache that knows the popularity but not the requests: it holds the most popular objects.
    pub(super) most_popular: Option<f64>,
    /// Requests seen, and how many of them were counted.
    pub(super) requests: (usize, usize),
}

/// The bounds of a case. Of endless requests, the first ones are used, and half of them count.
pub(super) fn bounds(case: &Case, requests: &[Request]) -> Bounds {
    let taken = &requests[..case.requests().min(BOUND_REQUESTS_MAX).min(requests.len())];
    let is_trace = matches!(case.workload, Workload::Trace(_));
    let counted_from = if is_trace { 0 } else { taken.len() / 2 };
    let counted = (taken.len() - counted_from).max(1) as f64;
    let most_popular = case.alpha.map(|_| {
        let hits = taken[counted_from..].iter().filter(|request| request.object < case.capacity).count();
        hits as f64 / counted
    });
    let next_uses = NextUses::new(taken, case.workload.objects(), counted_from);
    Bounds {
        belady: next_uses.belady_hits(case.capacity as usize) as f64 / counted,
        without_limit: next_uses.hits_without_limit() as f64 / counted,
        most_popular,
        requests: (taken.len(), taken.len() - counted_from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_models::eviction::{fifo_hit, lru_hit, optimum_hit};
    use crate::cache_models::popularity_classes::PopularityClasses;
    use crate::requests::Web;

    #[test]
    fn results_stand_in_the_order_of_their_jobs() -> anyhow::Result<()> {
        assert_eq!(share_out(100, |job| Ok(job * 2))?, (0..100).map(|job| job * 2).collect::<Vec<_>>());
        assert!(share_out(10, |job| if job == 3 { anyhow::bail!("no") } else { Ok(()) }).is_err());
        Ok(())
    }

    fn web(objects: u32, capacity: u32) -> Case {
        Case {
            title: "web".to_owned(),
            workload: Workload::Web(Web::new(objects, 0.8)),
            alpha: Some(0.8),
            capacity,
            thousandths: capacity * 1000 / objects,
            warm_up: 50_000,
            counted: 100_000,
        }
    }

    #[test]
    fn simulation_and_model_agree_and_no_policy_is_beyond_its_bound() -> anyhow::Result<()> {
        let (case, popularity) = (web(20_000, 400), PopularityClasses::zipf(20_000, 0.8));
        let requests = case.workload.requests(case.requests(), 1);
        for (name, expected) in [("fifo", fifo_hit(&popularity, 400.0)), ("lru", lru_hit(&popularity, 400.0))] {
            let hit = run(&case, &Contestant::named(name)?, &requests)?.hit_ratio();
            assert!((hit - expected).abs() < 0.01, "{name}: {hit}, not {expected}");
        }
        let bounds = bounds(&case, &requests);
        let most_popular = bounds.most_popular.unwrap_or(0.0);
        assert!((most_popular - optimum_hit(&popularity, 400.0)).abs() < 0.01, "{bounds:?}");
        assert!(most_popular < bounds.belady && bounds.belady < bounds.without_limit, "{bounds:?}");
        Ok(())
    }

    #[test]
    fn outstanding_data_answers_no_request_and_waiting_requests_are_counted() -> anyhow::Result<()> {
        let policy = Contestant::named("request-count/lru")?.policy;
        let mut store = ObjectStore::new(policy, 10, 2, 1)?;
        let (mut late, mut tally) = (OnTheWay::default(), Tally::default());
        let mut ask = |object: u32, times: usize| {
            for _ in 0..times {
                late.request(Request { object, bytes: 1 }, &mut store, &mut tally);
            }
            tally
        };
        assert_eq!(ask(3, ROUND_TRIP_REQUESTS), Tally { waited: ROUND_TRIP_REQUESTS - 1, ..Tally::default() });
        // Its Data comes before the next request, and answers it.
        let came = ask(3, 1);
        assert_eq!((came.stored, came.hits), (1, 1));
        Ok(())
    }
}
