//! Listings of folders: which files and folders are in a folder?
//!
//! The content of a listing is the name of each entry, a `/` if the entry is a folder, and a zero byte, one entry after
//! the other, as the file servers of NDN-DPDK and ndn6-tools write it. Only regular files and folders are listed.
//!
//! [`Listing::parse`] takes every entry that can be an entry of a folder and keeps apart those that cannot: one bad
//! entry hides no good one. Some producers cut a listing that does not fit in one packet, so an entry without its zero
//! byte at the end is no error.
//!
//! Limits: [`LISTING_BYTES_MAX`]; as many entries as the caller takes; [`REFUSED_MAX`] refused names. The rest is
//! counted.

use crate::entry_name::{EntryName, EntryNameError};
use std::collections::HashSet;

/// Most bytes of a listing that is served, and of one that is fetched by default: a million short names.
pub const LISTING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most names that are refused one by one.
pub const REFUSED_MAX: usize = 1000;

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name.
    pub name: EntryName,
    /// True for folders, false for regular files.
    pub is_folder: bool,
}

impl Entry {
    /// Appends the entry to a listing.
    pub fn write(&self, listing: &mut Vec<u8>) {
        listing.extend_from_slice(self.name.as_bytes());
        if self.is_folder {
            listing.push(b'/');
        }
        listing.push(0);
    }
}

/// Why an entry of a listing is not fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// It could lead out of its folder, or no file system has such a name.
    #[error(transparent)]
    Name(#[from] EntryNameError),
    /// An entry before it has the same name.
    #[error("the name is twice in the listing")]
    Repeated,
    /// The listing ends before the name does.
    #[error("the listing ends within the name")]
    Cut,
}

/// What a listing says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the order of the listing, each name once.
    pub entries: Vec<Entry>,
    /// The names that are no entries, and why.
    pub refused: Vec<(Vec<u8>, EntryError)>,
    /// Names over the limits.
    pub left_out: u64,
}

impl Listing {
    /// Reads the content of a listing, and at most `entries_max` entries. The caller limits the size of the content.
    pub fn parse(content: &[u8], entries_max: usize) -> Listing {
        let mut listing = Listing::default();
        let mut names = HashSet::new();
        for written in content.split_inclusive(|byte| *byte == 0) {
            let Some(written) = written.strip_suffix(&[0]) else {
                listing.refuse(written, EntryError::Cut);
                break;
            };
            let (name, is_folder) = match written.strip_suffix(b"/") {
                Some(name) => (name, true),
                None => (written, false),
            };
            match EntryName::new(name) {
                Err(why) => listing.refuse(written, why.into()),
                Ok(_) if names.contains(name) => listing.refuse(name, EntryError::Repeated),
                Ok(_) if listing.entries.len() >= entries_max => listing.left_out += 1,
                Ok(entry) => {
                    names.insert(name);
                    listing.entries.push(Entry { name: entry, is_folder });
                }
            }
        }
        listing
    }

    fn refuse(&mut self, name: &[u8], why: EntryError) {
        if self.refused.len() < REFUSED_MAX {
            self.refused.push((name.to_vec(), why));
        } else {
            self.left_out += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    fn entry(name: &[u8], is_folder: bool) -> Entry {
        Entry { name: EntryName::new(name).unwrap(), is_folder }
    }

    #[test]
    fn one_bad_entry_hides_no_good_one() {
        let content = b"a\0b/\0../x\0..\0/abs\0c/d\0\0/\0a/\0\xff\0cut";
        let listing = Listing::parse(content, 100);
        assert_eq!(listing.entries, [entry(b"a", false), entry(b"b", true), entry(b"\xff", false)]);
        let refused: Vec<(&[u8], EntryError)> = listing.refused.iter().map(|(name, why)| (&name[..], *why)).collect();
        let expected: [(&[u8], EntryError); 8] = [
            (b"../x", EntryNameError::Slash.into()),
            (b"..", EntryNameError::Dots.into()),
            (b"/abs", EntryNameError::Slash.into()),
            (b"c/d", EntryNameError::Slash.into()),
            (b"", EntryNameError::Empty.into()),
            (b"/", EntryNameError::Empty.into()),
            (b"a", EntryError::Repeated),
            (b"cut", EntryError::Cut),
        ];
        assert_eq!(refused, expected);
        assert_eq!(Listing::parse(b"", 100), Listing::default());
    }

    #[test]
    fn the_rest_is_counted() {
        let listing = Listing::parse(b"a\0b\0a\0c/\0d\0", 2);
        assert_eq!((listing.entries.len(), listing.refused.len(), listing.left_out), (2, 1, 2));
        let listing = Listing::parse(&[0; REFUSED_MAX + 7], 2);
        assert_eq!((listing.entries.len(), listing.refused.len(), listing.left_out), (0, REFUSED_MAX, 7));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            names in proptest::collection::hash_map(vec(any::<u8>(), 1..12), any::<bool>(), 0..20),
        ) {
            let entries: Vec<Entry> = names
                .into_iter()
                .filter_map(|(name, is_folder)| Some(Entry { name: EntryName::new(&name).ok()?, is_folder }))
                .collect();
            let mut content = Vec::new();
            entries.iter().for_each(|entry| entry.write(&mut content));
            prop_assert_eq!(Listing::parse(&content, 20), Listing { entries, ..Listing::default() });
        }

        /// Every byte is in an entry, or in a refused one.
        #[test]
        fn any_bytes_are_read(content in vec(prop_oneof![Just(0), Just(b'/'), Just(b'.'), any::<u8>()], 0..200)) {
            let listing = Listing::parse(&content, 200);
            let zeros = content.iter().filter(|byte| **byte == 0).count();
            let cut = usize::from(content.last().is_some_and(|byte| *byte != 0));
            prop_assert_eq!(listing.entries.len() + listing.refused.len(), zeros + cut);
            let names: HashSet<_> = listing.entries.iter().map(|entry| &entry.name).collect();
            prop_assert_eq!(names.len(), listing.entries.len());
        }
    }
}
