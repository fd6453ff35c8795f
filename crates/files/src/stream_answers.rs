//! Which answer each Interest for a stream gets, and when. No socket, no clock: time is an argument, and an Interest is
//! what the caller wants it to be (`T`).
//!
//! | segment asked for | answer |
//! | --- | --- |
//! | is there | its packet |
//! | may come, and is at most [`SEGMENTS_AHEAD_MAX`] ahead | held: answered when the segment is there, forgotten at the end of the Interest's lifetime |
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
//! Limits, each with what happens then:
//! - [`StreamOptions::keep_bytes`] of segments that were asked for: the oldest of them go;
//! - [`READ_AHEAD_BYTES`] after the highest segment asked for: [`StreamAnswers::wants_bytes`] is false, and the program
//!   that writes waits;
//! - [`HELD_MAX`] held Interests, [`HELD_PER_SEGMENT_MAX`] of one segment: those whose lifetime is over go, then a new
//!   one gets nothing, and its consumer asks again.

use crate::{
    standing::Place,
    stream_segments::{Found, KEPT_OVERHEAD_BYTES, StreamSegments},
};
use namewire_client::{
    Interest, NackReason, NameBuf, PublishError, PublishOptions, Reply,
    object_protocol::{Asked, application_nack, metadata},
    packet::Name,
    security::SignError,
    segment_publish::version_of_time,
};
use std::{
    collections::BTreeMap,
    fs::File,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::time::Instant;

/// Bytes of sent segments that are kept by default.
pub const KEEP_BYTES_DEFAULT: usize = 32 * 1024 * 1024;
/// Bytes that are read after the highest segment that was asked for.
pub const READ_AHEAD_BYTES: usize = 8 * 1024 * 1024;
/// How long the bytes of a segment that is not full wait for others.
pub const LINGER: Duration = Duration::from_millis(2);
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
    held_total: usize,
    /// The highest segment that was asked for.
    asked: Option<u64>,
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
            held_total: 0,
            asked: None,
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

    /// True if the stream can take more bytes now.
    pub(crate) fn wants_bytes(&self) -> bool {
        let segments_ahead = (READ_AHEAD_BYTES / self.full_cost_bytes()) as u64;
        let begun = self.asked.map_or(0, |asked| asked + 1);
        self.segments.last().is_none() && !self.has_failed && self.segments.next() < begun + segments_ahead
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
        let (name, until) = (interest.name(), now + Duration::from_millis(interest.lifetime_ms()));
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
                let held = Held { interest: token, until, is_exact: false };
                return self.answer_segment(self.segments.oldest(), held, now, replies);
            }
            Asked::Segment { segment, has_digest } => {
                let held = Held { interest: token, until, is_exact: !has_digest };
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
            self.asked = self.asked.max(Some(segment));
        }
        let reply = match found {
            Found::Packet(wire) => Reply::Data(wire),
            Found::NotYet if !self.has_failed => return self.hold(segment, held, now, replies),
            Found::Failed => Reply::Nothing,
            Found::NotYet | Found::Gone | Found::Beyond if held.is_exact => self.nack_of_segment(segment),
            Found::NotYet | Found::Gone | Found::Beyond => Reply::Nothing,
        };
        self.reply(held.interest, reply, replies);
        self.drop_oldest();
    }

    fn hold(&mut self, segment: u64, held: Held<T>, now: Instant, replies: &mut Replies<T>) {
        if self.held_total >= HELD_MAX {
            self.held.values_mut().for_each(|waiting| waiting.retain(|held| held.until > now));
            self.held.retain(|_, waiting| !waiting.is_empty());
            self.held_total = self.held.values().map(Vec::len).sum();
        }
        let is_too_far = segment >= self.segments.next() + SEGMENTS_AHEAD_MAX;
        if is_too_far || self.held_total >= HELD_MAX {
            return self.reply(held.interest, Reply::Nothing, replies);
        }
        let waiting = self.held.entry(segment).or_default();
        if waiting.len() == HELD_PER_SEGMENT_MAX {
            waiting.remove(0);
        } else {
            self.held_total += 1;
        }
        waiting.push(held);
        self.counters.held += 1;
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
        self.held_total = 0;
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
        self.held_total = 0;
    }

    /// Answers the held Interests whose segments are there now.
    fn release(&mut self, now: Instant, replies: &mut Replies<T>) {
        let later = self.held.split_off(&self.segments.next());
        for (segment, waiting) in std::mem::replace(&mut self.held, later) {
            self.held_total -= waiting.len();
            // An answer after the lifetime would be one that nobody asked for.
            for held in waiting.into_iter().filter(|held| held.until > now) {
                let Found::Packet(wire) = self.segments.send(segment) else { continue };
                self.reply(held.interest, Reply::Data(wire), replies);
            }
        }
        self.drop_oldest();
    }

    fn drop_oldest(&mut self) {
        if let Some(asked) = self.asked {
            // A segment that was not asked for is full, unless it is the last one.
            let ahead = self.segments.next().saturating_sub(asked + 1) as usize;
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
    use namewire_client::{Data, InterestBuilder, packet::content_type};

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
            let name: NameBuf = uri.parse().unwrap();
            let interest = InterestBuilder::new(&name).can_be_prefix(uri.ends_with("metadata") || uri == "/s");
            self.interests += 1;
            let wire = interest.lifetime_ms(4000).build();
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

    #[test]
    fn held_interests_are_bounded() {
        let mut session = Session::of(stream(4, 1000));
        session.ask(&format!("/s/v=1/seg={SEGMENTS_AHEAD_MAX}"));
        assert_eq!((session.stream.held_total, session.stream.asked), (0, None), "too far ahead");
        for _ in 0..HELD_PER_SEGMENT_MAX + 3 {
            session.ask("/s/v=1/seg=0");
        }
        assert_eq!(session.stream.held_total, HELD_PER_SEGMENT_MAX);
        let first = session.interests;
        for segment in 1..SEGMENTS_AHEAD_MAX {
            session.ask(&format!("/s/v=1/seg={segment}"));
        }
        session.ask("/s/v=1/seg=1");
        assert_eq!(session.stream.held_total, HELD_MAX);
        session.now += Duration::from_secs(5);
        session.ask("/s/v=1/seg=2");
        assert_eq!(session.stream.held_total, 1, "those whose lifetime is over have gone");
        session.push(CONTENT);
        assert_eq!(session.got().len(), 0, "{first}");
    }
}
