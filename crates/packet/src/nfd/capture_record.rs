//! CaptureRecord: what a capture tells about faces and their frames, and how a client reads it.
//!
//! The format is ours; NFD captures nothing. A capture is one stream of records. The forwarder cuts it into pieces at
//! any byte, as it cuts datasets into segments. [`CaptureStream`] joins the pieces and finds the records. It skips
//! records of unknown types.
//!
//! Limit: a record has at most [`MAX_RECORD_BYTES`], so no more than that and one piece waits in a [`CaptureStream`].

use super::{
    dataset::DatasetEntry,
    element::element,
    field::NfdError,
    numbers::types::{
        CAPTURE_FACE, CAPTURE_FRAME, CAPTURE_FRAME_BYTES, CAPTURE_FRAME_LEN, CAPTURE_IS_OUT, CAPTURE_LEFT,
        CAPTURE_MISSED, CAPTURE_REASON, CAPTURE_TIME, FACE_ID, LOCAL_URI, URI,
    },
};
use crate::{
    FaceId,
    tlv::{self, TlvError},
};

/// Most bytes of one record: a frame of the largest size or two FaceUris, and some numbers.
pub const MAX_RECORD_BYTES: usize = 16 << 10;

element! {
    element CAPTURE_FACE:
    /// A face whose frames follow: 128 { 105 face, 114 remote FaceUri, 129 local FaceUri }.
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
    /// A frame: 129 { 105 face, 128 sent?, 129 time, 130 size, 131 its first bytes }.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct CaptureFrame {
        /// The face that received it, or that it was sent on.
        pub face: FaceId = FACE_ID,
        /// True if the forwarder sent it.
        pub is_sent: bool = CAPTURE_IS_OUT,
        /// Nanoseconds since 1970.
        pub time_ns: u64 = CAPTURE_TIME,
        /// Its size on the link.
        pub len: u64 = CAPTURE_FRAME_LEN,
        /// Its first bytes: all of them, or as many as the capture keeps.
        pub bytes: Box<[u8]> = CAPTURE_FRAME_BYTES,
    }
}

element! {
    element CAPTURE_LEFT:
    /// The end of a face's part in the capture: 130 { 105 face, 132 missed frames, 133 reason ? }.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct CaptureLeft {
        /// Its number; [`FaceId::INVALID`] if the frames missed are of faces without such a record.
        pub face: FaceId = FACE_ID,
        /// Frames that found no room in the capture.
        pub missed: u64 = CAPTURE_MISSED,
        /// Why the face closed; `None` if it did not.
        pub reason: Option<String> = CAPTURE_REASON,
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
}

impl DatasetEntry for CaptureRecord {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            CaptureRecord::Face(face) => face.encode(out),
            CaptureRecord::Frame(frame) => frame.encode(out),
            CaptureRecord::Left(left) => left.encode(out),
        }
    }

    fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        match tlv::read_element(wire)?.type_number {
            CAPTURE_FACE => CaptureFace::decode(wire).map(CaptureRecord::Face),
            CAPTURE_LEFT => CaptureLeft::decode(wire).map(CaptureRecord::Left),
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
            if [CAPTURE_FACE, CAPTURE_FRAME, CAPTURE_LEFT].map(u64::from).contains(&type_number) {
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
