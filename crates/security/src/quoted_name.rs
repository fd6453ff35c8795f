//! Names in texts, cut after [`QUOTED_BYTES_MAX`] bytes.

use namewire_packet::Name;

/// Most bytes of a name's URI that a text repeats.
const QUOTED_BYTES_MAX: usize = 256;

/// A name in the form that texts show.
pub fn quoted(name: Name<'_>) -> String {
    let mut uri = name.to_string();
    if uri.len() > QUOTED_BYTES_MAX {
        uri.truncate(QUOTED_BYTES_MAX); // URIs are ASCII
        uri.push('…');
    }
    uri
}
