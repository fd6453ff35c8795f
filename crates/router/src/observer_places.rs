//! Places of the observer: how many connections, streams and traces may one host have there?
//!
//! They are pools ([`namewire_shares::pool`]) of all its listeners together. Each has a reserve for clients on loopback
//! addresses, so no remote client keeps out a program of this machine. A connection also takes a descriptor.
//!
//! Behind a proxy on this machine, all clients are one holder, `loopback`.
//!
//! Limits: [`CONNECTIONS`], [`STREAMS`], [`TRACES`].

use crate::descriptors::{Descriptors, OF_STREAM};
use namewire_observe::source::{Admitted, Place};
use namewire_shares::{Holder, HolderPool, HolderTable, PoolConfig, PoolReader, Refused};
use std::net::IpAddr;

/// Connections at once.
const CONNECTIONS: u64 = 64;
/// Connections that get the page's news.
const STREAMS: u64 = 16;
/// Connections that get traces. More would leave the operator's captures none.
const TRACES: u64 = 2;

/// Part of the connections and streams that one host may have if no other has any, in percent. They are few, so one
/// host gets less of them than of other pools.
const SHARE_PERCENT: u32 = 50;
/// The same of traces: with less, one host could not have both.
const TRACES_SHARE_PERCENT: u32 = 80;

/// The places.
pub(crate) struct ObserverPlaces {
    connections: HolderPool,
    streams: HolderPool,
    traces: HolderPool,
    descriptors: Descriptors,
}

impl ObserverPlaces {
    pub(crate) fn new(holders: &HolderTable, descriptors: Descriptors) -> Self {
        let pool = |name, capacity: u64, share_percent| {
            // Of this machine there is one holder, which gets half of it when all else is taken.
            let local_reserve = (capacity / 4).max(1);
            let config = PoolConfig { name, capacity, share_percent, management_reserve: 0, local_reserve };
            HolderPool::new(config, holders)
        };
        ObserverPlaces {
            connections: pool("observer-connections", CONNECTIONS, SHARE_PERCENT),
            streams: pool("observer-streams", STREAMS, SHARE_PERCENT),
            traces: pool("observer-traces", TRACES, TRACES_SHARE_PERCENT),
            descriptors,
        }
    }

    /// For reports.
    pub(crate) fn readers(&self) -> [PoolReader; 3] {
        [&self.connections, &self.streams, &self.traces].map(HolderPool::reader)
    }

    /// A place for a client.
    ///
    /// # Errors
    /// Its host has its share, or there is no room.
    pub(crate) fn admit(&self, client: IpAddr, place: Place) -> Result<Admitted, Refused> {
        let holder = Holder::of_address(client, true);
        match place {
            Place::Connection => {
                let place = self.connections.try_take(&holder, 1)?;
                Ok(Box::new((place, self.descriptors.take(&holder, OF_STREAM)?)))
            }
            Place::Stream => Ok(Box::new(self.streams.try_take(&holder, 1)?)),
            Place::Trace => Ok(Box::new(self.traces.try_take(&holder, 1)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::unbounded_channel;

    /// The story: one remote host took all 64 connections, and neither Prometheus nor the operator's own browser, by
    /// the listener on loopback, got an answer.
    #[test]
    fn one_host_leaves_places_for_others_and_for_this_machine() {
        let (holders, (events, _queue)) = (HolderTable::default(), unbounded_channel());
        let places = ObserverPlaces::new(&holders, Descriptors::new(1000, &holders, events));
        let host = |number: u8| IpAddr::from([192, 0, 2, number]);
        let all = |client, place| std::iter::from_fn(|| places.admit(client, place).ok()).collect::<Vec<_>>();
        for (place, greedy, others, local) in
            [(Place::Connection, 24, 12, 8), (Place::Stream, 6, 3, 2), (Place::Trace, 1, 0, 1)]
        {
            let taken = [all(host(1), place), all(host(2), place)];
            assert_eq!([taken[0].len(), taken[1].len()], [greedy, others], "{place:?}");
            let _all_that_is_left: Vec<_> = (3..255).flat_map(|number| all(host(number), place)).collect();
            let of_this_machine = all(IpAddr::from([127, 0, 0, 1]), place);
            assert_eq!(of_this_machine.len(), local, "{place:?}");
        }
        assert!(places.readers().iter().all(|pool| pool.holdings().all(|of| of.held == 0)), "dropped, given back");
        let alone =
            [Place::Connection, Place::Stream, Place::Trace].map(|p| all(IpAddr::from([127, 0, 0, 1]), p).len());
        assert_eq!(alone, [32, 8, 2]);
    }
}
