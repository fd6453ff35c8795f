//! An Interest that arrived, and the right to answer it. An answer returns the PIT token of its Interest unchanged
//! (NDNLPv2 §3).

use crate::{close_reason::CloseReason, face::Face};
use namewire_packet::{
    Data, FaceId, Interest, MAX_PACKET_BYTES, NackReason, PacketError,
    lp::{self, LinkFields, LpHeaders, PitToken},
};
use std::{fmt, sync::Arc};

/// Why an answer was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RespondError {
    /// The connection has ended.
    #[error("connection lost: {0}")]
    Closed(#[from] CloseReason),
    /// The bytes are no Data (a mistake of this program).
    #[error("not a Data: {0}")]
    Malformed(#[from] PacketError),
    /// The packet exceeds the limit of every NDN forwarder (a mistake of this program).
    #[error("the packet has {0} bytes, more than 8800")]
    TooLarge(usize),
}

/// An Interest to answer.
pub struct IncomingInterest {
    wire: Arc<[u8]>,
    /// Face of the forwarder that it came from, if local fields are on.
    pub incoming_face_id: Option<FaceId>,
    /// CongestionMark of the packet: 0 none.
    pub congestion_mark: u64,
    pit_token: Option<PitToken>,
    face: Arc<Face>,
}

impl fmt::Debug for IncomingInterest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IncomingInterest({})", self.interest().name())
    }
}

impl IncomingInterest {
    /// The caller has parsed `wire`.
    pub(crate) fn new(face: &Arc<Face>, wire: &[u8], headers: &LpHeaders) -> Self {
        IncomingInterest {
            wire: wire.into(),
            incoming_face_id: headers.incoming_face_id,
            congestion_mark: headers.congestion_mark,
            pit_token: headers.pit_token,
            face: Arc::clone(face),
        }
    }

    /// The packet. Cost: one parse, no copy.
    pub fn interest(&self) -> Interest<'_> {
        Interest::parse(&self.wire).expect("checked when it arrived, and never changed")
    }

    /// The bytes of the packet. Cost: one reference count.
    pub fn wire(&self) -> Arc<[u8]> {
        Arc::clone(&self.wire)
    }

    /// The token that the answer will carry back.
    pub fn pit_token(&self) -> Option<PitToken> {
        self.pit_token
    }

    /// The right to answer, apart from the packet. Cost: two reference counts.
    pub fn responder(&self) -> Responder {
        Responder { interest_wire: Arc::clone(&self.wire), pit_token: self.pit_token, face: Arc::clone(&self.face) }
    }

    /// Answers with a Data, as [`Responder::data`] does.
    ///
    /// # Errors
    /// Those of [`Responder::data`].
    pub async fn respond(self, data_wire: &[u8]) -> Result<(), RespondError> {
        self.responder().data(data_wire).await
    }

    /// Answers with a Nack, as [`Responder::nack`] does.
    ///
    /// # Errors
    /// Those of [`Responder::nack`].
    pub async fn nack(self, reason: NackReason) -> Result<(), RespondError> {
        self.responder().nack(reason).await
    }
}

/// The right to answer one Interest, once. Dropping it answers nothing.
pub struct Responder {
    interest_wire: Arc<[u8]>,
    pit_token: Option<PitToken>,
    face: Arc<Face>,
}

impl Responder {
    /// Sends the Data, waiting while the send queue is full. The caller ensures that its name matches the Interest:
    /// otherwise the forwarder drops it.
    ///
    /// # Errors
    /// If the bytes are no Data of at most 8800 bytes, or the connection is gone.
    pub async fn data(self, data_wire: &[u8]) -> Result<(), RespondError> {
        self.data_marked(data_wire, 0).await
    }

    /// As [`Responder::data`], with a CongestionMark (0 = none).
    ///
    /// # Errors
    /// As [`Responder::data`].
    pub async fn data_marked(self, data_wire: &[u8], congestion_mark: u64) -> Result<(), RespondError> {
        if data_wire.len() > MAX_PACKET_BYTES {
            return Err(RespondError::TooLarge(data_wire.len()));
        }
        Data::parse(data_wire)?;
        let headers = LpHeaders { pit_token: self.pit_token, congestion_mark, ..LpHeaders::default() };
        self.send(&headers, data_wire).await
    }

    /// Sends a Nack that quotes the Interest.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn nack(self, reason: NackReason) -> Result<(), RespondError> {
        let headers = LpHeaders { pit_token: self.pit_token, nack: Some(reason), ..LpHeaders::default() };
        self.send(&headers, &self.interest_wire).await
    }

    async fn send(&self, headers: &LpHeaders, packet: &[u8]) -> Result<(), RespondError> {
        Ok(self.face.send(|out| write_frame(out, headers, packet), |_| ()).await?)
    }
}

fn write_frame(out: &mut Vec<u8>, headers: &LpHeaders, packet: &[u8]) {
    if !headers.is_empty() {
        lp::write_headers(out, headers, &LinkFields::default(), packet.len());
    }
    out.extend_from_slice(packet);
}

/// What a producer of objects answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// This Data.
    Data(Arc<[u8]>),
    /// This Data, with CachePolicy NoCache: it is right now, and may be wrong for the next Interest.
    UncachedData(Arc<[u8]>),
    /// A Nack of the network: another route may lead to the Data.
    Nack(NackReason),
    /// Nothing: the Interest times out.
    Nothing,
}

/// Answers that are sent together. Layout: the frames back to back, and the end of each.
#[derive(Debug, Default)]
pub struct ReplyBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ReplyBatch {
    /// Adds a Data. The caller ensures that the bytes are a Data of at most 8800 bytes that matches the Interest:
    /// otherwise the forwarder drops it.
    pub fn push_data(&mut self, to: &IncomingInterest, data_wire: &[u8]) {
        self.push_frame(&LpHeaders { pit_token: to.pit_token, ..LpHeaders::default() }, data_wire);
    }

    /// Adds this answer. The caller ensures for Data what [`ReplyBatch::push_data`] asks for.
    pub fn push(&mut self, to: &IncomingInterest, reply: &Reply) {
        match reply {
            Reply::Data(wire) => self.push_data(to, wire),
            Reply::UncachedData(wire) => {
                let headers = LpHeaders { pit_token: to.pit_token, no_cache: true, ..LpHeaders::default() };
                self.push_frame(&headers, wire);
            }
            Reply::Nack(reason) => self.push_nack(to, *reason),
            Reply::Nothing => {}
        }
    }

    /// Adds a Nack that quotes the Interest.
    pub fn push_nack(&mut self, to: &IncomingInterest, reason: NackReason) {
        let headers = LpHeaders { pit_token: to.pit_token, nack: Some(reason), ..LpHeaders::default() };
        self.push_frame(&headers, &to.wire);
    }

    fn push_frame(&mut self, headers: &LpHeaders, packet: &[u8]) {
        write_frame(&mut self.bytes, headers, packet);
        self.ends.push(self.bytes.len());
    }

    /// Number of answers.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is no answer.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn ends(&self) -> &[usize] {
        &self.ends
    }
}
