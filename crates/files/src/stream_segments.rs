//! The segments of a stream: how its bytes are cut, and which segments are kept.
//!
//! ```text
//!   0 ........ first ──────────────────────── next          bytes that are no segment yet
//!   │  gone    │  kept: content, or the packet │  rest ──► a segment when it is full, or when `cut_rest` is called
//! ```
//!
//! A segment is signed at its first request. Its packet has a FinalBlockId if the end of the stream is known then. A
//! packet made before the end was known is made again when it is asked for after that.
//!
//! The end: the last segment has the rest of the bytes. It is empty if the stream is empty, or if there is no rest and
//! the segment before has been sent already, without a FinalBlockId.
//!
//! Gone segments of a growing file are read from it again. Where a segment begins follows from the segments that are
//! shorter than the others: 16 bytes of memory for each of these.
//!
//! Limits: the caller says how many bytes are kept, and calls [`StreamSegments::drop_oldest`]. A kept segment counts
//! [`KEPT_OVERHEAD_BYTES`] more than its content.

use namewire_client::{Data, NameBuf, PublishOptions, security::SignError};
use std::{collections::VecDeque, fs::File, os::unix::fs::FileExt, sync::Arc};

/// Memory of a kept segment besides its content: name, signature, allocation, place in the queue.
pub(crate) const KEPT_OVERHEAD_BYTES: usize = 256;

/// What there is of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Its packet.
    Packet(Arc<[u8]>),
    /// It may come.
    NotYet,
    /// It was there, and is kept no more.
    Gone,
    /// The stream ends before it.
    Beyond,
    /// It cannot be signed, or read from the file.
    Failed,
}

enum Form {
    Content(Vec<u8>),
    Packet { wire: Arc<[u8]>, content_bytes: usize, tells_end: bool },
}

struct Kept {
    form: Form,
    was_sent: bool,
}

impl Kept {
    fn cost_bytes(&self) -> usize {
        let content_bytes = match &self.form {
            Form::Content(content) => content.len(),
            Form::Packet { content_bytes, .. } => *content_bytes,
        };
        content_bytes + KEPT_OVERHEAD_BYTES
    }
}

/// The file that the stream is read from, and where segments begin in it.
struct Origin {
    file: Arc<File>,
    /// A segment, and its offset: the first one, and each one after a short one.
    starts: Vec<(u64, u64)>,
}

impl Origin {
    fn offset(&self, segment: u64, segment_bytes: usize) -> u64 {
        let after = self.starts.partition_point(|(start, _)| *start <= segment);
        // The first start is that of segment 0.
        let (start, offset) = self.starts[after - 1];
        offset + (segment - start) * segment_bytes as u64
    }
}

/// See the module.
pub(crate) struct StreamSegments {
    versioned_name: NameBuf,
    options: PublishOptions,
    kept: VecDeque<Kept>,
    first: u64,
    kept_bytes: usize,
    rest: Vec<u8>,
    last: Option<u64>,
    origin: Option<Origin>,
    bytes: u64,
    sent: u64,
}

impl StreamSegments {
    /// No bytes yet. `file` is the growing file that they come from, if they do.
    pub(crate) fn new(versioned_name: NameBuf, options: PublishOptions, file: Option<Arc<File>>) -> Self {
        StreamSegments {
            versioned_name,
            options,
            kept: VecDeque::new(),
            first: 0,
            kept_bytes: 0,
            rest: Vec::new(),
            last: None,
            origin: file.map(|file| Origin { file, starts: vec![(0, 0)] }),
            bytes: 0,
            sent: 0,
        }
    }

    /// Number of the segment that comes next.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// The oldest segment that is there.
    pub(crate) fn oldest(&self) -> u64 {
        if self.origin.is_some() { 0 } else { self.first }
    }

    /// Number of the last segment, if the end is known.
    pub(crate) fn last(&self) -> Option<u64> {
        self.last
    }

    /// True if there are bytes that are no segment yet.
    pub(crate) fn has_rest(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Bytes that are in segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Segments that were sent at least once.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Memory of the segments that are kept.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// Appends bytes, and cuts the full segments.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        let segment_bytes = self.options.segment_bytes;
        while !bytes.is_empty() {
            if self.rest.capacity() == 0 {
                self.rest.reserve_exact(segment_bytes);
            }
            let (fits, others) = bytes.split_at(bytes.len().min(segment_bytes - self.rest.len()));
            self.rest.extend_from_slice(fits);
            bytes = others;
            if self.rest.len() == segment_bytes {
                self.cut_rest();
            }
        }
    }

    /// Makes the rest a segment, full or not.
    pub(crate) fn cut_rest(&mut self) {
        let mut content = std::mem::take(&mut self.rest);
        content.shrink_to_fit();
        self.bytes += content.len() as u64;
        let (after, is_short) = (self.next() + 1, content.len() < self.options.segment_bytes);
        if let Some(origin) = self.origin.as_mut().filter(|_| is_short) {
            origin.starts.push((after, self.bytes));
        }
        let kept = Kept { form: Form::Content(content), was_sent: false };
        self.kept_bytes += kept.cost_bytes();
        self.kept.push_back(kept);
    }

    /// No more bytes come.
    pub(crate) fn finish(&mut self) {
        // A segment that is gone was sent.
        let is_last_sent = self.next() > 0 && self.kept.back().is_none_or(|last| last.was_sent);
        if self.next() == 0 || is_last_sent || self.has_rest() {
            self.cut_rest();
        }
        self.last = Some(self.next() - 1);
    }

    /// Drops the oldest segments, up to number `until`, while more than `keep_bytes` are kept. One that was never sent
    /// stays, and what follows it, unless they can be read again.
    pub(crate) fn drop_oldest(&mut self, keep_bytes: usize, until: u64) {
        let may_drop_unsent = self.origin.is_some();
        while self.kept_bytes > keep_bytes && self.first <= until {
            let Some(oldest) = self.kept.pop_front_if(|oldest| oldest.was_sent || may_drop_unsent) else { break };
            self.kept_bytes -= oldest.cost_bytes();
            self.first += 1;
        }
    }

    /// The packet of a segment, which counts as sent then.
    pub(crate) fn send(&mut self, segment: u64) -> Found {
        if self.last.is_some_and(|last| segment > last) {
            return Found::Beyond;
        }
        if segment >= self.next() {
            return Found::NotYet;
        }
        let Some(at) = segment.checked_sub(self.first) else { return self.read_again(segment) };
        let kept = &mut self.kept[at as usize];
        let is_final = self.last.is_some();
        let content = match &kept.form {
            Form::Packet { wire, tells_end, .. } if *tells_end == is_final => Ok(Arc::clone(wire)),
            Form::Packet { wire, .. } => {
                let made_before = Data::parse(wire).map(|data| data.content().to_vec()).unwrap_or_default();
                Err(made_before)
            }
            Form::Content(content) => Err(content.clone()),
        };
        let wire = match content {
            Ok(wire) => wire,
            Err(content) => match encode(&self.options, &self.versioned_name, segment, self.last, &content) {
                Ok(wire) => {
                    let (content_bytes, made) = (content.len(), Arc::clone(&wire));
                    kept.form = Form::Packet { wire: made, content_bytes, tells_end: is_final };
                    wire
                }
                Err(_) => return Found::Failed,
            },
        };
        self.sent += u64::from(!std::mem::replace(&mut kept.was_sent, true));
        Found::Packet(wire)
    }

    /// The segment counts as not sent, if it is still kept.
    pub(crate) fn take_back(&mut self, segment: u64) {
        let kept = segment.checked_sub(self.first).and_then(|at| self.kept.get_mut(at as usize));
        if let Some(kept) = kept {
            self.sent -= u64::from(std::mem::take(&mut kept.was_sent));
        }
    }

    fn read_again(&self, segment: u64) -> Found {
        let Some(origin) = &self.origin else { return Found::Gone };
        let at = |segment| origin.offset(segment, self.options.segment_bytes);
        let mut content = vec![0; (at(segment + 1) - at(segment)) as usize];
        if origin.file.read_exact_at(&mut content, at(segment)).is_err() {
            return Found::Failed;
        }
        let packet = encode(&self.options, &self.versioned_name, segment, self.last, &content);
        packet.map_or(Found::Failed, Found::Packet)
    }
}

fn encode(
    options: &PublishOptions,
    name: &NameBuf,
    segment: u64,
    last: Option<u64>,
    content: &[u8],
) -> Result<Arc<[u8]>, SignError> {
    Ok(options.encode_segment(name, segment, last, content)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn segments(segment_bytes: usize, file: Option<Arc<File>>) -> StreamSegments {
        let options = PublishOptions { segment_bytes, ..PublishOptions::default() };
        StreamSegments::new("/s/v=1".parse().unwrap(), options, file)
    }

    /// Content and FinalBlockId.
    fn sent(segments: &mut StreamSegments, segment: u64) -> Option<(Vec<u8>, Option<u64>)> {
        let Found::Packet(wire) = segments.send(segment) else { return None };
        let data = Data::parse(&wire).unwrap();
        assert_eq!(data.name().last().unwrap().segment(), Some(segment));
        Some((data.content().to_vec(), data.final_block_id().and_then(|last| last.segment())))
    }

    #[test]
    fn an_empty_stream_is_one_empty_segment() {
        let mut segments = segments(4, None);
        assert_eq!(segments.send(0), Found::NotYet);
        segments.finish();
        assert_eq!(sent(&mut segments, 0), Some((vec![], Some(0))));
        assert_eq!(segments.send(1), Found::Beyond);
    }

    #[test]
    fn packets_made_before_the_end_tell_it_afterwards() {
        let mut segments = segments(4, None);
        segments.push(b"abcdef");
        assert_eq!(sent(&mut segments, 0), Some((b"abcd".to_vec(), None)));
        assert_eq!(segments.send(1), Found::NotYet);
        segments.finish();
        assert_eq!(sent(&mut segments, 0), Some((b"abcd".to_vec(), Some(1))));
        assert_eq!(sent(&mut segments, 1), Some((b"ef".to_vec(), Some(1))));
        assert_eq!((segments.sent(), segments.bytes()), (2, 6));
    }

    #[test]
    fn a_full_last_segment_is_followed_by_an_empty_one_only_if_it_was_sent() {
        for was_sent in [false, true] {
            let mut segments = segments(4, None);
            segments.push(b"abcd");
            if was_sent {
                sent(&mut segments, 0).unwrap();
            }
            segments.finish();
            assert_eq!(segments.last(), Some(u64::from(was_sent)));
        }
    }

    #[test]
    fn the_oldest_go_and_are_not_confused_with_those_to_come() {
        let mut segments = segments(100, None);
        segments.push(&[1; 1000]);
        (0..10).for_each(|segment| drop(segments.send(segment)));
        segments.drop_oldest(3 * (100 + KEPT_OVERHEAD_BYTES), 4);
        assert_eq!((segments.oldest(), segments.send(4), segments.send(10)), (5, Found::Gone, Found::NotYet));
        segments.drop_oldest(3 * (100 + KEPT_OVERHEAD_BYTES), 9);
        assert_eq!((segments.oldest(), segments.next()), (7, 10));
    }

    #[test]
    fn a_short_segment_takes_no_more_memory_than_it_counts() {
        let mut segments = segments(8000, None);
        segments.push(b"a line");
        segments.cut_rest();
        let Form::Content(content) = &segments.kept[0].form else { panic!("it was not sent") };
        assert!(content.capacity() <= content.len() + KEPT_OVERHEAD_BYTES, "{}", content.capacity());
    }

    proptest! {
        /// Whatever the cuts: the segments are the bytes, and those of a growing file can be read again.
        #[test]
        fn segments_are_the_bytes_in_their_order(
            pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..20), any::<bool>()), 0..30),
            segment_bytes in 1_usize..9,
        ) {
            let mut file = tempfile::tempfile().unwrap();
            let kept_file = Arc::new(file.try_clone().unwrap());
            let mut segments = segments(segment_bytes, Some(kept_file));
            let mut all = Vec::new();
            for (bytes, is_cut) in &pieces {
                file.write_all(bytes).unwrap();
                all.extend_from_slice(bytes);
                segments.push(bytes);
                if *is_cut && segments.has_rest() {
                    segments.cut_rest();
                }
            }
            segments.finish();
            let last = segments.last().unwrap();
            for keep_bytes in [usize::MAX, 0] {
                segments.drop_oldest(keep_bytes, last);
                let mut got = Vec::new();
                for segment in 0..=last {
                    let (content, end) = sent(&mut segments, segment).unwrap();
                    prop_assert!(content.len() <= segment_bytes);
                    prop_assert_eq!(end, Some(last));
                    got.extend(content);
                }
                prop_assert_eq!(&got, &all);
            }
        }
    }
}
