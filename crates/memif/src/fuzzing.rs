//! Entries for the fuzzer.

use crate::message::Message;

/// Decodes a control message. What it can say is said again in the same way.
pub fn message(bytes: &[u8]) {
    if let Some(message) = Message::decode(bytes) {
        assert_eq!(Message::decode(&message.encode()), Some(message));
    }
}
