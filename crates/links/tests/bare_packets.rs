//! The short ways for bare packets do what the general ways do, and leave to those what is not bare.

use namewire_links::capture::{CaptureOptions, CaptureScope, capture};
use namewire_links::{FaceInfo, LinkOptions, LinkPolicy, LinkService, Received};
use namewire_packet::lp::{self, LinkFields, LpHeaders, PitToken};
use namewire_packet::nfd::{FacePersistency, FaceScope, FaceUri, LinkType};
use namewire_packet::{FaceId, MAX_PACKET_BYTES, NackReason, tlv};
use proptest::prelude::*;

fn element(type_number: u32, value_bytes: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    tlv::write_tlv(&mut wire, type_number, &vec![7; value_bytes]);
    wire
}

fn headers() -> impl Strategy<Value = LpHeaders> {
    let face = || prop_oneof![3 => Just(None), 1 => Just(Some(FaceId(300)))];
    let token = prop_oneof![3 => Just(None), 1 => Just(PitToken::new(b"token!"))];
    let nack = prop_oneof![3 => Just(None), 1 => Just(Some(NackReason::Duplicate))];
    let rarely = || prop::bool::weighted(0.1);
    (token, nack, face(), face(), rarely(), rarely(), rarely(), rarely()).prop_map(
        |(pit_token, nack, incoming_face_id, next_hop_face_id, no_cache, marked, non_discovery, collided)| LpHeaders {
            pit_token,
            nack,
            incoming_face_id,
            next_hop_face_id,
            no_cache,
            congestion_mark: u64::from(marked),
            non_discovery,
            collided,
            lead_bytes: 0,
        },
    )
}

/// A link with these options; its send queue is long if `is_congested`.
fn link(options: LinkOptions, is_congested: bool) -> LinkService {
    let mut link = LinkService::new(options);
    if is_congested {
        link.note_queue_length(0, u64::MAX);
    }
    link
}

/// The same in a capture, whose links use the general ways only.
fn captured_link(options: LinkOptions, is_congested: bool) -> LinkService {
    let options_of_capture =
        CaptureOptions { id: 1, scope: CaptureScope::All, one_in: 1, snap_bytes: 100, queue_bytes: 1_000 };
    let (tap, _) = capture(options_of_capture);
    let info = FaceInfo {
        remote: FaceUri::Internal,
        local: FaceUri::Internal,
        scope: FaceScope::Local,
        persistency: FacePersistency::OnDemand,
        link_type: LinkType::PointToPoint,
        mtu: MAX_PACKET_BYTES,
        credentials: None,
    };
    let mut link = link(options, is_congested);
    link.add_tap(tap.of_face(FaceId(300), &info));
    link
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_sent_the_short_way_is_one_bare_frame(
        headers in headers(),
        type_number in prop_oneof![Just(5u32), Just(6), Just(800)],
        value_bytes in 0usize..2_000,
        options in (any::<bool>(), any::<bool>(), 500usize..9_000, any::<bool>(), any::<bool>()).prop_map(
            |(fragmentation, local_fields, mtu, reliability, congestion_marking)| LinkOptions {
                fragmentation,
                local_fields,
                mtu,
                policy: LinkPolicy { reliability, congestion_marking, ..LinkPolicy::default() },
                ..LinkOptions::default()
            }
        ),
        is_congested in any::<bool>(),
    ) {
        let packet = element(type_number, value_bytes);
        let (mut short, mut general) = (link(options, is_congested), captured_link(options, is_congested));
        let mut frames: Vec<Vec<u8>> = Vec::new();
        let sent = general.encode(0, &headers, &packet, |header, slice| frames.push([header, slice].concat()));
        let is_bare = sent.is_ok() && frames == [&packet[..]];
        let may_be_short = is_bare && type_number != 800 && !is_congested && !options.policy.reliability;
        prop_assert_eq!(short.send_bare(&headers, &packet), may_be_short);
        if may_be_short {
            prop_assert_eq!(short.counters(), general.counters());
        } else {
            let fresh = LinkService::new(options);
            prop_assert_eq!(short.counters(), fresh.counters());
        }
    }
}

#[test]
fn what_is_received_the_short_way_is_a_bare_packet() {
    let wrapped = |packet: &[u8]| {
        let mut frame = Vec::new();
        lp::write_headers(&mut frame, &LpHeaders::default(), &LinkFields::default(), packet.len());
        [frame, packet.to_vec()].concat()
    };
    let (interest, data) = (element(5, 20), element(6, MAX_PACKET_BYTES - 4));
    for (frame, is_bare) in [(&interest, true), (&data, true), (&wrapped(&interest), false), (&element(800, 5), false)]
    {
        let options = LinkOptions::default();
        let (mut short, mut general) = (link(options, false), captured_link(options, false));
        assert_eq!(short.receive_bare(frame), is_bare, "{frame:02X?}");
        let received = general.receive(0, frame);
        let whole = Received::Packet { headers: LpHeaders::default(), start: 0, len: frame.len() };
        if is_bare {
            assert_eq!(received, Ok(whole));
            assert_eq!(short.counters(), general.counters());
        }
    }
}

#[test]
fn a_capture_sees_every_frame() {
    let mut link = captured_link(LinkOptions::default(), false);
    assert!(!link.receive_bare(&element(5, 20)) && !link.send_bare(&LpHeaders::default(), &element(5, 20)));
}
