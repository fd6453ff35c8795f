//! Question: can any text make the FaceUri reader panic, does every FaceUri survive being printed and read, and has
//! each meaning one canonical text?
//!
//! Input: text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_packet::nfd::{FaceUri, face_uri::MAX_FACE_URI_BYTES};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(uri) = text.parse::<FaceUri>() else { return };
    assert!(text.len() <= MAX_FACE_URI_BYTES);
    assert_eq!(uri.to_string(), text);
    assert!(text.starts_with(uri.scheme()));
    let Some(canonical) = uri.canonize() else {
        assert!(!uri.is_canonical());
        return;
    };
    assert!(canonical.is_canonical());
    assert_eq!(canonical.canonize().as_ref(), Some(&canonical), "canonical already");
    assert_eq!(canonical.to_string().parse::<FaceUri>().as_ref(), Ok(&canonical));
    if uri.is_canonical() {
        assert_eq!(uri, canonical);
    }
});
