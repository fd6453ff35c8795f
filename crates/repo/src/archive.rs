//! Archive: a file of Data packets back to back, to move them to another store or to keep a copy.
//!
//! Source: the stream of TCP bulk insertion (repo-protocol §2): Data packets without anything between them. So an
//! archive can be sent to any repository that takes bulk insertions, and a recorded stream is an archive.
//!
//! An archive does not say when a Data was stored. Import stores it now, as any insertion does; so its FreshnessPeriod
//! begins again.
//!
//! Memory: one batch, [`BATCH_BYTES`].

use crate::check::Walk;
use crate::store::{Change, Record, Store, StoreError, Written};
use namewire_packet::{Data, MAX_PACKET_BYTES, tlv};
use std::io::{self, Read, Write};
use std::ops::ControlFlow;

/// Bytes of Data that are stored with one commit.
const BATCH_BYTES: usize = 1 << 20;

/// Why an archive was not written or not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file fails.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What stands there is no Data. What came before it is stored.
    #[error("no Data at byte {at}: {why}")]
    NoData {
        /// Bytes of the archive before it.
        at: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The archive ends in the middle of a Data. What came before it is stored.
    #[error("it ends in the middle of the Data at byte {0}")]
    Cut(u64),
}

/// Writes the Data below a prefix in canonical order. Returns their number. Calls `progress` with the bytes written.
///
/// # Errors
/// If the store has no order or fails, or the archive cannot be written.
pub fn export(
    store: &dyn Store,
    prefix: &[u8],
    mut archive: impl Write,
    mut progress: impl FnMut(u64),
) -> Result<u64, ArchiveError> {
    let (mut count, mut bytes, mut failure) = (0, 0, None);
    let mut walk = Walk::new(store, prefix);
    while walk.go_on(|_, record| match archive.write_all(record.wire) {
        Ok(()) => {
            (count, bytes) = (count + 1, bytes + record.wire.len() as u64);
            ControlFlow::Continue(())
        }
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    })? {
        progress(bytes);
    }
    failure.map_or(Ok(()), Err)?;
    archive.flush()?;
    Ok(count)
}

/// Stores the Data of an archive. Calls `progress` with the bytes read so far, after each commit.
///
/// # Errors
/// At the first bytes that are no Data, or if the store or the file fails. What was stored before stays.
pub fn import(
    store: &dyn Store,
    mut archive: impl Read,
    now_ms: impl Fn() -> u64,
    mut progress: impl FnMut(u64),
) -> Result<Written, ArchiveError> {
    let mut buffer = vec![0; BATCH_BYTES + MAX_PACKET_BYTES];
    let (mut filled, mut at, mut all) = (0, 0, Written::default());
    loop {
        let read = archive.read(&mut buffer[filled..])?;
        filled += read;
        if read > 0 && filled < BATCH_BYTES {
            continue;
        }
        let (used, wrong) = store_whole(store, &buffer[..filled], now_ms(), &mut all)?;
        (at, filled) = (at + used as u64, filled - used);
        buffer.copy_within(used..used + filled, 0);
        progress(at);
        match wrong {
            Some(why) => return Err(ArchiveError::NoData { at, why }),
            None if read == 0 && filled > 0 => return Err(ArchiveError::Cut(at)),
            None if read == 0 => return Ok(all),
            None => {}
        }
    }
}

/// Stores the whole Data at the beginning of some bytes. Returns how many bytes these have, and what is wrong with what
/// follows.
fn store_whole(
    store: &dyn Store,
    bytes: &[u8],
    now_ms: u64,
    all: &mut Written,
) -> Result<(usize, Option<String>), ArchiveError> {
    let (mut used, mut wrong, mut records) = (0, None, vec![]);
    while used < bytes.len() {
        let size = match tlv::element_size(&bytes[used..]) {
            Ok(Some(size)) if size > MAX_PACKET_BYTES => Err(format!("it has {size} bytes")),
            Ok(Some(size)) if size <= bytes.len() - used => Ok(size),
            Ok(_) => break,
            Err(error) => Err(error.to_string()),
        };
        let data = size.and_then(|size| Data::parse(&bytes[used..used + size]).map_err(|error| error.to_string()));
        match data {
            Ok(data) => {
                used += data.wire().len();
                records.push((data.name().value(), Record::of_data(&data, now_ms).encode()));
            }
            Err(why) => {
                wrong = Some(why);
                break;
            }
        }
    }
    let changes: Vec<Change<'_>> = records.iter().map(|(name, record)| Change::Put { name, record }).collect();
    let written = store.write(&changes)?;
    all.added += written.added;
    all.replaced += written.replaced;
    Ok((used, wrong))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::MemoryStore;
    use namewire_packet::{DataBuilder, NameBuf};

    /// Gives a few bytes with each read.
    struct Slowly<'a>(&'a [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len().min(self.0.len()).min(4_999);
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn archive_of(numbers: std::ops::Range<u64>) -> Vec<u8> {
        let wire = |number: u64| {
            let mut name: NameBuf = "/a".parse().unwrap();
            name.push_segment(number);
            DataBuilder::new(&name).content(&[number as u8; 700]).sign_digest()
        };
        numbers.flat_map(wire).collect()
    }

    #[test]
    fn exported_data_is_imported() {
        let bytes = archive_of(0..3000);
        let (store, other) = (MemoryStore::new(u64::MAX), MemoryStore::new(u64::MAX));
        let written = import(&store, Slowly(&bytes), || 7, |_| {}).unwrap();
        assert_eq!(written, Written { added: 3000, ..Written::default() });
        let mut again = vec![];
        assert_eq!(export(&store, &[], &mut again, |_| {}).unwrap(), 3000);
        assert_eq!(again, bytes, "segments are in canonical order");
        import(&other, &again[..], || 7, |_| {}).unwrap();
        let report = |store| crate::check::check(store, |_| {}).unwrap();
        assert_eq!(report(&other), report(&store));
        let none: NameBuf = "/b".parse().unwrap();
        assert_eq!(export(&store, none.value(), &mut vec![], |_| {}).unwrap(), 0);
    }

    #[test]
    fn an_archive_that_ends_early_or_has_other_bytes_is_stored_as_far_as_it_is_right() {
        let bytes = archive_of(0..10);
        let seven = archive_of(0..7).len();
        let store = MemoryStore::new(u64::MAX);
        let refused = import(&store, &bytes[..seven + 5], || 1, |_| {}).unwrap_err();
        assert!(matches!(refused, ArchiveError::Cut(at) if at == seven as u64), "{refused}");
        assert_eq!(store.usage().unwrap().records, 7);
        for other in [&b"\x05\x03\x07\x01\x00"[..], &[0x06, 0xfe, 0, 1, 0, 0], &[0]] {
            let refused = import(&store, &[&bytes[..seven], other, &[0; 20]].concat()[..], || 1, |_| {}).unwrap_err();
            assert!(matches!(refused, ArchiveError::NoData { at, .. } if at == seven as u64), "{refused}");
        }
    }
}
