//! CaptureRecord: the records of a capture (faces, frames and decisions), and how a client reads them.
//!
//! The format is ours; NFD captures nothing. A capture is one stream of records. The forwarder cuts it into pieces at
//! any byte, as it cuts datasets into segments. [`CaptureStream`] joins the pieces and finds the records. It skips
//! records of unknown types.
//!
//! Limit: a record has at most [`MAX_RECORD_BYTES`], so a [`CaptureStream`] buffers at most one record and one piece.

use super::{
    dataset::DatasetEntry,
    dropped_packet::PacketKind,
    element::element,
    face_attributes::protocol_enum,
    field::NfdError,
    numbers::types::{CAPTURE_DECISION, CAPTURE_FACE, CAPTURE_FRAME, CAPTURE_LEFT, FACE_ID, LOCAL_URI, URI},
};
use crate::{
    FaceId, NameBuf,
    tlv::{self, TlvError, types::NAME},
};

/// Most bytes of one record: a frame of the largest size or two FaceUris, and some numbers.
pub const MAX_RECORD_BYTES: usize = 16 << 10;

element! {
    element CAPTURE_FACE:
    /// A face whose frames follow.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct CaptureFace {
        /// Its number.
        pub face: FaceId = FACE_ID,
        /// Remote FaceUri.
        pub remote: String = URI,
        /// Local FaceUri.
        pub local: String = LOCAL_URI,
    }
}

element! {
    element CAPTURE_FRAME:
    /// A frame.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct CaptureFrame {
        /// The face that received it, or that it was sent on.
        pub face: FaceId = FACE_ID,
        /// True if the forwarder sent it.
        pub is_sent: bool = 128,
        /// Nanoseconds since 1970.
        pub time_ns: u64 = 129,
        /// Its size on the link.
        pub len: u64 = 130,
        /// Its first bytes: all of them, or as many as the capture keeps.
        pub bytes: Box<[u8]> = 131,
    }
}

element! {
    element CAPTURE_LEFT:
    /// The end of a face's part in the capture.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct CaptureLeft {
        /// Its number; [`FaceId::INVALID`] if the frames missed are of faces without such a record.
        pub face: FaceId = FACE_ID,
        /// Frames that found no room in the capture.
        pub missed: u64 = 132,
        /// Why the face closed; `None` if it did not.
        pub reason: Option<String> = 133,
    }
}

protocol_enum! {
    /// What the forwarder did with a packet.
    Verdict {
        /// It was sent, to the faces that the record names.
        Sent = 0 "sent",
        /// Stored Data answered it.
        Stored = 1 "answered from the Content Store",
        /// It waits for the answer to an Interest that was sent before.
        Aggregated = 2 "waits for the same answer as an earlier Interest",
        /// A Nack went back.
        Nacked = 3 "refused by a Nack",
        /// It went no further.
        Dropped = 4 "dropped",
        /// Management takes it.
        Management = 5 "for management",
        /// Another worker decides.
        HandedOver = 6 "handed to another worker",
        /// It went to no face, and nothing was dropped: an Interest that waits for a next hop, or Data that was stored.
        Kept = 7 "kept"
    }
}

element! {
    element CAPTURE_DECISION:
    /// A decision.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CaptureDecision {
        /// The face that the packet came from.
        pub face: FaceId = FACE_ID,
        /// Nanoseconds since 1970.
        pub time_ns: u64 = 129,
        /// What came.
        pub kind: PacketKind = 134,
        /// Its name.
        pub name: NameBuf = NAME,
        /// True if the name has more components.
        pub is_name_cut: bool = 135,
        /// What became of it.
        pub verdict: Verdict = 136,
        /// Why it was dropped or refused, for example `no-route`.
        pub reason: Option<String> = 133,
        /// The faces that got something because of it: the packet, the stored Data or the Nack.
        pub to: Vec<FaceId> = 137,
        /// Further faces, which are not named.
        pub more: u64 = 138,
        /// The worker that decided, from 0.
        pub worker: u64 = 139,
        /// How long an Interest waits for its answer, in milliseconds.
        pub lifetime_ms: Option<u64> = 140,
    }
}

/// One record of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureRecord {
    /// A face whose frames follow.
    Face(CaptureFace),
    /// A frame of a face that was introduced before.
    Frame(CaptureFrame),
    /// No more frames of this face follow.
    Left(CaptureLeft),
    /// What the forwarder did with a packet.
    Decision(CaptureDecision),
}

impl DatasetEntry for CaptureRecord {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            CaptureRecord::Face(face) => face.encode(out),
            CaptureRecord::Frame(frame) => frame.encode(out),
            CaptureRecord::Left(left) => left.encode(out),
            CaptureRecord::Decision(decision) => decision.encode(out),
        }
    }

    fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        match tlv::read_element(wire)?.type_number {
            CAPTURE_FACE => CaptureFace::decode(wire).map(CaptureRecord::Face),
            CAPTURE_LEFT => CaptureLeft::decode(wire).map(CaptureRecord::Left),
            CAPTURE_DECISION => CaptureDecision::decode(wire).map(CaptureRecord::Decision),
            _ => CaptureFrame::decode(wire).map(CaptureRecord::Frame),
        }
    }
}

/// Finds the records in the pieces of a capture.
#[derive(Debug, Default)]
pub struct CaptureStream {
    bytes: Vec<u8>,
    start: usize,
}

impl CaptureStream {
    /// Appends the next piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(piece);
    }

    /// The next record, if all its bytes are there.
    ///
    /// # Errors
    /// If the bytes are no record. Then the stream cannot go on.
    pub fn next_record(&mut self) -> Result<Option<CaptureRecord>, NfdError> {
        loop {
            let rest = &self.bytes[self.start..];
            let Some((type_number, size)) = read_header(rest)? else { return Ok(None) };
            let Some(wire) = rest.get(..size) else { return Ok(None) };
            self.start += size;
            if [CAPTURE_FACE, CAPTURE_FRAME, CAPTURE_LEFT, CAPTURE_DECISION].map(u64::from).contains(&type_number) {
                return CaptureRecord::decode(wire).map(Some);
            }
        }
    }
}

/// Type number and whole size of the element at the start, if its header is there.
fn read_header(bytes: &[u8]) -> Result<Option<(u64, usize)>, NfdError> {
    let number = |at: usize| match tlv::read_var_number(&bytes[at..]) {
        Ok(number) => Ok(Some(number)),
        Err(TlvError::Truncated) => Ok(None),
        Err(error) => Err(NfdError::from(error)),
    };
    let Some((type_number, type_bytes)) = number(0)? else { return Ok(None) };
    let Some((length, length_bytes)) = number(type_bytes)? else { return Ok(None) };
    if length > MAX_RECORD_BYTES as u64 {
        return Err(NfdError::BadSize(type_number.try_into().unwrap_or(u32::MAX)));
    }
    Ok(Some((type_number, type_bytes + length_bytes + length as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nfd::encode_dataset;

    fn records() -> Vec<CaptureRecord> {
        let face = FaceId(300);
        let frame = |is_sent, len: usize| {
            let bytes = vec![6; len].into_boxed_slice();
            CaptureRecord::Frame(CaptureFrame { face, is_sent, time_ns: 1 << 60, len: 8800, bytes })
        };
        vec![
            CaptureRecord::Face(CaptureFace { face, remote: "fd://7".to_owned(), local: "unix:///a".to_owned() }),
            frame(false, 8800),
            frame(true, 0),
            CaptureRecord::Left(CaptureLeft { face, missed: 3, reason: Some("idle".to_owned()) }),
            CaptureRecord::Decision(CaptureDecision {
                face,
                time_ns: 1,
                kind: PacketKind::Interest,
                name: "/a/b".parse().unwrap(),
                is_name_cut: false,
                verdict: Verdict::Sent,
                reason: None,
                to: vec![FaceId(301), FaceId(302)],
                more: 4,
                worker: 1,
                lifetime_ms: Some(4000),
            }),
        ]
    }

    #[test]
    fn records_are_found_wherever_the_stream_is_cut() {
        let mut wire = encode_dataset(&records());
        wire.extend([200, 1, 0]); // of a later version
        for piece_bytes in [1, 7, 8000, wire.len()] {
            let (mut stream, mut found) = (CaptureStream::default(), Vec::new());
            for piece in wire.chunks(piece_bytes) {
                stream.push(piece);
                while let Some(record) = stream.next_record().unwrap() {
                    found.push(record);
                }
            }
            assert_eq!(found, records(), "{piece_bytes}");
        }
    }

    #[test]
    fn a_record_that_would_be_too_large_is_refused_at_its_header() {
        let mut stream = CaptureStream::default();
        stream.push(&[129, 253, 0x40, 1]);
        assert_eq!(stream.next_record(), Err(NfdError::BadSize(129)));
    }
}
