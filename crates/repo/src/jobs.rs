//! Jobs: what one command does, object after object, [`OBJECTS_AT_ONCE`] at the same time.
//!
//! | command | StartBlockId, EndBlockId | what is done |
//! | --- | --- | --- |
//! | insert | neither | one packet of that name, asked for once |
//! | | both, or only the end (start 0) | these segments, or up to the FinalBlockId |
//! | | only the start | up to the FinalBlockId, or until a segment does not come |
//! | delete | neither | the packet of that name |
//! | | otherwise | from the start up to the end, or to the first that is not stored |
//! | delete prefix | ignored | all Data below the name, in canonical order |
//!
//! Source: repo-protocol §3.3. An insertion whose end is unknown counts as done when a segment fails. Here, unlike in
//! ndn-python-repo, at least one packet must have come.
//!
//! An insertion fetches with a congestion window and hands what arrived to the writer. It continues to fetch while the
//! store writes; a full queue of the writer slows it. A packet counts as inserted when the store has it. If the store
//! fails, the object fails and the fetch stops.
//!
//! Limits: [`WINDOW_MAX`] segments in flight; [`TRIES_MAX`] tries for each; as many jobs at a time as configured.

use crate::{
    access::{Access, overlaps},
    command::{Command, ObjectParam, ObjectResult, status},
    registrations::Registrations,
    statistics::{Refusal, Statistics},
    statuses::{JobStatus, Verb},
    store::{Store, StoreError},
    writer::{Outcome, OwnedChange, WriteQueue, now_ms},
};
use futures_util::{StreamExt, stream};
use namewire_client::{Client, DataBuf, Discovery, FetchError, FetchOptions, SegmentFetch};
use namewire_packet::{InterestBuilder, NameBuf};
use std::{collections::VecDeque, ops::ControlFlow, sync::Arc};
use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    task::{JoinError, spawn_blocking},
};

/// Objects of one command that are worked on at the same time.
const OBJECTS_AT_ONCE: usize = 16;
/// Segments in flight, at most and at first.
const WINDOW_MAX: usize = 1024;
const WINDOW_INITIAL: usize = 16;
/// Interests for one segment.
const TRIES_MAX: u32 = 15;
/// InterestLifetime of segments and packets.
const LIFETIME_MS: u64 = 1000;
/// Names deleted with one change of the store.
const DELETED_TOGETHER: u64 = 1024;

/// What jobs work with.
pub(crate) struct Workshop {
    pub(crate) repo: NameBuf,
    pub(crate) client: Client,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) queue: WriteQueue,
    pub(crate) statistics: Arc<Statistics>,
    pub(crate) access: Access,
    pub(crate) registrations: Registrations,
    /// False: RegisterPrefix is ignored.
    pub(crate) obeys_register_prefix: bool,
}

impl Workshop {
    /// Carries a command about objects out, and keeps its status up to date.
    pub(crate) async fn carry_out(&self, verb: Verb, command: &Command, job: &JobStatus) {
        let object = |(at, object)| self.object(verb, object, at, job);
        let objects: Vec<_> = command.objects.iter().enumerate().map(object).collect();
        let done: Vec<bool> = stream::iter(objects).buffer_unordered(OBJECTS_AT_ONCE).collect().await;
        let is_done = done.iter().all(|is_done| *is_done);
        job.update(|result| result.code = if is_done { status::DONE } else { status::FAILED });
    }

    /// One object; true if it is done.
    async fn object(&self, verb: Verb, object: &ObjectParam, at: usize, job: &JobStatus) -> bool {
        let change = |change: &dyn Fn(&mut ObjectResult)| {
            job.update(|result| result.objects.get_mut(at).into_iter().for_each(change));
        };
        let start = object.start.or(object.end.map(|_| 0));
        let is_backwards = object.end.is_some_and(|end| start.is_some_and(|start| start > end));
        if is_backwards || verb == Verb::Insert && overlaps(self.repo.as_name(), object.name.as_name()) {
            self.statistics.refuse(Refusal::ObjectRefused);
            change(&|result| result.code = status::REFUSED);
            return false;
        }
        change(&|result| result.code = status::RUNNING);
        let done = match verb {
            Verb::Insert => self.insert(object, start, &|count| change(&|result| result.inserted = Some(count))).await,
            Verb::Delete => self.delete(object, start, &|count| change(&|result| result.deleted = Some(count))).await,
            Verb::Join | Verb::Leave => Err(status::FAILED), // these have no objects
            Verb::DeletePrefix => {
                self.delete_below(object, &|count| change(&|result| result.deleted = Some(count))).await
            }
        };
        change(&|result| result.code = done.err().unwrap_or(status::DONE));
        done.is_ok()
    }

    async fn insert(&self, object: &ObjectParam, start: Option<u64>, count: &(dyn Fn(u64) + Sync)) -> Done {
        let mut insertion = Insertion { workshop: self, count, waiting: VecDeque::new(), inserted: 0, stored: Ok(()) };
        let is_fetched = match start {
            None => insertion.packet(object).await,
            Some(start) => insertion.segments(object, start).await,
        };
        insertion.finish().await;
        let is_open_ended = start.is_some() && object.end.is_none() && insertion.inserted > 0;
        let (inserted, stored) = (insertion.inserted, insertion.stored);
        if !is_fetched && !is_open_ended {
            self.statistics.refuse(Refusal::ObjectNotFetched);
        }
        let is_registered = match &object.register_prefix {
            Some(prefix) if self.obeys_register_prefix && inserted > 0 => self.registrations.add(prefix).await,
            _ => true,
        };
        stored?;
        if (is_fetched || is_open_ended) && is_registered { Ok(()) } else { Err(status::FAILED) }
    }

    /// Stores a publication of a sync group: this Data, or all segments if it is one. True if the store has them.
    pub(crate) async fn store_publication(&self, data: DataBuf) -> bool {
        let name = data.data().name().to_buf();
        let mut insertion =
            Insertion { workshop: self, count: &|_| (), waiting: VecDeque::new(), inserted: 0, stored: Ok(()) };
        let is_fetched = if name.as_name().last().is_some_and(|last| last.segment().is_some()) {
            let object = ObjectParam { name: name.as_name().parent().to_buf(), ..ObjectParam::default() };
            insertion.segments(&object, 0).await
        } else {
            insertion.store(&[data]).await
        };
        insertion.finish().await;
        is_fetched && insertion.stored.is_ok()
    }

    async fn delete(&self, object: &ObjectParam, start: Option<u64>, count: &(dyn Fn(u64) + Sync)) -> Done {
        self.unregister(object).await;
        let Some(mut next) = start else {
            count(self.delete_leading(vec![object.name.clone()]).await?);
            return Ok(());
        };
        let mut deleted = 0;
        loop {
            let last = object.end.unwrap_or(u64::MAX).min(next.saturating_add(DELETED_TOGETHER - 1));
            let names: Vec<NameBuf> = (next..=last).map(|segment| segment_name(&object.name, segment)).collect();
            let asked = names.len() as u64;
            let gone = self.delete_leading(names).await?;
            deleted += gone;
            count(deleted);
            if gone < asked || Some(last) == object.end || last == u64::MAX {
                return Ok(());
            }
            next = last + 1;
        }
    }

    async fn unregister(&self, object: &ObjectParam) {
        if let (Some(prefix), true) = (&object.register_prefix, self.obeys_register_prefix) {
            self.registrations.remove(prefix).await;
        }
    }

    /// Deletes all Data below a name. What is stored meanwhile may stay.
    async fn delete_below(&self, object: &ObjectParam, count: &(dyn Fn(u64) + Sync)) -> Done {
        self.unregister(object).await;
        let (mut last, mut deleted) = (None, 0);
        loop {
            let (store, prefix) = (Arc::clone(&self.store), object.name.clone());
            let page = spawn_blocking(move || page_of_names(&*store, prefix.value(), last.as_deref()));
            let names = self.looked_up(page.await)?;
            let Some(name) = names.last() else { return Ok(()) };
            last = Some(name.clone());
            let (gone, changes) = (names.len() as u64, names.iter().map(|name| OwnedChange::delete(name)).collect());
            self.queue.write(changes).await.map_err(|error| code_of(&error))?;
            deleted += gone;
            count(deleted);
        }
    }

    /// Deletes these names up to the first that is not stored. Returns how many these were.
    async fn delete_leading(&self, mut names: Vec<NameBuf>) -> Result<u64, u64> {
        let store = Arc::clone(&self.store);
        let looked_up = spawn_blocking(move || {
            let mut is_stored = vec![false; names.len()];
            let keys: Vec<&[u8]> = names.iter().map(NameBuf::value).collect();
            store.get(&keys, &mut |place, _| is_stored[place] = true)?;
            names.truncate(is_stored.iter().position(|is_stored| !is_stored).unwrap_or(names.len()));
            Ok(names)
        });
        let names = self.looked_up(looked_up.await)?;
        if names.is_empty() {
            return Ok(0);
        }
        let changes = names.iter().map(|name| OwnedChange::delete(name.value())).collect();
        self.queue.write(changes).await.map_err(|error| code_of(&error))?;
        Ok(names.len() as u64)
    }

    /// What the store answered in another thread, or the status of an object for which it failed.
    fn looked_up<T>(&self, answer: Result<Result<T, StoreError>, JoinError>) -> Result<T, u64> {
        // Without an answer, the repository is stopping.
        let answer = answer.map_err(|_| status::FAILED)?;
        answer.map_err(|error| {
            self.statistics.refuse_for(&error);
            code_of(&error)
        })
    }
}

/// Nothing, or the status of an object that is not done.
type Done = Result<(), u64>;

/// The status of an object for which the store failed.
fn code_of(error: &StoreError) -> u64 {
    match error {
        StoreError::Full(_) => status::FULL,
        StoreError::Unavailable(_) => status::UNAVAILABLE,
        _ => status::FAILED,
    }
}

/// The first names below a prefix, after a name.
fn page_of_names(store: &dyn Store, prefix: &[u8], after: Option<&[u8]>) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut names = Vec::new();
    store.scan(prefix, after, &mut |name, _| {
        names.push(name.to_vec());
        if names.len() < DELETED_TOGETHER as usize { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(names)
}

fn segment_name(name: &NameBuf, segment: u64) -> NameBuf {
    let mut name = name.clone();
    name.push_segment(segment);
    name
}

/// The insertion of one object under way.
struct Insertion<'a> {
    workshop: &'a Workshop,
    count: &'a (dyn Fn(u64) + Sync),
    /// Packets that the writer has, and when it has stored them.
    waiting: VecDeque<(u64, oneshot::Receiver<Outcome>)>,
    inserted: u64,
    /// The first failure of the store.
    stored: Done,
}

impl Insertion<'_> {
    /// Fetches one packet; true if it came.
    async fn packet(&mut self, object: &ObjectParam) -> bool {
        let mut interest = InterestBuilder::new(&object.name).lifetime_ms(LIFETIME_MS);
        if !object.forwarding_hint.is_empty() {
            interest = interest.forwarding_hint(&object.forwarding_hint);
        }
        match self.workshop.client.express(&interest).await {
            Ok(data) => self.store(&[data]).await,
            Err(_) => false,
        }
    }

    /// Fetches segments; true if all came.
    async fn segments(&mut self, object: &ObjectParam, start: u64) -> bool {
        let options = FetchOptions {
            discovery: Discovery::None,
            window_initial: WINDOW_INITIAL,
            window_max: WINDOW_MAX,
            retries_max: TRIES_MAX - 1,
            lifetime_ms: LIFETIME_MS,
            first_segment: start,
            last_segment: object.end,
            forwarding_hint: object.forwarding_hint.clone(),
            ..FetchOptions::default()
        };
        let fetch = SegmentFetch::new(&self.workshop.client, object.name.clone(), options);
        let Ok(mut stream) = fetch.stream().await else { return false };
        let mut segments = Vec::new();
        loop {
            let next = stream.next(&mut segments).await;
            let is_stored = self.store(&segments).await;
            segments.clear();
            match next {
                Ok(true) if is_stored => self.collect(),
                Ok(true) => return false,
                Ok(false) => return is_stored,
                Err(error) => {
                    if matches!(error, FetchError::BadDigest(_)) {
                        self.workshop.statistics.refuse(Refusal::DataDamaged);
                    }
                    return false;
                }
            }
            if self.stored.is_err() {
                return false;
            }
        }
    }

    /// Gives packets to the writer, waiting while it has too much. False if one may not be stored.
    async fn store(&mut self, packets: &[DataBuf]) -> bool {
        let (now, mut changes, mut may_all) = (now_ms(), Vec::with_capacity(packets.len()), true);
        for packet in packets {
            let data = packet.data();
            if self.workshop.access.checks_data() && !self.workshop.access.check_data(&data).await {
                may_all = false;
                continue;
            }
            changes.push(OwnedChange::put(&data, now));
        }
        let count = changes.len() as u64;
        if count > 0 {
            match self.workshop.queue.submit(changes).await {
                Ok(outcome) => self.waiting.push_back((count, outcome)),
                Err(_) => self.fail(status::FAILED),
            }
        }
        may_all
    }

    fn fail(&mut self, code: u64) {
        self.stored = self.stored.and(Err(code));
    }

    /// Counts what the store has by now.
    fn collect(&mut self) {
        while let Some((count, outcome)) = self.waiting.front_mut() {
            match outcome.try_recv() {
                Ok(Ok(())) => self.inserted += *count,
                Err(TryRecvError::Empty) => break,
                Ok(Err(error)) => {
                    let code = code_of(&error);
                    self.fail(code);
                }
                Err(TryRecvError::Closed) => self.fail(status::FAILED),
            }
            self.waiting.pop_front();
        }
        (self.count)(self.inserted);
    }

    /// Waits for the store.
    async fn finish(&mut self) {
        for (count, outcome) in std::mem::take(&mut self.waiting) {
            match outcome.await {
                Ok(Ok(())) => self.inserted += count,
                Ok(Err(error)) => self.fail(code_of(&error)),
                Err(_) => self.fail(status::FAILED),
            }
        }
        (self.count)(self.inserted);
    }
}
