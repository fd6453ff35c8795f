//! Files that `namewire key` reads and writes: certificates and safe bags as `ndnsec` has them (Base64 in lines of 64
//! characters), private keys as OpenSSL has them (PEM or DER), pass phrases.
//!
//! A file has at most [`FILE_BYTES_MAX`]. Content that may be secret is wiped from memory.

use crate::{Failure, failure::ExitCode, output::write_out};
use namewire_security::base64_lines;
use std::{
    fs,
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};
use zeroize::Zeroizing;

/// Largest file read, in bytes: a safe bag in Base64, with room.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// A whole file; `-` is standard input.
pub(crate) fn read_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let mut bytes = Zeroizing::new(Vec::new());
    let at = |error: io::Error| Failure::new(ExitCode::Failed, format!("{}: {error}", path.display()));
    let source: Box<dyn Read> =
        if path == Path::new("-") { Box::new(io::stdin()) } else { Box::new(fs::File::open(path).map_err(at)?) };
    source.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(at)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(at(io::Error::new(io::ErrorKind::InvalidData, "larger than 64 KiB")));
    }
    Ok(bytes)
}

/// A packet as it is, or in Base64.
pub(crate) fn packet_of(bytes: Zeroizing<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>, Failure> {
    match bytes.first() {
        // Data or safe bag; neither byte is a character of Base64.
        Some(6 | 128) => Ok(bytes),
        _ => from_base64(&bytes),
    }
}

/// DER as it is, or between the lines of PEM.
pub(crate) fn der_of(bytes: Zeroizing<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>, Failure> {
    if bytes.first() == Some(&0x30) && std::str::from_utf8(&bytes).is_err() {
        return Ok(bytes);
    }
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"-----"));
    from_base64(&Zeroizing::new(lines.collect::<Vec<_>>().concat()))
}

fn from_base64(text: &[u8]) -> Result<Zeroizing<Vec<u8>>, Failure> {
    base64_lines::decode(text).map_err(|error| Failure::new(ExitCode::Failed, format!("not Base64: {error}")))
}

/// The first line.
pub(crate) fn read_passphrase(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let text = read_file(path)?;
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Err(Failure::usage(format!("{}: the pass phrase is empty", path.display())));
    }
    Ok(Zeroizing::new(line.to_vec()))
}

/// To a file, or to standard output.
pub(crate) fn write_base64(bytes: &[u8], output: Option<&Path>) -> Result<(), Failure> {
    let text = base64_lines::encode(bytes);
    let Some(path) = output else { return Ok(write_out(text.as_bytes())?) };
    // A safe bag is only as safe as its pass phrase: nobody else needs to read it.
    let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::new(ExitCode::Failed, format!("{}: {error}", path.display())))
}
