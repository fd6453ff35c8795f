//! ProbeReply: what a forwarder says when it answers a probe (RFC 9508 §5.2, RFC 9507 §5.2; [`crate::probe`]).
//!
//! The RFCs define the sender's name and the reply code, and leave the code's type number open for NDN. Everything else
//! is ours: what the forwarder would do with an Interest for the target. Its type numbers are even, so readers that do
//! not know them skip them.
//!
//! A reply names only the target, a prefix of it, the strategy of that prefix, and faces that are its next hops.

use super::{StoredLook, element::element, field::Field, numbers::types::FACE_ID};
use crate::{FaceId, NameBuf, nfd::NfdError, tlv, tlv::types::NAME};

crate::names! {
    /// Why a forwarder answers (RFC 9508 §4.2, RFC 9507 §4.2).
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
    pub enum ReplyCode {
        /// The target is its own name.
        Forwarder = "forwarder",
        /// The target is under a prefix that an application at this forwarder serves.
        Application = "application",
        /// The target is in its Content Store.
        Object = "object",
        /// The HopLimit of the traceroute ended here.
        HopLimit = "hop-limit",
    }
}

/// Two bytes, from 1.
impl Field for ReplyCode {
    fn write(&self, out: &mut Vec<u8>, type_number: u32) {
        tlv::write_tlv(out, type_number, &(*self as u16 + 1).to_be_bytes());
    }

    fn read(field: u32, value: &[u8]) -> Result<Self, NfdError> {
        let bytes = value.try_into().map_err(|_| NfdError::BadSize(field))?;
        let code = usize::from(u16::from_be_bytes(bytes));
        let found = code.checked_sub(1).and_then(|place| ReplyCode::ALL.get(place));
        found.copied().ok_or(NfdError::BadValue { field, value: code as u64 })
    }
}

element! {
    content:
    /// The content of the Data that answers a probe.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ProbeReply {
        /// The name of the forwarder that answers.
        pub sender: NameBuf = NAME,
        /// Why it answers.
        pub code: ReplyCode = 128,
        /// A number that the forwarder took by chance when it started.
        pub instance: Option<u64> = 130,
        /// Its program and version.
        pub software: Option<String> = 132,
        /// Its clock: Unix time in milliseconds.
        pub time_ms: Option<u64> = 134,
        /// The face of the forwarder that the probe came from.
        pub incoming_face_id: Option<FaceId> = 136,
        /// The longest prefix of the target in its FIB.
        pub prefix: Option<NameBuf> = 138,
        /// The strategy that the target has.
        pub strategy: Option<NameBuf> = 140,
        /// The next hops of the prefix, usable ones first; at most 16.
        pub next_hops: Vec<ProbeNextHop> = 142,
        /// What it would do with an Interest for the target, in words.
        pub outcome: Option<String> = 144,
        /// What its operator could look at.
        pub hints: Vec<String> = 146,
        /// What it refuses of the host or user that the probe came from, in words.
        pub refusals: Vec<String> = 152,
        /// Stored Data with the target's name, or else under it.
        pub stored: Option<StoredLook> = 148,
        /// Bytes that make the reply as large as the request.
        pub padding: Option<Box<[u8]>> = 150,
    }
}

element! {
    element:
    /// A next hop of the forwarder that answers.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ProbeNextHop {
        /// Its face.
        pub face_id: FaceId = FACE_ID,
        /// Lower is better.
        pub cost: u64 = 160,
        /// The label of its face on a path ([`crate::path_label`]).
        pub label: u64 = 162,
        /// Why no Interest would go there.
        pub excluded: Option<String> = 164,
        /// The strategy would choose it now.
        pub is_chosen: bool = 166,
        /// Earlier Interests got no answer there.
        pub is_silent: bool = 168,
        /// It is an application at the forwarder.
        pub is_application: bool = 170,
        /// Where the face leads, if the forwarder tells.
        pub remote_uri: Option<String> = 172,
        /// Data that came from there.
        pub answered: Option<u64> = 174,
        /// Interests that expired there.
        pub unanswered: Option<u64> = 176,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply() -> ProbeReply {
        ProbeReply {
            sender: "/site/r1".parse().expect("a name"),
            code: ReplyCode::HopLimit,
            instance: Some(7),
            software: None,
            time_ms: Some(1_700_000_000_000),
            incoming_face_id: None,
            prefix: Some(NameBuf::default()),
            strategy: None,
            next_hops: vec![ProbeNextHop { face_id: FaceId(300), label: 301, ..ProbeNextHop::default() }],
            outcome: None,
            hints: vec!["one".to_owned(), "two".to_owned()],
            refusals: Vec::new(),
            stored: None,
            padding: Some([0; 3].into()),
        }
    }

    #[test]
    fn a_reply_reads_as_it_was_written() {
        let reply = reply();
        assert_eq!(ProbeReply::parse_content(&reply.to_content()), Ok(reply));
    }

    /// RFC 9507 §5.2: the sender's name, as a Name, and a code of two bytes.
    #[test]
    fn a_reply_begins_as_the_rfcs_say() {
        let content = ProbeReply { code: ReplyCode::Application, ..reply() }.to_content();
        let name = b"\x07\x0a\x08\x04site\x08\x02r1";
        assert_eq!(content[..16], [&name[..], &[128, 2, 0, 2]].concat());
        let least = ProbeReply::parse_content(&content[..16]).expect("nothing else is required");
        assert_eq!((least.sender, least.code), (reply().sender, ReplyCode::Application));
    }

    #[test]
    fn a_code_without_meaning_is_refused() {
        for code in [[0, 0], [0, 5], [1, 1]] {
            let content = [&b"\x07\x03\x08\x01a\x80\x02"[..], &code].concat();
            assert!(ProbeReply::parse_content(&content).is_err(), "{code:?}");
        }
        assert!(ProbeReply::parse_content(b"\x07\x03\x08\x01a\x80\x01\x01").is_err(), "one byte");
    }
}
