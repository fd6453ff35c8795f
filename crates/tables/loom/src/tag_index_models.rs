//! Tag index: does any interleaving show a reader a value that nobody put there, or hide one
//! that is there throughout?

use crate::pages::PageSize;
use crate::tag_index::TagIndex;
use loom::sync::Arc;
use loom::thread;

/// A hash with this tag whose search begins in the first bucket.
fn hash(tag: u64) -> u64 {
    tag << 48
}

/// A slot is used again. A reader that comes after its former user went (and whose pin
/// therefore holds nothing of it) finds nothing or the new value, never the former one.
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

/// A value behind a full bucket, while others with the same counter come and go before it
/// and behind it.
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
