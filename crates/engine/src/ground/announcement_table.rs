//! Announcement table: which announcement covers a name?
//!
//! The control side writes it from the announced routes. Strategies read it and attach an announcement to Data for
//! routers that discovered this path (forwarding §4.6). Each change makes a new table: announcements are few and change
//! rarely.
//!
//! Cost: a search looks up one prefix per component of the name, by its bytes. Limits: the writer limits the number of
//! announcements; the table refuses an announcement that does not fit beside Data ([`MAX_ANNOUNCEMENT_BYTES`]).

use hashbrown::HashMap;
use namewire_packet::{Name, NameBuf};
use std::sync::Arc;

/// Largest announcement that is attached. A certificate's name and a signature fit easily, and most of them still fit
/// into a frame of 1,500 bytes with a small Data.
pub const MAX_ANNOUNCEMENT_BYTES: usize = 2048;

/// Announcing Data by announced prefix.
#[derive(Clone, Debug, Default)]
pub struct AnnouncementTable {
    by_prefix: HashMap<Box<[u8]>, Arc<[u8]>>,
}

impl AnnouncementTable {
    /// Adds or replaces the announcement of `prefix`; false if it is too large.
    pub fn insert(&mut self, prefix: &NameBuf, announcement: Arc<[u8]>) -> bool {
        let fits = announcement.len() <= MAX_ANNOUNCEMENT_BYTES;
        if fits {
            self.by_prefix.insert(prefix.value().into(), announcement);
        }
        fits
    }

    /// The announcement of the longest announced prefix of `name`.
    pub fn longest_match(&self, name: Name<'_>) -> Option<&[u8]> {
        if self.by_prefix.is_empty() {
            return None;
        }
        (0..=name.len()).rev().find_map(|n| self.by_prefix.get(name.prefix(n).value())).map(|found| &**found)
    }

    /// Number of announced prefixes.
    pub fn len(&self) -> usize {
        self.by_prefix.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_announced_prefix_is_found() {
        let name = |uri: &str| uri.parse::<NameBuf>().unwrap();
        let mut table = AnnouncementTable::default();
        assert_eq!(table.longest_match(name("/a/b").as_name()), None);
        assert!(table.insert(&name("/a"), Arc::from(&b"a"[..])) && table.insert(&name("/a/b"), Arc::from(&b"ab"[..])));
        assert!(!table.insert(&name("/c"), vec![0; MAX_ANNOUNCEMENT_BYTES + 1].into()));
        let found = |uri: &str| table.longest_match(name(uri).as_name());
        assert_eq!((found("/a/b/c"), found("/a/c"), found("/c")), (Some(&b"ab"[..]), Some(&b"a"[..]), None));
        assert_eq!((table.len(), table.is_empty()), (2, false));
    }
}
