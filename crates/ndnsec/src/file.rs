//! Files of certificates and safe bags, in Base64.
//!
//! A file has at most [`FILE_BYTES_MAX`].

use crate::stop::Stop;
use namewire_security::base64_lines;
use std::{
    fmt::Display,
    fs,
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
};
use zeroize::Zeroizing;

/// Largest file read, in bytes: a safe bag in Base64, with room.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Reads what `parse` understands; `-` is standard input.
pub(crate) fn load<T, E: Display>(path: &str, parse: impl FnOnce(&[u8]) -> Result<T, E>) -> Result<T, Stop> {
    let mut text = Zeroizing::new(Vec::new());
    let source: Box<dyn Read> = match path {
        "-" => Box::new(io::stdin()),
        path => Box::new(fs::File::open(path).map_err(|_| Stop::Failed(format!("Cannot open '{path}'")))?),
    };
    let malformed = |reason: &dyn Display| {
        Stop::Failed(format!("Cannot load '{path}': malformed TLV or not in base64 format ({reason})"))
    };
    source.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(|error| malformed(&error))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(malformed(&"larger than 64 KiB"));
    }
    let bytes = base64_lines::decode(&text).map_err(|error| malformed(&error))?;
    parse(&bytes).map_err(|error| malformed(&error))
}

/// Writes a file that other users cannot read: a safe bag is only as safe as its pass phrase.
pub(crate) fn write(path: &str, text: &str) -> Result<(), Stop> {
    let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Stop::Failed(format!("{path}: {error}")))
}
