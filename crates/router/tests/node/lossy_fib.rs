//! A router with a lossy FIB: what it does to names without a route.

use crate::application::{Application, start_with};
use namewire_configuration::settings::Choice;
use namewire_designs::fib::{catalogue::FibDesign, string_differentiation::DefaultRoute};
use namewire_packet::NackReason;
use namewire_router::RouterHandle;

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
