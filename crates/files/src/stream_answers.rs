//! Which answer each Interest for a stream gets, and when. No socket, no clock: time is an argument, and an Interest is
//! what the caller wants it to be (`T`).
//!
//! | segment asked for | answer |
//! | --- | --- |
//! | is there | its packet |
//! | may come, and is at most [`SEGMENTS_AHEAD_MAX`] ahead | held: answered when the segment is there, forgotten at the end of the Interest's lifetime, or after [`HELD_TIME_MAX`] |
//! | is further ahead | nothing |
//! | is gone | application Nack |
//! | is behind the end | application Nack with the FinalBlockId. Held Interests are forgotten when the end is known: their consumers learn it from the last segment |
//! | would come after the input has failed | application Nack |
//!
//! The names that are no segments get the answers of [`namewire_client::object_protocol`]. A prefix Interest is one for
//! the oldest segment that is there.
//!
//! A segment that is not full is sent when an Interest has waited for it, and its first byte is [`LINGER`] old: lines
//! that a person types arrive at once, and a fast stream has full segments.
//!
//! A stream is delivered when each of its segments has been sent, and none has been asked for in the last
//! [`QUIET_TIME`]. So a segment that was never sent is kept until somebody asks for it, and one that a lost connection
//! took with it counts as not sent. Metadata, and what does not exist, count for nothing: others may ask for these at
//! any time.
//!
//! Limits, each with what happens then:
//! - [`StreamOptions::keep_bytes`] of segments that were sent: the oldest go. A segment that was not sent stays, and
//!   those behind it too;
//! - [`READ_AHEAD_BYTES`] after the highest segment asked for, or as many more than may be kept:
//!   [`StreamAnswers::wants_bytes`] is false, and the program that writes waits. An Interest for a segment that is
//!   further ahead counts as one for the end of what may be read: one alone does not make a whole stream be read;
//! - [`HELD_MAX`] held Interests: a new one gets nothing, and its consumer asks again. [`HELD_PER_SEGMENT_MAX`] of one
//!   segment: the first goes.

use crate::{
    standing::Place,
    stream_segments::{Found, KEPT_OVERHEAD_BYTES, StreamSegments},
};
use namewire_client::{
    Data, Interest, NackReason, NameBuf, PublishError, PublishOptions, REORDER_SEGMENTS_MAX, Reply,
    object_protocol::{Asked, application_nack, metadata},
    packet::Name,
    security::SignError,
    segment_publish::{SEGMENT_BYTES_MAX, version_of_time},
};
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fs::File,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::time::Instant;

/// Bytes of sent segments that are kept by default, 33 MiB: all segments that a consumer may wait for in the middle of
/// what it has.
pub const KEEP_BYTES_DEFAULT: usize = REORDER_SEGMENTS_MAX as usize * (SEGMENT_BYTES_MAX + KEPT_OVERHEAD_BYTES);
/// Bytes that are read after the highest segment that was asked for.
pub const READ_AHEAD_BYTES: usize = 8 * 1024 * 1024;
/// How long the bytes of a segment that is not full wait for others.
pub const LINGER: Duration = Duration::from_millis(2);
/// How long no segment is asked for before a stream counts as delivered: a consumer may ask again for what was lost.
pub const QUIET_TIME: Duration = Duration::from_secs(2);
/// How long an Interest is held, whatever its lifetime.
pub const HELD_TIME_MAX: Duration = Duration::from_secs(60);
/// Interests that are held.
pub const HELD_MAX: usize = 16 * 1024;
/// Interests for one segment that are held: retransmissions, and those with other selectors.
pub const HELD_PER_SEGMENT_MAX: usize = 8;
/// An Interest for a segment that is further ahead gets nothing. Consumers ask for a few thousand at once.
pub const SEGMENTS_AHEAD_MAX: u64 = 16 * 1024;

/// How a stream is served.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// Version (`None`: the time now in microseconds), segment size, freshness, key. The rest is not used.
    pub publish: PublishOptions,
    /// Bytes of sent segments that are kept. With 256 more for each segment, they are the memory that a stream takes
    /// besides [`READ_AHEAD_BYTES`].
    pub keep_bytes: usize,
    /// The growing file that the bytes come from, if they do: segments that are not kept are read from it.
    pub file: Option<Arc<File>>,
}

/// Counters of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounters {
    /// Interests received.
    pub interests: u64,
    /// Data sent: segments, each time, and metadata.
    pub data: u64,
    /// Application Nacks sent.
    pub application_nacks: u64,
    /// Interests that were held.
    pub held: u64,
    /// Interests that got nothing because of a limit, or because nothing answers them.
    pub unanswered: u64,
}

struct Held<T> {
    interest: T,
    until: Instant,
    /// The Interest has the segment's name, not a prefix of it.
    is_exact: bool,
    /// Different for each.
    number: u64,
}

/// See the module.
pub(crate) struct StreamAnswers<T> {
    object: NameBuf,
    version: u64,
    versioned_name: NameBuf,
    publish: PublishOptions,
    keep_bytes: usize,
    segments: StreamSegments,
    held: BTreeMap<u64, Vec<Held<T>>>,
    /// When each of them is forgotten: the time, its segment and its number.
    expiries: BTreeSet<(Instant, u64, u64)>,
    /// The highest segment that was asked for, as far as it counts.
    asked: Option<u64>,
    /// When a segment was asked for that was there, or came.
    sent_at: Option<Instant>,
    /// When the first byte of the rest came.
    rest_since: Option<Instant>,
    has_failed: bool,
    counters: StreamCounters,
}

/// Answers, each with its Interest.
pub(crate) type Replies<T> = Vec<(T, Reply)>;

impl<T> StreamAnswers<T> {
    /// A stream under `object` that has no bytes yet.
    ///
    /// # Errors
    /// If the options do not fit.
    pub(crate) fn new(object: &NameBuf, options: StreamOptions) -> Result<Self, PublishError> {
        let StreamOptions { publish, keep_bytes, file } = options;
        let version = publish.version.unwrap_or_else(|| version_of_time(SystemTime::now()));
        let mut versioned_name = object.clone();
        versioned_name.push_version(version);
        publish.check_fit(&versioned_name)?;
        Ok(StreamAnswers {
            object: object.clone(),
            version,
            segments: StreamSegments::new(versioned_name.clone(), publish.clone(), file),
            versioned_name,
            publish,
            keep_bytes,
            held: BTreeMap::new(),
            expiries: BTreeSet::new(),
            asked: None,
            sent_at: None,
            rest_since: None,
            has_failed: false,
            counters: StreamCounters::default(),
        })
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn versioned_name(&self) -> &NameBuf {
        &self.versioned_name
    }

    pub(crate) fn counters(&self) -> StreamCounters {
        self.counters
    }

    pub(crate) fn segments(&self) -> &StreamSegments {
        &self.segments
    }

    /// True once each segment was sent, and the end is known.
    pub(crate) fn is_all_sent(&self) -> bool {
        self.segments.last().is_some_and(|last| self.segments.sent() == last + 1)
    }

    /// When the stream is delivered, if no segment is asked for before.
    pub(crate) fn delivered_at(&self) -> Option<Instant> {
        self.sent_at.filter(|_| self.is_all_sent()).map(|at| at + QUIET_TIME)
    }

    /// True if the stream is delivered. Without a connection nobody can ask: the time begins again.
    pub(crate) fn is_delivered(&mut self, now: Instant, is_connected: bool) -> bool {
        if !is_connected {
            self.sent_at = self.sent_at.map(|_| now);
        }
        self.delivered_at().is_some_and(|at| at <= now)
    }

    /// These answers did not leave: the segments in them count as not sent.
    pub(crate) fn take_back(&mut self, replies: &Replies<T>) {
        for (_, reply) in replies {
            let Reply::Data(wire) = reply else { continue };
            let segment = Data::parse(wire).ok().and_then(|data| data.name().last()?.segment());
            segment.into_iter().for_each(|segment| self.segments.take_back(segment));
        }
    }

    /// True if the stream can take more bytes now.
    pub(crate) fn wants_bytes(&self) -> bool {
        self.segments.last().is_none()
            && !self.has_failed
            && self.segments.next() < self.begun() + self.segments_ahead()
            && self.segments.kept_bytes() <= self.keep_bytes.saturating_add(READ_AHEAD_BYTES)
    }

    /// Segments up to the highest that was asked for, of those that may be read next.
    fn begun(&self) -> u64 {
        let near = ..=self.segments.next() + self.segments_ahead();
        let held = self.held.range(near).next_back().map(|(segment, _)| *segment);
        self.asked.max(held).map_or(0, |asked| asked + 1)
    }

    /// Segments that are read after those.
    fn segments_ahead(&self) -> u64 {
        (READ_AHEAD_BYTES / self.full_cost_bytes()) as u64
    }

    /// When [`StreamAnswers::cut_rest`] has something to do; `None`: not before the next Interest or byte.
    pub(crate) fn cut_at(&self) -> Option<Instant> {
        let is_awaited = self.segments.has_rest() && self.held.contains_key(&self.segments.next());
        self.rest_since.filter(|_| is_awaited).map(|since| since + LINGER)
    }

    /// Answers an Interest at once, or holds it.
    pub(crate) fn answer(
        &mut self,
        interest: &Interest<'_>,
        token: T,
        place: Place,
        now: Instant,
        replies: &mut Replies<T>,
    ) {
        self.counters.interests += 1;
        let lifetime = Duration::from_millis(interest.lifetime_ms());
        let (name, until, number) = (interest.name(), now + lifetime.min(HELD_TIME_MAX), self.counters.interests);
        let reply = match Asked::of(interest, &self.object, &self.versioned_name) {
            Asked::Metadata if place.is_superseded => Reply::Nack(NackReason::NoRoute),
            Asked::AnySegment if place.is_superseded && name.len() == self.object.len() => {
                Reply::Nack(NackReason::NoRoute)
            }
            Asked::Metadata => {
                let metadata = metadata(&self.object, &self.versioned_name, &self.publish.signer);
                metadata.map_or(Reply::Nothing, |wire| Reply::Data(wire.into()))
            }
            Asked::AnySegment => {
                let held = Held { interest: token, until, is_exact: false, number };
                return self.answer_segment(self.segments.oldest(), held, now, replies);
            }
            Asked::Segment { segment, has_digest } => {
                let held = Held { interest: token, until, is_exact: !has_digest, number };
                return self.answer_segment(segment, held, now, replies);
            }
            // A manifest needs the end before the beginning.
            Asked::Absent | Asked::Manifest(_) => {
                let version = name.get(self.object.len()).and_then(|component| component.version());
                match version {
                    Some(_) if version == place.other_version => Reply::Nack(NackReason::NoRoute),
                    _ => self.nack(name),
                }
            }
            Asked::Unanswerable => Reply::Nothing,
        };
        self.reply(token, reply, replies);
    }

    fn answer_segment(&mut self, segment: u64, held: Held<T>, now: Instant, replies: &mut Replies<T>) {
        let found = self.segments.send(segment);
        if segment < self.segments.next() + SEGMENTS_AHEAD_MAX && self.segments.last().is_none() {
            let counted = segment.min(self.segments.next() + self.segments_ahead());
            self.asked = self.asked.max(Some(counted));
        }
        let reply = match found {
            Found::Packet(wire) => {
                self.sent_at = Some(now);
                Reply::Data(wire)
            }
            Found::NotYet if !self.has_failed => return self.hold(segment, held, now, replies),
            Found::Failed => Reply::Nothing,
            Found::NotYet | Found::Gone | Found::Beyond if held.is_exact => self.nack_of_segment(segment),
            Found::NotYet | Found::Gone | Found::Beyond => Reply::Nothing,
        };
        self.reply(held.interest, reply, replies);
        self.drop_oldest();
    }

    fn hold(&mut self, segment: u64, held: Held<T>, now: Instant, replies: &mut Replies<T>) {
        self.forget_expired(now);
        let is_too_far = segment >= self.segments.next() + SEGMENTS_AHEAD_MAX;
        if is_too_far || self.expiries.len() >= HELD_MAX {
            return self.reply(held.interest, Reply::Nothing, replies);
        }
        let waiting = self.held.entry(segment).or_default();
        if waiting.len() == HELD_PER_SEGMENT_MAX {
            let first = waiting.remove(0);
            self.expiries.remove(&(first.until, segment, first.number));
        }
        self.expiries.insert((held.until, segment, held.number));
        waiting.push(held);
        self.counters.held += 1;
    }

    /// Cost: O(log n) for each Interest that was held.
    fn forget_expired(&mut self, now: Instant) {
        while let Some((_, segment, number)) = self.expiries.first().copied().filter(|(until, ..)| *until <= now) {
            self.expiries.pop_first();
            let Entry::Occupied(mut waiting) = self.held.entry(segment) else { continue };
            waiting.get_mut().retain(|held| held.number != number);
            if waiting.get().is_empty() {
                waiting.remove();
            }
        }
    }

    /// Takes bytes, and answers the Interests that have waited for them.
    pub(crate) fn push(&mut self, bytes: &[u8], now: Instant, replies: &mut Replies<T>) {
        let next = self.segments.next();
        self.segments.push(bytes);
        if self.segments.next() > next || self.rest_since.is_none() {
            self.rest_since = self.segments.has_rest().then_some(now);
        }
        self.release(now, replies);
    }

    /// Makes the bytes a segment that have waited long enough, if an Interest waits for it.
    pub(crate) fn cut_rest(&mut self, now: Instant, replies: &mut Replies<T>) {
        if self.cut_at().is_some_and(|at| at <= now) {
            self.segments.cut_rest();
            self.rest_since = None;
            self.release(now, replies);
        }
    }

    /// No more bytes come: the stream is whole.
    pub(crate) fn finish(&mut self, now: Instant, replies: &mut Replies<T>) {
        self.segments.finish();
        self.release(now, replies);
        self.held.clear();
        self.expiries.clear();
    }

    /// No more bytes come, and the stream is not whole.
    pub(crate) fn fail(&mut self, replies: &mut Replies<T>) {
        self.has_failed = true;
        for (segment, waiting) in std::mem::take(&mut self.held) {
            for held in waiting {
                let reply = if held.is_exact { self.nack_of_segment(segment) } else { Reply::Nothing };
                self.reply(held.interest, reply, replies);
            }
        }
        self.expiries.clear();
    }

    /// Answers the held Interests whose segments are there now.
    fn release(&mut self, now: Instant, replies: &mut Replies<T>) {
        self.forget_expired(now); // an answer after the lifetime would be one that nobody asked for
        let later = self.held.split_off(&self.segments.next());
        for (segment, waiting) in std::mem::replace(&mut self.held, later) {
            self.asked = self.asked.max(Some(segment));
            for held in waiting {
                self.expiries.remove(&(held.until, segment, held.number));
                let Found::Packet(wire) = self.segments.send(segment) else { continue };
                self.sent_at = Some(now);
                self.reply(held.interest, Reply::Data(wire), replies);
            }
        }
        self.drop_oldest();
    }

    fn drop_oldest(&mut self) {
        if let Some(asked) = self.asked {
            // A segment that was not asked for is full, unless it is the last one.
            let ahead = self.segments.next().saturating_sub(self.begun()) as usize;
            self.segments.drop_oldest(self.keep_bytes.saturating_add(ahead * self.full_cost_bytes()), asked);
        }
    }

    /// Memory of a full segment.
    fn full_cost_bytes(&self) -> usize {
        self.publish.segment_bytes + KEPT_OVERHEAD_BYTES
    }

    fn nack_of_segment(&mut self, segment: u64) -> Reply {
        let mut name = self.versioned_name.clone();
        name.push_segment(segment);
        self.nack(name.as_name())
    }

    fn nack(&mut self, name: Name<'_>) -> Reply {
        let nack: Result<Option<Vec<u8>>, SignError> =
            application_nack(name, self.segments.last(), &self.publish.signer);
        nack.ok().flatten().map_or(Reply::Nothing, |wire| Reply::UncachedData(wire.into()))
    }

    fn reply(&mut self, token: T, reply: Reply, replies: &mut Replies<T>) {
        match reply {
            Reply::Data(_) => self.counters.data += 1,
            Reply::UncachedData(_) => self.counters.application_nacks += 1,
            Reply::Nothing => self.counters.unanswered += 1,
            Reply::Nack(_) => {}
        }
        if reply != Reply::Nothing {
            replies.push((token, reply));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_client::{InterestBuilder, packet::content_type};

    const CONTENT: &[u8] = b"abcdefghij";

    fn stream(segment_bytes: usize, keep_bytes: usize) -> StreamAnswers<u32> {
        let publish = PublishOptions { segment_bytes, version: Some(1), ..PublishOptions::default() };
        StreamAnswers::new(&"/s".parse().unwrap(), StreamOptions { publish, keep_bytes, file: None }).unwrap()
    }

    struct Session {
        stream: StreamAnswers<u32>,
        now: Instant,
        interests: u32,
        place: Place,
        replies: Replies<u32>,
    }

    impl Session {
        fn of(stream: StreamAnswers<u32>) -> Self {
            Session { stream, now: Instant::now(), interests: 0, place: Place::default(), replies: Vec::new() }
        }

        /// Sends the next Interest; the first is number 1.
        fn ask(&mut self, uri: &str) {
            self.ask_for(uri, 4000);
        }

        fn ask_for(&mut self, uri: &str, lifetime_ms: u64) {
            let name: NameBuf = uri.parse().unwrap();
            let interest = InterestBuilder::new(&name).can_be_prefix(uri.ends_with("metadata") || uri == "/s");
            self.interests += 1;
            let wire = interest.lifetime_ms(lifetime_ms).build();
            let interest = Interest::parse(&wire).unwrap();
            self.stream.answer(&interest, self.interests, self.place, self.now, &mut self.replies);
        }

        fn push(&mut self, bytes: &[u8]) {
            self.stream.push(bytes, self.now, &mut self.replies);
        }

        /// Number of the Interest, content and FinalBlockId of each Data; "nack" for the content of a Nack.
        fn got(&mut self) -> Vec<(u32, String, Option<u64>)> {
            let seen = |(number, reply): (u32, Reply)| match reply {
                Reply::Data(wire) | Reply::UncachedData(wire) => {
                    let data = Data::parse(&wire).unwrap();
                    let is_nack = data.content_type() == content_type::NACK;
                    let content =
                        if is_nack { "nack".to_owned() } else { String::from_utf8_lossy(data.content()).into() };
                    (number, content, data.final_block_id().and_then(|last| last.segment()))
                }
                Reply::Nack(reason) => (number, reason.to_string(), None),
                Reply::Nothing => unreachable!("it is not pushed"),
            };
            self.replies.drain(..).map(seen).collect()
        }
    }

    fn data(number: u32, content: &str, last: Option<u64>) -> (u32, String, Option<u64>) {
        (number, content.to_owned(), last)
    }

    #[test]
    fn interests_wait_for_their_segments_and_the_last_one_tells_the_end() {
        let mut session = Session::of(stream(4, 1000));
        for segment in 0..5 {
            session.ask(&format!("/s/v=1/seg={segment}"));
        }
        session.ask("/s");
        session.push(CONTENT);
        assert_eq!(session.got(), [data(1, "abcd", None), data(6, "abcd", None), data(2, "efgh", None)]);
        session.stream.finish(session.now, &mut session.replies);
        assert_eq!(session.got(), [data(3, "ij", Some(2))], "those behind the end are forgotten");
        assert!(session.stream.is_all_sent());
        session.ask("/s/v=1/seg=0");
        session.ask("/s/v=1/seg=3");
        assert_eq!(session.got(), [data(7, "abcd", Some(2)), data(8, "nack", Some(2))]);
    }

    #[test]
    fn a_part_of_a_segment_is_sent_after_a_moment_if_it_is_awaited() {
        let mut session = Session::of(stream(4, 1000));
        session.push(b"a");
        assert_eq!(session.stream.cut_at(), None, "no Interest waits");
        session.ask("/s/v=1/seg=1");
        assert_eq!(session.stream.cut_at(), None, "not for this one");
        session.ask("/s/v=1/seg=0");
        let at = session.stream.cut_at().unwrap();
        assert_eq!(at, session.now + LINGER);
        session.stream.cut_rest(session.now, &mut session.replies);
        assert_eq!(session.got(), []);
        session.push(b"b");
        assert_eq!(session.stream.cut_at(), Some(at), "the first byte counts");
        session.stream.cut_rest(at, &mut session.replies);
        assert_eq!(session.got(), [data(2, "ab", None)]);
        session.push(b"cdefg");
        assert_eq!(session.got(), [data(1, "cdef", None)]);
        session.ask("/s/v=1/seg=2");
        assert_eq!(session.stream.cut_at(), Some(session.now + LINGER));
    }

    #[test]
    fn an_interest_whose_lifetime_is_over_gets_nothing() {
        let mut session = Session::of(stream(4, 1000));
        session.ask("/s/v=1/seg=0");
        session.now += Duration::from_secs(3);
        session.ask("/s/v=1/seg=0");
        session.now += Duration::from_secs(2);
        session.push(CONTENT);
        assert_eq!(session.got(), [data(2, "abcd", None)]);
    }

    #[test]
    fn names_that_do_not_exist_get_nacks() {
        let mut session = Session::of(stream(4, 1000));
        session.ask("/s/v=2/seg=0");
        session.ask("/s/v=1/x");
        session.ask("/s/32=metadata");
        let got = session.got();
        assert_eq!(got[..2], [data(1, "nack", None), data(2, "nack", None)]);
        assert_eq!((got[2].0, got[2].2), (3, Some(0)), "metadata comes before the first byte");
        session.place = Place { is_superseded: true, other_version: Some(2) };
        for name in ["/s/32=metadata", "/s", "/s/v=2/seg=0", "/s/v=3/seg=0"] {
            session.ask(name);
        }
        let no_route = NackReason::NoRoute.to_string();
        let refused = |number| data(number, &no_route, None);
        assert_eq!(session.got(), [refused(4), refused(5), refused(6), data(7, "nack", None)]);
    }

    #[test]
    fn a_stream_whose_input_fails_has_no_end_and_says_so() {
        let mut session = Session::of(stream(4, 1000));
        session.push(CONTENT);
        session.ask("/s/v=1/seg=2");
        session.stream.fail(&mut session.replies);
        session.ask("/s/v=1/seg=3");
        session.ask("/s/v=1/seg=1");
        assert_eq!(session.got(), [data(1, "nack", None), data(2, "nack", None), data(3, "efgh", None)]);
        assert!(!session.stream.wants_bytes());
    }

    /// Ten times the limits pass through, asked for in order: memory stays within them, and the oldest go.
    #[test]
    fn reading_waits_for_those_who_ask_and_memory_is_bounded() {
        let (segment_bytes, keep_bytes) = (8000, 1_000_000);
        let mut session = Session::of(stream(segment_bytes, keep_bytes));
        let segment = vec![7; segment_bytes];
        let mut read = 0;
        let mut fill = |session: &mut Session| {
            while session.stream.wants_bytes() {
                session.push(&segment);
                read += 1;
            }
            read
        };
        let ahead = fill(&mut session);
        assert_eq!(ahead, (READ_AHEAD_BYTES / (segment_bytes + KEPT_OVERHEAD_BYTES)) as u64);
        for asked in 0..10_000 {
            session.ask(&format!("/s/v=1/seg={asked}"));
            assert_eq!(session.got().len(), 1, "segment {asked}");
            assert_eq!(fill(&mut session), ahead + asked + 1);
            let segments = session.stream.segments();
            let kept_bytes = (segments.next() - segments.oldest()) as usize * (segment_bytes + KEPT_OVERHEAD_BYTES);
            assert!(kept_bytes <= keep_bytes + READ_AHEAD_BYTES + 2 * segment_bytes, "{kept_bytes}");
        }
        session.ask("/s/v=1/seg=0");
        let last = session.interests;
        assert_eq!(session.got(), [data(last, "nack", None)], "it is gone");
        session.ask("/s");
        assert_eq!(session.got().len(), 1, "the oldest that is there");
    }

    /// Pushes segments while the stream wants bytes; returns how many there are.
    fn fill(session: &mut Session, segment_bytes: usize) -> u64 {
        let segment = vec![7; segment_bytes];
        while session.stream.wants_bytes() {
            session.push(&segment);
        }
        session.got();
        session.stream.segments().next()
    }

    /// One Interest for segment 16,000 let the whole stream be read, and dropped what nobody had.
    #[test]
    fn an_interest_far_ahead_does_not_end_back_pressure() {
        let mut session = Session::of(stream(8000, KEEP_BYTES_DEFAULT));
        let ahead = fill(&mut session, 8000);
        session.ask(&format!("/s/v=1/seg={}", SEGMENTS_AHEAD_MAX - 1));
        assert!(fill(&mut session, 8000) <= 3 * ahead + 1, "{}", session.stream.segments().next());
        // Who asks for all that it may have in flight gets all of it.
        let mut session = Session::of(stream(8000, KEEP_BYTES_DEFAULT));
        for segment in 0..4096 {
            session.ask(&format!("/s/v=1/seg={segment}"));
        }
        assert!(fill(&mut session, 8000) >= 4096);
    }

    /// A consumer asks for up to 4096 segments, the first of which is lost on its way to the consumer.
    #[test]
    fn what_a_consumer_still_waits_for_is_kept() {
        let mut session = Session::of(stream(8000, KEEP_BYTES_DEFAULT));
        for segment in 0..4096 {
            fill(&mut session, 8000);
            session.ask(&format!("/s/v=1/seg={segment}"));
        }
        session.got();
        session.ask("/s/v=1/seg=0");
        let got = session.got();
        assert!(got.len() == 1 && got[0].1 != "nack", "{:?}", got.first().map(|got| &got.1[..4]));
    }

    /// Its Interest was lost, those for later ones were not, and it was gone when it was asked for again.
    #[test]
    fn a_segment_that_was_never_sent_is_kept_until_it_is() {
        let mut session = Session::of(stream(4, 0));
        session.push(CONTENT);
        session.ask("/s/v=1/seg=1");
        session.ask("/s/v=1/seg=2");
        session.stream.finish(session.now, &mut session.replies);
        assert_eq!(session.got(), [data(1, "efgh", None), data(2, "ij", Some(2))]);
        assert!(!session.stream.is_all_sent());
        session.ask("/s/v=1/seg=0");
        assert_eq!(session.got(), [data(3, "abcd", Some(2))]);
        assert!(session.stream.is_all_sent());
    }

    /// `--once` did not end while others asked for the metadata, as each producer of the name does every 2 s, and ended
    /// while its router was away.
    #[test]
    fn a_stream_is_delivered_when_all_was_sent_and_nothing_is_asked_for_again() {
        let mut session = Session::of(stream(4, 0));
        session.push(CONTENT);
        session.stream.finish(session.now, &mut session.replies);
        for segment in 0..3 {
            assert_eq!(session.stream.delivered_at(), None);
            session.ask(&format!("/s/v=1/seg={segment}"));
        }
        let sent_at = session.now;
        assert_eq!(session.stream.delivered_at(), Some(sent_at + QUIET_TIME));
        session.now += QUIET_TIME / 2;
        for name in ["/s/32=metadata", "/s/v=1/seg=3", "/s/v=2/seg=0", "/s/v=1/x"] {
            session.ask(name);
        }
        assert_eq!(session.stream.delivered_at(), Some(sent_at + QUIET_TIME));
        assert!(!session.stream.is_delivered(sent_at + QUIET_TIME, false), "nobody could ask");
        assert!(!session.stream.is_delivered(sent_at + QUIET_TIME * 3 / 2, true));
        assert!(session.stream.is_delivered(sent_at + QUIET_TIME * 2, true));
    }

    #[test]
    fn what_did_not_leave_counts_as_not_sent() {
        let mut session = Session::of(stream(4, 1000));
        session.push(CONTENT);
        session.stream.finish(session.now, &mut session.replies);
        for name in ["/s/v=1/seg=0", "/s/v=1/seg=1", "/s/32=metadata"] {
            session.ask(name);
        }
        session.got();
        session.ask("/s/v=1/seg=2");
        assert!(session.stream.is_all_sent());
        let replies = std::mem::take(&mut session.replies);
        session.stream.take_back(&replies);
        session.stream.take_back(&replies);
        assert!(!session.stream.is_all_sent());
        session.ask("/s/v=1/seg=2");
        assert!(session.stream.is_all_sent());
    }

    /// While the oldest waits, the others do not pile up.
    #[test]
    fn a_segment_that_nobody_asks_for_stops_the_reading() {
        let (segment_bytes, keep_bytes) = (8000, 1_000_000);
        let mut session = Session::of(stream(segment_bytes, keep_bytes));
        for asked in 1..10_000 {
            fill(&mut session, segment_bytes);
            session.ask(&format!("/s/v=1/seg={asked}"));
        }
        session.got();
        let bound = (keep_bytes + READ_AHEAD_BYTES) / (segment_bytes + KEPT_OVERHEAD_BYTES) + 2;
        assert!(session.stream.segments().next() <= bound as u64, "{}", session.stream.segments().next());
        session.ask("/s/v=1/seg=0");
        assert_eq!(session.got().len(), 1);
        assert!(session.stream.wants_bytes(), "it goes on");
    }

    #[test]
    fn an_interest_is_held_for_a_minute_at_most() {
        let mut session = Session::of(stream(4, 1000));
        session.ask_for("/s/v=1/seg=0", 3_600_000);
        session.now += Duration::from_secs(59);
        session.ask("/s/v=1/seg=1");
        assert_eq!(session.stream.expiries.len(), 2);
        session.now += Duration::from_secs(2);
        session.ask("/s/v=1/seg=2");
        assert_eq!(session.stream.expiries.len(), 2, "the first has gone");
        session.now += Duration::from_secs(3);
        session.ask("/s/v=1/seg=3");
        assert_eq!(session.stream.expiries.len(), 2, "and the second, before there is a lack of room");
        session.push(CONTENT);
        session.stream.finish(session.now, &mut session.replies);
        assert_eq!(session.got(), [data(3, "ij", Some(2))]);
    }

    #[test]
    fn held_interests_are_bounded() {
        let mut session = Session::of(stream(4, 1000));
        session.ask(&format!("/s/v=1/seg={SEGMENTS_AHEAD_MAX}"));
        assert_eq!((session.stream.expiries.len(), session.stream.asked), (0, None), "too far ahead");
        for _ in 0..HELD_PER_SEGMENT_MAX + 3 {
            session.ask("/s/v=1/seg=0");
        }
        assert_eq!(session.stream.expiries.len(), HELD_PER_SEGMENT_MAX);
        let first = session.interests;
        for segment in 1..SEGMENTS_AHEAD_MAX {
            session.ask(&format!("/s/v=1/seg={segment}"));
        }
        session.ask("/s/v=1/seg=1");
        assert_eq!(session.stream.expiries.len(), HELD_MAX);
        session.now += Duration::from_secs(5);
        session.ask("/s/v=1/seg=2");
        assert_eq!(session.stream.expiries.len(), 1, "those whose lifetime is over have gone");
        session.push(CONTENT);
        assert_eq!(session.got().len(), 0, "{first}");
    }
}
