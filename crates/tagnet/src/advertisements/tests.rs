//! One router's table under a list of operations, against what its neighbours must know.

use super::*;
use proptest::prelude::*;
use std::sync::Arc;

const APPLICATION: TreeLink = TreeLink { tree: 1, face: FaceId(1001) };
const LEFT: TreeLink = TreeLink { tree: 1, face: FaceId(300) };
const RIGHT: TreeLink = TreeLink { tree: 1, face: FaceId(301) };
const OTHER_TREE: TreeLink = TreeLink { tree: 2, face: FaceId(301) };
/// No neighbour is busy.
const NONE: BTreeSet<TreeLink> = BTreeSet::new();
const ROOM: AdvertisementLimits = AdvertisementLimits { descriptors: 1000, reserved: 0, per_face: 100 };

fn tags(text: &str) -> TagSet {
    text.parse().unwrap()
}

fn descriptor(text: &str) -> Descriptor {
    tags(text).descriptor()
}

/// With the two neighbours of tree 1, and one of tree 2.
fn advertisements(limits: AdvertisementLimits) -> Advertisements {
    let mut advertisements = Advertisements::new(limits).unwrap();
    [LEFT, RIGHT, OTHER_TREE].into_iter().for_each(|link| advertisements.link_up(link));
    advertisements
}

/// What neighbours are to be told, all of it.
fn settled(table: &mut Advertisements) -> Vec<Announcement> {
    let mut out = Vec::new();
    table.settle(usize::MAX, &NONE, &mut out);
    assert!(table.is_settled());
    out
}

#[test]
fn an_advertisement_spreads_to_the_other_neighbours_of_its_tree_and_is_withdrawn() {
    let mut table = advertisements(ROOM);
    table.announced(LEFT, &descriptor("a"), Some(Serves::PULL)).unwrap();
    let announcement = |link, serves| Announcement { link, descriptor: descriptor("a"), serves };
    assert_eq!(settled(&mut table), [announcement(RIGHT, Some(Serves::PULL))]);
    table.advertise(APPLICATION, tags("a"), Serves::PUSH).unwrap();
    let told = [announcement(LEFT, Some(Serves::PUSH)), announcement(RIGHT, Some(Serves::BOTH))];
    assert_eq!(settled(&mut table), told);
    table.link_down(LEFT);
    assert_eq!(settled(&mut table), [announcement(RIGHT, Some(Serves::PUSH))]);
    assert!(table.withdraw(APPLICATION, &tags("a")) && !table.withdraw(APPLICATION, &tags("a")));
    assert!(table.is_empty());
    assert_eq!(settled(&mut table), [announcement(RIGHT, None)]);
}

#[test]
fn a_larger_set_is_held_back_for_pushes_and_never_for_pulls() {
    let sets = [("a", Serves::BOTH), ("a, b", Serves::PUSH), ("a, c", Serves::BOTH)];
    for order in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
        let mut table = advertisements(ROOM);
        for (set, serves) in order.map(|place| sets[place]) {
            table.advertise(APPLICATION, tags(set), serves).unwrap();
            settled(&mut table);
        }
        let told = |table: &Advertisements| table.announced_on(LEFT);
        assert_eq!(told(&table), [(descriptor("a"), Serves::BOTH), (descriptor("a, c"), Serves::PULL)].into());
        // The small set goes: what it held back is announced.
        table.withdraw(APPLICATION, &tags("a"));
        settled(&mut table);
        assert_eq!(told(&table), [(descriptor("a, b"), Serves::PUSH), (descriptor("a, c"), Serves::BOTH)].into());
    }
}

/// The story: an announcement that waited for a turn was told to a neighbour that had forgotten everything meanwhile,
/// and its withdrawal was not, because the neighbour was thought not to know it. So the neighbour kept it for good.
#[test]
fn what_waited_for_a_neighbour_that_forgets_everything_is_not_told_later() {
    let mut table = advertisements(ROOM);
    let is_gone: [fn(&mut Advertisements); 2] = [|_| {}, |table| table.link_down(RIGHT)];
    for before in is_gone {
        table.announced(LEFT, &descriptor("a"), Some(Serves::PULL)).unwrap();
        before(&mut table);
        table.link_up(RIGHT);
        table.announced(LEFT, &descriptor("a"), None).unwrap();
        assert_eq!(settled(&mut table), []);
    }
}

/// The story: a small set that came after larger ones left them announced for good, twelve times what sufficed; and
/// when such a set went, one turn searched and announced all of them on every link, 1.5 s for 65,000 sets and 33 links.
#[test]
fn a_small_set_over_many_larger_ones_comes_and_goes_in_bounded_turns() {
    const LARGER: usize = 2_000;
    const NEIGHBOURS: usize = 32;
    const UNITS: usize = 500;
    let limits = AdvertisementLimits { descriptors: 10_000, reserved: 0, per_face: 10_000 };
    let mut table = Advertisements::new(limits).unwrap();
    let links = (0..NEIGHBOURS).map(|number| TreeLink { tree: 1, face: FaceId(300 + number as u64) });
    links.clone().for_each(|link| table.link_up(link));
    let larger: Vec<TagSet> = (0..LARGER).map(|number| tags(&format!("a, own{number}"))).collect();
    larger.iter().for_each(|set| table.advertise(APPLICATION, set.clone(), Serves::PUSH).unwrap());
    settled(&mut table);
    assert_eq!(table.announced_on(LEFT).len(), LARGER);

    // Each turn ends soon after its units, and in each, every larger set or the small one is announced.
    let in_turns = |table: &mut Advertisements| {
        let mut turns = 0;
        while !table.is_settled() {
            let used = table.settle(UNITS, &NONE, &mut Vec::new());
            assert!(used < UNITS + 4 * NEIGHBOURS, "{used} units in one turn");
            let announced = table.announced_on(LEFT);
            let is_there = |set: &TagSet| announced.contains_key(&set.descriptor());
            assert!(is_there(&tags("a")) || larger.iter().all(is_there));
            turns += 1;
        }
        turns
    };
    table.advertise(APPLICATION, tags("a"), Serves::PUSH).unwrap();
    assert!(in_turns(&mut table) > 50);
    links.clone().for_each(|link| assert_eq!(table.announced_on(link), [(descriptor("a"), Serves::PUSH)].into()));
    table.withdraw(APPLICATION, &tags("a"));
    assert!(in_turns(&mut table) > 50);
    links.for_each(|link| assert_eq!(table.announced_on(link).len(), LARGER));
}

#[test]
fn two_sets_of_tags_may_share_a_descriptor() {
    let mut table = advertisements(ROOM);
    table.advertise(APPLICATION, tags("a"), Serves::PULL).unwrap();
    // A second set with the same filter, as a collision would make it.
    let mut known = Known::clone(table.tables.get(&descriptor("a")).unwrap());
    known.tag_sets.push(AdvertisedTags { link: APPLICATION, tags: tags("twin"), serves: Serves::PUSH });
    table.count(APPLICATION.face, 1);
    table.set_application_branch(&descriptor("a"), known, APPLICATION);
    settled(&mut table);
    assert_eq!(table.announced_on(LEFT)[&descriptor("a")], Serves::BOTH);
    assert!(table.withdraw(APPLICATION, &tags("a")));
    settled(&mut table);
    assert_eq!(table.announced_on(LEFT)[&descriptor("a")], Serves::PUSH);
    table.withdraw_all(APPLICATION);
    settled(&mut table);
    assert!(table.is_empty() && table.per_face.is_empty());
}

/// The story: a face that went down with 65,000 sets marked them all in one turn.
#[test]
fn the_sets_of_a_face_that_goes_down_are_withdrawn_in_bounded_turns() {
    const SETS: usize = 5_000;
    const UNITS: usize = 500;
    let limits = AdvertisementLimits { descriptors: 20_000, reserved: 0, per_face: 10_000 };
    let mut table = advertisements(limits);
    let set = |number: usize| tags(&format!("own{number}"));
    for number in 0..SETS {
        table.advertise(APPLICATION, set(number), Serves::PULL).unwrap();
        table.announced(LEFT, &set(number + SETS / 2).descriptor(), Some(Serves::PULL)).unwrap();
    }
    settled(&mut table);
    table.withdraw_all(APPLICATION);
    table.link_down(LEFT);
    let before = table.len();
    assert!(before > SETS && !table.is_settled());
    let mut turns = 0;
    while !table.is_settled() {
        let before = table.len();
        let used = table.settle(UNITS, &NONE, &mut Vec::new());
        assert!(used < UNITS + 400, "{used} units in one turn");
        assert!(before - table.len() <= UNITS);
        turns += 1;
    }
    assert!(turns > 2 * SETS / UNITS, "{turns}");
    assert!(table.is_empty() && table.per_face.is_empty() && table.announced_on(RIGHT).is_empty());
}

#[test]
fn what_a_face_advertises_after_it_departed_stays() {
    let limits = AdvertisementLimits { descriptors: 20_000, reserved: 0, per_face: 10_000 };
    let mut table = advertisements(limits);
    (0..300)
        .for_each(|number| table.announced(LEFT, &descriptor(&format!("own{number}")), Some(Serves::PULL)).unwrap());
    settled(&mut table);
    table.withdraw_all(LEFT);
    table.settle(1, &NONE, &mut Vec::new());
    // Among descriptors that were looked at and others, old ones and new ones; and another departure meanwhile.
    for number in [5, 250, 400] {
        table.announced(LEFT, &descriptor(&format!("own{number}")), Some(Serves::PULL)).unwrap();
    }
    table.announced(LEFT, &descriptor("own251"), None).unwrap();
    table.withdraw_all(RIGHT);
    settled(&mut table);
    let told: Vec<Descriptor> = table.announced_on(RIGHT).into_keys().collect();
    let mut expected = [5, 250, 400].map(|number| descriptor(&format!("own{number}")));
    expected.sort_unstable();
    assert_eq!(told, expected);
    assert_eq!((table.len(), table.room_of(LEFT.face)), (3, 10_000 - 3));
}

#[test]
fn limits_refuse_without_a_change() {
    let mut table = advertisements(AdvertisementLimits { descriptors: 3, reserved: 0, per_face: 2 });
    table.advertise(APPLICATION, tags("a"), Serves::PULL).unwrap();
    table.advertise(APPLICATION, tags("b"), Serves::PULL).unwrap();
    table.advertise(APPLICATION, tags("b"), Serves::PUSH).unwrap();
    let refused = table.advertise(APPLICATION, tags("c"), Serves::PULL);
    assert_eq!(refused, Err(AdvertisementRefusal::FaceShareUsed));
    table.announced(LEFT, &descriptor("c"), Some(Serves::PULL)).unwrap();
    let refused = table.announced(LEFT, &descriptor("d"), Some(Serves::PULL));
    assert_eq!((refused, table.len()), (Err(AdvertisementRefusal::Full), 3));
    table.announced(LEFT, &descriptor("a"), Some(Serves::PULL)).unwrap();
    // 2^20 advertisements of one face cost no memory.
    for number in 0..1 << 20 {
        let random = Descriptor([number, number.wrapping_mul(77), 1]);
        assert!(table.announced(RIGHT, &random, Some(Serves::BOTH)).is_err());
    }
    assert_eq!((table.len(), table.tables.len_at_most()), (3, 3));
}

#[test]
fn neighbours_cannot_lock_out_applications() {
    let limits = AdvertisementLimits { descriptors: 3, reserved: 1, per_face: 100 };
    let mut table = advertisements(limits);
    let announce =
        |table: &mut Advertisements, link, text| table.announced(link, &descriptor(text), Some(Serves::BOTH));
    assert_eq!(announce(&mut table, LEFT, "a"), Ok(()));
    assert_eq!(announce(&mut table, RIGHT, "b"), Ok(()));
    assert_eq!(announce(&mut table, LEFT, "c"), Err(AdvertisementRefusal::Full));
    assert_eq!(announce(&mut table, LEFT, "b"), Ok(()), "a known descriptor needs no room");
    assert_eq!(table.advertise(APPLICATION, tags("c"), Serves::BOTH), Ok(()));
    assert_eq!(table.advertise(APPLICATION, tags("d"), Serves::BOTH), Err(AdvertisementRefusal::Full));
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

fn entries(table: &Advertisements) -> impl Iterator<Item = (Descriptor, Arc<Known>)> {
    table.tables.entries(usize::MAX)
}

/// What each neighbour must know in the end: see the module's header. It does not depend on what happened before.
fn expected(table: &Advertisements, link: TreeLink) -> BTreeMap<Descriptor, Serves> {
    let wanted: BTreeMap<Descriptor, Serves> =
        entries(table).filter_map(|(descriptor, known)| Some((descriptor, known.wanted_by_others(link)?))).collect();
    let is_minimal = |descriptor: &Descriptor| {
        let covers = |(other, serves): (&Descriptor, &Serves)| {
            other != descriptor && other.is_subset_of(descriptor) && serves.meets(Serves::PUSH)
        };
        !wanted.iter().any(covers)
    };
    let serves = |(descriptor, serves): (&Descriptor, &Serves)| {
        let pull = serves.meets(Serves::PULL).then_some(Serves::PULL);
        let push = (serves.meets(Serves::PUSH) && is_minimal(descriptor)).then_some(Serves::PUSH);
        Some((*descriptor, pull.into_iter().chain(push).reduce(Serves::union)?))
    };
    wanted.iter().filter_map(serves).collect()
}

/// What each neighbour was told, as it heard it.
#[derive(Default)]
struct Heard(BTreeMap<TreeLink, BTreeMap<Descriptor, Serves>>);

impl Heard {
    fn hear(&mut self, out: Vec<Announcement>) {
        for Announcement { link, descriptor, serves } in out {
            let of_link = self.0.entry(link).or_default();
            match serves {
                Some(serves) => drop(of_link.insert(descriptor, serves)),
                None => assert!(of_link.remove(&descriptor).is_some(), "withdraws what was announced"),
            }
        }
    }

    fn of(&self, link: TreeLink) -> BTreeMap<Descriptor, Serves> {
        self.0.get(&link).cloned().unwrap_or_default()
    }

    /// True if a push with these tags would come from this neighbour.
    fn matches(&self, link: TreeLink, descriptor: &Descriptor) -> bool {
        let of_link = self.0.get(&link).into_iter().flatten();
        let mut pushes = of_link.filter(|(_, serves)| serves.meets(Serves::PUSH));
        pushes.any(|(announced, _)| announced.is_subset_of(descriptor))
    }
}

fn perform(table: &mut Advertisements, heard: &mut Heard, operation: Operation) {
    let is_up = |table: &Advertisements, link| table.links().contains(&link);
    match operation {
        Operation::Announced(link, set, serves) if is_up(table, link) => {
            table.announced(link, &set.descriptor(), serves).unwrap();
        }
        Operation::Announced(..) => {}
        Operation::Advertise(set, serves) => table.advertise(APPLICATION, set, serves).unwrap(),
        Operation::Withdraw(set) => drop(table.withdraw(APPLICATION, &set)),
        Operation::LinkDown(link) => {
            table.link_down(link);
            heard.0.remove(&link);
        }
        // If it is up, the neighbour has forgotten what it was told.
        Operation::LinkUp(link) => {
            table.link_up(link);
            heard.0.remove(&link);
        }
        Operation::ApplicationGone => table.withdraw_all(APPLICATION),
    }
}

/// Sets that other faces of the tree want for pushes.
fn wanted_for_pushes(table: &Advertisements, link: TreeLink) -> BTreeSet<Descriptor> {
    let wants = |(_, known): &(Descriptor, Arc<Known>)| {
        let mut others = known.branches.iter().filter(|(other, _)| other.tree == link.tree && other.face != link.face);
        others.any(|(other, it)| it.serves.meets(Serves::PUSH) && !table.departures.is_over(*other, it.at))
    };
    entries(table).filter(wants).map(|(descriptor, _)| descriptor).collect()
}

proptest! {
    #[test]
    fn neighbours_know_the_minimal_sets_whatever_the_order(
        operations in proptest::collection::vec((operation(), 0..40_usize), 1..80),
    ) {
        let (mut table, mut heard) = (advertisements(ROOM), Heard::default());
        for (operation, units) in operations {
            perform(&mut table, &mut heard, operation);
            // Some turns have not begun when the next operation comes, or are not over.
            let mut out = Vec::new();
            if units == 0 {
                continue;
            }
            if units < 30 {
                table.settle(units, &NONE, &mut out);
                heard.hear(out);
                continue;
            }
            heard.hear(settled(&mut table));
            for link in table.links() {
                prop_assert_eq!(heard.of(link), expected(&table, link));
                prop_assert_eq!(heard.of(link), table.announced_on(link));
            }
        }
        for link in [APPLICATION, LEFT, RIGHT, OTHER_TREE] {
            table.withdraw_all(link);
        }
        settled(&mut table);
        prop_assert!(table.is_empty() && table.per_face.is_empty() && table.entries(usize::MAX).count() == 0);
        prop_assert_eq!((table.tables.len_at_most(), table.tables.uses().count()), (0, 0));
    }

    #[test]
    fn pushes_that_stay_wanted_arrive_during_changes(
        before in proptest::collection::vec(operation(), 1..40),
        operations in proptest::collection::vec(operation(), 1..10),
    ) {
        let (mut table, mut heard) = (advertisements(ROOM), Heard::default());
        before.into_iter().for_each(|operation| perform(&mut table, &mut heard, operation));
        heard.hear(settled(&mut table));
        for operation in operations {
            let links = table.links();
            let before: Vec<_> = links.iter().map(|link| wanted_for_pushes(&table, *link)).collect();
            let forgets = if let Operation::LinkUp(link) = operation { Some(link) } else { None };
            perform(&mut table, &mut heard, operation);
            let stays = |link: &TreeLink| table.links().contains(link) && forgets != Some(*link);
            let throughout: Vec<(TreeLink, Descriptor)> = links.iter().zip(before).filter(|(link, _)| stays(link))
                .flat_map(|(link, before)| {
                    let after = wanted_for_pushes(&table, *link);
                    before.into_iter().filter(move |wanted| after.contains(wanted)).map(|wanted| (*link, wanted))
                })
                .collect();
            while !table.is_settled() {
                let mut out = Vec::new();
                table.settle(1, &NONE, &mut out);
                for announcement in out {
                    heard.hear(vec![announcement]);
                    for (link, wanted) in &throughout {
                        prop_assert!(heard.matches(*link, wanted), "{wanted:?} on {link:?}");
                    }
                }
            }
        }
    }
}
