//! How best-route, asf and random process a Nack (forwarding §4.3).

use crate::{state::pit_state::OutRecord, verdict::context::StrategyContext};
use namewire_packet::FaceId;

/// Passes a Nack on once no upstream can answer any more.
pub(crate) fn process_nack(context: &mut StrategyContext<'_, '_, '_>) {
    let least_severe = context.upstreams().filter_map(|record| record.nack).min();
    let may_answer = |record: &&OutRecord| record.nack.is_none() && !record.is_lost();
    let mut not_nacked = context.upstreams().filter(may_answer).map(|record| record.face);
    let first_two = (not_nacked.next(), not_nacked.next());
    drop(not_nacked);
    let only_one_left: Option<FaceId> = match first_two {
        (Some(face), None) => Some(face),
        (None, _) => None,
        _ => return, // others may still answer
    };
    let Some(reason) = least_severe else { return };
    match only_one_left {
        None => {
            context.send_nack_to_all(reason);
            context.reject();
        }
        // Two routers that ask each other: the one remaining upstream is also waiting for us.
        Some(face) if context.downstream(face).is_some() => context.send_nack(face, reason),
        Some(_) => {}
    }
}
