//! The archive: a folder of documents as one `.tar.gz`.

use flate2::{Compression, write::GzEncoder};
use std::io::{self, Write};

/// A file of the bundle.
pub(super) struct Document {
    /// Its name in the bundle.
    pub(super) name: &'static str,
    /// Its content.
    pub(super) text: String,
    /// Entries or lines in it; 0 if it is no list.
    pub(super) entries: usize,
    /// Entries or lines that were left out.
    pub(super) left_out: usize,
}

/// Packs documents into the folder of this name.
///
/// # Errors
/// None but those of memory that is written to.
pub(super) fn pack(folder: &str, documents: &[Document], modified_s: u64) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for document in documents {
        let mut header = tar::Header::new_gnu();
        header.set_size(document.text.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(modified_s);
        // Nobody's: the number of a user is nobody's business.
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, format!("{folder}/{}", document.name), document.text.as_bytes())?;
    }
    let mut compressed = archive.into_inner()?;
    compressed.flush()?;
    compressed.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_is_packed_is_unpacked() {
        let document = |name, text: &str| Document { name, text: text.to_owned(), entries: 0, left_out: 0 };
        let packed = pack("f", &[document("a.json", "{}"), document("b.txt", "")], 7).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&packed[..]));
        let read = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let header = entry.header();
            (entry.path().unwrap().display().to_string(), text, header.mtime().unwrap(), header.uid().unwrap())
        });
        let read: Vec<_> = read.collect();
        assert_eq!(read, [("f/a.json".into(), "{}".into(), 7, 0), ("f/b.txt".into(), String::new(), 7, 0)]);
    }
}
