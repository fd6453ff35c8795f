//! Locators on whole trees: packets reach every destination along the tree, labels are short, and forged labels do no
//! harm.
//!
//! The twin of forwarding climbs from the destination to the root ([`next_hops`]); the twin of the labels writes codes
//! as text ([`written_labels`]).

use namewire_tagnet::locator::{Assignment, Label, TreeError, TreeLabel, TreeLabels, WideLabel, Word, spanning_tree};
use proptest::prelude::*;
use std::collections::VecDeque;

type Parents = Vec<Option<u32>>;

/// Where each node sends a packet for `destination`: down, if the node is above it, or else up.
fn next_hops(parents: &[Option<u32>], destination: u32) -> Parents {
    let mut next = parents.to_vec();
    next[destination as usize] = Some(destination);
    let mut below = destination;
    while let Some(above) = parents[below as usize] {
        next[above as usize] = Some(below);
        below = above;
    }
    next
}

fn every_pair_is_delivered<W: Word>(parents: &[Option<u32>], labels: &TreeLabels<W>) {
    for destination in 0..parents.len() as u32 {
        let label = labels.label(destination);
        for (node, next) in (0..).zip(next_hops(parents, destination)) {
            assert_eq!(labels.next(node, label), next, "from {node} to {destination} in {parents:?}");
        }
    }
}

/// How far each node is from the root, by Bellman and Ford.
fn distances(graph: &[Vec<u32>], root: u32) -> Vec<u32> {
    let mut distances = vec![graph.len() as u32; graph.len()];
    distances[root as usize] = 0;
    for _ in graph {
        for node in 0..graph.len() {
            let nearest = graph[node].iter().map(|&other| distances[other as usize] + 1).min();
            distances[node] = nearest.map_or(distances[node], |nearest| nearest.min(distances[node]));
        }
    }
    distances
}

/// The list and the mask of each node as binary numbers, the last code first.
fn written_labels(parents: &[Option<u32>]) -> Vec<[String; 2]> {
    let children =
        |node: usize| (0..parents.len()).filter(|&child| parents[child] == Some(node as u32)).collect::<Vec<_>>();
    let mut order: Vec<usize> = vec![parents.iter().position(Option::is_none).unwrap()];
    for place in 0..parents.len() {
        order.extend(children(order[place]));
    }
    let mut sizes = vec![1; parents.len()];
    for &node in order.iter().rev() {
        sizes[node] += children(node).iter().map(|&child| sizes[child]).sum::<usize>();
    }
    let mut written = vec![[String::new(), String::new()]; parents.len()];
    for node in order {
        let mut by_size = children(node);
        by_size.sort_by_key(|&child| (parents.len() - sizes[child], child));
        for (place, child) in by_size.into_iter().enumerate() {
            let code = &format!("{:b}", place + 1)[1..];
            let code_mask = &format!("1{}", "0".repeat(code.len()))[..code.len()];
            let [list, mask] = &written[node];
            written[child] = [format!("{code}{list}"), format!("{code_mask}{mask}")];
        }
    }
    written
}

fn number(binary: &str) -> u32 {
    if binary.is_empty() { 0 } else { u32::from_str_radix(binary, 2).unwrap() }
}

/// A tree of `nodes` in which node i is below one of the nodes before, at most `reach` before it; then the numbers are
/// shuffled.
fn random_tree(nodes: u32, reach: u32, seed: u64) -> Parents {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut numbers: Vec<u32> = (0..nodes).collect();
    rng.shuffle(&mut numbers);
    let mut parents = vec![None; nodes as usize];
    for node in 1..nodes {
        let parent = rng.u32(node.saturating_sub(reach)..node);
        parents[numbers[node as usize] as usize] = Some(numbers[parent as usize]);
    }
    parents
}

/// Small reaches make long paths, large ones bushes.
fn tree() -> impl Strategy<Value = Parents> {
    (1..=300_u32, prop_oneof![Just(1), 2..10_u32, Just(300)], any::<u64>())
        .prop_map(|(nodes, reach, seed)| random_tree(nodes, reach, seed))
}

fn path(nodes: u32) -> Parents {
    (0..nodes).map(|node| node.checked_sub(1)).collect()
}

fn star(nodes: u32) -> Parents {
    (0..nodes).map(|node| (node > 0).then_some(0)).collect()
}

#[test]
fn every_pair_of_every_tree_of_up_to_seven_nodes() {
    for nodes in 1..=7_u32 {
        let mut trees = 0;
        for choice in 0..(nodes + 1).pow(nodes) {
            let digit = |node: u32| choice / (nodes + 1).pow(node) % (nodes + 1);
            let parents: Parents = (0..nodes).map(|node| digit(node).checked_sub(1)).collect();
            if let Ok(labels) = TreeLabels::<u16>::of(&parents) {
                trees += 1;
                every_pair_is_delivered(&parents, &labels);
            }
        }
        // Cayley: n^(n-1) rooted trees with numbered nodes. So nothing else passed as a tree.
        assert_eq!(trees, nodes.pow(nodes - 1));
    }
}

#[test]
fn invalid_trees_are_refused() {
    let of = |parents: &[Option<u32>]| TreeLabels::<u16>::of(parents).unwrap_err();
    assert_eq!(of(&[]), TreeError::NoRoot);
    assert_eq!(of(&[Some(0)]), TreeError::NoRoot);
    assert_eq!(of(&[None, Some(0), None]), TreeError::SecondRoot(2));
    assert_eq!(of(&[None, Some(2)]), TreeError::UnknownParent(1));
    assert_eq!(of(&[None, Some(2), Some(1)]), TreeError::Cycle);
    assert_eq!(of(&star(65_537)), TreeError::TooManyNodes);
}

#[test]
fn long_paths_need_no_stack() {
    let nodes = 1_000_000;
    let labels = TreeLabels::<u32>::of(&path(nodes)).unwrap();
    assert!((0..nodes).all(|node| labels.label(node) == WideLabel::new(node, 0, 0).unwrap()));
    let (mut node, mut hops) = (nodes - 1, 0);
    while node != 0 {
        node = labels.next(node, WideLabel::root()).unwrap();
        hops += 1;
    }
    assert_eq!((hops, labels.label_bits(0)), (nodes - 1, 20));
    // A comb: a path with a leaf at each node. Each leaf is a light child, and no label has a second light edge.
    let comb: Parents =
        (0..nodes).map(|node| if node % 2 == 1 { Some(node - 1) } else { node.checked_sub(2) }).collect();
    let labels = TreeLabels::<u32>::of(&comb).unwrap();
    assert!((0..nodes).all(|node| labels.label(node).list_bits() <= 1));
}

#[test]
fn the_largest_stars_and_bushes_fit_48_bits() {
    let nodes = 65_536;
    let labels = TreeLabels::<u16>::of(&star(nodes)).unwrap();
    for leaf in 1..nodes {
        assert_eq!((labels.next(0, labels.label(leaf)), labels.next(leaf, labels.label(0))), (Some(leaf), Some(0)));
        assert_eq!(labels.state(0).forward(labels.label(leaf)), leaf, "equal subtrees keep their order");
        assert_eq!(labels.label(leaf).list_bits(), leaf.ilog2());
    }
    assert_eq!(labels.label_bits(nodes - 1), 16 + 2 * 15);
    // The complete binary tree halves the subtree at each bit, so its labels are as long as the bound allows.
    let binary: Parents = (0..nodes - 1).map(|node| node.checked_sub(1).map(|place| place / 2)).collect();
    let labels = TreeLabels::<u16>::of(&binary).unwrap();
    assert_eq!((0..nodes - 1).map(|node| labels.label(node).list_bits()).max(), Some((nodes - 1).ilog2()));
    for seed in 0..3 {
        for reach in [2, 300, nodes] {
            let labels = TreeLabels::<u16>::of(&random_tree(nodes, reach, seed)).unwrap();
            assert!((0..nodes).all(|node| labels.label_bits(node) <= 48));
        }
    }
}

#[test]
fn narrow_and_wide_labels_are_the_same() {
    let parents = random_tree(5_000, 50, 1);
    let (narrow, wide) = (TreeLabels::<u16>::of(&parents).unwrap(), TreeLabels::<u32>::of(&parents).unwrap());
    for node in 0..5_000 {
        assert_eq!(WideLabel::from(narrow.label(node)), wide.label(node));
        assert_eq!(Label::try_from(wide.label(node)), Ok(narrow.label(node)));
        assert_eq!(narrow.state(node), wide.state(node));
        assert_eq!(narrow.state(0).forward(narrow.label(node)), wide.state(0).forward(narrow.label(node)));
    }
}

/// A message between neighbours.
enum Message {
    /// To the parent: the size of the sender's subtree.
    Size { from: u32, size: u32 },
    /// To a child: its label.
    Label(Label),
}

/// What a router knows: its neighbours, and what they told it.
struct Router {
    parent: Option<u32>,
    children: Vec<u32>,
    sizes: Vec<Option<u32>>,
    result: Option<(Label, Assignment<u16>)>,
}

impl Router {
    fn sizes_if_known(&self) -> Option<Vec<u32>> {
        self.sizes.iter().copied().collect()
    }

    /// What the router sends once it knows the size of its subtree.
    fn report(&mut self, me: u32) -> Vec<(u32, Message)> {
        let Some(sizes) = self.sizes_if_known() else { return Vec::new() };
        match self.parent {
            Some(parent) => vec![(parent, Message::Size { from: me, size: 1 + sizes.iter().sum::<u32>() })],
            None => self.take_label(Label::root()),
        }
    }

    fn take_label(&mut self, label: Label) -> Vec<(u32, Message)> {
        let assignment = Assignment::of(label, &self.sizes_if_known().unwrap()).unwrap();
        let labels = assignment.labels.iter().map(|&label| Message::Label(label));
        let messages = self.children.iter().copied().zip(labels).collect();
        self.result = Some((label, assignment));
        messages
    }

    fn receive(&mut self, me: u32, message: Message) -> Vec<(u32, Message)> {
        match message {
            Message::Size { from, size } => {
                let place = self.children.iter().position(|&child| child == from).unwrap();
                self.sizes[place] = Some(size);
                self.report(me)
            }
            Message::Label(label) => self.take_label(label),
        }
    }
}

/// Labels a tree by messages between neighbours, which arrive in a random order.
fn label_by_messages(parents: &[Option<u32>], rng: &mut fastrand::Rng) -> Vec<(Label, Assignment<u16>)> {
    let nodes = parents.len() as u32;
    let mut routers: Vec<Router> = (0..nodes)
        .map(|me| {
            let children: Vec<u32> = (0..nodes).filter(|&child| parents[child as usize] == Some(me)).collect();
            Router { parent: parents[me as usize], sizes: vec![None; children.len()], children, result: None }
        })
        .collect();
    let mut under_way = VecDeque::new();
    for me in 0..nodes {
        under_way.extend(routers[me as usize].report(me));
    }
    while !under_way.is_empty() {
        let (to, message) = under_way.swap_remove_back(rng.usize(..under_way.len())).unwrap();
        under_way.extend(routers[to as usize].receive(to, message));
    }
    routers.into_iter().map(|router| router.result.unwrap()).collect()
}

proptest! {
    #[test]
    fn every_pair_of_random_trees(parents in tree()) {
        every_pair_is_delivered(&parents, &TreeLabels::<u16>::of(&parents).unwrap());
        every_pair_is_delivered(&parents, &TreeLabels::<u32>::of(&parents).unwrap());
    }

    #[test]
    fn labels_are_what_the_header_says_and_as_short(parents in tree()) {
        let labels = TreeLabels::<u16>::of(&parents).unwrap();
        let nodes = parents.len() as u32;
        let mut ids = vec![false; parents.len()];
        for (node, [list, mask]) in (0..).zip(written_labels(&parents)) {
            let label = labels.label(node);
            prop_assert_eq!((label.ifx_list(), label.mask()), (number(&list), number(&mask)));
            prop_assert_eq!(label.list_bits() as usize, list.len());
            prop_assert!(label.list_bits() <= nodes.ilog2());
            prop_assert!(!std::mem::replace(&mut ids[label.node_id() as usize], true), "an id twice");
            prop_assert!(labels.label_bits(node) <= 3 * nodes.ilog2() + 1);
        }
    }

    #[test]
    fn routers_that_talk_to_neighbours_find_the_same_labels(parents in tree(), seed: u64) {
        let labels = TreeLabels::<u16>::of(&parents).unwrap();
        let told = label_by_messages(&parents, &mut fastrand::Rng::with_seed(seed));
        for (node, (label, assignment)) in (0..).zip(told) {
            prop_assert_eq!((label, assignment.state), (labels.label(node), *labels.state(node)));
        }
    }

    #[test]
    fn a_forged_label_does_no_harm(parents in tree(), parts: [u16; 3], small: bool, from: u32) {
        let labels = TreeLabels::<u16>::of(&parents).unwrap();
        let nodes = parents.len() as u32;
        let id = if small { parts[0] % nodes as u16 } else { parts[0] };
        let Ok(forged) = Label::new(id, parts[1] & parts[2], parts[2]) else { unreachable!("the list is in the mask") };
        for node in 0..nodes {
            let interface = labels.state(node).forward(forged);
            let behind = labels.node_behind(node, interface);
            prop_assert_eq!(behind, labels.next(node, forged));
            prop_assert!(behind.is_none_or(|behind| behind < nodes));
        }
        // With a hop limit the packet ends: here, at a node that refuses it, or by the limit.
        let (mut at, mut hops) = (from % nodes, 0);
        while let Some(next) = labels.next(at, forged).filter(|&next| next != at && hops < 64) {
            (at, hops) = (next, hops + 1);
        }
        prop_assert!(hops <= 64);
    }

    #[test]
    fn spanning_trees_keep_the_distance_to_the_root(
        parents in tree(),
        chords in proptest::collection::vec(any::<[u32; 2]>(), 0..300),
        root: u32,
    ) {
        let nodes = parents.len() as u32;
        let mut graph = vec![Vec::new(); parents.len()];
        let links = (0..).zip(&parents).filter_map(|(node, parent)| parent.map(|parent| [node, parent]));
        for [a, b] in links.chain(chords.iter().map(|[a, b]| [a % nodes, b % nodes])) {
            graph[a as usize].push(b);
            graph[b as usize].push(a);
        }
        let root = root % nodes;
        let tree = spanning_tree(&graph, root).unwrap();
        let distances = distances(&graph, root);
        for (node, parent) in tree.iter().enumerate() {
            let lowest = graph[node].iter().filter(|&&other| distances[other as usize] + 1 == distances[node]).min();
            prop_assert_eq!(parent.as_ref(), lowest);
        }
        prop_assert!(TreeLabels::<u16>::of(&tree).is_ok());
    }
}

/// A label with a true id and a false list goes down the wrong branch, back up, and down again.
#[test]
fn a_false_list_goes_back_and_forth_until_the_hop_limit() {
    let labels = TreeLabels::<u16>::of(&[None, Some(0), Some(0), Some(0)]).unwrap();
    assert_eq!(labels.label(2), TreeLabel::new(1, 0b0, 0b1).unwrap());
    let forged = TreeLabel::new(1, 0b1, 0b1).unwrap();
    assert_eq!((labels.next(0, forged), labels.next(3, forged)), (Some(3), Some(0)));
    let without_list = TreeLabel::new(1, 0, 0).unwrap();
    assert_eq!(labels.next(0, without_list), Some(0), "delivered to the wrong node");
    let lacking = TreeLabel::new(1, 0b11, 0b10).unwrap();
    assert_eq!((labels.state(0).forward(lacking), labels.next(0, lacking)), (7, None));
}
