//! A router with a lossy FIB, and one whose FIB is full: how they forward names that are not in the table, and what
//! they report about it.

use crate::application::{Application, name, start_with};
use namewire_configuration::settings::Choice;
use namewire_designs::fib::{catalogue::FibDesign, string_differentiation::DefaultRoute};
use namewire_packet::{
    FaceId, NackReason,
    nfd::{ControlParameters, FibEntry, FibLook, NameLook},
};
use namewire_router::RouterHandle;
use std::collections::BTreeMap;

/// Every lossy design, with every way to treat the default route that it has.
fn for_each_lossy_design(mut test: impl FnMut(&RouterHandle, &str)) {
    for design in FibDesign::ALL.into_iter().filter(|design| !design.is_lossless()) {
        let followed = (design != FibDesign::Fht).then_some(DefaultRoute::Followed);
        for way in [DefaultRoute::Exact, DefaultRoute::Speculative].into_iter().chain(followed) {
            let (router, _directory) = start_with(2, |config| {
                config.settings.fib.design.0 = design;
                config.settings.fib.default_route = Some(Choice(way));
                config.settings.tables.fib_capacity = 2000;
            });
            test(&router, &format!("{}, {}", design.name(), way.name()));
        }
    }
}

/// The story: a built-in choice of multicast, for `/ndn/broadcast`, was a rule of the lossy table, and so was
/// `/localhost/nfd`. So 300 of 300 Interests got no answer at all.
#[test]
fn a_lossy_router_without_routes_sends_nacks() {
    for_each_lossy_design(|router, label| {
        let mut consumer = Application::connect(router);
        for number in 0..50 {
            let packet =
                consumer.express(&format!("/stranger/{number}/x")).unwrap_or_else(|| panic!("{label}: silence"));
            assert_eq!(packet.headers.nack, Some(NackReason::NoRoute), "{label}");
        }
    });
}

/// The story: `namewire explain` read the exact list of entries, and was wrong about 300 of 300 names.
#[test]
fn a_look_at_a_name_tells_where_the_lossy_table_leads_it() {
    let mut mistaken = 0;
    for_each_lossy_design(|router, label| {
        let mut producers: BTreeMap<FaceId, Application> = BTreeMap::new();
        for site in 0..8 {
            let mut producer = Application::connect(router);
            let face = producer.register(&format!("/site{site}"));
            producer.register(&format!("/site{site}/{}", "deeper/".repeat(site % 3) + "end"));
            producers.insert(face, producer);
        }
        let (mut operator, mut consumer) = (Application::connect(router), Application::connect(router));
        for number in 0..30 {
            let uri = format!("/stranger{number}/x/{number}");
            let FibLook { strategy, next_hops, .. } = look(&mut operator, &uri);
            assert_eq!(strategy, name("/localhost/nfd/strategy/best-route/v=5"), "{label}: {uri}");
            let interest = consumer.interest(name(&uri)).lifetime_ms(10_000).build();
            consumer.send(&interest);
            match next_hops.first() {
                None => {
                    let packet = consumer.receive().unwrap_or_else(|| panic!("{label}: no Nack for {uri}"));
                    assert_eq!(packet.headers.nack, Some(NackReason::NoRoute), "{label}");
                }
                Some(hop) => {
                    let producer = producers.get_mut(&hop.face_id).expect("the face of a route");
                    let packet = producer.receive().unwrap_or_else(|| panic!("{label}: {uri} went elsewhere"));
                    assert_eq!(packet.interest().name().to_buf(), name(&uri), "{label}");
                    mistaken += 1;
                }
            }
        }
    });
    assert!(mistaken > 0, "no design was lossy");
}

/// Where the FIB leads an Interest for the name, as the worker says that owns it.
pub(crate) fn look(operator: &mut Application, uri: &str) -> FibLook {
    let mut component = Vec::new();
    name(uri).as_name().write_tlv(&mut component);
    let mut dataset = name("/status/name");
    dataset.push_generic(&component);
    let looks: Vec<NameLook> = operator.dataset(&dataset.to_string());
    let mut owners = looks.into_iter().filter(|look| look.is_owner);
    owners.next().and_then(|look| look.fib).expect("a worker owns the name, and tells")
}

/// The story: with `tables.fib_capacity = 300`, 900 of 900 registrations were answered 200, and 604 prefixes were not
/// in the FIB.
#[test]
fn a_prefix_that_was_registered_is_in_the_fib() {
    for design in [FibDesign::OneBucket, FibDesign::NameTrie, FibDesign::Fpt] {
        let (router, _directory) = start_with(1, |config| {
            config.settings.fib.design.0 = design;
            config.settings.tables.fib_capacity = 300;
        });
        let mut producer = Application::connect(&router);
        let mut codes: BTreeMap<u64, usize> = BTreeMap::new();
        for number in 0..400 {
            let prefix = Some(name(&format!("/site/{number}")));
            let response = producer.command("/rib/register", ControlParameters { name: prefix, ..Default::default() });
            *codes.entry(response.code).or_default() += 1;
            let is_said = response.code == 200 || response.text.contains("tables.fib_capacity");
            assert!(is_said, "{response:?}");
        }
        // Four entries are of strategy choices, which are not in the list but for that of management's own prefix.
        assert_eq!(codes, BTreeMap::from([(200, 296), (507, 104)]), "{}", design.name());
        assert_eq!(producer.dataset::<FibEntry>("/fib/list").len(), 297, "{}", design.name());
        assert_eq!(producer.drops("router.fib-full"), 0, "{}", design.name());
        let mut consumer = Application::connect(&router);
        let interest = consumer.interest(name("/site/295/x")).build();
        consumer.send(&interest);
        producer.serve(1, b"here");
        assert_eq!(consumer.receive().expect("Data").data().content(), b"here", "{}", design.name());
    }
}
