//! The fast parser for packets in the usual form accepts and refuses the same packets as the general parser, and reads
//! the same fields from them.

use namewire_packet::{Data, Interest, Name, PacketError, tlv};
use proptest::{collection::vec, prelude::*, sample::select};

/// Types that the grammars know or that their readers treat in special ways; `0` and long ones too.
const TYPES: [u32; 28] =
    [7, 8, 8, 8, 1, 2, 3, 54, 252, 253, 10, 12, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30, 33, 34, 36, 44, 0];

/// Elements of one level; the values are bytes or elements of the next.
fn elements(depth: u32) -> BoxedStrategy<Vec<u8>> {
    let bytes = prop_oneof![
        4 => vec(any::<u8>(), 0..9),
        1 => vec(any::<u8>(), 32..33),
        1 => vec(any::<u8>(), 250..260),
    ];
    let value = if depth == 0 { bytes.boxed() } else { prop_oneof![2 => bytes, 1 => elements(depth - 1)].boxed() };
    let element = (select(&TYPES[..]), value).prop_map(|(type_number, value)| written(type_number, &value));
    vec(element, 0..6).prop_map(|elements| elements.concat()).boxed()
}

fn written(type_number: u32, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    tlv::write_tlv(&mut out, type_number, value);
    out
}

/// Names of the usual form, now and then with a digest, a long type or a long value.
fn name() -> impl Strategy<Value = Vec<u8>> {
    let component = prop_oneof![
        8 => (Just(8), vec(any::<u8>(), 0..15)),
        2 => (3..252_u32, vec(any::<u8>(), 0..5)),
        1 => (1..3_u32, vec(any::<u8>(), 32..33)),
        1 => (select(&[252, 253, 300, 65535, 65536][..]), vec(any::<u8>(), 0..4)),
        1 => (Just(8), vec(any::<u8>(), 240..260)),
    ];
    vec(component.prop_map(|(type_number, value)| written(type_number, &value)), 0..8)
        .prop_map(|components| written(7, &components.concat()))
}

/// What may follow the name of an Interest, each in its place or not.
fn interest() -> impl Strategy<Value = Vec<u8>> {
    let lifetime = prop_oneof![3 => vec(any::<u8>(), 1..3), 1 => vec(any::<u8>(), 0..9)];
    let nonce = prop_oneof![9 => vec(any::<u8>(), 4..5), 1 => vec(any::<u8>(), 0..6)];
    let hop_limit = prop_oneof![9 => vec(any::<u8>(), 1..2), 1 => vec(any::<u8>(), 0..3)];
    let flag = |type_number| {
        let value = prop_oneof![9 => Just(vec![]), 1 => Just(vec![1])];
        optional(value.prop_map(move |value| written(type_number, &value)).boxed())
    };
    let field = |type_number, value: BoxedStrategy<Vec<u8>>| {
        optional(value.prop_map(move |value| written(type_number, &value)).boxed())
    };
    (
        name(),
        flag(33),
        flag(18),
        field(10, nonce.boxed()),
        field(12, lifetime.boxed()),
        field(34, hop_limit.boxed()),
        prop_oneof![6 => Just(vec![]), 1 => elements(1)],
    )
        .prop_map(|(name, prefix, fresh, nonce, lifetime, hop_limit, more)| {
            written(5, &[name, prefix, fresh, nonce, lifetime, hop_limit, more].concat())
        })
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    let number = |type_number| {
        let value = prop_oneof![2 => vec(any::<u8>(), 1..3), 1 => vec(any::<u8>(), 4..5), 1 => vec(any::<u8>(), 0..9)];
        optional(value.prop_map(move |value| written(type_number, &value)).boxed())
    };
    let final_block = optional(name().prop_map(|name| written(26, &name[2.min(name.len())..])).boxed());
    let meta = (number(24), number(25), final_block).prop_map(|fields| written(20, &<[_; 3]>::from(fields).concat()));
    let locator = name().prop_map(|name| written(28, &name));
    let info = (number(27), optional(locator.boxed())).prop_map(|(ty, locator)| written(22, &[ty, locator].concat()));
    let content =
        prop_oneof![vec(any::<u8>(), 0..20), vec(any::<u8>(), 250..400)].prop_map(|value| written(21, &value));
    (
        name(),
        optional(meta.boxed()),
        optional(content.boxed()),
        prop_oneof![3 => Just(written(22, &[27, 1, 0])), 1 => info],
        vec(any::<u8>(), 0..40).prop_map(|value| written(23, &value)),
        prop_oneof![6 => Just(vec![]), 1 => elements(1)],
    )
        .prop_map(|(name, meta, content, info, signature, more)| {
            written(6, &[name, meta, content, info, signature, more].concat())
        })
}

fn optional(element: BoxedStrategy<Vec<u8>>) -> BoxedStrategy<Vec<u8>> {
    prop_oneof![Just(vec![]), element].boxed()
}

/// Where to change a packet, and how.
#[derive(Clone, Copy, Debug)]
enum Change {
    Set(u8),
    Add(i8),
    Insert(u8),
    Remove,
    Cut,
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, Change)>> {
    let change = prop_oneof![
        any::<u8>().prop_map(Change::Set),
        (-2..3_i8).prop_map(Change::Add),
        any::<u8>().prop_map(Change::Insert),
        Just(Change::Remove),
        Just(Change::Cut),
    ];
    vec((any::<prop::sample::Index>(), change), 0..3)
}

fn changed(mut wire: Vec<u8>, changes: &[(prop::sample::Index, Change)]) -> Vec<u8> {
    for (place, change) in changes {
        if wire.is_empty() {
            break;
        }
        let place = place.index(wire.len());
        match *change {
            Change::Set(byte) => wire[place] = byte,
            Change::Add(difference) => wire[place] = wire[place].wrapping_add_signed(difference),
            Change::Insert(byte) => wire.insert(place, byte),
            Change::Remove => drop(wire.remove(place)),
            Change::Cut => wire.truncate(place),
        }
    }
    wire
}

/// What a reader noted: the bytes after each prefix of the last name.
fn prefixes_of(name: Name<'_>) -> Vec<usize> {
    (1..=name.len()).map(|count| name.value().len() - name.prefix(count).value().len()).collect()
}

/// The last call for each number of components.
fn note(noted: &mut Vec<usize>, count: usize, after: usize) {
    noted.truncate(count - 1);
    noted.push(after);
}

fn compare(wire: &[u8]) -> Result<(), TestCaseError> {
    let mut noted = Vec::new();
    let interest = Interest::parse_noting(wire, |count, after| note(&mut noted, count, after));
    prop_assert_eq!(interest, Interest::parse_any_form(wire));
    if let Ok(interest) = interest {
        prop_assert_eq!(&noted, &prefixes_of(interest.name()));
    }
    noted.clear();
    let data = Data::parse_noting(wire, |count, after| note(&mut noted, count, after));
    prop_assert_eq!(data, Data::parse_any_form(wire));
    if let Ok(data) = data {
        prop_assert_eq!(&noted, &prefixes_of(data.name()));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn both_parsers_agree_on_interests(wire in interest(), changes in changes()) {
        compare(&changed(wire, &changes))?;
    }

    #[test]
    fn both_parsers_agree_on_data(wire in data(), changes in changes()) {
        compare(&changed(wire, &changes))?;
    }

    #[test]
    fn both_parsers_agree_on_elements_in_any_order(value in elements(2), outer in 5..7_u32) {
        compare(&written(outer, &value))?;
    }
}

/// The packets above would prove nothing if hardly any were accepted.
#[test]
fn the_generated_packets_are_good_and_bad() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let mut accepted = |strategy: BoxedStrategy<Vec<u8>>, parse: fn(&[u8]) -> Result<(), PacketError>| {
        let wires = (0..1000).map(|_| strategy.new_tree(&mut runner).expect("a packet").current());
        wires.filter(|wire| parse(wire).is_ok()).count()
    };
    let interests = accepted(interest().boxed(), |wire| Interest::parse(wire).map(drop));
    let data = accepted(data().boxed(), |wire| Data::parse(wire).map(drop));
    assert!((200..900).contains(&interests) && (200..900).contains(&data), "{interests} Interests and {data} Data");
}
