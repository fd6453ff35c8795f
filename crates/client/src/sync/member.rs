//! A member of a sync group: publishes, announces its publications, and fetches those of the others.
//!
//! Everything happens inside [`SyncGroup::next`]. So a program that only publishes must call it, too: this call answers
//! the Interests for the publications.
//!
//! Limits: the member keeps its last [`PUBLICATIONS_KEPT`] publications and answers Interests for them (a repository
//! keeps all of them); it fetches [`FETCHES_MAX`] publications at the same time, and at most a window of each producer
//! ([`super::backlog`]); [`PRODUCERS_MAX`] producers. A vector of ours that does not fit into a packet is not sent.
//! [`SyncCounters`] counts what was ignored or lost.

use super::{
    Version,
    backlog::{Backlogs, Wanted},
    group::{Group, IgnoredError, Limits, Now},
    names::SyncNames,
    vector::{Producer, StateVector},
    wire::write_vector,
};
use crate::{
    client::Client,
    data_buf::DataBuf,
    incoming_interest::{IncomingInterest, RespondError},
    producer::{InterestStream, ServeError},
    validator::Validator,
};
use namewire_packet::{DataBuilder, InterestBuilder, NameBuf};
use namewire_security::{SignError, Signer};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

/// Own publications that are answered for.
pub const PUBLICATIONS_KEPT: usize = 1024;
/// Publications that are fetched at the same time.
pub const FETCHES_MAX: usize = 32;
/// Most producers of a group.
pub const PRODUCERS_MAX: usize = 1_000;
/// InterestLifetime of sync Interests, which get no Data.
const SYNC_LIFETIME_MS: u64 = 1_000;
/// InterestLifetime for publications.
const PUBLICATION_LIFETIME_MS: u64 = 2_000;

/// What [`SyncGroup::next`] brings.
#[derive(Debug)]
pub enum SyncEvent {
    /// Another member published. Publications of one producer may come in any order.
    Published {
        /// Whose it is.
        producer: Producer,
        /// Its number, from 1 on.
        number: u64,
        /// The packet.
        data: DataBuf,
    },
    /// Publications of a producer could not be fetched, or the validator did not accept them. The number may be large:
    /// a forged vector can announce any number of them.
    Lost {
        /// Whose they are.
        producer: Producer,
        /// How many.
        count: u64,
    },
}

/// What a member ignored or lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncCounters {
    /// Sync Interests without a vector of this version.
    pub ignored_malformed: u64,
    /// Sync Interests with a bootstrap time of more than a day ahead.
    pub ignored_far_future: u64,
    /// Mentions of producers beyond [`PRODUCERS_MAX`].
    pub ignored_producers: u64,
    /// Publications that the validator did not accept; each is asked for again.
    pub refused_untrusted: u64,
    /// Publications that were given up.
    pub lost_publications: u64,
}

/// Why something was not published.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SyncError {
    /// The key cannot sign.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The content does not fit into one packet. Publish the name of an object instead.
    #[error("the publication has {0} bytes as a packet, more than 8800")]
    TooLarge(usize),
}

/// A publication of ours.
struct Publication {
    number: u64,
    content: Box<[u8]>,
}

/// The end of a fetch.
struct Fetched {
    producer: Producer,
    number: u64,
    /// Which name answered, and what.
    answer: Option<(usize, DataBuf)>,
    is_untrusted: bool,
}

/// A member of a group. Dropping it leaves the group.
pub struct SyncGroup {
    client: Client,
    names: SyncNames,
    me: Producer,
    signer: Signer,
    group: Group,
    start: Instant,
    number: u64,
    kept: VecDeque<Publication>,
    sync_interests: InterestStream,
    /// By each convention of names, if they have different prefixes.
    asked: [Option<InterestStream>; 2],
    backlogs: Backlogs,
    fetches: JoinSet<Fetched>,
    validator: Option<Arc<Validator>>,
    counters: SyncCounters,
}

impl SyncGroup {
    /// Joins the group of this sync prefix under the name `me`. `/chat/v=3` speaks version 3, `/chat` version 2.
    /// `signer` signs publications, and the vectors of version 3.
    ///
    /// In version 2 the numbers of a name go on for ever. A program that starts again learns from the others how many
    /// it has published, or says so with [`SyncGroup::continue_after`]. Version 3 tells runs apart by their time.
    ///
    /// # Errors
    /// If the forwarder does not register the prefixes, or this client serves them already.
    pub async fn join(
        client: &Client,
        sync_prefix: &NameBuf,
        me: &NameBuf,
        signer: Signer,
    ) -> Result<Self, ServeError> {
        let names = SyncNames::of(sync_prefix);
        let start = Instant::now();
        let bootstrap_s = if names.version == Version::V3 { now(start).unix_s } else { 0 };
        let me = Producer { name: me.clone(), bootstrap_s };
        let sync_interests = client.interests(&names.sync).await?;
        let [first, second] = names.prefixes(&me);
        let second = if first == second { None } else { Some(client.interests(&second).await?) };
        let asked = [Some(client.interests(&first).await?), second];
        let group = Group::new(names.version, Limits::of(names.version), StateVector::default(), now(start));
        Ok(SyncGroup {
            client: client.clone(),
            names,
            me,
            signer,
            group,
            start,
            number: 0,
            kept: VecDeque::new(),
            sync_interests,
            asked,
            backlogs: Backlogs::default(),
            fetches: JoinSet::new(),
            validator: None,
            counters: SyncCounters::default(),
        })
    }

    /// Takes only publications that this trust schema accepts. Sync Interests are not validated: a forged one costs a
    /// few fetches.
    pub fn trust_only(mut self, validator: Arc<Validator>) -> Self {
        self.validator = Some(validator);
        self
    }

    /// The last publication of an earlier run of this member was `number`.
    pub fn continue_after(mut self, number: u64) -> Self {
        self.number = number;
        self
    }

    /// What was ignored or lost so far.
    pub fn counters(&self) -> SyncCounters {
        self.counters
    }

    /// What the group is known to have published.
    pub fn vector(&self) -> &StateVector {
        self.group.vector()
    }

    /// Publishes `content` as one packet, and tells the others. Returns its number.
    ///
    /// # Errors
    /// If it cannot be signed or does not fit into a packet.
    pub fn publish(&mut self, content: &[u8]) -> Result<u64, SyncError> {
        let number = self.number + 1;
        for name in self.names.of_publication(&self.me, number) {
            self.signed(&name, content)?;
        }
        self.number = number;
        if self.kept.len() >= PUBLICATIONS_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(Publication { number, content: content.into() });
        self.group.on_publication(&self.me, number, now(self.start), fastrand::f64());
        self.speak();
        Ok(number)
    }

    fn signed(&self, name: &NameBuf, content: &[u8]) -> Result<Vec<u8>, SyncError> {
        let wire = self.signer.sign_data(&DataBuilder::new(name).content(content))?;
        if wire.len() > namewire_packet::MAX_PACKET_BYTES { Err(SyncError::TooLarge(wire.len())) } else { Ok(wire) }
    }

    /// Takes part in the group until another member's publication has come or is lost. `None` when the connection is
    /// lost and cannot be opened again. Dropping the future loses no publication.
    pub async fn next(&mut self) -> Option<SyncEvent> {
        loop {
            self.begin_fetches();
            let wake_ms = self.group.timer_ms().min(self.backlogs.wake_ms(now(self.start).monotonic_ms));
            let wake = self.start + Duration::from_millis(wake_ms);
            let [first, second] = &mut self.asked;
            tokio::select! {
                incoming = self.sync_interests.next() => self.hear(&incoming?),
                incoming = next_of(first) => self.answer(incoming?).await,
                incoming = next_of(second) => self.answer(incoming?).await,
                Some(Ok(fetched)) = self.fetches.join_next() => {
                    if let Some(event) = self.note(fetched) {
                        return Some(event);
                    }
                }
                () = sleep_until(wake) => {
                    let now = now(self.start);
                    if now.monotonic_ms >= self.group.timer_ms() && self.group.must_speak(now, fastrand::f64()) {
                        self.speak();
                    }
                }
            }
        }
    }

    fn hear(&mut self, incoming: &IncomingInterest) {
        let interest = incoming.interest();
        let parameters = interest.application_parameters().filter(|_| interest.parameters_digest_is_valid());
        let mut room = PRODUCERS_MAX.saturating_sub(self.group.vector().len());
        let admit = || {
            let is_admitted = room > 0;
            room = room.saturating_sub(1);
            is_admitted
        };
        let Some(parameters) = parameters else { return self.counters.ignored_malformed += 1 };
        let received = match self.group.on_interest(parameters, now(self.start), fastrand::f64(), admit) {
            Ok(received) => received,
            Err(IgnoredError::Vector(_)) => return self.counters.ignored_malformed += 1,
            Err(IgnoredError::FarFuture) => return self.counters.ignored_far_future += 1,
        };
        self.counters.ignored_producers += received.left_out as u64;
        for news in received.news {
            if news.producer == self.me {
                self.number = self.number.max(news.last); // an earlier run of ours
            } else {
                self.backlogs.learn(news);
            }
        }
    }

    /// Takes the end of a fetch.
    fn note(&mut self, fetched: Fetched) -> Option<SyncEvent> {
        let Fetched { producer, number, answer, is_untrusted } = fetched;
        self.counters.refused_untrusted += u64::from(is_untrusted);
        let way = answer.as_ref().map(|(way, _)| *way);
        let lost = self.backlogs.end(&producer, number, way, now(self.start).monotonic_ms).lost;
        self.counters.lost_publications += lost;
        match answer {
            Some((_, data)) => Some(SyncEvent::Published { producer, number, data }),
            None if lost > 0 => Some(SyncEvent::Lost { producer, count: lost }),
            None => None,
        }
    }

    async fn answer(&self, incoming: IncomingInterest) {
        let interest = incoming.interest();
        let Some(number) = self.names.number_in(interest.name(), &self.me) else { return };
        let Some(publication) = self.kept.iter().find(|one| one.number == number) else { return };
        for name in self.names.of_publication(&self.me, number) {
            if interest.name().is_prefix_of(&name.as_name())
                && let Ok(wire) = self.signed(&name, &publication.content)
            {
                // If the connection is gone, so is the one who asked.
                let _: Result<(), RespondError> = incoming.respond(&wire).await;
                return;
            }
        }
    }

    /// Sends our vector.
    fn speak(&self) {
        let mut vector = Vec::new();
        write_vector(self.names.version, self.group.vector(), &mut vector);
        let parameters = match self.names.version {
            Version::V2 => vector,
            // A key that signed publications signs this, too.
            Version::V3 => match self.signed(&self.names.sync, &vector) {
                Ok(wire) => wire,
                Err(_) => return,
            },
        };
        let interest = InterestBuilder::new(&self.names.sync).can_be_prefix(true).must_be_fresh(true);
        let interest = interest.lifetime_ms(SYNC_LIFETIME_MS).application_parameters(parameters);
        let client = self.client.clone();
        tokio::spawn(async move {
            // A sync Interest gets no Data.
            let _ = client.express(&interest).await;
        });
    }

    fn begin_fetches(&mut self) {
        while self.fetches.len() < FETCHES_MAX
            && let Some(wanted) = self.backlogs.next(now(self.start).monotonic_ms)
        {
            let names = self.names.of_publication(&wanted.producer, wanted.number);
            self.fetches.spawn(fetch(self.client.clone(), self.validator.clone(), names, wanted));
        }
    }
}

fn now(start: Instant) -> Now {
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs());
    Now { monotonic_ms: start.elapsed().as_millis() as u64, unix_s }
}

/// The next Interest of a stream, if there is one; otherwise waits for ever.
async fn next_of(stream: &mut Option<InterestStream>) -> Option<IncomingInterest> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

/// Asks under the name that is known to answer, or under both at the same time.
async fn fetch(client: Client, validator: Option<Arc<Validator>>, names: [NameBuf; 2], wanted: Wanted) -> Fetched {
    let mut asking = JoinSet::new();
    for (way, name) in names.iter().enumerate().filter(|(way, _)| wanted.way.is_none_or(|known| known == *way)) {
        let interest = InterestBuilder::new(name).can_be_prefix(true).lifetime_ms(PUBLICATION_LIFETIME_MS);
        let client = client.clone();
        asking.spawn(async move { (way, client.express(&interest).await) });
    }
    let (mut answer, mut is_untrusted) = (None, false);
    while answer.is_none()
        && let Some(ended) = asking.join_next().await
    {
        let Ok((way, Ok(data))) = ended else { continue };
        let judged = match &validator {
            Some(validator) => validator.check(&client, &data.data()).await.is_ok(),
            None => true,
        };
        (answer, is_untrusted) = if judged { (Some((way, data)), false) } else { (None, true) };
    }
    Fetched { producer: wanted.producer, number: wanted.number, answer, is_untrusted }
}
