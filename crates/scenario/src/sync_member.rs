//! A member of a sync group: it publishes at an interval, learns of the others' publications by State Vector Sync
//! (version 2), and fetches them.
//!
//! The protocol is the client library's, which takes time and randomness as arguments. Members of a run share a list
//! of publications and their times; the time from a publication to its arrival at another member is the result.

use namewire_client::sync::Version;
use namewire_client::sync::backlog::{Backlogs, Wanted};
use namewire_client::sync::group::{Group, Limits, Now};
use namewire_client::sync::names::SyncNames;
use namewire_client::sync::vector::{Producer, StateVector};
use namewire_client::sync::wire::write_vector;
use namewire_packet::lp::LpHeaders;
use namewire_packet::{Data, Interest, InterestBuilder, NameBuf, Nonce};
use namewire_sim::{AppIo, Application, data_for};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const MS_NS: u64 = 1_000_000;
/// Lifetime of Interests for publications.
const LIFETIME_MS: u64 = 1_000;
/// Lifetime of sync Interests, which nobody answers.
const SYNC_LIFETIME_MS: u64 = 1_000;
/// Publications that a member fetches at a time.
const FETCHES_MAX: usize = 16;

/// How members behave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncOptions {
    pub(crate) interval_ns: u64,
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
    pub(crate) content_bytes: usize,
    pub(crate) period_ms: u64,
}

/// When each publication was made, by producer and number.
#[derive(Default)]
pub(crate) struct Publications(BTreeMap<(NameBuf, u64), u64>);

impl Publications {
    pub(crate) fn shared() -> Rc<RefCell<Self>> {
        Rc::default()
    }
}

/// See the module.
pub(crate) struct SyncMember {
    names: SyncNames,
    own: Producer,
    options: SyncOptions,
    published: u64,
    group: Option<Group>,
    backlogs: Backlogs,
    pending: BTreeMap<NameBuf, (Wanted, u64)>,
    publications: Rc<RefCell<Publications>>,
    wake_at_ns: u64,
    received: Vec<(u64, u64)>,
    sync_interests: u64,
}

impl SyncMember {
    pub(crate) fn new(
        prefix: &NameBuf,
        node: &str,
        options: SyncOptions,
        publications: Rc<RefCell<Publications>>,
    ) -> Self {
        let mut name = NameBuf::default();
        name.push_generic(node.as_bytes());
        SyncMember {
            names: SyncNames::of(prefix),
            own: Producer { name, bootstrap_s: 0 },
            options,
            published: 0,
            group: None,
            backlogs: Backlogs::default(),
            pending: BTreeMap::new(),
            publications,
            wake_at_ns: u64::MAX,
            received: Vec::new(),
            sync_interests: 0,
        }
    }

    /// The prefix of sync Interests, and that of the member's own publications.
    pub(crate) fn prefixes(&self) -> [NameBuf; 2] {
        let [own, _] = self.names.prefixes(&self.own);
        [self.names.sync.clone(), own]
    }

    /// Publications that it made.
    pub(crate) fn published(&self) -> u64 {
        self.published
    }

    /// Publications of others that it has: the time of each, and how long it took.
    pub(crate) fn received(&self) -> &[(u64, u64)] {
        &self.received
    }

    pub(crate) fn sync_interests(&self) -> u64 {
        self.sync_interests
    }

    fn publish(&mut self, io: &mut AppIo<'_>) {
        while self.next_publication_ns() <= io.now_ns {
            self.published += 1;
            let key = (self.own.name.clone(), self.published);
            self.publications.borrow_mut().0.insert(key, io.now_ns);
            let random = io.rng.f64();
            if let Some(group) = &mut self.group {
                group.on_publication(&self.own, self.published, now(io), random);
            }
            self.send_vector(io);
        }
    }

    fn next_publication_ns(&self) -> u64 {
        let at_ns = self.options.start_ns.saturating_add((self.published + 1).saturating_mul(self.options.interval_ns));
        if at_ns < self.options.stop_ns { at_ns } else { u64::MAX }
    }

    fn speak(&mut self, io: &mut AppIo<'_>) {
        let random = io.rng.f64();
        let Some(group) = &mut self.group else { return };
        if group.timer_ms().saturating_mul(MS_NS) > io.now_ns {
            return;
        }
        if group.must_speak(now(io), random) {
            self.send_vector(io);
        }
    }

    fn send_vector(&mut self, io: &mut AppIo<'_>) {
        let Some(group) = &self.group else { return };
        let mut parameters = Vec::new();
        write_vector(Version::V2, group.vector(), &mut parameters);
        self.sync_interests += 1;
        let nonce = Nonce::from_u32(io.rng.u32(..));
        let interest = InterestBuilder::new(self.names.sync.clone())
            .lifetime_ms(SYNC_LIFETIME_MS)
            .nonce(nonce)
            .application_parameters(parameters);
        io.send(interest.build());
    }

    fn fetch(&mut self, io: &mut AppIo<'_>) {
        let overdue: Vec<NameBuf> =
            self.pending.iter().filter(|(_, wanted)| wanted.1 <= io.now_ns).map(|(name, _)| name.clone()).collect();
        for name in overdue {
            if let Some((Wanted { producer, number, .. }, _)) = self.pending.remove(&name) {
                self.backlogs.end(&producer, number, None, io.now_ns / MS_NS);
            }
        }
        while self.pending.len() < FETCHES_MAX {
            let Some(wanted) = self.backlogs.next(io.now_ns / MS_NS) else { break };
            let [name, _] = self.names.of_publication(&wanted.producer, wanted.number);
            let nonce = Nonce::from_u32(io.rng.u32(..));
            io.send(InterestBuilder::new(name.clone()).nonce(nonce).lifetime_ms(LIFETIME_MS).build());
            self.pending.insert(name, (wanted, io.now_ns + LIFETIME_MS * MS_NS));
        }
    }

    fn go_on(&mut self, io: &mut AppIo<'_>) {
        if self.wake_at_ns <= io.now_ns {
            self.wake_at_ns = u64::MAX;
        }
        self.publish(io);
        self.speak(io);
        self.fetch(io);
        let timer_ns = self.group.as_ref().map_or(u64::MAX, |group| group.timer_ms().saturating_mul(MS_NS));
        let fetches_ns = self.pending.values().map(|wanted| wanted.1).min().unwrap_or(u64::MAX);
        let pause_ns = self.backlogs.wake_ms(io.now_ns / MS_NS).saturating_mul(MS_NS);
        let next_ns = timer_ns.min(fetches_ns).min(pause_ns).min(self.next_publication_ns()).max(io.now_ns + 1);
        if next_ns < self.wake_at_ns && next_ns < u64::MAX {
            self.wake_at_ns = next_ns;
            io.wake_at(next_ns);
        }
    }

    fn hear(&mut self, io: &mut AppIo<'_>, interest: &Interest<'_>) {
        let random = io.rng.f64();
        let Some(parameters) = interest.application_parameters() else { return self.answer(io, interest) };
        let Some(group) = &mut self.group else { return };
        let heard = group.on_interest(parameters, now(io), random, || true);
        for news in heard.into_iter().flat_map(|heard| heard.news) {
            if news.producer != self.own {
                self.backlogs.learn(news);
            }
        }
    }

    fn answer(&self, io: &mut AppIo<'_>, interest: &Interest<'_>) {
        let number = self.names.number_in(interest.name(), &self.own);
        if number.is_some_and(|number| (1..=self.published).contains(&number)) {
            io.send(data_for(&interest.name().to_buf(), self.options.content_bytes, 10_000));
        }
    }

    fn take(&mut self, io: &AppIo<'_>, data: &Data<'_>) {
        let Some((Wanted { producer, number, .. }, _)) = self.pending.remove(&data.name().to_buf()) else { return };
        self.backlogs.end(&producer, number, Some(0), io.now_ns / MS_NS);
        if let Some(&at_ns) = self.publications.borrow().0.get(&(producer.name, number)) {
            self.received.push((at_ns, io.now_ns - at_ns));
        }
    }
}

fn now(io: &AppIo<'_>) -> Now {
    Now { monotonic_ms: io.now_ns / MS_NS, unix_s: io.now_ns / 1_000_000_000 }
}

impl Application for SyncMember {
    fn start(&mut self, io: &mut AppIo<'_>) {
        let limits = Limits { period_ms: self.options.period_ms, ..Limits::of(Version::V2) };
        self.group = Some(Group::new(Version::V2, limits, StateVector::default(), now(io)));
        self.go_on(io);
    }

    fn receive(&mut self, io: &mut AppIo<'_>, headers: &LpHeaders, packet: &[u8]) {
        match (headers.nack, Interest::parse(packet), Data::parse(packet)) {
            (None, Ok(interest), _) => self.hear(io, &interest),
            (None, _, Ok(data)) => self.take(io, &data),
            // A fetch that gets a Nack is tried again after its time.
            _ => {}
        }
        self.go_on(io);
    }

    fn wake(&mut self, io: &mut AppIo<'_>) {
        self.go_on(io);
    }
}
