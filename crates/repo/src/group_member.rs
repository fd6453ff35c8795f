//! A member of a sync group: learns which publications exist, fetches them and stores them.
//!
//! ```text
//!   sync Interests ──► sync::group ─► news ──► backlog of each producer ──► fetches ──► writer
//!         ▲                │ timer                                                   │
//!         └── ours ◄───────┘                              progress: one note for each producer
//! ```
//!
//! The member asks for a producer's publications under both names of [`SyncNames`], and later only under the name that
//! got an answer.
//!
//! A publication may be one Data, or segments below the name. The member records its progress once the store has the
//! Data. It does not validate sync Interests; it validates Data if there are rules for Data ([`crate::access`]).
//!
//! Limits: the member fetches [`FETCHES_MAX`] publications at the same time, at most a window of each producer. A group
//! has at most [`PRODUCERS_MAX`] producers. A producer counts for the face that first announced it, and faces share
//! this number ([`crate::shares`]). A vector of ours that does not fit in a packet is not sent.

use crate::{
    command::SyncParam,
    groups::note_progress,
    jobs::Workshop,
    shares::{Place, Shares},
    statistics::Refusal,
};
use futures_util::{
    StreamExt,
    future::{BoxFuture, FutureExt, select_ok},
    stream::FuturesUnordered,
};
use namewire_client::{
    IncomingInterest, InterestStream,
    sync::{
        Version,
        backlog::{Backlogs, Ended, Wanted},
        group::{Group, IgnoredError, Limits, Now},
        names::SyncNames,
        vector::{Producer, StateVector},
    },
};
use namewire_packet::{InterestBuilder, Name, NameBuf};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::{Instant, sleep_until};

/// Most producers of a group.
const PRODUCERS_MAX: usize = 1_000;
/// Publications of a group that are fetched at the same time.
const FETCHES_MAX: usize = 32;
/// InterestLifetime of sync Interests, which get no Data.
const SYNC_LIFETIME_MS: u64 = 1_000;
/// InterestLifetime for publications.
const PUBLICATION_LIFETIME_MS: u64 = 2_000;
/// What a group is called in commands and on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// As the command or the configuration has it.
    sync_prefix: NameBuf,
    pub(crate) wire: SyncNames,
    drops_repeated: bool,
}

impl Names {
    pub(crate) fn of(param: &SyncParam) -> Self {
        Names {
            sync_prefix: param.sync_prefix.clone(),
            wire: SyncNames::of(&param.sync_prefix),
            drops_repeated: param.data_name_dedupe,
        }
    }

    /// Where a publication may be.
    fn of_publication(&self, producer: &Producer, number: u64) -> [NameBuf; 2] {
        let names = self.wire.of_publication(producer, number);
        if self.drops_repeated { names.map(|name| self.without_repeated(name.as_name())) } else { names }
    }

    /// A name whose prefix has no component twice, as ndn-python-repo's SyncDataNameDedupe has it.
    fn without_repeated(&self, name: Name<'_>) -> NameBuf {
        let numbers = if self.wire.version == Version::V3 { 2 } else { 1 };
        let mut kept = NameBuf::new();
        for (index, component) in name.components().enumerate() {
            let is_number = index >= name.len() - numbers;
            if is_number || !kept.as_name().components().any(|earlier| earlier == component) {
                kept.push(component);
            }
        }
        kept
    }
}

/// The end of a fetch.
struct Fetched {
    producer: Producer,
    number: u64,
    /// The name that answered; `None`: it is not stored.
    way: Option<usize>,
}

struct Member {
    workshop: Arc<Workshop>,
    names: Names,
    group: Group,
    backlogs: Backlogs,
    /// For producers that the store did not know when the group began.
    producers: Arc<Shares>,
    /// Those that are taken. A producer never leaves.
    taken: Vec<Place>,
    fetches: FuturesUnordered<BoxFuture<'static, Fetched>>,
    start: Instant,
}

/// Takes part in a group until the connection is lost. `progress` is what is stored already.
pub(crate) async fn run(workshop: Arc<Workshop>, names: Names, progress: StateVector, mut interests: InterestStream) {
    let start = Instant::now();
    let backlogs = Backlogs::after(&progress);
    let producers = Shares::new(PRODUCERS_MAX.saturating_sub(progress.len()));
    let group = Group::new(names.wire.version, Limits::of(names.wire.version), progress, now(start));
    let fetches = FuturesUnordered::new();
    let taken = Vec::new();
    let mut member = Member { workshop, names, group, backlogs, producers, taken, fetches, start };
    loop {
        member.begin_fetches();
        let wake = start + Duration::from_millis(member.wake_ms());
        tokio::select! {
            incoming = interests.next() => match incoming {
                Some(incoming) => member.hear(&incoming).await,
                None => return,
            },
            Some(fetched) = member.fetches.next() => member.note(fetched).await,
            () = sleep_until(wake) => member.speak_if_due(),
        }
    }
}

fn now(start: Instant) -> Now {
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs());
    Now { monotonic_ms: start.elapsed().as_millis() as u64, unix_s }
}

impl Member {
    fn now_ms(&self) -> u64 {
        now(self.start).monotonic_ms
    }

    /// When something is to be done without an event.
    fn wake_ms(&self) -> u64 {
        self.backlogs.wake_ms(self.now_ms()).min(self.group.timer_ms())
    }

    /// Takes a sync Interest.
    async fn hear(&mut self, incoming: &IncomingInterest) {
        let interest = incoming.interest();
        let parameters = interest.application_parameters().filter(|_| interest.parameters_digest_is_valid());
        let Some(parameters) = parameters else {
            return self.workshop.statistics.refuse(Refusal::SyncMalformed);
        };
        let face = incoming.incoming_face_id;
        let is_local = self.workshop.access.is_local_holder(face).await;
        let (producers, taken) = (&self.producers, &mut self.taken);
        let admit = || producers.try_take(face, is_local).map(|place| taken.push(place)).is_some();
        let received = match self.group.on_interest(parameters, now(self.start), fastrand::f64(), admit) {
            Ok(received) => received,
            Err(error) => {
                return self.workshop.statistics.refuse(match error {
                    IgnoredError::Vector(_) => Refusal::SyncMalformed,
                    IgnoredError::FarFuture => Refusal::SyncFarFuture,
                });
            }
        };
        self.workshop.statistics.refuse_many(Refusal::SyncTooManyProducers, received.left_out as u64);
        received.news.into_iter().for_each(|news| self.backlogs.learn(news));
    }

    fn speak_if_due(&mut self) {
        let now = now(self.start);
        if now.monotonic_ms < self.group.timer_ms() {
            return;
        }
        for parameters in self.group.on_timer(now, fastrand::f64()) {
            let interest = InterestBuilder::new(&self.names.wire.sync).can_be_prefix(true).must_be_fresh(true);
            let interest = interest.lifetime_ms(SYNC_LIFETIME_MS).application_parameters(parameters.to_vec());
            let client = self.workshop.client.clone();
            tokio::spawn(async move {
                // A sync Interest gets no Data.
                let _ = client.express(&interest).await;
            });
        }
    }

    /// Begins as many fetches as may run, each producer in its turn.
    fn begin_fetches(&mut self) {
        let now_ms = self.now_ms();
        while self.fetches.len() < FETCHES_MAX
            && let Some(Wanted { producer, number, way }) = self.backlogs.next(now_ms)
        {
            let names = self.names.of_publication(&producer, number);
            let workshop = Arc::clone(&self.workshop);
            let fetch = async move { Fetched { way: fetch(&workshop, names, way).await, producer, number } };
            self.fetches.push(fetch.boxed());
        }
    }

    /// Takes the end of a fetch.
    async fn note(&mut self, Fetched { producer, number, way }: Fetched) {
        let Ended { lost, done } = self.backlogs.end(&producer, number, way, self.now_ms());
        self.workshop.statistics.refuse_many(Refusal::SyncPublicationLost, lost);
        if way.is_some() {
            self.workshop.statistics.add_publication();
        }
        if let Some(done) = done {
            // If the store fails, this is fetched again after a restart.
            let _ = self.workshop.queue.submit(vec![note_progress(&self.names.sync_prefix, &producer, done)]).await;
        }
    }
}

/// Fetches and stores a publication under the name that is known to answer, or under both. Returns which it was.
async fn fetch(workshop: &Workshop, names: [NameBuf; 2], way: Option<usize>) -> Option<usize> {
    let ways = way.map_or(0..2, |way| way..way + 1);
    let ask = |way: usize| {
        let interest = InterestBuilder::new(&names[way]).can_be_prefix(true).lifetime_ms(PUBLICATION_LIFETIME_MS);
        async move { workshop.client.express(&interest).await.map(|data| (way, data)) }.boxed()
    };
    let ((way, data), _) = select_ok(ways.map(ask)).await.ok()?;
    workshop.store_publication(data).await.then_some(way)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_component_of_the_prefix_is_dropped() {
        let sync_prefix = "/room/alice".parse().unwrap();
        let names = Names::of(&SyncParam { sync_prefix, data_name_dedupe: true, ..SyncParam::default() });
        let producer = Producer { name: "/alice".parse().unwrap(), bootstrap_s: 0 };
        let publications = names.of_publication(&producer, 300).map(|name| name.to_string());
        assert_eq!(publications, ["/alice/room/seq=300", "/alice/room/%01%2C"]);
    }
}
