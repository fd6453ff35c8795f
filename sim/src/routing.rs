//! Routing: a node's routes and strategy choices, and the resulting FIB.
//!
//! RIB and rules are those of management. Only the protocol is missing: a test adds routes by a call, not by a signed
//! Interest.

use namewire_engine::{AnnouncementTable, FaceId};
use namewire_management::announcements::{announced_route, forget_announced};
use namewire_management::fib_computation::{FibComputation, FibSources, FibUpdate};
use namewire_management::manual_next_hops::ManualNextHops;
use namewire_management::rib::{Rib, Route};
use namewire_management::strategy_choice::{ResolvedStrategy, StrategyChoices};
use namewire_management::{HolderId, Times};
use namewire_packet::nfd::prefix_announcement::PrefixAnnouncement;
use namewire_packet::nfd::{origin, route_flags};
use namewire_packet::{Data, Name, NameBuf};
use namewire_tables::Fib;
use namewire_testbed::management::change_fib;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Origin of a configured route (forwarding §6; NFD management, RIB Management: *static* is 255).
const ORIGIN_STATIC: u64 = 255;

pub(crate) struct Routing {
    rib: Rib,
    manual: ManualNextHops,
    choices: StrategyChoices,
    computation: FibComputation,
    /// The announcing Data of routes, by prefix and face.
    announcements: BTreeMap<(NameBuf, FaceId), Arc<[u8]>>,
}

/// What strategies learn about routes.
pub(crate) enum RouteNews {
    Learned { face: FaceId, announcement: Vec<u8>, lifetime_ms_max: u64 },
    Lost { face: FaceId, name: Vec<u8> },
}

impl Routing {
    /// No routes, and `strategy` for all names.
    pub(crate) fn new(strategy: ResolvedStrategy) -> Self {
        Routing {
            rib: Rib::default(),
            manual: ManualNextHops::default(),
            choices: StrategyChoices::new(strategy),
            computation: FibComputation::new(),
            announcements: BTreeMap::new(),
        }
    }

    /// Adds a route that longer prefixes inherit; returns the new next hops.
    pub(crate) fn add_route(&mut self, prefix: &NameBuf, face: FaceId, cost: u64, fib: &mut Fib) -> Vec<NewNextHop> {
        let flags = route_flags::CHILD_INHERIT;
        let route =
            Route { face, origin: ORIGIN_STATIC, cost, flags, expires_at_ns: None, holder: HolderId::ANY_LOCAL };
        self.rib.insert(prefix.as_name(), route).expect("a test stays below the limits of the RIB");
        self.publish(vec![prefix.clone()], fib)
    }

    /// Removes a route of [`Routing::add_route`].
    pub(crate) fn remove_route(&mut self, prefix: &NameBuf, face: FaceId, fib: &mut Fib) {
        if self.rib.remove(prefix.as_name(), face, ORIGIN_STATIC) {
            self.publish(vec![prefix.clone()], fib);
        }
    }

    /// Every announcement is trusted: the tests are about learning.
    pub(crate) fn take_news(&mut self, now_ns: u64, news: RouteNews, fib: &mut Fib) -> Vec<NewNextHop> {
        match news {
            RouteNews::Learned { face, announcement, lifetime_ms_max } => {
                let now = Times { mono_ns: now_ns, unix_ms: now_ns / 1_000_000 };
                let data = Data::parse(&announcement).expect("the engine has read it");
                let read = PrefixAnnouncement::read(&data).expect("producers announce properly");
                let route =
                    announced_route(&read, face, HolderId::ANY_REMOTE, now, lifetime_ms_max).expect("it is valid");
                let prefix = read.prefix.to_buf();
                self.rib.insert(read.prefix, route).expect("a test stays below the limits of the RIB");
                self.announcements.insert((prefix.clone(), face), announcement.into());
                self.publish(vec![prefix], fib)
            }
            RouteNews::Lost { face, name } => {
                let name = Name::parse_value(&name).expect("it was an Interest's");
                let gone = forget_announced(&mut self.rib, name, face).map(|prefix| prefix.to_buf());
                self.publish(gone.into_iter().collect(), fib)
            }
        }
    }

    /// The announcements that have routes.
    pub(crate) fn announcements(&mut self) -> AnnouncementTable {
        let rib = &self.rib;
        self.announcements.retain(|(prefix, face), _| {
            let key = (*face, origin::PREFIX_ANNOUNCEMENT);
            rib.routes(prefix.as_name()).iter().any(|route| (route.face, route.origin) == key)
        });
        let mut table = AnnouncementTable::default();
        for ((prefix, _), announcement) in &self.announcements {
            table.insert(prefix, Arc::clone(announcement));
        }
        table
    }

    pub(crate) fn is_expiry_due(&self, now_ns: u64) -> bool {
        self.rib.next_deadline_ns().is_some_and(|at_ns| at_ns <= now_ns)
    }

    pub(crate) fn expire(&mut self, now_ns: u64, fib: &mut Fib) {
        let changed = self.rib.expire(now_ns, usize::MAX);
        self.publish(changed, fib);
    }

    pub(crate) fn remove_face(&mut self, face: FaceId, fib: &mut Fib) {
        self.rib.leave(face);
        let changed = self.rib.remove_leaving(usize::MAX);
        self.publish(changed, fib);
    }

    pub(crate) fn set_strategy(&mut self, prefix: &NameBuf, strategy: ResolvedStrategy, fib: &mut Fib) {
        self.choices.set(prefix.as_name(), strategy);
        self.publish(vec![prefix.clone()], fib);
    }

    /// Applies the changes to the FIB, as the router's writer does.
    fn publish(&mut self, changed: Vec<NameBuf>, fib: &mut Fib) -> Vec<NewNextHop> {
        let sources = FibSources { rib: &self.rib, manual: &self.manual, strategies: &self.choices };
        let FibUpdate { changes, new_next_hops } = self.computation.recompute(changed, sources, usize::MAX);
        for change in &changes {
            change_fib(fib, change).expect("a test stays below the capacity of the FIB, and no reader exists");
        }
        fib.publish();
        new_next_hops
    }
}

/// A prefix and a face that is a new next hop for Interests under it.
pub(crate) type NewNextHop = (NameBuf, FaceId);
