//! Pending Interests: which of our Interests does this packet answer?
//!
//! A hash map leads from a name (TLV-VALUE) to the Interests pending under this name. Data is looked up under its own
//! name. While a CanBePrefix or implicit-digest Interest is pending, Data is also looked up under all prefixes of its
//! name and under its full name. One Data satisfies every Interest that it matches. A Nack ends the Interest whose
//! nonce it carries.
//!
//! Cost: a Data takes one look-up; if prefix Interests are pending, it takes one per component.
//! Limit: the caller bounds the number of entries ([`crate::PENDING_INTERESTS_MAX`]).

use crate::{data_buf::DataBuf, express_error::ExpressError};
use namewire_packet::{
    Data, Interest, NackReason, Nonce,
    tlv::{self, types},
};
use std::collections::HashMap;
use tokio::sync::{mpsc, oneshot};

/// The outcome of an Interest.
pub(crate) type Outcome = Result<DataBuf, ExpressError>;

/// The waiter for the outcome.
pub(crate) enum Completion {
    /// One waiter for one Interest.
    Once(oneshot::Sender<Outcome>),
    /// One waiter for many Interests, which it distinguishes by its own numbers. The channel is unbounded, but each
    /// message belongs to a pending Interest, and these are bounded.
    Tagged(u64, mpsc::UnboundedSender<(u64, Outcome)>),
}

impl Completion {
    /// Delivers the outcome. If the waiter no longer exists, it does not need the outcome, and that is no error.
    pub(crate) fn complete(self, outcome: Outcome) {
        match self {
            Completion::Once(sender) => drop(sender.send(outcome)),
            Completion::Tagged(tag, sender) => drop(sender.send((tag, outcome))),
        }
    }
}

struct Pending {
    id: u64,
    can_be_prefix: bool,
    nonce: Option<Nonce>,
    completion: Completion,
}

/// The pending Interests of one face.
#[derive(Default)]
pub(crate) struct PendingInterests {
    by_name: HashMap<Box<[u8]>, Vec<Pending>>,
    len: usize,
    can_be_prefix_count: usize,
    digest_count: usize,
    next_id: u64,
    full_name: Vec<u8>,
}

impl PendingInterests {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds `interest`; returns the number that removes it.
    pub(crate) fn insert(&mut self, interest: &Interest<'_>, completion: Completion) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.len += 1;
        self.can_be_prefix_count += usize::from(interest.can_be_prefix());
        self.digest_count += usize::from(is_full_name(interest.name().value()));
        let pending = Pending { id, can_be_prefix: interest.can_be_prefix(), nonce: interest.nonce(), completion };
        self.by_name.entry(interest.name().value().into()).or_default().push(pending);
        id
    }

    /// Forgets one Interest; false if it is not pending any more.
    pub(crate) fn remove(&mut self, name_value: &[u8], id: u64) -> bool {
        !self.take_where(name_value, |pending| pending.id == id).is_empty()
    }

    /// Takes every Interest that `data` answers.
    pub(crate) fn take_satisfied(&mut self, data: &Data<'_>) -> Vec<Completion> {
        let name = data.name();
        let mut satisfied = self.take_where(name.value(), |_| true);
        if self.can_be_prefix_count > 0 {
            for count in (0..name.len()).rev() {
                let prefix = name.prefix(count);
                satisfied.append(&mut self.take_where(prefix.value(), |p| p.can_be_prefix));
            }
        }
        if self.digest_count > 0 {
            let mut full_name = std::mem::take(&mut self.full_name);
            full_name.clear();
            full_name.extend_from_slice(name.value());
            tlv::write_tlv(&mut full_name, types::IMPLICIT_SHA256_DIGEST, &data.implicit_digest());
            satisfied.append(&mut self.take_where(&full_name, |_| true));
            self.full_name = full_name;
        }
        satisfied
    }

    /// Takes the Interests that a Nack quoting `interest` answers: those of its name and
    /// nonce, or all of its name if the Nack quotes no nonce.
    pub(crate) fn take_nacked(&mut self, interest: &Interest<'_>) -> Vec<Completion> {
        let nonce = interest.nonce();
        self.take_where(interest.name().value(), |p| nonce.is_none() || p.nonce == nonce)
    }

    /// Takes everything.
    pub(crate) fn drain(&mut self) -> Vec<Completion> {
        let all = std::mem::take(&mut self.by_name);
        (self.len, self.can_be_prefix_count, self.digest_count) = (0, 0, 0);
        all.into_values().flatten().map(|pending| pending.completion).collect()
    }

    fn take_where(&mut self, name_value: &[u8], wanted: impl Fn(&Pending) -> bool) -> Vec<Completion> {
        let Some(list) = self.by_name.get_mut(name_value) else { return Vec::new() };
        let mut taken = Vec::new();
        let mut index = 0;
        while index < list.len() {
            if wanted(&list[index]) {
                let pending = list.swap_remove(index);
                self.len -= 1;
                self.can_be_prefix_count -= usize::from(pending.can_be_prefix);
                self.digest_count -= usize::from(is_full_name(name_value));
                taken.push(pending.completion);
            } else {
                index += 1;
            }
        }
        if list.is_empty() {
            self.by_name.remove(name_value);
        }
        taken
    }
}

/// True if the name seems to end with an implicit digest, a component of 34 bytes. A long generic component can look
/// the same from its end; then a digest is computed needlessly, and nothing else happens.
fn is_full_name(name_value: &[u8]) -> bool {
    name_value.len() >= 34 && name_value[name_value.len() - 34..].starts_with(&[1, 32])
}

/// The outcome for the waiter of a Nacked Interest.
pub(crate) fn nacked(reason: NackReason) -> Outcome {
    Err(ExpressError::Nack(reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{DataBuilder, InterestBuilder, NameBuf};

    fn name(uri: &str) -> NameBuf {
        uri.parse().unwrap()
    }

    fn insert(table: &mut PendingInterests, builder: InterestBuilder, tag: u64) {
        let (sender, _) = mpsc::unbounded_channel();
        let wire = builder.build();
        table.insert(&Interest::parse(&wire).unwrap(), Completion::Tagged(tag, sender));
    }

    fn tags(completions: Vec<Completion>) -> Vec<u64> {
        let mut tags: Vec<u64> = completions
            .into_iter()
            .map(|completion| match completion {
                Completion::Tagged(tag, _) => tag,
                Completion::Once(_) => unreachable!("tests use tags"),
            })
            .collect();
        tags.sort_unstable();
        tags
    }

    #[test]
    fn data_satisfies_exactly_the_interests_that_it_matches() {
        let data = DataBuilder::new(name("/a/b/c")).content(b"x").sign_digest();
        let data = Data::parse(&data).unwrap();
        let mut full = name("/a/b/c");
        full.push(namewire_packet::Component { type_number: 1, value: &data.implicit_digest() });
        let mut wrong = name("/a/b/c");
        wrong.push(namewire_packet::Component { type_number: 1, value: &[7; 32] });

        let mut table = PendingInterests::default();
        insert(&mut table, InterestBuilder::new(name("/a/b/c")), 0);
        insert(&mut table, InterestBuilder::new(name("/a/b/c")).can_be_prefix(true), 1);
        insert(&mut table, InterestBuilder::new(name("/a")).can_be_prefix(true), 2);
        insert(&mut table, InterestBuilder::new(name("/a/b")), 3);
        insert(&mut table, InterestBuilder::new(full), 4);
        insert(&mut table, InterestBuilder::new(wrong), 5);
        insert(&mut table, InterestBuilder::new(name("/a/b/c/d")).can_be_prefix(true), 6);

        assert_eq!(tags(table.take_satisfied(&data)), [0, 1, 2, 4]);
        assert_eq!(tags(table.take_satisfied(&data)), []);
        assert_eq!(table.len(), 3);
        assert_eq!(tags(table.drain()), [3, 5, 6]);
        assert_eq!((table.len(), table.can_be_prefix_count, table.digest_count), (0, 0, 0));
    }

    #[test]
    fn a_nack_ends_only_the_interest_with_its_nonce() {
        let mut table = PendingInterests::default();
        let with_nonce = |n| InterestBuilder::new(name("/a")).nonce(Nonce([0, 0, 0, n]));
        insert(&mut table, with_nonce(1), 1);
        insert(&mut table, with_nonce(2), 2);
        let wire = with_nonce(2).build();
        assert_eq!(tags(table.take_nacked(&Interest::parse(&wire).unwrap())), [2]);
        let wire = with_nonce(3).build();
        assert_eq!(tags(table.take_nacked(&Interest::parse(&wire).unwrap())), []);
        assert_eq!(table.len(), 1);
    }

    /// Operations on the table, with a few names so that they often match.
    #[derive(Clone, Debug)]
    enum Operation {
        Insert { name: u8, can_be_prefix: bool, digest_of: Option<u8> },
        RemoveNth(usize),
        Data { name: u8, content: u8 },
    }

    fn tiny_name(code: u8) -> NameBuf {
        let mut name = NameBuf::new();
        for bit in 0..code % 4 {
            name.push_generic(if code >> (bit + 2) & 1 == 1 { b"a" } else { b"b" });
        }
        name
    }

    fn tiny_data(name: u8, content: u8) -> Vec<u8> {
        DataBuilder::new(tiny_name(name)).content(&[content % 2]).sign_digest()
    }

    fn operation() -> impl proptest::strategy::Strategy<Value = Operation> {
        use proptest::prelude::*;
        prop_oneof![
            (0..32_u8, any::<bool>(), proptest::option::of(0..2_u8))
                .prop_map(|(name, can_be_prefix, digest_of)| Operation::Insert { name, can_be_prefix, digest_of }),
            any::<usize>().prop_map(Operation::RemoveNth),
            (0..32_u8, 0..2_u8).prop_map(|(name, content)| Operation::Data { name, content }),
        ]
    }

    proptest::proptest! {
        /// The oracle keeps a list and calls `Interest::matches` on each.
        #[test]
        fn agrees_with_a_list(operations in proptest::collection::vec(operation(), 1..80)) {
            let mut table = PendingInterests::default();
            let mut oracle: Vec<(u64, Vec<u8>, u64)> = Vec::new();
            for (tag, operation) in (0..).zip(operations) {
                match operation {
                    Operation::Insert { name, can_be_prefix, digest_of } => {
                        let mut full = tiny_name(name);
                        if let Some(content) = digest_of {
                            let wire = tiny_data(name, content);
                            let value = Data::parse(&wire).unwrap().implicit_digest();
                            full.push(namewire_packet::Component { type_number: 1, value: &value });
                        }
                        if full.is_empty() {
                            continue; // an Interest has at least one component
                        }
                        let wire = InterestBuilder::new(full).can_be_prefix(can_be_prefix).build();
                        let (sender, _) = mpsc::unbounded_channel();
                        let completion = Completion::Tagged(tag, sender);
                        let id = table.insert(&Interest::parse(&wire).unwrap(), completion);
                        oracle.push((tag, wire, id));
                    }
                    Operation::RemoveNth(nth) if !oracle.is_empty() => {
                        let (_, wire, id) = oracle.remove(nth % oracle.len());
                        let interest = Interest::parse(&wire).unwrap();
                        assert!(table.remove(interest.name().value(), id));
                        assert!(!table.remove(interest.name().value(), id));
                    }
                    Operation::RemoveNth(_) => {}
                    Operation::Data { name, content } => {
                        let wire = tiny_data(name, content);
                        let data = Data::parse(&wire).unwrap();
                        let is_answered = |wire: &[u8]| Interest::parse(wire).unwrap().matches(&data);
                        let expected: Vec<u64> =
                            oracle.iter().filter(|(_, wire, _)| is_answered(wire)).map(|(tag, ..)| *tag).collect();
                        oracle.retain(|(_, wire, _)| !is_answered(wire));
                        assert_eq!(tags(table.take_satisfied(&data)), expected);
                    }
                }
                assert_eq!(table.len(), oracle.len());
            }
        }
    }
}
