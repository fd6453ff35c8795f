//! Homes: at which worker of a router is a name at home?
//!
//! A keyed hash of the name without a trailing implicit digest decides. A neighbour with lanes tells its key, so that
//! this router knows the homes there (decision 0019). The function is therefore a part of that protocol: a change needs
//! a new version of LaneHello.

use namewire_packet::{
    name::Name,
    tlv::{self, types},
};
use namewire_tables::{HashKey, hash_name};

/// The homes of names at one router.
#[derive(Debug)]
pub struct Homes {
    key: HashKey,
    workers: usize,
}

impl Homes {
    /// For a router with this key and number of workers.
    pub fn new(key: HashKey, workers: usize) -> Self {
        Homes { key, workers }
    }

    /// Its number of workers.
    #[inline]
    pub fn workers(&self) -> usize {
        self.workers
    }

    #[inline]
    pub(crate) fn key(&self) -> &HashKey {
        &self.key
    }

    /// The worker of a name.
    #[inline]
    pub fn home(&self, name: Name<'_>) -> u8 {
        self.of_hash(self.hash(name))
    }

    /// The worker of an Interest's or Data's name; `None` if it has no well-formed name.
    #[inline]
    pub fn of_packet(&self, packet: &[u8]) -> Option<u8> {
        if self.workers == 1 {
            return Some(0);
        }
        read_name(packet).map(|(_, name)| self.home(name))
    }

    #[inline]
    pub(crate) fn hash(&self, name: Name<'_>) -> u64 {
        let name = if ends_in_digest(name) { name.parent() } else { name };
        hash_name(&self.key, name.value())
    }

    #[inline]
    pub(crate) fn of_hash(&self, hash: u64) -> u8 {
        // Takes the high half of a product instead of a remainder: no division, and negligible bias.
        ((u128::from(hash) * self.workers as u128) >> 64) as u8
    }
}

pub(crate) fn ends_in_digest(name: Name<'_>) -> bool {
    name.last().is_some_and(|last| last.type_number == types::IMPLICIT_SHA256_DIGEST)
}

/// Packet type and name of an Interest or Data, without checking the rest.
pub(crate) fn read_name(packet: &[u8]) -> Option<(u32, Name<'_>)> {
    let outer = tlv::read_element(packet).ok()?;
    if !matches!(outer.type_number, types::INTEREST | types::DATA) {
        return None;
    }
    let first = tlv::read_element(outer.value).ok()?;
    let name = (first.type_number == types::NAME).then(|| Name::parse_value(first.value).ok()).flatten()?;
    Some((outer.type_number, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{DataBuilder, InterestBuilder, NameBuf};

    /// Programs of other versions depend on these homes.
    #[test]
    fn the_homes_of_a_key_stay_what_they_are() {
        let homes = Homes::new(HashKey::new([7; 16]), 64);
        let home = |uri: &str| homes.home(uri.parse::<NameBuf>().unwrap().as_name());
        let found: Vec<u8> = (0..8).map(|number| home(&format!("/a/name/of/{number}"))).collect();
        assert_eq!(found, [35, 14, 10, 11, 63, 31, 18, 0]);
    }

    #[test]
    fn an_interest_and_its_data_have_one_home_and_other_bytes_have_none() {
        let homes = Homes::new(HashKey::from_seed(1), 64);
        let name: NameBuf = "/a/b".parse().unwrap();
        let home = Some(homes.home(name.as_name()));
        assert_eq!(homes.of_packet(&InterestBuilder::new(&name).build()), home);
        assert_eq!(homes.of_packet(&DataBuilder::new(name).sign_digest()), home);
        for other in [&[][..], &[5, 2, 7], &[100, 0], &[5, 0]] {
            assert_eq!(homes.of_packet(other), None);
        }
    }
}
