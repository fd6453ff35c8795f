//! Environment: opens the files of an embedded store.
//!
//! LMDB maps its file into memory. If something else changed the file, references into it would not be true any more.
//! No type can exclude this; so opening is unsafe, and this module is where it is said why it is right.

#![allow(unsafe_code, reason = "leaf: nothing but its user can know who else changes a mapped file")]

use heed::{Env, EnvFlags, EnvOpenOptions};
use std::path::Path;

/// Largest map: what x86-64 has for one process, less a bit.
const MAP_BYTES_MAX: usize = 1 << 46;
/// A map is a whole number of these.
const MAP_UNIT_BYTES: usize = 1 << 16;

/// Opens the environment in a folder. `is_late`: commits reach the disk when the kernel likes.
///
/// # Errors
/// If the files cannot be used.
pub(super) fn open(folder: &Path, map_bytes: usize, readers_max: u32, is_late: bool) -> heed::Result<Env> {
    let mut options = EnvOpenOptions::new();
    options.map_size(map_bytes.clamp(MAP_UNIT_BYTES, MAP_BYTES_MAX) / MAP_UNIT_BYTES * MAP_UNIT_BYTES);
    options.max_readers(readers_max);
    // SAFETY:
    // - the file is changed only through LMDB, whose lock file orders processes; the user was told to give it a folder
    //   of the repository's own on a local file system;
    // - the lock is on: NO_LOCK is not set;
    // - NO_SYNC leaves the map as it is. Its danger is a loss of power, and the caller chose it.
    unsafe {
        if is_late {
            options.flags(EnvFlags::NO_SYNC);
        }
        options.open(folder)
    }
}
