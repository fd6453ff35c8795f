//! The state vector: the highest known sequence number of each producer.
//!
//! The vector keeps producers in the order of the wire format: by name in canonical order, then by bootstrap time.
//! Cost: lookups take O(log n), merges O(m log n).

use std::collections::BTreeMap;

use namewire_packet::NameBuf;

/// One run of one producer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Producer {
    /// The producer's name, without the group.
    pub name: NameBuf,
    /// When it started, in seconds since 1970; 0 in version 2, which has no such time.
    pub bootstrap_s: u64,
}

/// The sequence numbers of one producer that a merge made known: `first` to `last`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// Whose publications they are.
    pub producer: Producer,
    /// The first number that was not known; at least 1.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

/// The highest known sequence number of each producer. A producer with number 0 is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateVector {
    numbers: BTreeMap<Producer, u64>,
}

impl StateVector {
    /// The sequence number of this producer, 0 if it is unknown.
    pub fn get(&self, producer: &Producer) -> u64 {
        self.numbers.get(producer).copied().unwrap_or(0)
    }

    /// Raises the number of this producer. A lower one changes nothing.
    pub fn raise(&mut self, producer: &Producer, number: u64) {
        if number > self.get(producer) {
            self.numbers.insert(producer.clone(), number);
        }
    }

    /// Number of producers.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// True if no producer is known.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// All producers with their numbers, in the order of the wire.
    pub fn iter(&self) -> impl Iterator<Item = (&Producer, u64)> {
        self.numbers.iter().map(|(producer, &number)| (producer, number))
    }

    /// Takes the higher number of each producer. It takes a new producer if `admit` says so. Returns the news, and how
    /// many producers it left out.
    pub fn merge(&mut self, other: &StateVector, mut admit: impl FnMut() -> bool) -> (Vec<News>, usize) {
        let (mut news, mut left_out) = (Vec::new(), 0);
        for (producer, last) in other.iter() {
            let known = self.get(producer);
            if known == 0 && last > 0 && !admit() {
                left_out += 1;
            } else if last > known {
                self.raise(producer, last);
                news.push(News { producer: producer.clone(), first: known + 1, last });
            }
        }
        (news, left_out)
    }

    /// The producers whose number in `other` is lower than ours.
    pub fn newer_than<'a>(&'a self, other: &'a StateVector) -> impl Iterator<Item = &'a Producer> {
        self.iter().filter(|(producer, number)| *number > other.get(producer)).map(|(producer, _)| producer)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn producer(name: &str, bootstrap_s: u64) -> Producer {
        Producer { name: name.parse().unwrap(), bootstrap_s }
    }

    /// Vectors of few producers, so that two of them often share one.
    pub(crate) fn any_vector() -> impl Strategy<Value = StateVector> {
        prop::collection::vec((0u8..6, 0u64..3, any::<u64>()), 0..12).prop_map(|entries| {
            let mut vector = StateVector::default();
            for (name, bootstrap_s, number) in entries {
                vector.raise(&producer(&format!("/node/{name}"), bootstrap_s), number);
            }
            vector
        })
    }

    #[test]
    fn a_merge_returns_the_news_and_adds_only_admitted_producers() {
        let (alice, bob) = (producer("/alice", 0), producer("/bob", 0));
        let (mut ours, mut theirs) = (StateVector::default(), StateVector::default());
        ours.raise(&alice, 3);
        theirs.raise(&alice, 5);
        theirs.raise(&bob, 1);
        let (news, left_out) = ours.merge(&theirs, || false);
        assert_eq!(news, [News { producer: alice.clone(), first: 4, last: 5 }]);
        assert_eq!((left_out, ours.len(), ours.get(&bob)), (1, 1, 0));
        assert_eq!(theirs.newer_than(&ours).collect::<Vec<_>>(), [&bob]);
        let (news, left_out) = ours.merge(&theirs, || true);
        assert_eq!((news, left_out), (vec![News { producer: bob, first: 1, last: 1 }], 0));
        assert_eq!(ours, theirs);
    }

    proptest! {
        #[test]
        fn merges_give_the_same_in_any_order(a in any_vector(), b in any_vector()) {
            let (mut ab, mut ba) = (a.clone(), b.clone());
            ab.merge(&b, || true);
            ba.merge(&a, || true);
            prop_assert_eq!(&ab, &ba);
            prop_assert_eq!(a.newer_than(&ab).count(), 0);
            prop_assert!(ab.merge(&b, || true).0.is_empty());
        }
    }
}
