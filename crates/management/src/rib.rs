//! The Routing Information Base: the routes that applications and daemons have registered.
//!
//! Source: forwarding.md §6. A route is keyed by (prefix, face, origin). Registering it again replaces cost, flags and
//! expiration. [`crate::fib_computation`] computes what the forwarder does with the routes.
//!
//! Layout: one record per prefix in a table ordered by name ([`crate::prefix_tree`]), with its routes sorted by face
//! and origin. The first route is inside the record. Two indices hold record numbers: one by face, for faces that
//! close, and one by deadline, for expiry.
//!
//! ```text
//!   prefix:   | bytes, shared |  routes: | face origin cost flags deadline |  (more: on the heap)
//!   by face:       face → { record … }
//!   by deadline:   { (deadline, record) … }
//! ```
//!
//! A closed face may have a million routes. As soon as [`Rib::leave`] is called for the face, no dataset and no
//! computation counts them ([`Rib::live_routes`]). [`Rib::remove_leaving`] removes a limited number of them at a time,
//! so that the caller can do other work in between. [`Rib::expire`] does the same for expired routes.
//!
//! Bytes: a prefix with one route takes 64 for the record with its key, 17 for its place in the order, 14 for the index
//! by face, and 30 more if the route expires. The name takes its own bytes, which the FIB computation shares, and 24.
//! Cost: an operation takes O(log n), and visits the routes of one prefix.
//!
//! Limits: [`RibLimits`]; [`MAX_PREFIX_COMPONENTS`] as in NFD, which limits the depth of a subtree;
//! [`MAX_PREFIX_BYTES`], so that an answer that repeats the name fits into a packet. The routes are a pool
//! ([`namewire_shares::Pool`]): each counts for the holder that registered it first, until it goes. A long prefix
//! counts as several routes ([`PREFIX_BYTES_PER_ROUTE`]), so the pool bounds the bytes of names, too.

use crate::{
    fib_full::FibFull,
    name_key::NameKey,
    prefix_tree::{PrefixId, PrefixTree},
};
use hashbrown::{HashMap, HashSet};
use namewire_packet::{
    FaceId, Name, NameBuf,
    nfd::{RibEntry, Route as RouteRecord, route_flags},
};
use namewire_shares::{Groups, HolderId, Pool, PoolConfig, PoolReader, Refusal};
use smallvec::SmallVec;
use std::{
    borrow::Cow,
    collections::{BTreeSet, btree_set},
    num::NonZero,
};

/// Longest prefix of a route, FIB entry or strategy choice, in components (answer 414).
pub const MAX_PREFIX_COMPONENTS: usize = 32;

/// Names that do not leave this machine begin with this component.
const LOCALHOST: &[u8] = b"\x08\x09localhost";

/// Longest prefix of a route, FIB entry or strategy choice, in bytes of its TLV-VALUE (answer 414). NDN-DPDK has the
/// same limit.
pub const MAX_PREFIX_BYTES: usize = 2048;

/// How large the RIB may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RibLimits {
    /// Routes in all. Management can be sure of a hundredth of them, and local holders of a tenth.
    pub routes: usize,
    /// The part that one holder may have if no other has any, in percent.
    pub share_percent: u32,
    /// Routes of one prefix. Each costs time whenever the prefix's subtree changes.
    pub routes_per_prefix: usize,
}

/// A route counts as one for each time that its prefix has begun so many bytes.
pub const PREFIX_BYTES_PER_ROUTE: usize = 256;

impl Default for RibLimits {
    fn default() -> Self {
        RibLimits { routes: 1_000_000, share_percent: 90, routes_per_prefix: 4096 }
    }
}

impl RibLimits {
    /// The most bytes of all prefixes together.
    pub const fn prefix_bytes(&self) -> usize {
        self.routes * PREFIX_BYTES_PER_ROUTE
    }

    const fn pool(&self) -> PoolConfig {
        let capacity = self.routes as u64;
        PoolConfig {
            name: "routes",
            capacity,
            share_percent: self.share_percent,
            management_reserve: capacity / 100,
            local_reserve: capacity / 10,
        }
    }
}

/// What a route to this prefix counts as.
fn weight(prefix_bytes: usize) -> u64 {
    prefix_bytes.div_ceil(PREFIX_BYTES_PER_ROUTE).max(1) as u64
}

/// One route of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Next hop.
    pub face: FaceId,
    /// The component that registered it.
    pub origin: u64,
    /// Cost; lower is better.
    pub cost: u64,
    /// [`route_flags`].
    pub flags: u64,
    /// Monotonic instant at which the route expires; `None` means never.
    pub expires_at_ns: Option<NonZero<u64>>,
    /// Who registered it.
    pub holder: HolderId,
}

const _: () = assert!(size_of::<Route>() == 48, "the bytes in the header of this file");

impl Route {
    /// True if longer prefixes inherit it.
    pub const fn is_inheritable(&self) -> bool {
        self.flags & route_flags::CHILD_INHERIT != 0
    }

    /// True if it keeps shorter prefixes' routes from this prefix and longer ones.
    pub const fn captures(&self) -> bool {
        self.flags & route_flags::CAPTURE != 0
    }
}

/// The monotonic instant `period_ms` from now. `None`, which means never, for a period that the clock does not reach.
/// Clients that mean never, including NLSR, say 2^63 − 1 ms (`time::milliseconds::max()` of ndn-cxx).
pub(crate) fn deadline_ns(now_ns: u64, period_ms: u64) -> Option<NonZero<u64>> {
    let deadline_ns = period_ms.checked_mul(1_000_000).and_then(|period_ns| now_ns.checked_add(period_ns))?;
    NonZero::new(deadline_ns.max(1))
}

/// Why a route was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RibFull {
    /// [`RibLimits::routes`] is reached.
    #[error("RIB is full (limit is {0} routes)")]
    Routes(usize),
    /// [`RibLimits::routes_per_prefix`] is reached.
    #[error("prefix has too many routes (limit is {0})")]
    RoutesPerPrefix(usize),
    /// The holder, or its group, has its share of the routes.
    #[error("you have your share of the RIB (of {0} routes)")]
    ShareUsed(usize),
    /// The system has no memory to spare ([`Rib::set_short_of_memory`]).
    #[error("the system has no memory for more routes")]
    NoMemory,
    /// The route would need a FIB entry, and the forwarder has no room for one.
    #[error(transparent)]
    Fib(#[from] FibFull),
}

/// The routes of a prefix by face and origin; nearly all have one.
type Routes = SmallVec<[Route; 1]>;

/// All routes of this node.
#[derive(Debug)]
pub struct Rib {
    entries: PrefixTree<Routes>,
    /// Record numbers in order, which is nearly the order of registration: neighbouring names leave together.
    by_face: HashMap<FaceId, BTreeSet<PrefixId>>,
    by_deadline: BTreeSet<(u64, PrefixId)>,
    /// The records that may still have routes of faces that are gone. The last face goes first.
    leaving: Vec<(FaceId, btree_set::IntoIter<PrefixId>)>,
    /// These faces.
    gone: HashSet<FaceId>,
    route_count: usize,
    prefix_bytes: usize,
    pool: Pool,
    limits: RibLimits,
    is_short_of_memory: bool,
}

impl Default for Rib {
    /// An empty RIB with the default limits, where no holder is in a group.
    fn default() -> Self {
        Rib::new(RibLimits::default(), &Groups::default())
    }
}

impl Rib {
    /// An empty RIB for holders of these groups.
    pub fn new(limits: RibLimits, groups: &Groups) -> Self {
        Rib {
            entries: PrefixTree::default(),
            by_face: HashMap::new(),
            by_deadline: BTreeSet::new(),
            leaving: Vec::new(),
            gone: HashSet::new(),
            route_count: 0,
            prefix_bytes: 0,
            pool: Pool::new(limits.pool(), groups),
            limits,
            is_short_of_memory: false,
        }
    }

    /// Who has how many routes, for other threads.
    pub fn pool(&self) -> PoolReader {
        self.pool.reader()
    }

    /// Refuses new routes from now on, or no longer.
    pub const fn set_short_of_memory(&mut self, is_short: bool) {
        self.is_short_of_memory = is_short;
    }

    /// True if it refuses new routes.
    pub const fn is_short_of_memory(&self) -> bool {
        self.is_short_of_memory
    }

    /// Bytes of memory that should be free for the next change. All tables that hold routes may double, and one route
    /// at a short prefix changes the FIB entries of all longer ones.
    pub const fn wanted_bytes(&self) -> usize {
        const BYTES_PER_ROUTE: usize = 1024;
        const COPIES_OF_NAMES: usize = 2;
        self.route_count * BYTES_PER_ROUTE + self.prefix_bytes * COPIES_OF_NAMES
    }

    /// Number of routes.
    pub const fn len(&self) -> usize {
        self.route_count
    }

    /// True without any route.
    pub const fn is_empty(&self) -> bool {
        self.route_count == 0
    }

    /// Routes of exactly this prefix, by face and origin; empty if there are none.
    pub fn routes(&self, prefix: Name<'_>) -> &[Route] {
        self.entries.get(prefix).map_or(&[], SmallVec::as_slice)
    }

    /// The routes of exactly this prefix that count, without routes of faces that are gone.
    pub fn live_routes(&self, prefix: Name<'_>) -> Cow<'_, [Route]> {
        self.live(self.routes(prefix))
    }

    fn live<'r>(&self, routes: &'r [Route]) -> Cow<'r, [Route]> {
        if self.gone.is_empty() || !routes.iter().any(|route| self.is_gone(route.face)) {
            return Cow::Borrowed(routes);
        }
        routes.iter().filter(|route| !self.is_gone(route.face)).copied().collect()
    }

    /// Adds a route or replaces the one with the same face and origin, which keeps its holder. True if anything changed
    /// that the FIB depends on.
    ///
    /// # Errors
    /// If a limit is reached; then nothing changes.
    pub fn insert(&mut self, prefix: Name<'_>, route: Route) -> Result<bool, RibFull> {
        let id = match self.entries.find(prefix) {
            Ok(id) => id,
            Err(place) => {
                self.take_room(prefix, route.holder)?;
                self.prefix_bytes += prefix.value().len();
                let id = self.entries.insert_at(place, NameKey::new(prefix), Routes::from_elem(route, 1));
                self.index(id, &route);
                return Ok(true);
            }
        };
        let routes = self.entries.value(id);
        match position(routes, route.face, route.origin) {
            Ok(at) => {
                let place = &mut self.entries.value_mut(id)[at];
                let old = std::mem::replace(place, Route { holder: place.holder, ..route });
                self.unindex(id, &old);
                self.index(id, &route);
                Ok((old.cost, old.flags) != (route.cost, route.flags))
            }
            Err(_) if routes.len() >= self.limits.routes_per_prefix => {
                Err(RibFull::RoutesPerPrefix(self.limits.routes_per_prefix))
            }
            Err(at) => {
                self.take_room(prefix, route.holder)?;
                self.entries.value_mut(id).insert(at, route);
                self.index(id, &route);
                Ok(true)
            }
        }
    }

    fn take_room(&mut self, prefix: Name<'_>, holder: HolderId) -> Result<(), RibFull> {
        if self.is_short_of_memory {
            return Err(RibFull::NoMemory);
        }
        self.pool.try_take(holder, weight(prefix.value().len())).map_err(|refusal| match refusal {
            Refusal::PoolFull => RibFull::Routes(self.limits.routes),
            Refusal::ShareUsed => RibFull::ShareUsed(self.limits.routes),
        })
    }

    /// Removes a route. True if it was there.
    pub fn remove(&mut self, prefix: Name<'_>, face: FaceId, origin: u64) -> bool {
        let Ok(id) = self.entries.find(prefix) else { return false };
        let Ok(at) = position(self.entries.value(id), face, origin) else { return false };
        self.remove_where(id, |place, _| place == at);
        true
    }

    /// A face is gone: from now on its routes do not count. [`Rib::remove_leaving`] removes them. The face's number
    /// must not be used again.
    pub fn leave(&mut self, face: FaceId) {
        if let Some(ids) = self.by_face.remove(&face) {
            self.leaving.push((face, ids.into_iter()));
            self.gone.insert(face);
        }
    }

    /// The number of prefixes with routes to this face.
    pub fn prefixes_of(&self, face: FaceId) -> usize {
        self.by_face.get(&face).map_or(0, BTreeSet::len)
    }

    /// True while routes of faces that are gone are still to be removed.
    pub const fn is_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// True if the face is gone, and routes to it are still to be removed.
    pub fn is_gone(&self, face: FaceId) -> bool {
        self.gone.contains(&face)
    }

    /// Removes routes of faces that are gone, for at most `most` prefixes; returns these prefixes in canonical order.
    /// The face that left last goes first, so that a face with few routes does not wait for one with many.
    pub fn remove_leaving(&mut self, most: usize) -> Vec<NameBuf> {
        let mut keys = Vec::new();
        while keys.len() < most
            && let Some((face, ids)) = self.leaving.last_mut()
        {
            let face = *face;
            let Some(id) = ids.next() else {
                self.leaving.pop();
                self.gone.remove(&face);
                continue;
            };
            // The route may have expired meanwhile, and another prefix may have its number.
            if self.entries.try_value(id).is_some_and(|routes| routes.iter().any(|route| route.face == face)) {
                keys.push(self.remove_where(id, |_, route| route.face == face));
            }
        }
        in_order(keys)
    }

    /// Removes expired routes, for at most `most` prefixes; returns these prefixes in canonical order.
    pub fn expire(&mut self, now_ns: u64, most: usize) -> Vec<NameBuf> {
        let mut keys = Vec::new();
        while keys.len() < most
            && let Some(&(deadline_ns, id)) = self.by_deadline.first()
            && deadline_ns <= now_ns
        {
            keys.push(self.remove_where(id, |_, route| route.expires_at_ns.is_some_and(|at_ns| at_ns.get() <= now_ns)));
        }
        in_order(keys)
    }

    /// When [`Rib::expire`] has work next.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.by_deadline.first().map(|(deadline_ns, _)| *deadline_ns)
    }

    /// The dataset `rib/list`, with expirations as time left at `now_ns`. Leaves out routes that no longer count.
    pub fn dataset(&self, now_ns: u64) -> impl Iterator<Item = RibEntry> {
        self.entries.iter().filter_map(move |(key, routes)| self.shown(now_ns, key.name(), routes))
    }

    /// Of [`Rib::dataset`], the entries of `name` and its prefixes.
    pub(crate) fn about(&self, now_ns: u64, name: Name<'_>) -> Vec<RibEntry> {
        let own = self.entries.get(name).and_then(|routes| self.shown(now_ns, name, routes));
        let above = self.entries.ancestors(name).filter_map(|(key, routes)| self.shown(now_ns, key.name(), routes));
        own.into_iter().chain(above).collect()
    }

    /// The entry as datasets show it; `None` if they do not.
    fn shown(&self, now_ns: u64, name: Name<'_>, routes: &Routes) -> Option<RibEntry> {
        let left_ms = |at_ns: NonZero<u64>| at_ns.get().saturating_sub(now_ns) / 1_000_000;
        let is_contested = |route: &Route| self.held_by_another(name, route.holder).map(|_| true);
        let record = |route: &Route| RouteRecord {
            face_id: route.face,
            origin: route.origin,
            cost: route.cost,
            flags: route.flags,
            expiration_period_ms: route.expires_at_ns.map(left_ms),
            is_contested: is_contested(route),
        };
        let is_live = |route: &&Route| route.expires_at_ns.is_none_or(|at_ns| at_ns.get() > now_ns);
        let routes: Vec<RouteRecord> = self.live(routes).iter().filter(is_live).map(record).collect();
        (!routes.is_empty()).then(|| RibEntry { name: name.to_buf(), routes })
    }

    /// A route for this prefix of `/localhost`, or for a shorter one there, that another than `holder` had registered:
    /// two users who speak for one service of this machine. `None` for prefixes elsewhere, where producers may be many.
    pub(crate) fn held_by_another(&self, prefix: Name<'_>, holder: HolderId) -> Option<Route> {
        if !prefix.value().starts_with(LOCALHOST) {
            return None;
        }
        let own = self.entries.get(prefix).into_iter();
        let above = self.entries.ancestors(prefix).filter(|(key, _)| key.value().starts_with(LOCALHOST));
        let mut routes = own.chain(above.map(|(_, routes)| routes)).flatten();
        routes.find(|route| route.holder != holder && !self.is_gone(route.face)).copied()
    }

    /// Prefixes with routes at and under `prefix`, in canonical order. With `after`, only those behind it.
    pub(crate) fn keys_under<'r>(
        &'r self,
        prefix: Name<'r>,
        after: Option<&NameKey>,
    ) -> impl Iterator<Item = &'r NameKey> {
        self.entries.subtree(prefix, after).map(|(key, _)| key)
    }

    /// Removes the routes of a prefix for which `goes` is true, given their place and contents.
    fn remove_where(&mut self, id: PrefixId, goes: impl Fn(usize, &Route) -> bool) -> NameKey {
        let key = self.entries.key(id).clone();
        let routes = self.entries.value_mut(id);
        let mut gone = Routes::new();
        let mut place = 0;
        routes.retain(|route| {
            let goes = goes(place, route);
            place += 1;
            if goes {
                gone.push(*route);
            }
            !goes
        });
        if routes.is_empty() {
            self.entries.remove(key.name());
            self.prefix_bytes -= key.value().len();
        } else if routes.len() == 1 {
            routes.shrink_to_fit(); // back into the record
        }
        for route in &gone {
            self.unindex(id, route);
            self.pool.give_back(route.holder, weight(key.value().len()));
        }
        key
    }

    /// Adds a route of the table to the indices.
    fn index(&mut self, id: PrefixId, route: &Route) {
        self.by_face.entry(route.face).or_default().insert(id);
        if let Some(deadline_ns) = route.expires_at_ns {
            self.by_deadline.insert((deadline_ns.get(), id));
        }
        self.route_count += 1;
    }

    /// Removes a route that is no longer in the table from the indices, unless another route of its prefix needs the
    /// same entry.
    fn unindex(&mut self, id: PrefixId, route: &Route) {
        self.route_count -= 1;
        let others = self.entries.try_value(id).map_or(&[][..], SmallVec::as_slice);
        let is_last_of_face = !others.iter().any(|other| other.face == route.face);
        let is_last_of_deadline = !others.iter().any(|other| other.expires_at_ns == route.expires_at_ns);
        if let Some(deadline_ns) = route.expires_at_ns
            && is_last_of_deadline
        {
            self.by_deadline.remove(&(deadline_ns.get(), id));
        }
        if is_last_of_face && let Some(of_face) = self.by_face.get_mut(&route.face) {
            of_face.remove(&id);
            if of_face.is_empty() {
                self.by_face.remove(&route.face);
            }
        }
    }
}

fn position(routes: &[Route], face: FaceId, origin: u64) -> Result<usize, usize> {
    routes.binary_search_by_key(&(face, origin), |route| (route.face, route.origin))
}

/// The names of keys in canonical order, each once.
fn in_order(mut keys: Vec<NameKey>) -> Vec<NameBuf> {
    keys.sort_unstable();
    keys.dedup();
    keys.iter().map(NameKey::to_buf).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> NameBuf {
        uri.parse().expect("name")
    }

    fn route(face: u64, origin: u64, expires_at_ns: Option<u64>) -> Route {
        let (expires_at_ns, holder) = (expires_at_ns.and_then(NonZero::new), HolderId::ANY_LOCAL);
        Route { face: FaceId(face), origin, cost: 10, flags: 1, expires_at_ns, holder }
    }

    #[test]
    fn registering_again_replaces_and_reports_whether_the_fib_changes() {
        let mut rib = Rib::default();
        let a = name("/a");
        assert_eq!(rib.insert(a.as_name(), route(300, 0, Some(5))), Ok(true));
        assert_eq!(rib.insert(a.as_name(), route(300, 0, Some(9))), Ok(false));
        assert_eq!(rib.next_deadline_ns(), Some(9));
        assert_eq!(rib.insert(a.as_name(), Route { cost: 1, ..route(300, 0, None) }), Ok(true));
        assert_eq!(rib.next_deadline_ns(), None);
        assert_eq!(rib.insert(a.as_name(), route(300, 255, None)), Ok(true));
        assert_eq!(rib.len(), 2);
        assert!(rib.remove(a.as_name(), FaceId(300), 0));
        assert!(!rib.remove(a.as_name(), FaceId(300), 0));
        assert!(!rib.remove(name("/b").as_name(), FaceId(300), 0));
        assert_eq!(rib.routes(a.as_name()), [route(300, 255, None)]);
    }

    #[test]
    fn limits_refuse_with_their_name_and_change_nothing() {
        let limits = RibLimits { routes: 3, share_percent: 100, routes_per_prefix: 2 };
        let mut rib = Rib::new(limits, &Groups::default());
        rib.insert(name("/a").as_name(), route(1, 0, None)).expect("room");
        rib.insert(name("/a").as_name(), route(2, 0, None)).expect("room");
        rib.set_short_of_memory(true);
        assert_eq!(rib.insert(name("/c").as_name(), route(1, 0, None)), Err(RibFull::NoMemory));
        assert_eq!(rib.insert(name("/a").as_name(), route(2, 0, Some(9))), Ok(false), "what is there is renewed");
        rib.set_short_of_memory(false);
        let full = rib.insert(name("/a").as_name(), route(3, 0, None));
        assert_eq!(full, Err(RibFull::RoutesPerPrefix(2)));
        let long = format!("/{}", "b".repeat(PREFIX_BYTES_PER_ROUTE));
        let full = rib.insert(name(&long).as_name(), route(3, 0, None));
        assert_eq!(full, Err(RibFull::Routes(3)), "its name counts as two routes");
        rib.insert(name("/b").as_name(), route(3, 0, None)).expect("room");
        assert_eq!(rib.insert(NameBuf::new().as_name(), route(3, 0, None)), Err(RibFull::Routes(3)));
        assert_eq!(rib.insert(name("/b").as_name(), route(3, 0, Some(1))), Ok(false), "replacing needs no room");
        assert_eq!(rib.len(), 3);
        rib.leave(FaceId(1));
        rib.leave(FaceId(2));
        rib.remove_leaving(9);
        assert_eq!(rib.insert(name(&long).as_name(), route(3, 0, None)), Ok(true), "the room was given back");
    }

    #[test]
    fn no_holder_can_take_the_whole_table() {
        let limits = RibLimits { routes: 1000, share_percent: 90, routes_per_prefix: 9 };
        let mut rib = Rib::new(limits, &Groups::default());
        let [heavy, other] = [HolderId::ANY_REMOTE, HolderId::from_index(300).expect("remote")];
        let of = |holder| Route { holder, ..route(1, 0, None) };
        let insert = |rib: &mut Rib, of_whom: &str, number: usize, holder| {
            rib.insert(name(&format!("/{of_whom}/{number}")).as_name(), of(holder))
        };
        let taken = (0..2000).take_while(|number| insert(&mut rib, "heavy", *number, heavy).is_ok()).count();
        assert_eq!(taken, 801, "nine tenths of what is not reserved");
        assert_eq!(insert(&mut rib, "heavy", taken, heavy), Err(RibFull::ShareUsed(1000)));
        assert_eq!(insert(&mut rib, "heavy", 0, heavy), Ok(false), "renewing takes nothing");
        for number in 0..40 {
            assert_eq!(insert(&mut rib, "other", number, other), Ok(true), "a light holder finds room: {number}");
        }
        for number in 0..100 {
            assert_eq!(insert(&mut rib, "local", number, HolderId::ANY_LOCAL), Ok(true), "{number}");
        }
        assert_eq!(rib.insert(name("/heavy/1").as_name(), of(other)), Ok(false), "renewed by another");
        rib.remove(name("/heavy/1").as_name(), FaceId(1), 0);
        let holds = |holder| rib.pool().holdings().find(|holding| holding.holder == holder).map(|holding| holding.held);
        assert_eq!((holds(heavy), holds(other)), (Some(800), Some(40)), "who registered a route first has it back");
    }

    #[test]
    fn routes_go_with_their_face_and_with_their_time() {
        let mut rib = Rib::default();
        for (prefix, face, origin, at) in
            [("/a", 1, 0, None), ("/a", 1, 9, Some(7)), ("/b", 1, 0, None), ("/c", 2, 0, Some(8))]
        {
            rib.insert(name(prefix).as_name(), route(face, origin, at)).expect("room");
        }
        assert_eq!(rib.expire(6, 9), []);
        assert_eq!(rib.expire(7, 9), [name("/a")]);
        rib.leave(FaceId(1));
        assert_eq!(rib.remove_leaving(9), [name("/a"), name("/b")]);
        rib.leave(FaceId(1));
        assert_eq!(rib.remove_leaving(9), []);
        assert_eq!(rib.next_deadline_ns(), Some(8));
        assert_eq!(rib.expire(100, 9), [name("/c")]);
        assert!(rib.is_empty());
        assert!(rib.by_face.is_empty() && rib.by_deadline.is_empty() && rib.prefix_bytes == 0);
    }

    #[test]
    fn datasets_show_the_time_left() {
        let mut rib = Rib::default();
        rib.insert(name("/a").as_name(), route(1, 0, Some(60_000_000_000))).expect("room");
        let left = |now_ns| rib.dataset(now_ns).next().expect("entry").routes[0].expiration_period_ms;
        assert_eq!(left(0), Some(60_000));
        assert_eq!(left(45_500_000_000), Some(14_500));
        assert_eq!(rib.dataset(60_000_000_000).count(), 0, "its time has come, wherever its removal waits");
    }

    #[test]
    fn routes_of_a_face_that_is_gone_count_for_nothing_before_they_are_removed() {
        let mut rib = Rib::default();
        for (prefix, face) in [("/a", 1), ("/b", 1), ("/b", 2), ("/c", 1), ("/d", 3), ("/e", 3)] {
            let expires_at_ns = (prefix == "/c").then_some(5);
            rib.insert(name(prefix).as_name(), route(face, 0, expires_at_ns)).expect("room");
        }
        rib.leave(FaceId(1));
        let shown = |rib: &Rib| rib.dataset(0).map(|entry| entry.routes.len()).collect::<Vec<_>>();
        assert_eq!((shown(&rib), rib.is_gone(FaceId(1)), rib.len()), (vec![1, 1, 1], true, 6));
        assert_eq!(rib.live_routes(name("/b").as_name()), [route(2, 0, None)].as_slice());
        // A route that expires first leaves its number to another prefix.
        assert_eq!(rib.expire(5, 9), [name("/c")]);
        rib.insert(name("/f").as_name(), route(2, 0, None)).expect("room");
        // A face with few routes does not wait for a face with many.
        rib.leave(FaceId(3));
        assert_eq!(rib.remove_leaving(2), [name("/d"), name("/e")]);
        let mut removed = rib.remove_leaving(1);
        assert_eq!((removed.len(), rib.is_leaving()), (1, true), "no more than was asked for");
        removed.extend(rib.remove_leaving(9));
        removed.sort();
        assert_eq!(removed, [name("/a"), name("/b")]);
        assert_eq!((shown(&rib), rib.is_leaving(), rib.is_gone(FaceId(1)), rib.len()), (vec![1, 1], false, false, 2));
        assert_eq!((rib.by_face.len(), rib.by_deadline.len(), rib.prefix_bytes), (1, 0, 6));
    }
}
