//! Past lives: the counters of a router before its restarts, and its losses at each restart.
//!
//! A test that adds up counters needs all of them: the counters of former engines, the Interests that were pending in
//! them, and the packets that waited for them.

use namewire_engine::{Counters, Engine};
use namewire_testbed::Arrival;

/// See the module. All counts are of the time since the network began.
#[derive(Debug, Default)]
pub(crate) struct PastLives {
    /// Counters of engines that are gone.
    pub(crate) counters: Counters,
    /// PIT entries that ended with their engine.
    pub(crate) pit_entries: u64,
    /// PIT entries that they took from holders with many.
    pub(crate) displaced: u64,
    /// Packets that no engine had seen.
    pub(crate) unseen: Packets,
    /// Interests that waited for a further worker.
    pub(crate) handed_over_interests: u64,
}

/// Network packets by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packets {
    pub(crate) interests: u64,
    pub(crate) data: u64,
    pub(crate) nacks: u64,
}

impl PastLives {
    /// An engine ends.
    pub(crate) fn end(&mut self, engine: &Engine) {
        self.counters.merge(&engine.counters());
        self.pit_entries += engine.pit_len() as u64;
        self.displaced += displaced(engine);
    }

    /// A packet that waited is lost.
    pub(crate) fn lose(&mut self, arrival: &Arrival) {
        const INTEREST: u8 = 5;
        const DATA: u8 = 6;
        let is_nack = arrival.headers.nack.is_some();
        match (arrival.headers.packet(&arrival.wire).first(), arrival.is_new) {
            (Some(&INTEREST), true) if is_nack => self.unseen.nacks += 1,
            (Some(&INTEREST), true) => self.unseen.interests += 1,
            (Some(&INTEREST), false) if !is_nack => self.handed_over_interests += 1,
            (Some(&DATA), true) => self.unseen.data += 1,
            _ => {}
        }
    }
}

/// PIT entries that an engine took from holders with many, for others.
pub(crate) fn displaced(engine: &Engine) -> u64 {
    engine.pools().into_iter().filter(|pool| pool.config().name == "pit").map(|pool| pool.displaced()).sum()
}
