//! Buckets of the shared NameTrie (`namewire_designs`): in no interleaving do two threads take one place, is a key
//! there twice, or is an edge seen in part or lost.

use crate::bucket::{Chains, Entered, Line};
use loom::sync::Arc;
use loom::thread;

/// A chain, and room for three lines behind its first.
struct Bucket {
    first: [Line; 1],
    further: [Line; 3],
}

impl Bucket {
    /// With this many edges: key k leads to 100 + k.
    fn with(edges: u32) -> Arc<Self> {
        let bucket = Self { first: [Line::default()], further: Default::default() };
        for key in 1..=edges {
            let entered = bucket.chains().enter(0, (key.into(), 100 + key), false, 2);
            assert_eq!(entered, Entered { before: None, took_spare: false });
        }
        Arc::new(bucket)
    }

    fn chains(&self) -> Chains<'_> {
        Chains { first: &self.first, further: &self.further }
    }

    /// All edges, and how many lines were behind the first.
    fn take(&self) -> (Vec<(u64, u32)>, usize) {
        let (mut edges, mut lines) = (Vec::new(), 0);
        self.chains().take(0, |key, value| edges.push((key, value)), |_| lines += 1);
        edges.sort_unstable();
        (edges, lines)
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Two names share an edge that neither finds: one thread's piece is in the trie, and both know it.
#[test]
fn one_of_two_threads_adds_an_edge_and_both_know_where_it_leads() {
    check(|| {
        let bucket = Bucket::with(4);
        let other = Arc::clone(&bucket);
        let adding = thread::spawn(move || other.chains().enter(0, (9, 1), false, 0).before.unwrap_or(1));
        let own = bucket.chains().enter(0, (9, 2), false, 1).before.unwrap_or(2);
        assert_eq!(adding.join().unwrap(), own);
        assert_eq!(bucket.chains().get(0, 9), Some(own));
        assert_eq!(bucket.take(), (vec![(1, 101), (2, 102), (3, 103), (4, 104), (9, own)], 0));
    });
}

/// One place is left in the line: one of two edges takes it, the other takes its thread's spare line.
#[test]
fn two_threads_do_not_take_one_place() {
    check(|| {
        let bucket = Bucket::with(4);
        let other = Arc::clone(&bucket);
        let adding = thread::spawn(move || other.chains().enter(0, (8, 1), false, 0));
        let own = bucket.chains().enter(0, (9, 2), false, 1);
        let adding = adding.join().unwrap();
        assert_eq!((own.before, adding.before), (None, None));
        assert_ne!(own.took_spare, adding.took_spare);
        assert_eq!(bucket.take(), (vec![(1, 101), (2, 102), (3, 103), (4, 104), (8, 1), (9, 2)], 1));
    });
}

/// The line is full: one thread's line follows it, and the other's edge goes there, too.
#[test]
fn two_threads_do_not_append_two_lines() {
    check(|| {
        let bucket = Bucket::with(5);
        let other = Arc::clone(&bucket);
        let adding = thread::spawn(move || other.chains().enter(0, (8, 1), false, 0));
        let own = bucket.chains().enter(0, (9, 2), false, 1);
        assert_ne!(own.took_spare, adding.join().unwrap().took_spare);
        let (edges, lines) = bucket.take();
        assert_eq!((&edges[5..], lines), (&[(8, 1), (9, 2)][..], 1));
    });
}

/// A thread that asks without a lock sees an edge whole or not at all, and every edge that was there before.
#[test]
fn an_edge_is_seen_whole_while_others_come() {
    check(|| {
        let bucket = Bucket::with(5);
        let other = Arc::clone(&bucket);
        let adding = thread::spawn(move || {
            other.chains().enter(0, (8, 1), false, 0);
            other.chains().enter(0, (3, 7), true, 1).before
        });
        let found = bucket.chains().get(0, 8);
        assert!(found.is_none_or(|value| value == 1), "{found:?}");
        assert!(matches!(bucket.chains().get(0, 3), Some(103 | 7)));
        assert_eq!(bucket.chains().get(0, 5), Some(105));
        assert_eq!(adding.join().unwrap(), Some(103));
        assert_eq!((bucket.chains().get(0, 8), bucket.chains().get(0, 3)), (Some(1), Some(7)));
    });
}
