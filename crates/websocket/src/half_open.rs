//! Connections whose handshake is not complete, and their limits.
//!
//! They cost a descriptor and memory, and their peers have not identified themselves yet. They have separate limits, so
//! that handshakes that never complete take no places of working connections. When there are too many, from one address
//! or from all, the oldest is closed: a handshake takes a few round trips, so the oldest has probably failed and is not
//! just slow.
//!
//! Limits: [`HALF_OPEN_MAX`], [`HALF_OPEN_PER_ADDRESS`].

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    net::{IpAddr, Ipv6Addr},
    rc::Rc,
};
use tokio::sync::oneshot;

/// Most half-open connections at once.
pub(crate) const HALF_OPEN_MAX: usize = 1024;

/// Most half-open connections of one IPv4 address or one IPv6 network of 64 bits, which one host usually has.
pub(crate) const HALF_OPEN_PER_ADDRESS: usize = 128;

/// The half-open connections of all listeners.
#[derive(Clone, Debug, Default)]
pub(crate) struct HalfOpen(Rc<RefCell<Places>>);

#[derive(Debug, Default)]
struct Places {
    next: u64,
    /// The places by age. Dropping the sender ends the handshake.
    by_age: BTreeMap<u64, (IpAddr, oneshot::Sender<()>)>,
    by_address: HashMap<IpAddr, BTreeSet<u64>>,
}

impl Places {
    fn remove(&mut self, number: u64) {
        let Some((address, _)) = self.by_age.remove(&number) else { return };
        if let Some(numbers) = self.by_address.get_mut(&address) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_address.remove(&address);
            }
        }
    }
}

/// The place of one half-open connection; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Place {
    number: u64,
    places: HalfOpen,
    taken_away: oneshot::Receiver<()>,
}

impl Place {
    /// Completes when a younger connection takes the place.
    pub(crate) async fn taken_away(&mut self) {
        let _ = (&mut self.taken_away).await; // the sender is dropped, never used
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.0.borrow_mut().remove(self.number);
    }
}

impl HalfOpen {
    /// Gives a new connection from `remote` a place; true if an older connection lost its place.
    pub(crate) fn enter(&self, remote: IpAddr) -> (Place, bool) {
        let mut places = self.0.borrow_mut();
        let address = host(remote);
        let of_address = places.by_address.get(&address);
        let oldest = match of_address {
            Some(numbers) if numbers.len() >= HALF_OPEN_PER_ADDRESS => numbers.first().copied(),
            _ if places.by_age.len() >= HALF_OPEN_MAX => places.by_age.keys().next().copied(),
            _ => None,
        };
        if let Some(oldest) = oldest {
            places.remove(oldest);
        }
        let number = places.next;
        places.next += 1;
        let (sender, taken_away) = oneshot::channel();
        places.by_age.insert(number, (address, sender));
        places.by_address.entry(address).or_default().insert(number);
        (Place { number, places: self.clone(), taken_away }, oldest.is_some())
    }
}

/// The addresses that one host can have count as one.
fn host(remote: IpAddr) -> IpAddr {
    match remote.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl HalfOpen {
        fn len(&self) -> usize {
            let places = self.0.borrow();
            assert_eq!(places.by_age.len(), places.by_address.values().map(BTreeSet::len).sum::<usize>());
            places.by_age.len()
        }
    }

    fn is_taken_away(place: &mut Place) -> bool {
        !matches!(place.taken_away.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    #[test]
    fn the_oldest_of_an_address_goes_and_no_other_ones() {
        let half_open = HalfOpen::default();
        let enter = |address: &str| half_open.enter(address.parse().unwrap());
        let (mut other, _) = enter("192.0.2.1");
        // An IPv6 network is one host; an IPv4 address written as IPv6 is the same host.
        let mut places: Vec<Place> =
            (0..HALF_OPEN_PER_ADDRESS).map(|number| enter(&format!("2001:db8::{number:x}")).0).collect();
        assert!(places.iter_mut().all(|place| !is_taken_away(place)));
        let (mut young, has_displaced) = enter("2001:db8::ffff:ffff");
        assert!(has_displaced && is_taken_away(&mut places[0]) && !is_taken_away(&mut places[1]));
        assert!(!is_taken_away(&mut young) && !is_taken_away(&mut other));
        assert_eq!(half_open.len(), 1 + HALF_OPEN_PER_ADDRESS);
        // A connection that is done makes room: its place is free.
        drop(places.split_off(HALF_OPEN_PER_ADDRESS - 1));
        assert!(!enter("2001:db8::1").1);
        assert_eq!(host("::ffff:192.0.2.1".parse().unwrap()), "192.0.2.1".parse::<IpAddr>().unwrap());
        drop((other, young, places));
        assert_eq!(half_open.len(), 0);
        assert!(half_open.0.borrow().by_address.is_empty());
    }

    #[test]
    fn the_oldest_of_all_goes_when_many_addresses_have_some() {
        let half_open = HalfOpen::default();
        let mut places: Vec<Place> = (0..HALF_OPEN_MAX as u32)
            .map(|number| half_open.enter(IpAddr::V4((0x0a00_0000 + number).into())).0)
            .collect();
        assert!(!is_taken_away(&mut places[0]));
        let (_young, has_displaced) = half_open.enter("192.0.2.1".parse().unwrap());
        assert!(has_displaced && is_taken_away(&mut places[0]) && !is_taken_away(&mut places[1]));
        assert_eq!(half_open.len(), HALF_OPEN_MAX);
    }
}
