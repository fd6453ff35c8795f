//! Connections: how many WebSocket connections may one host or user have?
//!
//! Places for connections are a pool ([`namewire_shares::pool`]) of all listeners together, with a reserve for local
//! applications and one for the operator. A connection takes its place, and its descriptors, when its request has
//! arrived: by the headers, the router distinguishes an application on this machine from a web page or a proxy. If
//! there is no place, the router answers the request with 503 and the reason. Then it closes idle connections of the
//! same holder, or of the heaviest one, so that the next attempt finds room.
//!
//! Before its request, a connection has one descriptor and a place in [`crate::half_open`].
//!
//! Limits: [`CONNECTIONS_MAX`] connections.

use namewire_shares::{Held, Holder, HolderPool, HolderTable, PoolConfig, PoolReader, Refused};
use std::net::IpAddr;
use tokio::sync::watch;

/// Most connections at once. A connection that we make counts from its start.
const CONNECTIONS_MAX: u64 = 4096;

/// Part of the places that one holder may have if no other has any, in percent.
const SHARE_PERCENT: u32 = 80;

/// Descriptors of a connection whose request has not come.
const OF_HALF_OPEN: u64 = 1;

/// Descriptors of a connection: its own, and the pair between its thread and the worker.
pub const OF_CONNECTION: u64 = 3;

/// The descriptors of the process, as connections take them.
pub trait Descriptors: Send + Sync {
    /// Takes descriptors for a connection.
    ///
    /// # Errors
    /// Its holder has its share, or there are none. That is counted, and idle connections make room.
    fn take(&self, holder: &Holder, count: u64) -> Result<Held, Refused>;

    /// Lets workers close idle connections, because this pool, which connections use, has refused one.
    fn make_room(&self, pool: &HolderPool, refused: Refused);
}

/// The places for connections.
pub struct Connections {
    places: HolderPool,
    descriptors: Box<dyn Descriptors>,
    open: watch::Sender<()>,
}

/// The place and the descriptors of one connection; dropping it gives them back.
pub(crate) struct ConnectionPlace {
    _place: Held,
    _descriptors: Option<Held>,
    _open: watch::Receiver<()>,
}

impl Connections {
    /// All places are free.
    pub fn new(holders: &HolderTable, descriptors: impl Descriptors + 'static) -> Self {
        let config = PoolConfig {
            name: "websocket-connections",
            capacity: CONNECTIONS_MAX,
            share_percent: SHARE_PERCENT,
            management_reserve: CONNECTIONS_MAX / 16,
            local_reserve: CONNECTIONS_MAX / 8,
        };
        Connections {
            places: HolderPool::new(config, holders),
            descriptors: Box::new(descriptors),
            open: watch::Sender::new(()),
        }
    }

    /// For reports.
    pub(crate) fn reader(&self) -> PoolReader {
        self.places.reader()
    }

    /// A descriptor for a connection whose request has not come. On a loopback address there may be an application of
    /// this machine, so there the descriptor may come from the reserve of local holders.
    ///
    /// # Errors
    /// There is none for this peer.
    pub(crate) fn accept(&self, remote: IpAddr) -> Result<Held, Refused> {
        let taken = self.descriptors.take(&Holder::of_address(remote, false), OF_HALF_OPEN);
        match taken {
            Err(_) if remote.to_canonical().is_loopback() => self.descriptors.take(&Holder::Loopback, OF_HALF_OPEN),
            taken => taken,
        }
    }

    /// A place for a connection whose request has come.
    ///
    /// # Errors
    /// The holder has its share, or there is no room.
    pub(crate) fn enter(&self, holder: &Holder) -> Result<ConnectionPlace, Refused> {
        let place = self.places.try_take(holder, 1);
        let place = place.inspect_err(|refused| self.descriptors.make_room(&self.places, *refused))?;
        let descriptors = self.descriptors.take(holder, OF_CONNECTION)?;
        Ok(ConnectionPlace { _place: place, _descriptors: Some(descriptors), _open: self.open.subscribe() })
    }

    /// A place for a connection that the operator asks for.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn enter_for_operator(&self) -> Result<ConnectionPlace, Refused> {
        let place = self.places.try_take(&Holder::Management, 1)?;
        // Control counts the descriptor of the face.
        Ok(ConnectionPlace { _place: place, _descriptors: None, _open: self.open.subscribe() })
    }

    /// Returns when no connection is open.
    pub(crate) async fn ended(&self) {
        self.open.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_shares::Refusal;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    /// So many descriptors, with an eighth for applications of this machine.
    struct Few {
        pool: HolderPool,
        /// How often connections should have made room.
        searches: Arc<AtomicUsize>,
    }

    impl Few {
        fn new(capacity: u64, holders: &HolderTable) -> Self {
            let (management_reserve, local_reserve) = (capacity / 16, capacity / 8);
            let config =
                PoolConfig { name: "descriptors", capacity, share_percent: 80, management_reserve, local_reserve };
            Few { pool: HolderPool::new(config, holders), searches: Arc::default() }
        }
    }

    impl Descriptors for Few {
        fn take(&self, holder: &Holder, count: u64) -> Result<Held, Refused> {
            self.pool.try_take(holder, count).inspect_err(|refused| self.make_room(&self.pool, *refused))
        }

        fn make_room(&self, _: &HolderPool, _: Refused) {
            self.searches.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The story: one host took all 4,096 places. No other host got one, and no page or application of this machine.
    #[test]
    fn one_host_leaves_places_for_other_hosts_applications_and_the_operator() {
        let holders = HolderTable::default();
        let descriptors = Few::new(1 << 20, &holders);
        let searches = Arc::clone(&descriptors.searches);
        let connections = Connections::new(&holders, descriptors);
        let remote = |number: u32| connections.enter(&Holder::Ipv4(number.into()));
        let mut open: Vec<ConnectionPlace> = std::iter::from_fn(|| remote(1).ok()).collect();
        assert_eq!(open.len() as u64, (CONNECTIONS_MAX - CONNECTIONS_MAX / 16 - CONNECTIONS_MAX / 8) * 4 / 5 + 1);
        assert!(matches!(remote(1), Err(Refused { why: Refusal::ShareUsed, .. })));
        assert!(searches.load(Ordering::Relaxed) > 0, "its idle connections close");
        open.extend((0..100).map(|_| remote(2).expect("another host")));
        while let Ok(place) = remote(open.len() as u32) {
            open.push(place);
        }
        let of_user = || connections.enter(&Holder::Loopback);
        open.extend((0..CONNECTIONS_MAX / 10).map(|_| of_user().expect("an application")));
        open.extend((0..100).map(|_| connections.enter_for_operator().expect("the operator")));
        assert!(open.len() as u64 <= CONNECTIONS_MAX);
        drop(open);
        assert_eq!(
            (connections.reader().holdings().map(|of| of.held).sum::<u64>(), connections.open.receiver_count()),
            (0, 0)
        );
    }

    #[test]
    fn an_application_on_loopback_may_knock_when_remote_hosts_have_all_descriptors() {
        let holders = HolderTable::default();
        let connections = Connections::new(&holders, Few::new(160, &holders));
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
