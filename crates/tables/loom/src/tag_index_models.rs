//! Tag index: no interleaving shows a reader a value that was never added, or hides a value that is in the
//! index throughout the search.

use crate::pages::PageSize;
use crate::tag_index::{IndexKey, Step, TagIndex};
use loom::sync::Arc;
use loom::thread;

/// A hash with this tag whose search begins in the first bucket.
fn hash(tag: u64) -> u64 {
    tag << 48
}

/// A key with this tag whose search begins in the first of two buckets and goes on in the second.
fn key(tag: u64) -> IndexKey {
    IndexKey { first: hash(1), own: hash(tag) | 1 << 47 }
}

/// Searches for a key one bucket after the other, if the first has a trace of it; returns what it finds.
fn walk(index: &TagIndex, key: IndexKey) -> Option<u32> {
    let mut walk = index.walk(key);
    let mut look = index.look(walk);
    if !look.has_trace(key.own) {
        return None;
    }
    loop {
        match index.step(look, walk, key.own) {
            Step::Found(value) => return Some(value),
            Step::Next(next) => walk = next,
            Step::Absent => return None,
        }
        look = index.look(walk);
    }
}

/// A slot is used again. A reader that begins after the former value was removed holds nothing of it. So it
/// finds nothing or the new value, never the former one.
#[test]
fn a_tag_never_leads_to_the_value_of_the_slots_former_user() {
    loom::model(|| {
        let index = Arc::new(TagIndex::new(8, PageSize::Base).unwrap());
        index.insert(hash(5), 7);
        assert!(index.remove(hash(5), 7));
        let seen = Arc::clone(&index);
        let reading = thread::spawn(move || seen.candidate(hash(5)));
        index.insert(hash(5), 9);
        let found = reading.join().unwrap();
        assert!(found.is_none_or(|value| value == 9), "{found:?}");
        assert_eq!(index.candidate(hash(5)), Some(9));
    });
}

/// A value behind a full bucket, while other values with the same counter come and go in front of it and
/// behind it.
#[test]
fn a_value_that_had_to_pass_a_bucket_is_found() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let index = Arc::new(TagIndex::new(16, PageSize::Base).unwrap());
        (0..10).for_each(|value| index.insert(hash(8), value)); // the first bucket is full
        index.insert(hash(16), 100);
        index.insert(hash(24), 101);
        let seen = Arc::clone(&index);
        let reading = thread::spawn(move || seen.find(hash(16), |value| value == 100));
        assert!(index.remove(hash(24), 101));
        assert!(index.remove(hash(8), 3));
        index.insert(hash(24), 102);
        assert_eq!(reading.join().unwrap(), Some(100));
        assert_eq!(index.candidate(hash(24)), Some(102));
    });
}

/// The same with keys whose own homes are not where they begin: the search for one goes on from the bucket
/// they share, the search for another comes back to it.
#[test]
fn a_value_that_had_to_pass_a_shared_bucket_is_found() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let index = Arc::new(TagIndex::new(16, PageSize::Base).unwrap());
        (0..10).for_each(|value| index.insert(hash(8), value)); // the first bucket is full
        index.insert(key(16), 100);
        index.insert(key(24), 101);
        let seen = Arc::clone(&index);
        let reading = thread::spawn(move || walk(&seen, key(16)));
        assert!(index.remove(key(24), 101));
        assert!(index.remove(hash(8), 3));
        index.insert(key(24), 102);
        assert_eq!(reading.join().unwrap(), Some(100));
        assert_eq!(index.candidate(key(24)), Some(102));
        assert!(index.look(index.walk(hash(24))).has_trace(key(24).own), "it is in the shared bucket");
        assert!(index.remove(key(16), 100) && !index.look(index.walk(key(16))).has_trace(key(16).own));
    });
}

/// A longer key comes and goes while a shorter one that begins with it stays: a reader finds one of the
/// two.
#[test]
fn a_longer_key_that_comes_and_goes_does_not_hide_a_shorter_one() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let index = Arc::new(TagIndex::new(16, PageSize::Base).unwrap());
        (0..9).for_each(|value| index.insert(hash(8), value));
        index.insert(hash(1), 100); // the first bucket is full
        let seen = Arc::clone(&index);
        let reading = thread::spawn(move || walk(&seen, key(16)).or_else(|| walk(&seen, hash(1).into())));
        index.insert(key(16), 101);
        assert!(index.remove(key(16), 101));
        assert!(index.remove(hash(8), 8)); // a slot in the same word
        index.insert(key(16), 102);
        let found = reading.join().unwrap();
        assert!(matches!(found, Some(100..=102)), "{found:?}");
        assert_eq!(walk(&index, key(16)), Some(102));
    });
}
