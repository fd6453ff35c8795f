//! Question: can any text make the URI reader panic, and does every name survive being written as a URI and read again?
//! The canonical form keeps every byte; the alternate form (`v=1`) keeps the meaning, although a number loses leading
//! zeros.
//!
//! Input: text, and the same bytes as a Name TLV-VALUE.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_packet::{
    Name, NameBuf,
    name_uri::{MAX_URI_BYTES, UriError},
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(name) = text.parse::<NameBuf>()
    {
        let reread = Name::parse_value(name.value()).expect("a name from a URI obeys the name rules");
        assert_eq!(reread, name.as_name());
        survives(name.as_name());
    }
    if let Ok(name) = Name::parse_value(bytes) {
        survives(name);
        let mut wire = Vec::new();
        name.write_tlv(&mut wire);
        assert_eq!(wire.len(), name.tlv_size());
        assert_eq!(Name::parse_tlv(&wire), Ok(name));
    }
});

fn survives(name: Name<'_>) {
    if let Some(again) = reread(&name.canonical_uri()) {
        assert_eq!(again.as_name(), name);
    }
    let alternate = name.to_string();
    for uri in [alternate.clone(), format!("ndn:{alternate}")] {
        let Some(again) = reread(&uri) else { continue };
        assert_eq!(again.to_string(), alternate);
        assert_eq!(again.as_name().len(), name.len());
        for (written, read) in name.components().zip(again.as_name().components()) {
            let same_number = written.as_nni().is_some() && written.as_nni() == read.as_nni();
            assert_eq!(written.type_number, read.type_number);
            assert!(written.value == read.value || same_number, "{uri}");
        }
    }
}

/// Reads a URI that we wrote; it may fail only for its length.
fn reread(uri: &str) -> Option<NameBuf> {
    match uri.parse() {
        Ok(name) => Some(name),
        Err(UriError::TooLong) => {
            assert!(uri.len() > MAX_URI_BYTES);
            None
        }
        Err(error) => panic!("{uri}: {error}"),
    }
}
