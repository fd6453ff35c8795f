//! Finds the newest version of an object.
//!
//! Realtime Data Retrieval (RDR): a producer that publishes versions answers `/<object>/32=metadata` (CanBePrefix,
//! MustBeFresh) with a Data whose Content begins with the Name of the latest version. Without such an answer, a prefix
//! Interest for `/<object>` fetches some segment, whose name contains the version.
//!
//! [`Discovery::Auto`] asks both at once, because either may be answered by who knows less: a cache by a segment that
//! is fresh and not the newest, a producer by metadata while another has published since. After the first answer it
//! waits [`COMPARED_AT_LEAST`] to [`COMPARED_AT_MOST`] for the other one, and takes the newer version. A segment of
//! that version is not fetched twice. The prefix Interest goes first: metadata would answer it, too. An application
//! Nack under the metadata name counts as a Nack of whichever Interest it answers.
//!
//! If no producer answers, a prefix Interest without MustBeFresh asks for what a cache still holds; whoever uses that
//! version is told so.
//!
//! A packet further below the name may be of another object, and while a validator asks for signatures anybody may have
//! made one without: such answers are used only if nothing better comes within [`DOUBTFUL_PATIENCE`]. An application
//! Nack counts as a Nack of whichever Interest it answers.
//!
//! Unanswered Interests are sent again with a new nonce: while forwarders still have the earlier one they send the
//! later one another way. The earlier ones stay pending, so a late answer counts. Each goes to the next of
//! [`FetchOptions::sources`]. When the connection is lost, all are sent again over another one, within
//! [`FetchOptions::reconnect`]; that time is none of the patience.

use crate::{
    client::{Client, Outstanding, fresh_nonce},
    connection::Backoff,
    data_buf::DataBuf,
    express_error::ExpressError,
    fetch_event::FetchEvent,
    fetch_options::{Discovery, FetchError, FetchOptions, require_trust},
    pending_interest::{Completion, Outcome},
};
use namewire_packet::{
    Component, InterestBuilder, NackReason, Name, NameBuf, content_type,
    signature::signature_type,
    tlv::{self, types},
};
use std::time::Duration;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

/// The keyword component of RDR metadata.
pub(crate) const METADATA: Component<'static> = Component { type_number: types::KEYWORD_COMPONENT, value: b"metadata" };
/// Pauses after which an unanswered Interest is sent again; the last one repeats. They are shorter than the usual
/// lifetime.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(3)];
/// Nacks of prefix Interests before giving up.
const NACKS_MAX: u32 = 3;
/// Pause after a Nack: a route may be on its way into the FIB. It doubles, up to the longest.
const NACK_PAUSE: Duration = Duration::from_millis(50);
const NACK_PAUSE_LAST: Duration = Duration::from_secs(1);
/// How long the first answer waits for the other: as long as it took itself, within these bounds.
const COMPARED_AT_LEAST: Duration = Duration::from_millis(10);
const COMPARED_AT_MOST: Duration = Duration::from_millis(50);
/// How long a doubtful answer waits for a better one.
const DOUBTFUL_PATIENCE: Duration = Duration::from_millis(500);
/// How long a cache has to name a version: it is asked when nobody else has answered, just before patience ends.
const CACHE_PATIENCE: Duration = Duration::from_millis(500);

/// What the search found.
pub(crate) struct Found {
    /// The name up to the version.
    pub(crate) base: NameBuf,
    /// What came with it.
    pub(crate) first: Discovered,
    /// No producer answered.
    pub(crate) is_from_cache: bool,
}

/// What came with the version.
pub(crate) enum Discovered {
    /// Nothing.
    Name,
    /// A segment, with its number.
    Segment(u64, DataBuf),
    /// The object: a single packet without segment number.
    Single(DataBuf),
}

/// Finds the version of `name`.
pub(crate) async fn discover(client: &Client, name: &NameBuf, options: &FetchOptions) -> Result<Found, FetchError> {
    let has_version = name.as_name().last().is_some_and(|last| last.version().is_some());
    let asks = match options.discovery {
        Discovery::Auto if !has_version => vec![Ask::prefix(name, true), Ask::metadata(name)],
        Discovery::Metadata if !has_version => vec![Ask::metadata(name)],
        Discovery::Auto | Discovery::Metadata | Discovery::None => {
            return Ok(Found { base: name.clone(), first: Discovered::Name, is_from_cache: false });
        }
        Discovery::FirstSegment => vec![Ask::prefix(name, true)],
        Discovery::AnySegment => vec![Ask::prefix(name, false)],
    };
    let start = Instant::now();
    let mut search = Search::new(client, name, options, asks);
    let patience = match options.discovery {
        // The cache is asked within the same time.
        Discovery::Auto => options.patience - CACHE_PATIENCE.min(options.patience / 4),
        _ => options.patience,
    };
    let cause = match search.run(start + patience).await? {
        Ok(found) => return Ok(found),
        Err(cause) => cause,
    };
    let application_nack = search.application_nack.take();
    if options.discovery == Discovery::Auto {
        let mut search = Search::new(client, name, options, vec![Ask::prefix(name, false)]);
        search.waits_for_producer = false;
        if let Ok(found) = search.run(Instant::now() + CACHE_PATIENCE).await? {
            return Ok(Found { is_from_cache: true, ..found });
        }
    }
    if let Some(name) = application_nack {
        return Err(FetchError::ApplicationNack(name));
    }
    let waited = start.elapsed().as_millis() as u64;
    let cause = if matches!(cause, ExpressError::Timeout(_)) { ExpressError::Timeout(waited) } else { cause };
    Err(FetchError::NotFound { name: name.clone(), cause })
}

/// Asks which version is the latest one of an object that has this version.
pub(crate) fn latest_version_interest(versioned: &NameBuf) -> InterestBuilder {
    Ask::metadata(&versioned.as_name().parent().to_buf()).interest
}

/// Whether this answer to it names that version.
pub(crate) fn names_version(metadata: &DataBuf, versioned: &NameBuf) -> bool {
    versioned_name(metadata).is_ok_and(|name| name == *versioned)
}

/// One of the Interests that may be answered.
struct Ask {
    interest: InterestBuilder,
    is_metadata: bool,
    /// When it is to be sent again; `None`: it is answered, or given up.
    due: Option<Instant>,
    sent: usize,
    nacks: u32,
    outstanding: Vec<Outstanding>,
}

impl Ask {
    fn new(interest: InterestBuilder, is_metadata: bool) -> Self {
        Ask { interest, is_metadata, due: Some(Instant::now()), sent: 0, nacks: 0, outstanding: Vec::new() }
    }

    fn metadata(name: &NameBuf) -> Self {
        Ask::new(InterestBuilder::new(name.join(METADATA)).can_be_prefix(true).must_be_fresh(true), true)
    }

    fn prefix(name: &NameBuf, must_be_fresh: bool) -> Self {
        Ask::new(InterestBuilder::new(name.clone()).can_be_prefix(true).must_be_fresh(must_be_fresh), false)
    }
}

struct Search<'a> {
    client: &'a Client,
    name: &'a NameBuf,
    options: &'a FetchOptions,
    waits_for_producer: bool,
    asks: Vec<Ask>,
    sender: mpsc::UnboundedSender<(u64, Outcome)>,
    receiver: mpsc::UnboundedReceiver<(u64, Outcome)>,
    best: Option<Found>,
    /// Why nothing was found.
    cause: ExpressError,
    /// A segment that only a manifest can make trusted, which anybody may have made; or a packet further below the
    /// name, which may be of another object. It is used if nothing else comes.
    doubtful: Option<Found>,
    /// What a producer says that it does not have.
    application_nack: Option<NameBuf>,
    /// What was found and cannot be used. A forged answer hides no true one.
    refused: Option<FetchError>,
    is_connection_lost: bool,
    backoff: Backoff,
}

impl<'a> Search<'a> {
    fn new(client: &'a Client, name: &'a NameBuf, options: &'a FetchOptions, asks: Vec<Ask>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let cause = ExpressError::Timeout(0);
        let waits_for_producer = options.waits_for_producer;
        Search {
            client,
            name,
            options,
            waits_for_producer,
            asks,
            sender,
            receiver,
            best: None,
            cause,
            doubtful: None,
            application_nack: None,
            refused: None,
            is_connection_lost: false,
            backoff: Backoff::default(),
        }
    }

    /// Asks until something is found, and nothing newer is to be expected; or nobody is left to ask.
    async fn run(&mut self, end: Instant) -> Result<Result<Found, ExpressError>, FetchError> {
        let start = Instant::now();
        let mut end = end;
        loop {
            if self.is_connection_lost {
                let lost_at = Instant::now();
                self.reconnect().await?;
                end += lost_at.elapsed();
            }
            self.send_due().await?;
            if self.is_connection_lost {
                continue;
            }
            let due = self.asks.iter().filter_map(|ask| ask.due).min();
            let is_hopeless = due.is_none() && self.asks.iter().all(|ask| ask.outstanding.is_empty());
            if is_hopeless || Instant::now() >= end {
                break;
            }
            let wake = due.map_or(end, |due| due.min(end));
            tokio::select! {
                biased;
                Some((index, outcome)) = self.receiver.recv() => {
                    let (had_best, had_doubtful) = (self.best.is_some(), self.doubtful.is_some());
                    self.handle(index as usize, outcome).await?;
                    if self.doubtful.is_some() && !had_doubtful {
                        end = end.min(Instant::now() + DOUBTFUL_PATIENCE);
                    }
                    if self.best.is_some() && !had_best {
                        let window = start.elapsed().clamp(COMPARED_AT_LEAST, COMPARED_AT_MOST);
                        end = end.min(Instant::now() + window);
                    }
                }
                () = sleep_until(wake) => {}
            }
        }
        match (self.best.take().or(self.doubtful.take()), self.refused.take()) {
            (Some(found), _) => Ok(Ok(found)),
            (None, Some(refused)) => Err(refused),
            (None, None) => Ok(Err(self.cause.clone())),
        }
    }

    /// Opens another connection. What waits for an answer is asked again.
    async fn reconnect(&mut self) -> Result<(), FetchError> {
        let came_back = self.client.come_back_within(self.options.reconnect, &mut self.backoff).await;
        came_back.map_err(FetchError::Connection)?;
        while let Ok((index, outcome)) = self.receiver.try_recv() {
            self.handle(index as usize, outcome).await?;
        }
        self.is_connection_lost = false;
        for ask in self.asks.iter_mut().filter(|ask| !ask.outstanding.is_empty()) {
            ask.outstanding.clear();
            ask.due = Some(Instant::now());
        }
        Ok(())
    }

    async fn send_due(&mut self) -> Result<(), FetchError> {
        let now = Instant::now();
        for (index, ask) in self.asks.iter_mut().enumerate() {
            // What was found is compared with what is under way, not asked again.
            if ask.due.is_none_or(|due| due > now) || self.best.is_some() {
                continue;
            }
            let mut interest = ask.interest.clone().nonce(fresh_nonce()).lifetime_ms(self.options.lifetime_ms);
            let hint = self.options.hint_of(ask.sent);
            if !hint.is_empty() {
                interest = interest.forwarding_hint(hint);
            }
            let completion = Completion::Tagged(index as u64, self.sender.clone());
            let slot = self.client.slot().await;
            match self.client.send_interest(&interest.build(), completion, slot).await {
                Ok(outstanding) => ask.outstanding.push(outstanding),
                Err(ExpressError::Closed(_)) if self.options.can_reconnect() => {
                    self.is_connection_lost = true;
                    return Ok(());
                }
                Err(error) => return Err(FetchError::Connection(error)),
            }
            ask.due = Some(now + PAUSES[ask.sent.min(PAUSES.len() - 1)]);
            ask.sent += 1;
            // The earliest has outlived its lifetime.
            if ask.outstanding.len() > PAUSES.len() {
                ask.outstanding.remove(0);
            }
        }
        if self.best.is_some() {
            self.asks.iter_mut().for_each(|ask| ask.due = None);
        }
        Ok(())
    }

    async fn handle(&mut self, index: usize, outcome: Outcome) -> Result<(), FetchError> {
        let ask = &mut self.asks[index];
        match outcome {
            // A Nack for another name below this one satisfies a prefix Interest, too.
            Ok(data) if is_no_object(&data) => {
                let is_of_metadata = data.name().get(self.name.as_name().len()) == Some(METADATA);
                if !is_of_metadata || self.application_nack.is_none() {
                    self.application_nack = Some(data.name().to_buf());
                }
                self.nacked(index, NackReason::None);
                Ok(())
            }
            Ok(data) => {
                (ask.due, ask.outstanding) = (None, Vec::new());
                let is_metadata = ask.is_metadata;
                if let Some(watch) = self.options.watch.as_ref().filter(|_| is_metadata) {
                    watch.tell(&FetchEvent::Metadata(&data.data()));
                }
                self.refused = self.consider(is_metadata, data).await.err().or(self.refused.take());
                Ok(())
            }
            Err(ExpressError::Nack(reason)) => {
                self.nacked(index, reason);
                Ok(())
            }
            Err(ExpressError::Closed(_)) if self.options.can_reconnect() => {
                self.is_connection_lost = true;
                Ok(())
            }
            Err(error) => Err(FetchError::Connection(error)),
        }
    }

    /// Nobody has an answer now; somebody may soon.
    fn nacked(&mut self, index: usize, reason: NackReason) {
        let is_only_ask = self.asks.len() == 1;
        let ask = &mut self.asks[index];
        ask.nacks += 1;
        ask.outstanding.clear();
        let gives_up = ask.nacks >= NACKS_MAX * self.options.ways() as u32 && !self.waits_for_producer;
        let pause = match reason {
            NackReason::Duplicate => Duration::ZERO,
            _ => (NACK_PAUSE * (1 << (ask.nacks - 1).min(10))).min(NACK_PAUSE_LAST),
        };
        ask.due = (!gives_up).then(|| Instant::now() + pause);
        if !ask.is_metadata || is_only_ask {
            self.cause = ExpressError::Nack(reason);
        }
    }

    /// Keeps what was found, if it is newer than what there is.
    async fn consider(&mut self, is_metadata: bool, data: DataBuf) -> Result<(), FetchError> {
        let is_unsigned = data.data().signature_info().signature_type() == signature_type::DIGEST_SHA256;
        if self.options.validator.is_some() && is_unsigned && !is_metadata {
            self.doubtful = Some(classify(self.name, data)?);
            return Ok(());
        }
        require_trust(self.client, self.options, &data.data()).await?;
        let found = classify(self.name, data)?;
        let is_below = found.base != *self.name && version_below(self.name, &found.base).is_none();
        if is_below && !is_metadata {
            self.doubtful.get_or_insert(found);
            return Ok(());
        }
        let is_better = match &self.best {
            None => true,
            Some(best) => match (version_below(self.name, &best.base), version_below(self.name, &found.base)) {
                (Some(old), Some(new)) if old == new => matches!(best.first, Discovered::Name),
                (Some(old), Some(new)) => new > old,
                // Metadata says what the object is; any packet below the name may be part of another one.
                (best_version, _) => best_version.is_none() && is_metadata,
            },
        };
        if is_better {
            self.best = Some(found);
        }
        Ok(())
    }
}

/// An application Nack, or a manifest.
fn is_no_object(data: &DataBuf) -> bool {
    matches!(data.data().content_type(), content_type::NACK | content_type::MANIFEST)
}

/// The version in `versioned`, if it is `name` and a version.
fn version_below(name: &NameBuf, versioned: &NameBuf) -> Option<u64> {
    let is_directly_below = versioned.as_name().len() == name.as_name().len() + 1;
    let last =
        versioned.as_name().last().filter(|_| is_directly_below && name.as_name().is_prefix_of(&versioned.as_name()));
    last?.version()
}

fn classify(asked: &NameBuf, data: DataBuf) -> Result<Found, FetchError> {
    let view = data.data();
    let name = view.name();
    if name.get(asked.len()) == Some(METADATA) {
        let base = versioned_name(&data)?;
        return Ok(Found { base, first: Discovered::Name, is_from_cache: false });
    }
    let (base, first) = match name.last().and_then(|last| last.segment()) {
        Some(segment) => (name.parent().to_buf(), Discovered::Segment(segment, data.clone())),
        None => (name.to_buf(), Discovered::Single(data.clone())),
    };
    Ok(Found { base, first, is_from_cache: false })
}

fn versioned_name(metadata: &DataBuf) -> Result<NameBuf, FetchError> {
    let view = metadata.data();
    if view.signature_info().signature_type() == signature_type::DIGEST_SHA256 && !view.verify_digest_sha256() {
        return Err(FetchError::BadDigest(view.name().to_buf()));
    }
    // More elements may follow the Name.
    tlv::read_element(view.content())
        .ok()
        .and_then(|element| Name::parse_tlv(element.wire).ok())
        .filter(|name| !name.is_empty())
        .map(|name| name.to_buf())
        .ok_or_else(|| FetchError::BadMetadata(view.name().to_buf()))
}
