//! Hostile LVS schemas and names: what is malformed is refused with the reason, and no check takes more than its steps.

use namewire_packet::{
    Component, NameBuf,
    tlv::{write_nested, write_nni, write_tlv},
};
use namewire_security::trust::lvs::{
    DEPTH_MAX, MODEL_BYTES_MAX, NODES_MAX, Refusal, STEPS_MAX, Schema, SchemaError, UserFunctions,
};
use proptest::prelude::*;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

const VERSION: u64 = 0x0001_1000;

/// A node of a schema to be written: it is number `i` in its list, and `parent` is before it.
#[derive(Clone, Debug)]
struct Node {
    parent: Option<usize>,
    /// The value of the edge to it; otherwise a pattern with this tag.
    edge: Result<&'static [u8], u64>,
    signers: Vec<usize>,
}

fn pattern(parent: usize, tag: u64) -> Node {
    Node { parent: Some(parent), edge: Err(tag), signers: Vec::new() }
}

fn first() -> Node {
    Node { parent: None, edge: Err(0), signers: Vec::new() }
}

/// A schema of these nodes; each pattern edge calls `$count`.
fn written(nodes: &[Node], named_patterns: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write_nni(&mut out, 0x61, VERSION);
    write_nni(&mut out, 0x25, 0);
    write_nni(&mut out, 0x69, named_patterns);
    for (number, node) in nodes.iter().enumerate() {
        let children = || nodes.iter().enumerate().filter(|(_, child)| child.parent == Some(number));
        write_nested(&mut out, 0x63, |out| {
            write_nni(out, 0x25, number as u64);
            if let Some(parent) = node.parent {
                write_nni(out, 0x57, parent as u64);
            }
            write_tlv(out, 0x29, format!("#{number}").as_bytes());
            for (to, child) in children() {
                let Ok(value) = child.edge else { continue };
                write_nested(out, 0x51, |out| {
                    write_nni(out, 0x25, to as u64);
                    write_nested(out, 0x21, |out| Component::generic(value).write_tlv(out));
                });
            }
            for (to, child) in children() {
                let Err(tag) = child.edge else { continue };
                write_nested(out, 0x53, |out| {
                    write_nni(out, 0x25, to as u64);
                    write_nni(out, 0x23, tag);
                    let call = |out: &mut Vec<u8>| write_tlv(out, 0x27, b"$count");
                    let option = |out: &mut Vec<u8>| write_nested(out, 0x31, call);
                    write_nested(out, 0x43, |out| write_nested(out, 0x41, option));
                });
            }
            for signer in &node.signers {
                write_nni(out, 0x55, *signer as u64);
            }
        });
    }
    out
}

/// A schema whose `$count` is always true, and the number of its calls.
fn counting(bytes: &[u8]) -> (Result<Schema, SchemaError>, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let functions = UserFunctions::default().with("$count", move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        true
    });
    (Schema::parse_with(bytes, &functions), calls)
}

fn problem(bytes: &[u8]) -> String {
    counting(bytes).0.expect_err("a malformed schema").to_string()
}

#[test]
fn a_malformed_schema_is_refused_with_the_reason() {
    let good = [first(), pattern(0, 1), Node { signers: vec![1], ..pattern(0, 2) }];
    assert!(counting(&written(&good, 2)).0.is_ok());
    let mut other_version = written(&good, 2);
    other_version[3] ^= 1;
    let with = |number: usize, change: &dyn Fn(&mut Node)| {
        let mut nodes = good.clone();
        change(&mut nodes[number]);
        written(&nodes, 2)
    };
    let mut two_parents = good.to_vec();
    two_parents.push(Node { parent: Some(9), ..pattern(0, 3) });
    for (bytes, reason) in [
        (b"rule \"a\" is no model".to_vec(), "not a compiled LVS schema"),
        (Vec::new(), "the schema is without the version"),
        (other_version, "version 0x00001000"),
        (vec![0; MODEL_BYTES_MAX + 1], "at most 1048576 bytes"),
        (written(&[], 0), "node 0 is where names begin, and does not exist"),
        (with(1, &|node| node.signers = vec![7]), "node 1 is signed by a key of no node"),
        (with(1, &|node| node.signers = vec![2]), "#1 would be signed by itself"),
        (with(1, &|node| node.signers = vec![1]), "#1 would be signed by itself"),
        (with(0, &|node| node.parent = Some(1)), "node 0 is the first, and has a parent"),
        (written(&two_parents, 2), "node 3 is the end of no edge"),
        (written(&good, 2)[..60].to_vec(), "not a compiled LVS schema"),
    ] {
        let said = problem(&bytes);
        assert!(said.contains(reason), "{said:?} does not say {reason:?}");
    }
}

#[test]
fn a_schema_too_large_is_refused() {
    let many: Vec<Node> = (0..=NODES_MAX).map(|number| if number == 0 { first() } else { pattern(0, 1) }).collect();
    let small = |nodes: &[Node]| {
        let mut out = Vec::new();
        write_nni(&mut out, 0x61, VERSION);
        write_nni(&mut out, 0x25, 0);
        write_nni(&mut out, 0x69, 0);
        for number in 0..nodes.len() {
            write_nested(&mut out, 0x63, |out| write_nni(out, 0x25, number as u64));
        }
        out
    };
    assert!(problem(&small(&many)).contains("at most 16384 nodes"));
    let deep = |levels: usize| -> Vec<Node> {
        (0..=levels).map(|number| if number == 0 { first() } else { pattern(number - 1, number as u64) }).collect()
    };
    assert!(counting(&written(&deep(DEPTH_MAX), 0)).0.is_ok());
    assert!(problem(&written(&deep(DEPTH_MAX + 1), 0)).contains("at most 128 components"));
}

/// A tree in which every name of the right length follows every path, and every leaf is signed by a leaf at the end of
/// the tree, is the worst case: 4096 matches of the packet's name, for each the whole tree for the key's.
#[test]
fn a_hostile_schema_and_name_cost_a_bounded_number_of_steps() {
    let levels = 12;
    let mut nodes = vec![first()];
    let mut level = vec![0];
    for _ in 0..levels {
        let mut next = Vec::new();
        for parent in level {
            for _ in 0..2 {
                next.push(nodes.len());
                nodes.push(pattern(parent, 1000));
            }
        }
        level = next;
    }
    // A key that no name reaches.
    nodes.push(Node { parent: Some(0), edge: Ok(b"never"), signers: Vec::new() });
    let never = nodes.len() - 1;
    level.iter().for_each(|&leaf| nodes[leaf].signers = vec![never]);
    let (schema, calls) = counting(&written(&nodes, 0));
    let schema = schema.unwrap();
    let name: NameBuf = "/x".repeat(levels).parse().unwrap();
    assert_eq!(schema.check(name.as_name(), name.as_name()), Err(Refusal::TooManySteps));
    let calls = calls.load(Ordering::Relaxed);
    assert!((STEPS_MAX / 4..=STEPS_MAX).contains(&calls), "{calls} calls");
    let long: NameBuf = "/x".repeat(2000).parse().unwrap();
    assert!(matches!(schema.check(long.as_name(), long.as_name()), Err(Refusal::NoRule(_))));
}

fn trees() -> impl Strategy<Value = Vec<Node>> {
    let edge = prop_oneof![Just(Ok(&b"a"[..])), Just(Ok(&b"b"[..])), (1_u64..6).prop_map(Err)];
    let node = (any::<prop::sample::Index>(), edge, proptest::collection::vec(any::<prop::sample::Index>(), 0..3));
    proptest::collection::vec(node, 0..40).prop_map(|given| {
        let mut nodes = vec![first()];
        for (parent, edge, signers) in given {
            let number = nodes.len();
            // Signers come before what they sign, so there is no circle.
            let signers = signers.iter().map(|signer| signer.index(number)).collect();
            nodes.push(Node { parent: Some(parent.index(number)), edge, signers });
        }
        nodes
    })
}

fn names() -> impl Strategy<Value = NameBuf> {
    proptest::collection::vec(prop_oneof![Just("a"), Just("b"), Just("c")], 0..7)
        .prop_map(|parts| parts.iter().map(|part| format!("/{part}")).collect::<String>())
        .prop_map(|uri| if uri.is_empty() { NameBuf::new() } else { uri.parse().unwrap() })
}

proptest! {
    #[test]
    fn a_match_looks_at_each_edge_once(nodes in trees(), packet in names(), key in names()) {
        let (schema, calls) = counting(&written(&nodes, 4));
        let schema = schema.unwrap();
        let matched = schema.matches(packet.as_name()).unwrap().len();
        let edges = nodes.len() - 1;
        prop_assert!(calls.swap(0, Ordering::Relaxed) <= edges);
        let verdict = schema.check(packet.as_name(), key.as_name());
        prop_assert!(calls.load(Ordering::Relaxed) <= edges * (1 + matched), "{verdict:?}");
        prop_assert_eq!(verdict.is_ok(), naive(&nodes, &packet, &key));
    }

    #[test]
    fn changed_bytes_are_no_danger(
        model in prop::sample::select(vec!["constraints", "backtracking", "unbound", "pyndn4", "pyndn5"]),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        name in names(),
    ) {
        let mut bytes = std::fs::read(format!("{}/tests/lvs/{model}.tlv", env!("CARGO_MANIFEST_DIR"))).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(schema) = Schema::parse(&bytes) {
            let _ = schema.check(name.as_name(), name.as_name());
        }
    }
}

/// The same by recursion over all paths, with the values as a map: slow, and obviously right.
fn naive(nodes: &[Node], packet: &NameBuf, key: &NameBuf) -> bool {
    ends(nodes, packet, &Values::new()).iter().any(|(node, values)| {
        ends(nodes, key, values).iter().any(|(key_node, _)| nodes[*node].signers.contains(key_node))
    })
}

fn ends<'n>(nodes: &[Node], name: &'n NameBuf, values: &Values<'n>) -> Vec<(usize, Values<'n>)> {
    let mut ends = Vec::new();
    if !name.is_empty() {
        paths(nodes, 0, &name.as_name().components().collect::<Vec<_>>(), values, &mut ends);
    }
    ends
}

type Values<'n> = std::collections::BTreeMap<u64, Component<'n>>;

fn paths<'n>(
    nodes: &[Node],
    node: usize,
    rest: &[Component<'n>],
    values: &Values<'n>,
    ends: &mut Vec<(usize, Values<'n>)>,
) {
    let Some((component, rest)) = rest.split_first() else {
        ends.push((node, values.clone()));
        return;
    };
    let mut has_value = false;
    for (to, child) in nodes.iter().enumerate().filter(|(_, child)| child.parent == Some(node)) {
        match child.edge {
            // Of two edges with the same value, the first is taken.
            Ok(value) if value == component.value && !has_value => {
                has_value = true;
                paths(nodes, to, rest, values, ends);
            }
            Err(tag) if values.get(&tag).is_none_or(|value| value == component) => {
                let mut values = values.clone();
                if tag <= 4 {
                    values.insert(tag, *component);
                }
                paths(nodes, to, rest, &values, ends);
            }
            _ => {}
        }
    }
}
