//! Metadata of files and folders: what does a producer say of one besides its bytes?
//!
//! The format is that of the file servers of NDN-DPDK and ndn6-tools. It is the Content of an RDR metadata packet, so
//! it begins with the versioned name, which ends plain RDR metadata:
//!
//! | element | type | value |
//! | --- | --- | --- |
//! | Name | 0x07 | `/prefix/path/v=<n>` of a file, `/prefix/path/32=ls/v=<n>` of a folder's listing |
//! | FinalBlockId | 0x1A | segment component of the last segment; files only |
//! | SegmentSize | 0xF500 | bytes of content in each segment but the last; files only |
//! | Size | 0xF502 | bytes; files only |
//! | Mode | 0xF504 | as `st_mode`: permissions, and the kind in the bits 0xF000 |
//! | Atime, Btime, Ctime | 0xF506, 0xF508, 0xF50A | nanoseconds since 1970; may be absent |
//! | Mtime | 0xF50C | nanoseconds since 1970 |
//!
//! Numbers are NonNegativeIntegers. A reader takes the elements after the name in any order, each once, and ignores
//! unknown ones that are not critical. Limit: [`METADATA_BYTES_MAX`].

use namewire_packet::{
    Component, MAX_PACKET_BYTES, Name, NameBuf,
    tlv::{self, Reader, types},
};

/// Most bytes of metadata: it fits in one packet.
pub const METADATA_BYTES_MAX: usize = MAX_PACKET_BYTES;

/// The bits of a mode that say what kind of file it is.
const KIND_MASK: u32 = 0o170_000;
/// The kind of regular files.
const KIND_FILE: u32 = 0o100_000;
/// The kind of folders.
const KIND_FOLDER: u32 = 0o040_000;
/// Who may read, write and execute. Never set-user-ID, set-group-ID or sticky.
const PERMISSION_MASK: u32 = 0o777;

const SEGMENT_SIZE: u32 = 0xF500;
const SIZE: u32 = 0xF502;
const MODE: u32 = 0xF504;
const ATIME: u32 = 0xF506;
const BTIME: u32 = 0xF508;
const CTIME: u32 = 0xF50A;
const MTIME: u32 = 0xF50C;

/// Why some bytes are no metadata of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// More than [`METADATA_BYTES_MAX`].
    #[error("the metadata has {0} bytes, more than a packet")]
    TooLong(usize),
    /// The elements are no TLV, or an element has a value that its type does not allow.
    #[error("element {0} of the metadata is malformed")]
    Malformed(u32),
    /// It does not begin with a name.
    #[error("the metadata holds no name")]
    NoName,
    /// Mode or Mtime is absent: other producers than file servers publish metadata without them.
    #[error("the metadata describes no file or folder: element {0:#x} is absent")]
    Missing(u32),
    /// An element comes twice, or is critical and unknown.
    #[error("element {0} of the metadata is unknown or repeated")]
    Unexpected(u32),
    /// The name does not lead to a version of what was asked for.
    #[error("the metadata names something else than a version of what was asked for")]
    OtherName,
    /// Neither a regular file nor a folder.
    #[error("it is neither a file nor a folder (mode {0:o})")]
    OtherKind(u32),
}

/// The kinds that file servers serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
}

/// What a producer says of a file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMetadata {
    /// Name of the content, up to the version.
    pub versioned_name: NameBuf,
    /// Number of the last segment.
    pub last_segment: Option<u64>,
    /// Bytes of content in each segment but the last.
    pub segment_bytes: Option<u64>,
    /// Bytes of the whole content.
    pub size_bytes: Option<u64>,
    /// As `st_mode`: kind and permissions.
    pub mode: u32,
    /// Last access, in nanoseconds since 1970.
    pub atime_ns: Option<u64>,
    /// Creation.
    pub btime_ns: Option<u64>,
    /// Last change of the inode.
    pub ctime_ns: Option<u64>,
    /// Last change of the content.
    pub mtime_ns: u64,
}

impl FileMetadata {
    /// File or folder.
    ///
    /// # Errors
    /// [`MetadataError::OtherKind`] for a mode that says neither.
    pub fn kind(&self) -> Result<FileKind, MetadataError> {
        match self.mode & KIND_MASK {
            KIND_FILE => Ok(FileKind::File),
            KIND_FOLDER => Ok(FileKind::Folder),
            _ => Err(MetadataError::OtherKind(self.mode)),
        }
    }

    /// Permissions alone: nine bits.
    pub fn permissions(&self) -> u32 {
        self.mode & PERMISSION_MASK
    }

    /// Writes the Content of a metadata packet.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.versioned_name.as_name().write_tlv(&mut out);
        if let Some(last) = self.last_segment {
            tlv::write_nested(&mut out, types::FINAL_BLOCK_ID, |out| {
                tlv::write_nni(out, types::SEGMENT_COMPONENT, last);
            });
        }
        let numbers = [
            (SEGMENT_SIZE, self.segment_bytes),
            (SIZE, self.size_bytes),
            (MODE, Some(u64::from(self.mode))),
            (ATIME, self.atime_ns),
            (BTIME, self.btime_ns),
            (CTIME, self.ctime_ns),
            (MTIME, Some(self.mtime_ns)),
        ];
        for (type_number, number) in numbers {
            number.into_iter().for_each(|number| tlv::write_nni(&mut out, type_number, number));
        }
        out
    }

    /// Reads the Content of a metadata packet.
    ///
    /// # Errors
    /// See [`MetadataError`].
    pub fn parse(content: &[u8]) -> Result<Self, MetadataError> {
        if content.len() > METADATA_BYTES_MAX {
            return Err(MetadataError::TooLong(content.len()));
        }
        let mut reader = Reader::new(content);
        let first = reader.next_element().map_err(|_| MetadataError::NoName)?.ok_or(MetadataError::NoName)?;
        let name = Name::parse_tlv(first.wire).map_err(|_| MetadataError::NoName)?;
        let mut fields = Fields::default();
        let mut last_seen = first.type_number;
        while let Some(element) = reader.next_element().map_err(|_| MetadataError::Malformed(last_seen))? {
            last_seen = element.type_number;
            fields.take(element.type_number, element.value)?;
        }
        let mode = fields.mode.ok_or(MetadataError::Missing(MODE))?;
        Ok(FileMetadata {
            versioned_name: name.to_buf(),
            last_segment: fields.last_segment,
            segment_bytes: fields.segment_bytes,
            size_bytes: fields.size_bytes,
            mode: u32::try_from(mode).map_err(|_| MetadataError::Malformed(MODE))?,
            atime_ns: fields.atime_ns,
            btime_ns: fields.btime_ns,
            ctime_ns: fields.ctime_ns,
            mtime_ns: fields.mtime_ns.ok_or(MetadataError::Missing(MTIME))?,
        })
    }
}

/// The elements after the name.
#[derive(Default)]
struct Fields {
    last_segment: Option<u64>,
    segment_bytes: Option<u64>,
    size_bytes: Option<u64>,
    mode: Option<u64>,
    atime_ns: Option<u64>,
    btime_ns: Option<u64>,
    ctime_ns: Option<u64>,
    mtime_ns: Option<u64>,
}

impl Fields {
    fn take(&mut self, type_number: u32, value: &[u8]) -> Result<(), MetadataError> {
        let malformed = MetadataError::Malformed(type_number);
        let field = match type_number {
            types::FINAL_BLOCK_ID => &mut self.last_segment,
            SEGMENT_SIZE => &mut self.segment_bytes,
            SIZE => &mut self.size_bytes,
            MODE => &mut self.mode,
            ATIME => &mut self.atime_ns,
            BTIME => &mut self.btime_ns,
            CTIME => &mut self.ctime_ns,
            MTIME => &mut self.mtime_ns,
            // Packet format §1.1: unknown elements of an even type from 32 on are not critical.
            _ if type_number >= 32 && type_number.is_multiple_of(2) => return Ok(()),
            _ => return Err(MetadataError::Unexpected(type_number)),
        };
        let number = match type_number {
            types::FINAL_BLOCK_ID => {
                let element = tlv::read_element(value).ok().filter(|element| element.wire.len() == value.len());
                let component = element.map(|one| Component { type_number: one.type_number, value: one.value });
                component.and_then(|component| component.segment()).ok_or(malformed)?
            }
            _ => tlv::read_nni(value).map_err(|_| malformed)?,
        };
        match field.replace(number) {
            None => Ok(()),
            Some(_) => Err(MetadataError::Unexpected(type_number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, option, prelude::*};

    fn sample() -> FileMetadata {
        FileMetadata {
            versioned_name: "/p/a/v=5".parse().unwrap(),
            last_segment: Some(1),
            segment_bytes: Some(8000),
            size_bytes: Some(9000),
            mode: 0o100_644,
            atime_ns: None,
            btime_ns: None,
            ctime_ns: Some(7),
            mtime_ns: 5,
        }
    }

    /// The bytes follow from the table in the header.
    #[test]
    fn metadata_has_the_bytes_of_other_file_servers() {
        let expected = [
            &b"\x07\x09\x08\x01p\x08\x01a\x36\x01\x05"[..],
            b"\x1a\x03\x32\x01\x01",
            b"\xfd\xf5\x00\x02\x1f\x40",
            b"\xfd\xf5\x02\x02\x23\x28",
            b"\xfd\xf5\x04\x02\x81\xa4",
            b"\xfd\xf5\x0a\x01\x07",
            b"\xfd\xf5\x0c\x01\x05",
        ];
        assert_eq!(sample().encode(), expected.concat());
        assert_eq!(sample().kind(), Ok(FileKind::File));
        assert_eq!(FileMetadata { mode: 0o040_755, ..sample() }.kind(), Ok(FileKind::Folder));
        assert_eq!(FileMetadata { mode: 0o120_777, ..sample() }.kind(), Err(MetadataError::OtherKind(0o120_777)));
        assert_eq!(FileMetadata { mode: 0o107_755, ..sample() }.permissions(), 0o755);
    }

    #[test]
    fn malformed_metadata_is_refused_and_extensions_are_ignored() {
        let with = |more: &[u8]| FileMetadata::parse(&[&sample().encode()[..], more].concat());
        assert_eq!(with(b"\xfd\xf5\x0e\x01\x05"), Ok(sample()));
        assert_eq!(with(b"\xfd\xf5\x0f\x01\x05"), Err(MetadataError::Unexpected(0xF50F)));
        assert_eq!(with(b"\xfd\xf5\x0c\x01\x05"), Err(MetadataError::Unexpected(MTIME)));
        assert_eq!(with(b"\xfd\xf5\x06\x03\x05\x05\x05"), Err(MetadataError::Malformed(ATIME)));
        assert_eq!(with(b"\xfd\xf5\x06\x09"), Err(MetadataError::Malformed(MTIME)));
        assert_eq!(with(&[0; METADATA_BYTES_MAX]), Err(MetadataError::TooLong(METADATA_BYTES_MAX + 44)));
        assert_eq!(FileMetadata::parse(b""), Err(MetadataError::NoName));
        assert_eq!(FileMetadata::parse(b"\x08\x01a"), Err(MetadataError::NoName));
        // The metadata of `namewire put FILE` and other RDR producers.
        assert_eq!(FileMetadata::parse(b"\x07\x03\x08\x01a"), Err(MetadataError::Missing(MODE)));
        let bad_final = b"\x07\x03\x08\x01a\x1a\x03\x36\x01\x01";
        assert_eq!(FileMetadata::parse(bad_final), Err(MetadataError::Malformed(types::FINAL_BLOCK_ID)));
    }

    prop_compose! {
        fn metadata()(
            components in vec(vec(any::<u8>(), 0..20), 0..5),
            numbers in [option::of(any::<u64>()), option::of(any::<u64>()), option::of(any::<u64>()),
                option::of(any::<u64>()), option::of(any::<u64>()), option::of(any::<u64>())],
            mode in any::<u32>(),
            mtime_ns in any::<u64>(),
        ) -> FileMetadata {
            let mut versioned_name = NameBuf::new();
            components.iter().for_each(|one| { versioned_name.push_generic(one); });
            let [last_segment, segment_bytes, size_bytes, atime_ns, btime_ns, ctime_ns] = numbers;
            FileMetadata {
                versioned_name, last_segment, segment_bytes, size_bytes, mode, atime_ns, btime_ns, ctime_ns, mtime_ns,
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(metadata in metadata()) {
            prop_assert_eq!(FileMetadata::parse(&metadata.encode()), Ok(metadata));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(
            metadata in metadata(),
            damage in vec((any::<proptest::sample::Index>(), any::<u8>()), 0..8),
        ) {
            let mut bytes = metadata.encode();
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(read) = FileMetadata::parse(&bytes) {
                prop_assert_eq!(FileMetadata::parse(&read.encode()), Ok(read));
            }
        }
    }
}
