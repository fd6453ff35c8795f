//! The paper's figures, and what removal leaves.

use super::*;
use std::collections::BTreeMap;

fn name(uri: &str) -> Vec<u8> {
    let components = uri.split('/').filter(|component| !component.is_empty());
    components.flat_map(|component| [&[8, component.len() as u8], component.as_bytes()].concat()).collect()
}

fn trie() -> NameTrie {
    NameTrie::new(100_000, 1, NameTrieOptions::default()).unwrap()
}

/// The pieces of a trie, branching points marked by `^` behind them, EOP and forwarding points as digits.
fn pieces(trie: &NameTrie) -> Vec<String> {
    let (mut pieces, mut nodes) = (Vec::new(), vec![ROOT]);
    while let Some(node) = nodes.pop() {
        let mut text = String::new();
        for (offset, &code) in trie.nodes.piece(node).iter().enumerate() {
            match code & !BRANCHING_POINT {
                small @ 0..=3 => text += ["0", "1", "/", "/3"][usize::from(small)],
                code => text.push(code as char),
            }
            if is_branching(code) {
                text.push('^');
                let bytes = (0..SIBLINGS).filter(|&byte| byte != TO_FIB_ENTRY);
                nodes.extend(bytes.filter_map(|byte| trie.edges.get(EdgeKey::new(node, offset, byte))));
            }
        }
        pieces.push(text);
    }
    pieces.sort();
    pieces
}

fn look_up(trie: &NameTrie, uri: &str) -> Option<(u32, usize)> {
    let (name, mut found) = (name(uri), [None]);
    trie.longest_prefix_match_batch(&[&name], &mut found);
    found[0].map(|found| (found.number, usize::from(found.prefix_bytes)))
}

/// NameTrie18 Figs. 3(b), 6 and 7: no piece is cut, and /ndn/ua/ece has the prefix /ndn/ua.
#[test]
fn the_papers_names_make_the_papers_pieces() {
    let mut trie = trie();
    for (number, uri) in ["/ndn/ucla", "/ndn/ua/cs", "/ndn/ua", "/ndn/umich"].iter().enumerate() {
        assert_eq!(trie.insert(&name(uri), number as u32), Ok(None));
    }
    assert_eq!(pieces(&trie), ["/^0", "a/3cs1", "mich1", "ndn/u^cla1"]);
    assert_eq!(look_up(&trie, "/ndn/ua/ece"), Some((2, name("/ndn/ua").len())));
    assert_eq!(look_up(&trie, "/ndn/ua/cs/conf"), Some((1, name("/ndn/ua/cs").len())));
    assert_eq!((look_up(&trie, "/ndn/uc"), look_up(&trie, "/ndn")), (None, None));
    // ndn/ucla; a/cs behind it; nothing.
    let pieces_on_the_way = ["/ndn/ucla", "/ndn/ua/ece", "/x"].map(|uri| trie.pieces_on_the_way(&name(uri)));
    assert_eq!(pieces_on_the_way, [Some(1), Some(2), Some(0)]);
    trie.insert(&name("/ndn/ua/ece"), 4).unwrap();
    assert_eq!(pieces(&trie), ["/^0", "a/3^cs1", "ece1", "mich1", "ndn/u^cla1"]);

    // §IV-C: /ndn/ucla is shared. Ours: what no name needs any more is cut off.
    assert_eq!(trie.remove(&name("/ndn/ucla")), Some(0));
    assert_eq!(pieces(&trie), ["/^0", "a/3^cs1", "ece1", "mich1", "ndn/u^0"]);
    // The single child of ndn/u is joined with it.
    assert_eq!(trie.remove(&name("/ndn/umich")), Some(3));
    assert_eq!(pieces(&trie), ["/^0", "ece1", "ndn/ua/3^cs1"]);
    assert_eq!(trie.remove(&name("/ndn/ua/cs")), Some(1));
    assert_eq!(pieces(&trie), ["/^0", "ndn/ua/3ece1"]);
    assert_eq!(trie.remove(&name("/ndn/ua/ece")), Some(4));
    assert_eq!(pieces(&trie), ["/^0", "ndn/ua1"]);
    assert_eq!(trie.remove(&name("/ndn/ua")), Some(2));
    assert_eq!(pieces(&trie), ["/0"]);
    assert_eq!(trie.edges(), 0);
}

#[test]
fn a_prefix_that_ends_where_its_piece_goes_on_has_an_edge_of_its_own() {
    let mut trie = trie();
    for (number, uri) in ["/com/google", "/com/goo", "/com/goo/x", "/"].iter().enumerate() {
        assert_eq!(trie.insert(&name(uri), number as u32), Ok(None));
    }
    assert_eq!(pieces(&trie), ["/^1", "/x1", "com/goo^gle1"]);
    assert_eq!(look_up(&trie, "/com/goo/y"), Some((1, name("/com/goo").len())));
    assert_eq!(look_up(&trie, "/com/goog"), Some((3, 0)));
    assert_eq!(trie.remove(&name("/com/google")), Some(0));
    assert_eq!(pieces(&trie), ["/^1", "com/goo/3x1"]);
    assert_eq!(look_up(&trie, "/com/goo/y"), Some((1, name("/com/goo").len())));
}

/// Components that differ in single letters, in all depths: every answer is right. After names were inserted and
/// removed, the trie has no more pieces and edges than a trie that never had them, except pieces that were not cut or
/// joined because of how the trie grew.
#[test]
fn removed_names_leave_nothing() {
    let mut rng = fastrand::Rng::with_seed(5);
    let mut random_name = || {
        let components =
            (0..rng.usize(0..5)).map(|_| (0..rng.usize(1..4)).map(|_| rng.u8(b'a'..b'd') as char).collect());
        components.collect::<Vec<String>>().join("/")
    };
    let mut trie = trie();
    let mut model: BTreeMap<String, u32> = BTreeMap::new();
    for round in 0..40_000 {
        let uri = random_name();
        if round / 5000 % 2 == 0 && round < 35_000 {
            assert_eq!(trie.insert(&name(&uri), round), Ok(model.insert(uri, round)));
        } else {
            assert_eq!(trie.remove(&name(&uri)), model.remove(&uri), "{uri}");
        }
        let uri = random_name();
        let ends = std::iter::once(0).chain(uri.match_indices('/').map(|(end, _)| end)).chain([uri.len()]);
        let found = ends.filter_map(|end| Some((*model.get(&uri[..end])?, &uri[..end]))).next_back();
        assert_eq!(look_up(&trie, &uri), found.map(|(number, prefix)| (number, name(prefix).len())), "{uri}");
    }
    let mut fresh = self::trie();
    model.iter().for_each(|(uri, &number)| assert_eq!(fresh.insert(&name(uri), number), Ok(None)));
    assert!(trie.edges() < fresh.edges() * 11 / 10, "{} edges, {} in a fresh trie", trie.edges(), fresh.edges());
    for (uri, number) in model {
        assert_eq!(trie.remove(&name(&uri)), Some(number));
    }
    assert_eq!((pieces(&trie), trie.edges()), (vec!["/0".to_owned()], 0));
}
