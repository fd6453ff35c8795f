//! Connections: how many WebSocket connections may one host or user have?
//!
//! Places for connections are a pool ([`namewire_shares::pool`]) of all listeners together, with a reserve for local
//! applications and one for the operator. A connection takes its place, and its descriptors, when its request has come:
//! the headers tell an application of this machine from a web page or a proxy. Without a place, the request is answered
//! 503 with the reason. Then idle connections close, so that the next attempt finds room: those of the same holder, or
//! of the heaviest one.
//!
//! Before its request, a connection has one descriptor and a place in [`super::half_open`].
//!
//! Limits: [`CONNECTIONS_MAX`] connections.

use crate::{
    descriptors::{Descriptors, OF_STREAM, OF_WEBSOCKET, TakenDescriptors},
    holder_pool::{Held, HolderPool, Refused},
};
use namewire_shares::{Holder, HolderTable, PoolConfig, PoolReader};
use std::net::IpAddr;
use tokio::sync::watch;

/// Most connections at once. A connection that we make counts from its start.
const CONNECTIONS_MAX: u64 = 4096;

/// Part of the places that one holder may have if no other has any, in percent.
const SHARE_PERCENT: u32 = 80;

/// The places for connections.
pub(crate) struct Connections {
    places: HolderPool,
    descriptors: Descriptors,
    open: watch::Sender<()>,
}

/// The place and the descriptors of one connection; dropping it gives them back.
pub(super) struct ConnectionPlace {
    _place: Held,
    _descriptors: Option<TakenDescriptors>,
    _open: watch::Receiver<()>,
}

impl Connections {
    pub(crate) fn new(holders: &HolderTable, descriptors: Descriptors) -> Self {
        let config = PoolConfig {
            name: "websocket-connections",
            capacity: CONNECTIONS_MAX,
            share_percent: SHARE_PERCENT,
            management_reserve: CONNECTIONS_MAX / 16,
            local_reserve: CONNECTIONS_MAX / 8,
        };
        Connections { places: HolderPool::new(config, holders), descriptors, open: watch::Sender::new(()) }
    }

    /// For reports.
    pub(super) fn reader(&self) -> PoolReader {
        self.places.reader()
    }

    /// A descriptor for a connection whose request has not come. On a loopback address there may be an application of
    /// this machine, so there the descriptor may come from the reserve of local holders.
    ///
    /// # Errors
    /// There is none for this peer.
    pub(super) fn accept(&self, remote: IpAddr) -> Result<TakenDescriptors, Refused> {
        let taken = self.descriptors.take(&Holder::of_address(remote, false), OF_STREAM);
        match taken {
            Err(_) if remote.to_canonical().is_loopback() => self.descriptors.take(&Holder::Loopback, OF_STREAM),
            taken => taken,
        }
    }

    /// A place for a connection whose request has come.
    ///
    /// # Errors
    /// The holder has its share, or there is no room.
    pub(super) fn enter(&self, holder: &Holder) -> Result<ConnectionPlace, Refused> {
        let place = self.places.try_take(holder, 1);
        let place = place.inspect_err(|refused| self.descriptors.make_room(&self.places, *refused))?;
        let descriptors = self.descriptors.take(holder, OF_WEBSOCKET)?;
        Ok(ConnectionPlace { _place: place, _descriptors: Some(descriptors), _open: self.open.subscribe() })
    }

    /// A place for a connection that the operator asks for.
    ///
    /// # Errors
    /// There is no room.
    pub(super) fn enter_for_operator(&self) -> Result<ConnectionPlace, Refused> {
        let place = self.places.try_take(&Holder::Management, 1)?;
        // Control counts the descriptor of the face.
        Ok(ConnectionPlace { _place: place, _descriptors: None, _open: self.open.subscribe() })
    }

    /// Returns when no connection is open.
    pub(super) async fn ended(&self) {
        self.open.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_shares::Refusal;
    use tokio::sync::mpsc::unbounded_channel;

    /// The story: one host took all 4,096 places. No other host got one, and no page or application of this machine.
    #[test]
    fn one_host_leaves_places_for_other_hosts_applications_and_the_operator() {
        let (holders, (events, mut queue)) = (HolderTable::default(), unbounded_channel());
        let connections = Connections::new(&holders, Descriptors::new(1 << 20, &holders, events));
        let remote = |number: u32| connections.enter(&Holder::Ipv4(number.into()));
        let mut open: Vec<ConnectionPlace> = std::iter::from_fn(|| remote(1).ok()).collect();
        assert_eq!(open.len() as u64, (CONNECTIONS_MAX - CONNECTIONS_MAX / 16 - CONNECTIONS_MAX / 8) * 4 / 5 + 1);
        assert!(matches!(remote(1), Err(Refused { why: Refusal::ShareUsed, .. })));
        assert!(queue.try_recv().is_ok(), "its idle connections close");
        open.extend((0..100).map(|_| remote(2).expect("another host")));
        while let Ok(place) = remote(open.len() as u32) {
            open.push(place);
        }
        let of_user = || connections.enter(&Holder::Loopback);
        open.extend((0..CONNECTIONS_MAX / 10).map(|_| of_user().expect("an application")));
        open.extend((0..100).map(|_| connections.enter_for_operator().expect("the operator")));
        assert!(open.len() as u64 <= CONNECTIONS_MAX);
        drop(open);
        assert_eq!((connections.places.used(), connections.open.receiver_count()), (0, 0));
    }

    #[test]
    fn an_application_on_loopback_may_knock_when_remote_hosts_have_all_descriptors() {
        let (holders, (events, _queue)) = (HolderTable::default(), unbounded_channel());
        let connections = Connections::new(&holders, Descriptors::new(160, &holders, events));
        let mut open = Vec::new();
        for host in 1..1000_u32 {
            open.extend(connections.enter(&Holder::Ipv4(host.into())));
            open.extend(connections.enter(&Holder::Relayed));
        }
        let (here, there) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([192, 0, 2, 1]));
        let rest: Vec<_> = std::iter::from_fn(|| connections.accept(there).ok()).take(10).collect();
        assert!(connections.accept(there).is_err() && rest.len() < 10);
        let knocked = connections.accept(here).expect("of the reserve");
        let _place = connections.enter(&Holder::Loopback).expect("of the reserve");
        drop(knocked);
    }
}
