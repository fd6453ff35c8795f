//! Packets for tests to send, built by name.

use namewire_engine::FaceId;
use namewire_packet::{
    Data, DataBuilder, InterestBuilder, NackReason, Name, NameBuf, Nonce,
    lp::{LpHeaders, PitToken},
    path_label::PathLabel,
};

/// A network packet and its link headers.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The Interest or Data, with its announcement or path label in front if the headers say so.
    pub wire: Vec<u8>,
    /// Link headers that concern the packet.
    pub headers: LpHeaders,
    builder: Option<InterestBuilder>,
}

/// An Interest with this nonce.
pub fn interest(name: &str, nonce: u32) -> Packet {
    Packet::of(InterestBuilder::new(uri(name)).nonce(Nonce::from_u32(nonce)))
}

/// An Interest without a nonce.
pub fn bare_interest(name: &str) -> Packet {
    Packet::of(InterestBuilder::new(uri(name)))
}

/// Data that is never fresh.
pub fn data(name: &str) -> Packet {
    fresh_data(name, 0)
}

/// Data with this FreshnessPeriod.
pub fn fresh_data(name: &str, freshness_ms: u64) -> Packet {
    Packet::raw(DataBuilder::new(uri(name)).freshness_ms(freshness_ms).content(b"content").sign_digest())
}

/// A Nack of the Interest with this name and nonce.
pub fn nack(reason: NackReason, name: &str, nonce: u32) -> Packet {
    interest(name, nonce).nacked(reason)
}

/// The Data that announces a prefix. The engine reads only its name.
pub fn announcement(prefix: &str) -> Vec<u8> {
    data(&format!("{prefix}/32=PA/v=1/seg=0")).wire
}

/// The name with this URI.
pub fn uri(name: &str) -> NameBuf {
    name.parse().unwrap_or_else(|error| panic!("{name:?} is no name: {error}"))
}

/// The full name, which asks for exactly this Data.
pub fn full_name(data: &Packet) -> String {
    let parsed = Data::parse(&data.wire).expect("it is Data");
    let digest: String = parsed.implicit_digest().iter().map(|byte| format!("{byte:02x}")).collect();
    match parsed.name().is_empty() {
        true => format!("/sha256digest={digest}"),
        false => format!("{}/sha256digest={digest}", parsed.name()),
    }
}

/// A name of this many one-letter components.
pub fn long_name(components: usize) -> NameBuf {
    let value: Vec<u8> = [8, 1, b'n'].repeat(components);
    Name::parse_value(&value).expect("components are well-formed").to_buf()
}

impl Packet {
    fn of(builder: InterestBuilder) -> Self {
        Packet { wire: builder.build(), headers: LpHeaders::default(), builder: Some(builder) }
    }

    /// Any bytes, without link headers.
    pub fn raw(wire: Vec<u8>) -> Self {
        Packet { wire, headers: LpHeaders::default(), builder: None }
    }

    fn rebuilt(mut self, change: impl FnOnce(InterestBuilder) -> InterestBuilder) -> Self {
        let builder = change(self.builder.take().expect("an Interest"));
        Packet { headers: self.headers, ..Packet::of(builder) }
    }

    /// Sets CanBePrefix of an Interest.
    pub fn can_be_prefix(self) -> Self {
        self.rebuilt(|b| b.can_be_prefix(true))
    }

    /// Sets MustBeFresh of an Interest.
    pub fn must_be_fresh(self) -> Self {
        self.rebuilt(|b| b.must_be_fresh(true))
    }

    /// Sets the HopLimit of an Interest.
    pub fn hop_limit(self, limit: u8) -> Self {
        self.rebuilt(|b| b.hop_limit(limit))
    }

    /// Sets the InterestLifetime.
    pub fn lifetime_ms(self, ms: u64) -> Self {
        self.rebuilt(|b| b.lifetime_ms(ms))
    }

    /// Sets the ForwardingHint of an Interest.
    pub fn hint(self, delegations: &[&str]) -> Self {
        let delegations: Vec<NameBuf> = delegations.iter().map(|d| uri(d)).collect();
        self.rebuilt(|b| b.forwarding_hint(&delegations))
    }

    /// Sets the ApplicationParameters of an Interest.
    pub fn parameters(self, parameters: &[u8]) -> Self {
        self.rebuilt(|b| b.application_parameters(parameters.to_vec()))
    }

    /// Sets the PIT token of the sender.
    pub fn token(mut self, token: &[u8]) -> Self {
        self.headers.pit_token = Some(PitToken::new(token).expect("1 to 32 bytes"));
        self
    }

    /// Sets the CongestionMark.
    pub fn mark(mut self, mark: u64) -> Self {
        self.headers.congestion_mark = mark;
        self
    }

    /// Sets the mark of Interests whose fingerprint collided.
    pub fn collided(mut self) -> Self {
        self.headers.collided = true;
        self
    }

    /// Sets NextHopFaceId.
    pub fn next_hop(mut self, face: FaceId) -> Self {
        self.headers.next_hop_face_id = Some(face);
        self
    }

    /// Sets a CachePolicy of NoCache.
    pub fn no_cache(mut self) -> Self {
        self.headers.no_cache = true;
        self
    }

    /// Turns an Interest into its Nack.
    pub fn nacked(mut self, reason: NackReason) -> Self {
        self.headers.nack = Some(reason);
        self
    }

    /// Puts a PathLabel in front of the packet, as the link layer of a node without local fields does.
    pub fn labelled(mut self, path: &PathLabel) -> Self {
        let mut label = Vec::new();
        path.write_tlv(&mut label);
        self.headers.lead_bytes = label.len() as u16;
        self.headers.next_hop_face_id = self.builder.as_ref().map(|_| FaceId::BY_PATH_LABEL);
        self.wire.splice(..0, label);
        self
    }

    /// Puts the announcement of a prefix in front of Data.
    pub fn announcing(mut self, prefix: &str) -> Self {
        let announcement = announcement(prefix);
        self.headers.lead_bytes = announcement.len() as u16;
        self.wire.splice(..0, announcement);
        self
    }
}
