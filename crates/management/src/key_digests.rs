//! Digests of the names of a sorted list: eight bytes of each name, side by side. A binary search compares these
//! numbers in a few cache lines, and reads names only where numbers are equal.
//!
//! Names in one list begin with the same bytes (`/ndn/edu/…`). So the digest takes the bytes after the part that all
//! names of the list share, because those bytes differ. Bytes: a name takes 8. Cost: a change moves the numbers after
//! it. If a new name shares less with the list than the others do, all digests are computed again. That cannot happen
//! often.

/// See the module documentation. Callers pass the names as `key(place)`.
#[derive(Debug, Default)]
pub(crate) struct KeyDigests {
    /// Bytes that all names begin with.
    skip: usize,
    digests: Vec<u64>,
}

impl KeyDigests {
    /// Digests of `len` names in order.
    pub(crate) fn of<'k>(len: usize, key: impl Fn(usize) -> &'k [u8]) -> Self {
        // All names between the first and the last share what these two share.
        let skip = if len == 0 { 0 } else { common_bytes(key(0), key(len - 1)) };
        KeyDigests { skip, digests: (0..len).map(|place| digest(key(place), skip)).collect() }
    }

    /// The place of `name`, or the place where it would be.
    pub(crate) fn search<'k>(&self, name: &[u8], key: impl Fn(usize) -> &'k [u8]) -> Result<usize, usize> {
        if self.digests.is_empty() {
            return Err(0);
        }
        let shared = &key(0)[..self.skip];
        if !name.starts_with(shared) {
            return Err(if name < shared { 0 } else { self.digests.len() });
        }
        let wanted = digest(name, self.skip);
        let from = self.digests.partition_point(|&digest| digest < wanted);
        let alike = self.digests[from..].partition_point(|&digest| digest == wanted);
        let (mut low, mut high) = (from, from + alike);
        while low < high {
            let middle = low + (high - low) / 2;
            match key(middle).cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// Inserts a name that will be at `place`; `key` still shows only the other names.
    pub(crate) fn insert<'k>(&mut self, place: usize, name: &[u8], key: impl Fn(usize) -> &'k [u8]) {
        let len = self.digests.len();
        // A name between two others begins as they do.
        let common = match (len, place) {
            (0, _) => name.len(),
            (_, place) if place == 0 || place == len => common_bytes(name, &key(0)[..self.skip]),
            _ => self.skip,
        };
        if common < self.skip || len == 0 {
            self.skip = common;
            for (place, digest_there) in self.digests.iter_mut().enumerate() {
                *digest_there = digest(key(place), common);
            }
        }
        self.digests.insert(place, digest(name, self.skip));
    }

    pub(crate) fn remove(&mut self, place: usize) {
        self.digests.remove(place);
    }
}

fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Eight bytes from `skip` on. A name that ends earlier is filled up with zeros, and then equals a name with zeros
/// there. So equal numbers do not mean equal names.
fn digest(name: &[u8], skip: usize) -> u64 {
    let rest = &name[skip..];
    match rest.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => rest.iter().enumerate().fold(0, |sum, (place, &byte)| sum | u64::from(byte) << (56 - 8 * place)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of few values, including zero, so that names share beginnings and the fill matters.
    fn random_key(random: &mut fastrand::Rng) -> Vec<u8> {
        let shared = [7; 20];
        let mut key = shared[..[0, 20, 20, 20][random.usize(0..4)]].to_vec();
        key.extend((0..random.usize(0..12)).map(|_| random.u8(0..2)));
        key
    }

    #[test]
    fn it_finds_what_a_search_of_the_names_finds() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..200 {
            let (mut keys, mut digests): (Vec<Vec<u8>>, _) = (Vec::new(), KeyDigests::default());
            for _ in 0..60 {
                let key = random_key(&mut random);
                let found = keys.binary_search(&key);
                assert_eq!(digests.search(&key, |place| &keys[place]), found);
                match found {
                    Ok(place) => {
                        keys.remove(place);
                        digests.remove(place);
                    }
                    Err(place) => {
                        digests.insert(place, &key, |place| &keys[place]);
                        keys.insert(place, key);
                    }
                }
                let anew = KeyDigests::of(keys.len(), |place| &keys[place]);
                let key = random_key(&mut random);
                assert_eq!(anew.search(&key, |place| &keys[place]), keys.binary_search(&key));
            }
        }
    }
}
