//! Takes places: opens connections to a listener that speaks HTTP, and keeps them open.

use super::AttackPlan;
use crate::knock::Door;
use std::net::SocketAddr;

/// Connects as often as the rate says, and keeps all connections that are let in.
pub(super) fn run(plan: &AttackPlan, door: Door, to: SocketAddr) -> u64 {
    let mut kept = Vec::new();
    plan.paced(|_| door.knock(to, plan.bind).map(|connection| kept.push(connection)).is_some())
}
