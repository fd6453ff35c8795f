//! ControlParameters: the arguments of a command, and the body of its answer.

use super::{
    field::{Fields, NfdError, write_optional},
    numbers::types::{
        BASE_CONGESTION_MARKING_INTERVAL, CAPACITY, CONTROL_PARAMETERS, COST, COUNT, CS_POLICY_NAME,
        DEFAULT_CONGESTION_THRESHOLD, EXPIRATION_PERIOD, FACE_ID, FACE_PERSISTENCY, FLAGS, LOCAL_URI, MASK, MTU,
        ORIGIN, STRATEGY, URI,
    },
};
use crate::{
    FaceId, NameBuf,
    tlv::{self, types::NAME},
};

/// Arguments of a command (management.md §3). Which fields a command needs,
/// allows and forbids is the command's business, not this type's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlParameters {
    /// Prefix of a route, strategy choice or Content Store operation.
    pub name: Option<NameBuf>,
    /// Face meant; 0 = the one this came from.
    pub face_id: Option<FaceId>,
    /// Remote FaceUri, as sent.
    pub uri: Option<String>,
    /// Local FaceUri, as sent.
    pub local_uri: Option<String>,
    /// Who registered the route ([`super::origin`]).
    pub origin: Option<u64>,
    /// Cost of the next hop; lower is better.
    pub cost: Option<u64>,
    /// Content Store capacity in packets.
    pub capacity: Option<u64>,
    /// Number of packets to erase, or erased.
    pub count: Option<u64>,
    /// Bits of a route, face or Content Store.
    pub flags: Option<u64>,
    /// Which bits of `flags` are meant.
    pub mask: Option<u64>,
    /// Name of a strategy.
    pub strategy: Option<NameBuf>,
    /// Lifetime of a route in milliseconds.
    pub expiration_period_ms: Option<u64>,
    /// [`super::FacePersistency`] as a number, not yet checked.
    pub face_persistency: Option<u64>,
    /// Nanoseconds between congestion marks at the threshold.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Send queue length in octets that counts as congestion.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// Largest frame in octets.
    pub mtu: Option<u64>,
    /// Content Store policy, as `filter/fifo` (admission and eviction) or `fifo`. Ours: its type number
    /// is even, and whoever does not know it ignores it.
    pub cs_policy: Option<String>,
}

impl ControlParameters {
    /// Appends the whole element, fields in the order of management.md §3.
    pub fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, CONTROL_PARAMETERS, |out| {
            write_optional(out, NAME, &self.name);
            write_optional(out, FACE_ID, &self.face_id);
            write_optional(out, URI, &self.uri);
            write_optional(out, LOCAL_URI, &self.local_uri);
            write_optional(out, ORIGIN, &self.origin);
            write_optional(out, COST, &self.cost);
            write_optional(out, CAPACITY, &self.capacity);
            write_optional(out, COUNT, &self.count);
            write_optional(out, FLAGS, &self.flags);
            write_optional(out, MASK, &self.mask);
            write_optional(out, STRATEGY, &self.strategy);
            write_optional(out, EXPIRATION_PERIOD, &self.expiration_period_ms);
            write_optional(out, FACE_PERSISTENCY, &self.face_persistency);
            write_optional(out, BASE_CONGESTION_MARKING_INTERVAL, &self.base_congestion_marking_interval_ns);
            write_optional(out, DEFAULT_CONGESTION_THRESHOLD, &self.default_congestion_threshold_bytes);
            write_optional(out, MTU, &self.mtu);
            write_optional(out, CS_POLICY_NAME, &self.cs_policy);
        });
    }

    /// The whole element as octets, ready to be a name component's value.
    pub fn to_wire(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// Reads one whole element.
    ///
    /// # Errors
    /// If the octets are not exactly one ControlParameters element.
    pub fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, CONTROL_PARAMETERS)?;
        Ok(ControlParameters {
            name: fields.optional(NAME)?,
            face_id: fields.optional(FACE_ID)?,
            uri: fields.optional(URI)?,
            local_uri: fields.optional(LOCAL_URI)?,
            origin: fields.optional(ORIGIN)?,
            cost: fields.optional(COST)?,
            capacity: fields.optional(CAPACITY)?,
            count: fields.optional(COUNT)?,
            flags: fields.optional(FLAGS)?,
            mask: fields.optional(MASK)?,
            strategy: fields.optional(STRATEGY)?,
            expiration_period_ms: fields.optional(EXPIRATION_PERIOD)?,
            face_persistency: fields.optional(FACE_PERSISTENCY)?,
            base_congestion_marking_interval_ns: fields.optional(BASE_CONGESTION_MARKING_INTERVAL)?,
            default_congestion_threshold_bytes: fields.optional(DEFAULT_CONGESTION_THRESHOLD)?,
            mtu: fields.optional(MTU)?,
            cs_policy: fields.optional(CS_POLICY_NAME)?,
        })
    }
}
