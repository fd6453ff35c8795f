//! Names that try to confuse a table: shared prefixes, empty components, long
//! ones, every byte value, all forms of TLV numbers, 0 to 32 components.

use proptest::prelude::*;

/// A name as its components, each a whole TLV.
pub(crate) type Components = Vec<Vec<u8>>;

/// The Name TLV-VALUE.
pub(crate) fn value(components: &[Vec<u8>]) -> Vec<u8> {
    components.concat()
}

/// One component TLV; type and length in the shortest form.
pub(crate) fn component(ty: u16, bytes: &[u8]) -> Vec<u8> {
    let mut tlv = Vec::new();
    for number in [usize::from(ty), bytes.len()] {
        match number {
            0..=252 => tlv.push(number as u8),
            _ => {
                tlv.push(253);
                tlv.extend_from_slice(&(number as u16).to_be_bytes());
            }
        }
    }
    tlv.extend_from_slice(bytes);
    tlv
}

fn any_component() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        // From a small pool, so that names share prefixes.
        8 => (0..3_u8).prop_map(|letter| component(8, &[b'a' + letter])),
        2 => Just(component(8, b"")),
        // A component with a value that looks like more components.
        1 => Just(component(8, &component(8, b"a"))),
        1 => (0..2_u8).prop_map(|last| {
            let mut long = vec![0x08; 250];
            long.push(last);
            component(8, &long[last as usize..])
        }),
        1 => (prop_oneof![Just(1_u16), Just(50), Just(252), Just(253), Just(65535)],
              prop::collection::vec(any::<u8>(), 0..9))
            .prop_map(|(ty, bytes)| component(ty, &bytes)),
        1 => prop::collection::vec(any::<u8>(), 253..300).prop_map(|bytes| component(8, &bytes)),
    ]
}

/// Mostly short names, some of up to 32 components.
pub(crate) fn any_name() -> impl Strategy<Value = Components> {
    prop_oneof![
        4 => prop::collection::vec(any_component(), 0..4),
        1 => prop::collection::vec(any_component(), 4..=32),
    ]
}

/// A few names and prefixes of them, for operations to choose from.
#[allow(dead_code, reason = "tests of other crates include this file")]
pub(crate) fn pool() -> impl Strategy<Value = Vec<Components>> {
    prop::collection::vec((any_name(), any::<prop::sample::Index>()), 1..8).prop_map(|names| {
        let mut pool = Vec::new();
        for (name, cut) in names {
            pool.push(name[..cut.index(name.len() + 1)].to_vec());
            pool.push(name);
        }
        pool
    })
}
