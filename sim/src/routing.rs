//! Routing: a node's routes and strategy choices, and the FIB that follows from them.
//!
//! The RIB and its rules are those of management; what is missing is the protocol: a test adds
//! routes by a call instead of a signed Interest.

use namewire_engine::FaceId;
use namewire_management::fib_computation::{FibChange, FibComputation, FibSources, FibUpdate};
use namewire_management::manual_next_hops::ManualNextHops;
use namewire_management::rib::{Rib, Route};
use namewire_management::strategy_choice::{ResolvedStrategy, StrategyChoices};
use namewire_packet::NameBuf;
use namewire_packet::nfd::route_flags;
use namewire_tables::{Fib, NextHop};

/// Origin of a route that was configured (forwarding §6).
const ORIGIN_STATIC: u64 = 255;

pub(crate) struct Routing {
    rib: Rib,
    manual: ManualNextHops,
    choices: StrategyChoices,
    computation: FibComputation,
}

impl Routing {
    /// No route; `strategy` everywhere.
    pub(crate) fn new(strategy: ResolvedStrategy) -> Self {
        Routing {
            rib: Rib::default(),
            manual: ManualNextHops::default(),
            choices: StrategyChoices::new(strategy),
            computation: FibComputation::new(),
        }
    }

    /// Adds a route that longer prefixes inherit, and returns the next hops that are new.
    pub(crate) fn add_route(&mut self, prefix: &NameBuf, face: FaceId, cost: u64, fib: &mut Fib) -> Vec<NewNextHop> {
        let flags = route_flags::CHILD_INHERIT;
        let route = Route { face, origin: ORIGIN_STATIC, cost, flags, expires_at_ns: None };
        self.rib.insert(prefix.as_name(), route).expect("a test stays below the limits of the RIB");
        self.publish(vec![prefix.clone()], fib)
    }

    pub(crate) fn remove_face(&mut self, face: FaceId, fib: &mut Fib) {
        let changed = self.rib.remove_face(face);
        self.publish(changed, fib);
    }

    pub(crate) fn set_strategy(&mut self, prefix: &NameBuf, strategy: ResolvedStrategy, fib: &mut Fib) {
        self.choices.set(prefix.as_name(), strategy);
        self.publish(vec![prefix.clone()], fib);
    }

    /// Carries the consequences of a change into the FIB, as the router's writer does.
    fn publish(&mut self, changed: Vec<NameBuf>, fib: &mut Fib) -> Vec<NewNextHop> {
        let sources = FibSources { rib: &self.rib, manual: &self.manual, strategies: &self.choices };
        let FibUpdate { changes, new_next_hops } = self.computation.recompute(changed, sources);
        for change in changes {
            match change {
                FibChange::Insert { name, next_hops, strategy, hidden } => {
                    let next_hops: Vec<NextHop> =
                        next_hops.iter().map(|hop| NextHop { face: hop.face.0, cost: hop.cost }).collect();
                    fib.insert(name.value(), &next_hops, strategy, hidden)
                        .expect("a test stays below the capacity of the FIB");
                }
                FibChange::Remove { name } => {
                    fib.remove(name.value());
                }
            }
        }
        new_next_hops
    }
}

/// A prefix and a face that Interests under it may go to from now on.
pub(crate) type NewNextHop = (NameBuf, FaceId);
