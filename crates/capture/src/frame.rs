//! A frame as text for people: the packet or fragment that it carries, and its link headers.
//!
//! A captured frame may be malformed, because it is captured before the router judges it. It may also be cut, by
//! `--snaplen`. So this reader shows the fields that it can read, and never fails.

use namewire_packet::{
    NackReason, Name, NameBuf,
    tlv::{self, types},
};
use std::fmt::Write;

/// What the beginning of a frame says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameView {
    /// What the frame carries.
    pub packet: Packet,
    /// The name, if it is in this frame.
    pub name: Option<NameBuf>,
    /// Sequence of NDNLPv2.
    pub sequence: Option<u64>,
    /// FragIndex; 0 if the frame is no fragment.
    pub frag_index: u64,
    /// 1 if the frame is no fragment.
    pub frag_count: u64,
    /// PIT token.
    pub pit_token: Option<Vec<u8>>,
    /// The reason, if the packet is a Nack.
    pub nack: Option<NackReason>,
    /// CongestionMark; 0: none.
    pub congestion_mark: u64,
    /// Acknowledgements in the frame.
    pub acks: u64,
}

/// The kind of packet that a frame carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packet {
    /// An Interest.
    Interest,
    /// A Data.
    Data,
    /// A Nack.
    Nack,
    /// A fragment that is not the first of its packet.
    Fragment,
    /// No packet: acknowledgements, or a sign of life.
    Idle,
    /// Another element, or none.
    #[default]
    Unknown,
}

impl Packet {
    /// The kind as a word.
    pub fn word(self) -> &'static str {
        match self {
            Packet::Interest => "Interest",
            Packet::Data => "Data",
            Packet::Nack => "Nack",
            Packet::Fragment => "Fragment",
            Packet::Idle => "Idle",
            Packet::Unknown => "?",
        }
    }
}

impl FrameView {
    /// Reads what can be read of a frame.
    pub fn of(frame: &[u8]) -> Self {
        let mut view = FrameView { frag_count: 1, ..FrameView::default() };
        match split(frame) {
            Some((types::LP_PACKET, value, _)) => view.read_link_headers(value),
            _ => view.read_packet(frame),
        }
        view
    }

    /// Name, or what stands for it.
    pub fn name_text(&self) -> String {
        self.name.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)
    }

    /// The link headers in words.
    pub fn header_text(&self) -> String {
        let mut text = String::new();
        if let Some(reason) = self.nack {
            let _ = write!(text, "  {reason}");
        }
        if self.frag_count > 1 {
            let _ = write!(text, "  fragment {} of {}", self.frag_index.saturating_add(1), self.frag_count);
        }
        if let Some(token) = &self.pit_token {
            let _ = write!(text, "  token {}", hex(token));
        }
        if self.congestion_mark > 0 {
            let _ = write!(text, "  congestion mark {}", self.congestion_mark);
        }
        if self.acks > 0 {
            let _ = write!(text, "  {} Acks", self.acks);
        }
        text
    }

    fn read_link_headers(&mut self, mut rest: &[u8]) {
        let mut fragment = None;
        while let Some((type_number, value, after)) = split(rest) {
            match type_number {
                types::LP_FRAGMENT => fragment = Some(value),
                types::LP_SEQUENCE => self.sequence = value.try_into().ok().map(u64::from_be_bytes),
                types::LP_FRAG_INDEX => self.frag_index = tlv::read_nni(value).unwrap_or_default(),
                types::LP_FRAG_COUNT => self.frag_count = tlv::read_nni(value).unwrap_or(1),
                types::LP_PIT_TOKEN => self.pit_token = Some(value.to_vec()),
                types::LP_NACK => self.nack = Some(nack_reason(value)),
                types::LP_CONGESTION_MARK => self.congestion_mark = tlv::read_nni(value).unwrap_or_default(),
                types::LP_ACK => self.acks += 1,
                _ => {}
            }
            rest = after;
        }
        match fragment {
            None => self.packet = Packet::Idle,
            Some(_) if self.frag_index > 0 => self.packet = Packet::Fragment,
            Some(packet) => self.read_packet(packet),
        }
    }

    fn read_packet(&mut self, packet: &[u8]) {
        let Some((type_number, value, _)) = split(packet) else { return };
        self.packet = match type_number {
            types::INTEREST if self.nack.is_some() => Packet::Nack,
            types::INTEREST => Packet::Interest,
            types::DATA => Packet::Data,
            _ => return,
        };
        if let Some((types::NAME, _, after)) = split(value) {
            let name = &value[..value.len() - after.len()];
            self.name = Name::parse_tlv(name).ok().map(|name| name.to_buf());
        }
    }
}

/// The first element: its type, as much of its value as there is, and what follows.
fn split(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (type_number, type_bytes) = tlv::read_var_number(bytes).ok()?;
    let (length, length_bytes) = tlv::read_var_number(&bytes[type_bytes..]).ok()?;
    let rest = &bytes[type_bytes + length_bytes..];
    let (value, after) = rest.split_at(rest.len().min(usize::try_from(length).unwrap_or(usize::MAX)));
    Some((type_number.try_into().ok()?, value, after))
}

fn nack_reason(value: &[u8]) -> NackReason {
    match split(value) {
        Some((types::LP_NACK_REASON, code, _)) => NackReason::from_code(tlv::read_nni(code).unwrap_or_default()),
        _ => NackReason::None,
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::lp::{self, LinkFields, LpHeaders, PitToken};
    use proptest::prelude::*;

    /// An Interest for `/a`.
    const INTEREST: &[u8] = &[5, 5, 7, 3, 8, 1, b'a'];

    fn frame(headers: &LpHeaders, link: &LinkFields<'_>, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        lp::write_headers(&mut frame, headers, link, payload.len());
        frame.extend_from_slice(payload);
        frame
    }

    #[test]
    fn packets_are_told_by_their_headers() {
        let bare = FrameView::of(INTEREST);
        assert_eq!((bare.packet, bare.name_text().as_str(), bare.header_text().as_str()), (Packet::Interest, "/a", ""));
        let headers = LpHeaders { pit_token: PitToken::new(&[0xAB, 1]), congestion_mark: 1, ..LpHeaders::default() };
        let view = FrameView::of(&frame(&headers, &LinkFields::default(), &[6, 3, 7, 1, 8, 0]));
        assert_eq!((view.packet, view.header_text().as_str()), (Packet::Data, "  token ab01  congestion mark 1"));
        let nack = LpHeaders { nack: Some(NackReason::NoRoute), ..LpHeaders::default() };
        let view = FrameView::of(&frame(&nack, &LinkFields::default(), INTEREST));
        assert_eq!(
            (view.packet, view.name_text(), view.header_text()),
            (Packet::Nack, "/a".into(), "  NoRoute".into())
        );
        // Acks alone: LpPacket { Ack 8 bytes }
        let view = FrameView::of(&[100, 12, 253, 3, 0x44, 8, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!((view.packet, view.acks), (Packet::Idle, 1));
    }

    #[test]
    fn a_cut_frame_says_what_it_can() {
        let view = FrameView::of(&[6, 253, 0x20, 0, 7, 3, 8, 1, b'a', 0x15]);
        assert_eq!((view.packet, view.name_text()), (Packet::Data, "/a".to_owned()));
        let view = FrameView::of(&INTEREST[..6]);
        assert_eq!((view.packet, view.name), (Packet::Interest, None));
        assert_eq!(FrameView::of(b"GET /").packet, Packet::Unknown);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..64), is_lp in any::<bool>()) {
            let frame = if is_lp { [&[100, 60][..], &bytes].concat() } else { bytes };
            let view = FrameView::of(&frame);
            let _ = (view.name_text(), view.header_text());
        }
    }
}
