//! Reads: threads that answer Interests from the store.
//!
//! Question: how does the repository answer many Interests quickly, if a single look-up wakes a thread, takes a lock
//! and makes a system call?
//!
//! A reader takes up to [`BATCH_MAX`] waiting Interests, asks the store for all exact names with one call, and sends
//! all answers with one call. Under load the batches grow, and the costs of waking, locking and writing are shared.
//! Each reader is a thread, because stores block.
//!
//! | Interest | answer |
//! | --- | --- |
//! | name | the Data of that name |
//! | name and implicit digest | the same, if it has this digest |
//! | CanBePrefix | the first Data under the name in canonical order; if that is RDR metadata of the name, the last of them |
//! | MustBeFresh | only Data whose FreshnessPeriod has not passed since it was stored |
//!
//! These are the rules of the Content Store (forwarding §2.2). If no stored Data matches, the Interest gets no answer,
//! as with ndn-python-repo, or a Nack (NoRoute) if the repository is configured so.
//!
//! Limits: if [`QUEUE_INTERESTS_MAX`] Interests wait, further ones get a Nack (Congestion). A search for fresh Data
//! under a prefix looks at [`SCAN_RECORDS_MAX`] records.

use crate::{
    statistics::Statistics,
    store::{Record, Store, StoreError},
    writer::now_ms,
};
use namewire_client::{Client, IncomingInterest, InterestStream, ReplyBatch};
use namewire_packet::{Component, Data, Interest, NackReason, Name, tlv::types};
use std::{ops::ControlFlow, sync::Arc, time::Instant};
use tokio::sync::{Mutex, watch};

/// Interests that may wait.
pub(crate) const QUEUE_INTERESTS_MAX: usize = 16_384;
/// Most Interests answered together.
const BATCH_MAX: usize = 256;
/// Most records that one prefix Interest makes a reader look at.
const SCAN_RECORDS_MAX: usize = 256;

/// The keyword component of RDR metadata.
const METADATA: Component<'static> = Component { type_number: types::KEYWORD_COMPONENT, value: b"metadata" };

/// One reader; several share the stream.
pub(crate) struct Reader {
    pub(crate) interests: Arc<Mutex<InterestStream>>,
    pub(crate) client: Client,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) statistics: Arc<Statistics>,
    /// The answer for what is not stored.
    pub(crate) missing: Option<NackReason>,
    /// True when the repository stops.
    pub(crate) stop: watch::Receiver<bool>,
}

impl Reader {
    /// Answers Interests until the repository stops or the connection is lost. It blocks in the store.
    pub(crate) async fn run(mut self) {
        let (mut batch, mut replies) = (Vec::with_capacity(BATCH_MAX), ReplyBatch::default());
        loop {
            batch.clear();
            let next = async { self.interests.lock().await.next_batch(&mut batch, BATCH_MAX).await };
            let count = tokio::select! {
                biased;
                _ = self.stop.wait_for(|stop| *stop) => return,
                count = next => count,
            };
            if count == 0 {
                return;
            }
            self.answer(&batch, &mut replies);
            if !replies.is_empty() && self.client.send_replies(&mut replies).await.is_err() {
                return;
            }
        }
    }

    fn answer(&self, batch: &[IncomingInterest], replies: &mut ReplyBatch) {
        let since = Instant::now();
        let interests: Vec<Interest<'_>> = batch.iter().map(IncomingInterest::interest).collect();
        let (mut hits, mut bytes) = (0, 0);
        let missing = look_up(&*self.store, &interests, now_ms(), &mut |place, wire| {
            hits += 1;
            bytes += wire.len() as u64;
            replies.push_data(&batch[place], wire);
        });
        match missing {
            Ok(missing) => {
                if let Some(reason) = self.missing {
                    missing.into_iter().for_each(|place| replies.push_nack(&batch[place], reason));
                }
            }
            Err(error) => self.statistics.fail_read(&error),
        }
        self.statistics.add_reads(batch.len() as u64, hits, bytes, since.elapsed());
    }
}

/// Looks up what satisfies each Interest: calls `found` with its place and the Data. Returns the places of the others.
///
/// # Errors
/// If the store fails; some Interests may have been answered.
pub fn look_up(
    store: &dyn Store,
    interests: &[Interest<'_>],
    now_ms: u64,
    found: &mut dyn FnMut(usize, &[u8]),
) -> Result<Vec<usize>, StoreError> {
    let mut is_open = vec![true; interests.len()];
    let is_ordered = store.is_ordered();
    let wants_scan =
        |interest: &Interest<'_>| is_ordered && interest.can_be_prefix() && interest.implicit_digest().is_none();
    let exact: Vec<usize> = (0..interests.len()).filter(|&at| !wants_scan(&interests[at])).collect();
    let names: Vec<&[u8]> = exact.iter().map(|&at| key_of(&interests[at]).value()).collect();
    store.get(&names, &mut |place, record| {
        let at = exact[place];
        if is_open[at] && satisfies(&interests[at], &record, now_ms) {
            is_open[at] = false;
            found(at, record.wire);
        }
    })?;
    for (at, interest) in interests.iter().enumerate().filter(|(_, interest)| wants_scan(interest)) {
        if scan(store, interest, now_ms, &mut |wire| found(at, wire))? {
            is_open[at] = false;
        }
    }
    Ok((0..interests.len()).filter(|&at| is_open[at]).collect())
}

/// The name under which its Data is stored.
fn key_of<'a>(interest: &Interest<'a>) -> Name<'a> {
    if interest.implicit_digest().is_some() { interest.name().parent() } else { interest.name() }
}

fn satisfies(interest: &Interest<'_>, record: &Record<'_>, now_ms: u64) -> bool {
    if interest.must_be_fresh() && !record.is_fresh(now_ms) {
        return false;
    }
    interest.implicit_digest().is_none() || Data::parse(record.wire).is_ok_and(|data| interest.matches(&data))
}

/// The first Data under the Interest's name; true if there is one.
fn scan(
    store: &dyn Store,
    interest: &Interest<'_>,
    now_ms: u64,
    found: &mut dyn FnMut(&[u8]),
) -> Result<bool, StoreError> {
    let name = interest.name();
    // Each version of RDR metadata names the version that was the newest then.
    let is_metadata = |wire: &[u8]| {
        let next = |data: Data<'_>| data.name().get(name.len()) == Some(METADATA);
        name.last() == Some(METADATA) || Data::parse(wire).is_ok_and(next)
    };
    let (mut best, mut left) = (None, SCAN_RECORDS_MAX);
    store.scan(name.value(), None, &mut |_, record| {
        left -= 1;
        if satisfies(interest, &record, now_ms) {
            let may_be_older = is_metadata(record.wire);
            if may_be_older || best.is_none() {
                best = Some(record.wire.to_vec());
            }
            left = if may_be_older { left } else { 0 };
        }
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    best.iter().for_each(|wire| found(wire));
    Ok(best.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Change, memory::MemoryStore};
    use namewire_packet::{DataBuilder, InterestBuilder, NameBuf};
    use proptest::prelude::*;

    fn name(uri: &str) -> NameBuf {
        uri.parse().unwrap()
    }

    fn store_of(packets: &[(Vec<u8>, u64)]) -> MemoryStore {
        let store = MemoryStore::new(1 << 20);
        for (wire, stored_ms) in packets {
            let data = Data::parse(wire).unwrap();
            let record = Record { stored_ms: *stored_ms, freshness_ms: data.freshness_ms() as u32, wire }.encode();
            store.write(&[Change::Put { name: data.name().value(), record: &record }]).unwrap();
        }
        store
    }

    fn ask(store: &dyn Store, wires: &[Vec<u8>], now_ms: u64) -> Vec<Option<Vec<u8>>> {
        let interests: Vec<_> = wires.iter().map(|wire| Interest::parse(wire).unwrap()).collect();
        let mut answers = vec![None; wires.len()];
        let missing = look_up(store, &interests, now_ms, &mut |at, wire| {
            assert!(answers[at].replace(wire.to_vec()).is_none(), "answered twice");
        });
        let expected: Vec<usize> = (0..wires.len()).filter(|&at| answers[at].is_none()).collect();
        assert_eq!(missing.unwrap(), expected);
        answers
    }

    #[test]
    fn digests_prefixes_and_freshness() {
        let packet = |uri, freshness_ms| DataBuilder::new(name(uri)).freshness_ms(freshness_ms).sign_digest();
        let (first, second, stale) = (packet("/a/1", 100), packet("/a/2", 0), packet("/b/1", 10));
        let fresh = packet("/b/2", 1000);
        let store =
            store_of(&[(first.clone(), 1000), (second.clone(), 1000), (stale.clone(), 1000), (fresh.clone(), 1000)]);
        let digest = |wire: &[u8], uri: &str| {
            let value = Data::parse(wire).unwrap().implicit_digest();
            InterestBuilder::new(name(uri).join(Component { type_number: 1, value: &value }))
        };
        let plain = |uri: &str| InterestBuilder::new(name(uri));
        let cases = [
            (plain("/a/1"), Some(&first)),
            (plain("/a"), None),
            (plain("/a").can_be_prefix(true), Some(&first)),
            (plain("/a/1").must_be_fresh(true), Some(&first)),
            (plain("/a/2").must_be_fresh(true), None),
            (plain("/b").can_be_prefix(true), Some(&stale)),
            (plain("/b").can_be_prefix(true).must_be_fresh(true), Some(&fresh)),
            (digest(&second, "/a/2"), Some(&second)),
            (digest(&first, "/a/2"), None),
            (digest(&second, "/a/2").can_be_prefix(true), Some(&second)),
            (plain("/").can_be_prefix(true).lifetime_ms(1), None),
        ];
        // An Interest has at least one component.
        let cases: Vec<_> = cases.into_iter().filter(|(interest, _)| !interest.name().is_empty()).collect();
        let wires: Vec<_> = cases.iter().map(|(interest, _)| interest.build()).collect();
        let answers = ask(&store, &wires, 1050);
        for ((interest, expected), answer) in cases.iter().zip(&answers) {
            assert_eq!(answer.as_ref(), *expected, "{}", interest.name());
        }
    }

    #[test]
    fn of_metadata_the_last_is_the_newest() {
        let packet = |uri: &str| (DataBuilder::new(name(uri)).sign_digest(), 1000);
        let uris = ["/f/32=metadata/v=1/seg=0", "/f/32=metadata/v=7/seg=0", "/f/32=metadata/v=3/seg=0", "/f/v=1/seg=0"];
        let packets = uris.map(packet);
        let store = store_of(&packets);
        let prefix = |uri: &str| InterestBuilder::new(name(uri)).can_be_prefix(true).build();
        let asked = ["/f", "/f/32=metadata", "/f/v=1", "/f/32=metadata/v=3"].map(prefix);
        let answers = ask(&store, &asked, 1050);
        for (answer, place) in answers.iter().zip([1, 1, 3, 2]) {
            assert_eq!(answer.as_ref(), Some(&packets[place].0), "{}", uris[place]);
        }
        let many: Vec<_> = (1..=300).map(|version| packet(&format!("/f/32=metadata/v={version}/seg=0"))).collect();
        let answer = ask(&store_of(&many), &asked[..1], 1050);
        assert_eq!(answer[0].as_ref(), Some(&many[SCAN_RECORDS_MAX - 1].0), "nobody looks further");
    }

    proptest! {
        /// The oracle goes through all packets in canonical order and calls `Interest::matches`.
        #[test]
        fn agrees_with_a_list(
            stored in prop::collection::btree_map(0..40_u8, (0..3_u64, 0..4_u64), 0..20),
            asked in prop::collection::vec((0..40_u8, any::<bool>(), any::<bool>()), 1..20),
        ) {
            let tiny = |code: u8| {
                let mut name = name("/x");
                for bit in 0..code % 4 {
                    name.push_generic(if code >> (bit + 2) & 1 == 1 { b"a" } else { b"b" });
                }
                name
            };
            let mut packets: std::collections::BTreeMap<NameBuf, (Vec<u8>, u64)> = Default::default();
            for (code, (freshness_ms, stored_ms)) in stored {
                let wire = DataBuilder::new(tiny(code)).freshness_ms(freshness_ms).content(&[code]).sign_digest();
                packets.insert(tiny(code), (wire, stored_ms));
            }
            let all: Vec<_> = packets.values().cloned().collect();
            let wires: Vec<_> = asked
                .into_iter()
                .map(|(code, prefix, fresh)| {
                    InterestBuilder::new(tiny(code)).can_be_prefix(prefix).must_be_fresh(fresh).build()
                })
                .collect();
            let answers = ask(&store_of(&all), &wires, 3);
            for (wire, answer) in wires.iter().zip(answers) {
                let interest = Interest::parse(wire).unwrap();
                let expected = all.iter().find(|(wire, stored_ms)| {
                    let data = Data::parse(wire).unwrap();
                    interest.matches(&data) && (!interest.must_be_fresh() || 3 < stored_ms + data.freshness_ms())
                });
                prop_assert_eq!(answer.as_ref(), expected.map(|(wire, _)| wire));
            }
        }
    }
}
