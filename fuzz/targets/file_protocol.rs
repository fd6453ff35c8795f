//! Question: can metadata or listings of any producer make a consumer panic, lead it out of its folder, or hold more
//! names than it takes? Does all that is read survive being written and read again?
//!
//! Input: the content of one metadata packet or listing; both readers get it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_files::{
    listing::{Listing, REFUSED_MAX},
    metadata::FileMetadata,
};

const ENTRIES_MAX: usize = 100;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(metadata) = FileMetadata::parse(bytes) {
        assert_eq!(FileMetadata::parse(&metadata.encode()), Ok(metadata));
    }
    let listing = Listing::parse(bytes, ENTRIES_MAX);
    assert!(listing.entries.len() <= ENTRIES_MAX && listing.refused.len() <= REFUSED_MAX);
    let mut written = Vec::new();
    for entry in &listing.entries {
        let name = entry.name.as_bytes();
        assert!((1..=255).contains(&name.len()) && name != b"." && name != b"..");
        assert!(!name.contains(&b'/') && !name.contains(&0));
        entry.write(&mut written);
    }
    assert_eq!(Listing::parse(&written, ENTRIES_MAX), Listing { entries: listing.entries, ..Listing::default() });
});
