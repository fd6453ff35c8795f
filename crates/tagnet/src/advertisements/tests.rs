//! One router's table under a list of operations, against what its neighbours must know.

use super::*;
use proptest::prelude::*;

const APPLICATION: TreeLink = TreeLink { tree: 1, face: FaceId(1001) };
const LEFT: TreeLink = TreeLink { tree: 1, face: FaceId(300) };
const RIGHT: TreeLink = TreeLink { tree: 1, face: FaceId(301) };
const OTHER_TREE: TreeLink = TreeLink { tree: 2, face: FaceId(301) };
const ROOM: AdvertisementLimits = AdvertisementLimits { descriptors: 1000, reserved: 0, per_face: 100 };

fn tags(text: &str) -> TagSet {
    text.parse().unwrap()
}

fn descriptor(text: &str) -> Descriptor {
    tags(text).descriptor()
}

/// With the two neighbours of tree 1, and one of tree 2.
fn advertisements(limits: AdvertisementLimits) -> Advertisements {
    let mut advertisements = Advertisements::new(limits);
    [LEFT, RIGHT, OTHER_TREE].into_iter().for_each(|link| advertisements.link_up(link, &mut Vec::new()));
    advertisements
}

#[test]
fn an_advertisement_spreads_to_the_other_neighbours_of_its_tree_and_is_withdrawn() {
    let (mut table, mut out) = (advertisements(ROOM), Vec::new());
    table.announced(LEFT, &descriptor("a"), Some(Serves::PULL), &mut out).unwrap();
    let announcement = |link, serves| Announcement { link, descriptor: descriptor("a"), serves };
    assert_eq!(out, [announcement(RIGHT, Some(Serves::PULL))]);
    out.clear();
    table.advertise(APPLICATION, tags("a"), Serves::PUSH, &mut out).unwrap();
    assert_eq!(out, [announcement(LEFT, Some(Serves::PUSH)), announcement(RIGHT, Some(Serves::BOTH))]);
    out.clear();
    table.link_down(LEFT, &mut out);
    assert_eq!(out, [announcement(RIGHT, Some(Serves::PUSH))]);
    out.clear();
    assert!(table.withdraw(APPLICATION, &tags("a"), &mut out) && !table.withdraw(APPLICATION, &tags("a"), &mut out));
    assert_eq!((out, table.is_empty()), (vec![announcement(RIGHT, None)], true));
}

#[test]
fn a_larger_set_is_held_back_for_pushes_and_never_for_pulls() {
    let (mut table, mut out) = (advertisements(ROOM), Vec::new());
    table.advertise(APPLICATION, tags("a"), Serves::BOTH, &mut out).unwrap();
    table.advertise(APPLICATION, tags("a, b"), Serves::PUSH, &mut out).unwrap();
    table.advertise(APPLICATION, tags("a, c"), Serves::BOTH, &mut out).unwrap();
    let told = |table: &Advertisements| table.announced_on(LEFT);
    assert_eq!(told(&table), [(descriptor("a"), Serves::BOTH), (descriptor("a, c"), Serves::PULL)].into());
    // The small set goes: what it held back is announced.
    table.withdraw(APPLICATION, &tags("a"), &mut out);
    assert_eq!(told(&table), [(descriptor("a, b"), Serves::PUSH), (descriptor("a, c"), Serves::BOTH)].into());
}

#[test]
fn two_sets_of_tags_may_share_a_descriptor() {
    let (mut table, mut out) = (advertisements(ROOM), Vec::new());
    let index = {
        table.advertise(APPLICATION, tags("a"), Serves::PULL, &mut out).unwrap();
        table.trie.get(&descriptor("a")).unwrap()
    };
    // A second set with the same filter, as a collision would make it.
    let twin = AdvertisedTags { link: APPLICATION, tags: tags("twin"), serves: Serves::PUSH };
    table.known[index as usize].tag_sets.push(twin);
    table.count(APPLICATION.face, 1);
    table.set_application_branch(index, APPLICATION, &mut out);
    assert_eq!(table.announced_on(LEFT)[&descriptor("a")], Serves::BOTH);
    assert!(table.withdraw(APPLICATION, &tags("a"), &mut out));
    assert_eq!(table.announced_on(LEFT)[&descriptor("a")], Serves::PUSH);
    table.withdraw_all(APPLICATION, &mut out);
    assert!(table.is_empty() && table.per_face.is_empty());
}

#[test]
fn limits_refuse_without_a_change() {
    let (mut table, mut out) =
        (advertisements(AdvertisementLimits { descriptors: 3, reserved: 0, per_face: 2 }), Vec::new());
    table.advertise(APPLICATION, tags("a"), Serves::PULL, &mut out).unwrap();
    table.advertise(APPLICATION, tags("b"), Serves::PULL, &mut out).unwrap();
    table.advertise(APPLICATION, tags("b"), Serves::PUSH, &mut out).unwrap();
    let refused = table.advertise(APPLICATION, tags("c"), Serves::PULL, &mut out);
    assert_eq!(refused, Err(AdvertisementRefusal::FaceShareUsed));
    table.announced(LEFT, &descriptor("c"), Some(Serves::PULL), &mut out).unwrap();
    let refused = table.announced(LEFT, &descriptor("d"), Some(Serves::PULL), &mut out);
    assert_eq!((refused, table.len()), (Err(AdvertisementRefusal::Full), 3));
    table.announced(LEFT, &descriptor("a"), Some(Serves::PULL), &mut out).unwrap();
    // 2^20 advertisements of one face cost no memory.
    for number in 0..1 << 20 {
        let random = Descriptor([number, number.wrapping_mul(77), 1]);
        assert!(table.announced(RIGHT, &random, Some(Serves::BOTH), &mut out).is_err());
    }
    assert_eq!((table.len(), table.known.len()), (3, 3));
}

#[test]
fn neighbours_cannot_shut_applications_out() {
    let limits = AdvertisementLimits { descriptors: 3, reserved: 1, per_face: 100 };
    let (mut table, mut out) = (advertisements(limits), Vec::new());
    let mut announce =
        |table: &mut Advertisements, link, text| table.announced(link, &descriptor(text), Some(Serves::BOTH), &mut out);
    assert_eq!(announce(&mut table, LEFT, "a"), Ok(()));
    assert_eq!(announce(&mut table, RIGHT, "b"), Ok(()));
    assert_eq!(announce(&mut table, LEFT, "c"), Err(AdvertisementRefusal::Full));
    assert_eq!(announce(&mut table, LEFT, "b"), Ok(()), "a known descriptor needs no room");
    assert_eq!(table.advertise(APPLICATION, tags("c"), Serves::BOTH, &mut out), Ok(()));
    assert_eq!(table.advertise(APPLICATION, tags("d"), Serves::BOTH, &mut out), Err(AdvertisementRefusal::Full));
}

#[derive(Clone, Debug)]
enum Operation {
    Announced(TreeLink, TagSet, Option<Serves>),
    Advertise(TagSet, Serves),
    Withdraw(TagSet),
    LinkDown(TreeLink),
    LinkUp(TreeLink),
    ApplicationGone,
}

fn operation() -> impl Strategy<Value = Operation> {
    let set = || {
        proptest::collection::vec(0..5_u8, 0..4).prop_map(|tags| TagSet::new(tags.iter().map(u8::to_string)).unwrap())
    };
    let serves = || proptest::sample::select(&[Serves::PULL, Serves::PUSH, Serves::BOTH][..]);
    let link = || proptest::sample::select(&[LEFT, RIGHT, OTHER_TREE][..]);
    prop_oneof![
        5 => (link(), set(), proptest::option::weighted(0.7, serves()))
            .prop_map(|(link, set, serves)| Operation::Announced(link, set, serves)),
        4 => (set(), serves()).prop_map(|(set, serves)| Operation::Advertise(set, serves)),
        3 => set().prop_map(Operation::Withdraw),
        1 => link().prop_map(Operation::LinkDown),
        1 => link().prop_map(Operation::LinkUp),
        1 => Just(Operation::ApplicationGone),
    ]
}

/// What must hold for each neighbour: see the module's header.
fn check(table: &Advertisements, told: &BTreeMap<(TreeLink, Descriptor), Serves>) {
    for link in table.links() {
        let announced = table.announced_on(link);
        let heard = |descriptor: &Descriptor| told.get(&(link, *descriptor)).copied();
        assert!(announced.iter().all(|(descriptor, serves)| heard(descriptor) == Some(*serves)));
        assert_eq!(announced.len(), told.keys().filter(|(other, _)| *other == link).count());
        let wanted: BTreeMap<Descriptor, Serves> =
            table.known.iter().filter_map(|known| Some((known.descriptor, known.wanted_by_others(link)?))).collect();
        for (descriptor, serves) in &announced {
            assert!(wanted.get(descriptor).is_some_and(|wanted| wanted.union(*serves) == *wanted), "nothing unwanted");
        }
        let is_announced = |descriptor: &Descriptor, kind| announced.get(descriptor).is_some_and(|s| s.meets(kind));
        for (descriptor, serves) in &wanted {
            assert!(!serves.meets(Serves::PULL) || is_announced(descriptor, Serves::PULL), "all that serve pulls");
            let covers = |other: &Descriptor| other.is_subset_of(descriptor) && is_announced(other, Serves::PUSH);
            assert!(!serves.meets(Serves::PUSH) || wanted.keys().any(covers), "every push arrives");
        }
    }
}

proptest! {
    #[test]
    fn neighbours_know_all_they_need(operations in proptest::collection::vec(operation(), 1..60)) {
        let mut table = advertisements(ROOM);
        let mut told = BTreeMap::new();
        for operation in operations {
            let mut out = Vec::new();
            match operation {
                Operation::Announced(link, set, serves) if table.links().contains(&link) => {
                    table.announced(link, &set.descriptor(), serves, &mut out).unwrap();
                }
                Operation::Announced(..) => {}
                Operation::Advertise(set, serves) => table.advertise(APPLICATION, set, serves, &mut out).unwrap(),
                Operation::Withdraw(set) => drop(table.withdraw(APPLICATION, &set, &mut out)),
                Operation::LinkDown(link) => {
                    table.link_down(link, &mut out);
                    told.retain(|(other, _), _| *other != link);
                }
                Operation::LinkUp(link) if !table.links().contains(&link) => table.link_up(link, &mut out),
                Operation::LinkUp(_) => {}
                Operation::ApplicationGone => table.withdraw_all(APPLICATION, &mut out),
            }
            for Announcement { link, descriptor, serves } in out {
                match serves {
                    Some(serves) => drop(told.insert((link, descriptor), serves)),
                    None => prop_assert!(told.remove(&(link, descriptor)).is_some(), "withdraws what was announced"),
                }
            }
            check(&table, &told);
        }
        for link in [APPLICATION, LEFT, RIGHT, OTHER_TREE] {
            table.withdraw_all(link, &mut Vec::new());
        }
        prop_assert!(table.is_empty() && table.per_face.is_empty() && table.entries().count() == 0);
    }
}
