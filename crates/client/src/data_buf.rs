//! A Data packet that outlives the buffer it arrived in.

use namewire_packet::{Data, FaceId, Name, PacketError, path_label::PathLabel};
use std::{fmt, sync::Arc};

/// A checked Data packet with the link headers that concern an application.
///
/// Cloning shares the bytes. Layout: one allocation for the packet.
#[derive(Clone)]
pub struct DataBuf {
    wire: Arc<[u8]>,
    /// CongestionMark of the packet: 0 none, 1 congested (NDNLPv2 §1.1).
    pub congestion_mark: u64,
    /// Face of the forwarder that it came from, if local fields are on; 254 is the Content Store.
    pub incoming_face_id: Option<FaceId>,
    /// The path that it took, if it has a PathLabel.
    pub(crate) path: Option<Arc<PathLabel>>,
}

impl DataBuf {
    /// Checks one Data packet that fills `wire`, and copies it.
    ///
    /// # Errors
    /// Those of [`Data::parse`].
    pub fn new(wire: &[u8]) -> Result<Self, PacketError> {
        Data::parse(wire)?;
        Ok(DataBuf { wire: wire.into(), congestion_mark: 0, incoming_face_id: None, path: None })
    }

    /// The packet. Cost: one parse, no copy.
    pub fn data(&self) -> Data<'_> {
        Data::parse(&self.wire).expect("checked when it was made, and never changed")
    }

    /// The name of the packet.
    pub fn name(&self) -> Name<'_> {
        self.data().name()
    }

    /// The Content.
    pub fn content(&self) -> &[u8] {
        self.data().content()
    }

    /// The bytes of the packet.
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }
}

impl fmt::Debug for DataBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataBuf({}, {} bytes)", self.data().name(), self.wire.len())
    }
}
