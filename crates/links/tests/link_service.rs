//! The link service against the worked examples of NDNLPv2 (§7 of our specification) and against every rule of §2 and
//! §4. Hex is upper case and shows the whole frame.

use namewire_links::reassembly::{MAX_FRAGMENTS, MAX_MESSAGES, TIMEOUT_NS};
use namewire_links::{LinkDrop, LinkOptions, LinkService, Received};
use namewire_packet::lp::{self, LinkFields, LpHeaders, PitToken};
use namewire_packet::{FaceId, MAX_PACKET_BYTES, NackReason, tlv};

const INTEREST: &str = "050B07030801410A04A1A2A3A4";
const CXX_INTEREST: &str = "0514070A08036E646E0803746C7621000A04A1A2A3A4";
const CXX_DATA: &str = "0642070F08036E646E0803746C7608037365671404190203E81502686916031B010017201A19F58E42035FB1EAF0E877D7E35D82785F7F47C6C55ED97389897C24CB92C3";

fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "odd number of hex digits");
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

fn link(fragmentation: bool, mtu: usize, local_fields: bool) -> LinkService {
    LinkService::new(LinkOptions { fragmentation, mtu, local_fields, ..LinkOptions::default() })
}

/// Receives on a fresh link; returns headers and packet, or the other outcome.
fn receive_on(mut link: LinkService, frame: &[u8]) -> Result<Option<(LpHeaders, Vec<u8>)>, LinkDrop> {
    match link.receive(0, frame)? {
        Received::Packet { headers, start, len } => Ok(Some((headers, frame[start..start + len].to_vec()))),
        Received::Reassembled { headers, packet } => Ok(Some((headers, packet.to_vec()))),
        Received::Incomplete => panic!("a fragment"),
        Received::Idle => Ok(None),
    }
}

fn receive(frame: &str) -> Result<Option<(LpHeaders, Vec<u8>)>, LinkDrop> {
    receive_on(link(true, MAX_PACKET_BYTES, true), &hex(frame))
}

/// An LpPacket with `headers` around `packet`, without the rules of a forwarder.
fn wrap(headers: &LpHeaders, link: &LinkFields<'_>, packet: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    lp::write_headers(&mut frame, headers, link, packet.len());
    frame.extend_from_slice(packet);
    frame
}

fn fragment(sequence: u64, index: u64, count: u64, payload: &[u8]) -> Vec<u8> {
    let link = LinkFields { sequence: Some(sequence), fragment: Some((index, count)), ..LinkFields::default() };
    wrap(&LpHeaders::default(), &link, payload)
}

fn frames(link: &mut LinkService, headers: &LpHeaders, packet: &[u8]) -> Result<Vec<Vec<u8>>, LinkDrop> {
    let mut frames = Vec::new();
    link.encode(0, headers, packet, |header, slice| frames.push([header, slice].concat()))?;
    Ok(frames)
}

/// An element of type 6 and `size` bytes in all.
fn data_of(size: usize) -> Vec<u8> {
    let mut data = Vec::new();
    tlv::write_tlv(&mut data, 6, &vec![0xAB; size - 4]);
    assert_eq!(data.len(), size, "sizes from 257 have a 3-byte length");
    data
}

#[test]
fn bare_and_wrapped_packets_mean_the_same() {
    let bare = receive(INTEREST).unwrap();
    assert_eq!(bare, Some((LpHeaders::default(), hex(INTEREST))));
    assert_eq!(receive("640F500D050B07030801410A04A1A2A3A4").unwrap(), bare, "L-fragment");
    assert_eq!(receive(CXX_DATA).unwrap(), Some((LpHeaders::default(), hex(CXX_DATA))));
}

#[test]
fn header_vectors_are_read() {
    let none = LpHeaders::default();
    let interest = hex(CXX_INTEREST);
    let data = hex(CXX_DATA);
    let cases = [
        (
            "L-cxx-pittoken4",
            "641E62040511070A50160514070A08036E646E0803746C7621000A04A1A2A3A4",
            LpHeaders { pit_token: PitToken::new(&[5, 0x11, 7, 0x0A]), ..none },
            &interest,
        ),
        (
            "L-cxx-nack-NoRoute",
            "6421FD032005FD0321019650160514070A08036E646E0803746C7621000A04A1A2A3A4",
            LpHeaders { nack: Some(NackReason::NoRoute), ..none },
            &interest,
        ),
        (
            "L-nack-noreason",
            "6413FD032000500D050B07030801410A04A1A2A3A4",
            LpHeaders { nack: Some(NackReason::None), ..none },
            &hex(INTEREST),
        ),
        (
            "L-cxx-incomingfaceid: ignored when received",
            "644CFD032C02010250440642070F08036E646E0803746C7608037365671404190203E81502686916031B010017201A19F58E42035FB1EAF0E877D7E35D82785F7F47C6C55ED97389897C24CB92C3",
            none,
            &data,
        ),
        (
            "L-cxx-nexthopfaceid",
            "641EFD033002012C50160514070A08036E646E0803746C7621000A04A1A2A3A4",
            LpHeaders { next_hop_face_id: Some(FaceId(300)), ..none },
            &interest,
        ),
        (
            "L-cxx-nocache",
            "644FFD033405FD0335010150440642070F08036E646E0803746C7608037365671404190203E81502686916031B010017201A19F58E42035FB1EAF0E877D7E35D82785F7F47C6C55ED97389897C24CB92C3",
            LpHeaders { no_cache: true, ..none },
            &data,
        ),
        (
            "L-cxx-congestion1",
            "644BFD0340010150440642070F08036E646E0803746C7608037365671404190203E81502686916031B010017201A19F58E42035FB1EAF0E877D7E35D82785F7F47C6C55ED97389897C24CB92C3",
            LpHeaders { congestion_mark: 1, ..none },
            &data,
        ),
        (
            "L-cxx-reliable: TxSequence and Ack are ignored",
            "643A51080000000000000007FD0344080000000000000005FD034808000000000000000950160514070A08036E646E0803746C7621000A04A1A2A3A4",
            none,
            &interest,
        ),
        (
            "L-cxx-nondiscovery",
            "641CFD034C0050160514070A08036E646E0803746C7621000A04A1A2A3A4",
            LpHeaders { non_discovery: true, ..none },
            &interest,
        ),
        (
            "L-cxx-all-order",
            "645C51080000000000000001620105FD032C0101FD03300102FD03400103FD0344080000000000000004FD0344080000000000000005FD0348080000000000000006FD034C0050160514070A08036E646E0803746C7621000A04A1A2A3A4",
            LpHeaders {
                pit_token: PitToken::new(&[5]),
                next_hop_face_id: Some(FaceId(2)),
                congestion_mark: 3,
                non_discovery: true,
                ..none
            },
            &interest,
        ),
        (
            "collided, a field of our own",
            "644AFD03BC0050440642070F08036E646E0803746C7608037365671404190203E81502686916031B010017201A19F58E42035FB1EAF0E877D7E35D82785F7F47C6C55ED97389897C24CB92C3",
            LpHeaders { collided: true, ..none },
            &data,
        ),
        (
            "a field of that number and with a value is somebody else's",
            "644BFD03BC010150440642070F08036E646E0803746C7608037365671404190203E81502686916031B010017201A19F58E42035FB1EAF0E877D7E35D82785F7F47C6C55ED97389897C24CB92C3",
            none,
            &data,
        ),
        (
            "collided: means nothing on an Interest",
            "641CFD03BC0050160514070A08036E646E0803746C7621000A04A1A2A3A4",
            none,
            &interest,
        ),
        ("L-unk-ignorable", "6414FD03240178500D050B07030801410A04A1A2A3A4", none, &hex(INTEREST)),
    ];
    for (id, frame, headers, packet) in cases {
        assert_eq!(receive(frame).expect(id), Some((headers, packet.clone())), "{id}");
    }
}

#[test]
fn packets_without_fragment_are_idle() {
    assert_eq!(receive("6400"), Ok(None), "L-idle");
    let acks = "6424FD0344080000000000000001FD0344080000000000000010FD034408FFFFFFFFFFFFFFFF";
    assert_eq!(receive(acks), Ok(None), "L-cxx-idle-3acks");
}

#[test]
fn malformed_header_vectors_are_dropped_and_counted() {
    let rejected = [
        ("L-unk-805", "6414FD03250178500D050B07030801410A04A1A2A3A4"),
        ("L-unk-1byte", "6412540101500D050B07030801410A04A1A2A3A4"),
        ("L-order", "641AFD03400101620401020304500D050B07030801410A04A1A2A3A4"),
        ("L-repeat", "6419FD03400101FD03400102500D050B07030801410A04A1A2A3A4"),
        ("L-frag-not-last", "6414500D050B07030801410A04A1A2A3A4FD03400101"),
        ("L-seq4", "6415510400000000500D050B07030801410A04A1A2A3A4"),
        (
            "L-pit33",
            "64326221000000000000000000000000000000000000000000000000000000000000000000500D050B07030801410A04A1A2A3A4",
        ),
    ];
    let mut link = link(true, MAX_PACKET_BYTES, true);
    for (id, frame) in rejected {
        assert_eq!(link.receive(0, &hex(frame)), Err(LinkDrop::MalformedLpHeader), "{id}");
    }
    assert_eq!(link.counters().dropped(LinkDrop::MalformedLpHeader), rejected.len() as u64);
    assert!(!link.peer_speaks_lp(), "broken headers show nothing");
    assert!(link.receive(0, &hex(INTEREST)).is_ok(), "the link goes on");
}

#[test]
fn a_frame_is_exactly_one_element_of_a_known_type() {
    let cases = [
        ("", LinkDrop::TruncatedElement),
        ("05", LinkDrop::TruncatedElement),
        ("050B0703080141", LinkDrop::TruncatedElement),
        ("05FFFFFFFFFFFFFFFFFF00", LinkDrop::TruncatedElement),
        ("050B07030801410A04A1A2A3A400", LinkDrop::TrailingBytes),
        ("64006400", LinkDrop::TrailingBytes),
        ("05FD000100", LinkDrop::MalformedElement),
        ("FD000500", LinkDrop::MalformedElement),
        ("0000", LinkDrop::MalformedElement),
        ("0700", LinkDrop::UnknownType),
        ("FD032400", LinkDrop::UnknownType),
    ];
    for (frame, reason) in cases {
        assert_eq!(receive(frame), Err(reason), "{frame}");
    }
    let size = MAX_PACKET_BYTES;
    assert!(receive_on(link(false, size, false), &data_of(size)).is_ok());
    assert_eq!(receive_on(link(false, size, false), &data_of(size + 1)), Err(LinkDrop::OversizeElement));
}

#[test]
fn a_fragment_field_holds_exactly_one_packet() {
    let whole = |payload: &str| wrap(&LpHeaders::default(), &LinkFields::default(), &hex(payload));
    let receive = |payload| receive_on(link(true, MAX_PACKET_BYTES, true), &whole(payload));
    assert_eq!(receive("640F500D050B07030801410A04A1A2A3A4"), Err(LinkDrop::NestedLpPacket));
    assert_eq!(receive("6400"), Err(LinkDrop::NestedLpPacket));
    assert_eq!(receive("0700"), Err(LinkDrop::FragmentNotPacket));
    assert_eq!(receive("050B07030801410A04A1A2A3A400"), Err(LinkDrop::FragmentNotPacket));
    assert_eq!(receive("050B07030801"), Err(LinkDrop::FragmentNotPacket));
}

#[test]
fn each_header_is_legal_on_its_own_packets_only() {
    let none = LpHeaders::default();
    let nack = LpHeaders { nack: Some(NackReason::Congestion), ..none };
    let (interest, data) = (hex(CXX_INTEREST), hex(CXX_DATA));
    let next_hop = |base| LpHeaders { next_hop_face_id: Some(FaceId(300)), ..base };
    let no_cache = |base| LpHeaders { no_cache: true, ..base };
    let non_discovery = |base| LpHeaders { non_discovery: true, ..base };
    let cases = [
        (nack, &data, LinkDrop::NackWithoutInterest),
        (next_hop(none), &data, LinkDrop::MisplacedNextHopFaceId),
        (next_hop(nack), &interest, LinkDrop::MisplacedNextHopFaceId),
        (no_cache(none), &interest, LinkDrop::MisplacedCachePolicy),
        (no_cache(nack), &interest, LinkDrop::MisplacedCachePolicy),
        (non_discovery(none), &data, LinkDrop::MisplacedNonDiscovery),
        (non_discovery(nack), &interest, LinkDrop::MisplacedNonDiscovery),
    ];
    for (headers, packet, reason) in cases {
        let frame = wrap(&headers, &LinkFields::default(), packet);
        assert_eq!(receive_on(link(true, MAX_PACKET_BYTES, true), &frame), Err(reason), "{headers:?}");
    }

    let frame = wrap(&next_hop(none), &LinkFields::default(), &interest);
    let local_fields_off = link(false, MAX_PACKET_BYTES, false);
    assert_eq!(receive_on(local_fields_off, &frame), Err(LinkDrop::LocalFieldsOff));

    let announcement = LinkFields { lead: Some(&data), ..LinkFields::default() };
    let on_interest = wrap(&none, &announcement, &interest);
    let refused = receive_on(link(false, MAX_PACKET_BYTES, false), &on_interest);
    assert_eq!(refused, Err(LinkDrop::MisplacedPrefixAnnouncement));
    let on_data = wrap(&none, &announcement, &data);
    let (headers, carried) = receive_on(link(false, MAX_PACKET_BYTES, false), &on_data).unwrap().unwrap();
    assert_eq!((headers.packet(&carried), headers.announcement(&carried)), (&data[..], Some(&data[..])));
    assert_eq!(LpHeaders { lead_bytes: 0, ..headers }, none);

    // Our own tokens come back on Data and Nacks.
    for (base, packet) in [(none, &data), (nack, &interest)] {
        let headers = LpHeaders { pit_token: PitToken::new(b"abcdef"), ..base };
        let frame = wrap(&headers, &LinkFields::default(), packet);
        let kept = receive_on(link(false, MAX_PACKET_BYTES, false), &frame);
        assert_eq!(kept, Ok(Some((headers, packet.clone()))));
    }
}

#[test]
fn tag_packets_pass_whole_or_in_pieces_without_headers_of_ndn() {
    let mut packet = Vec::new();
    tlv::write_tlv(&mut packet, namewire_packet::tag::tag_types::PULL, &[7; 3_000]);
    assert_eq!(
        receive_on(link(false, MAX_PACKET_BYTES, false), &packet),
        Ok(Some((LpHeaders::default(), packet.clone())))
    );
    let mut sender = link(true, 1_400, false);
    let frames = frames(&mut sender, &LpHeaders::default(), &packet).unwrap();
    let mut receiver = link(true, 1_400, false);
    let mut whole = Vec::new();
    for frame in &frames {
        if let Received::Reassembled { packet, .. } = receiver.receive(0, frame).unwrap() {
            whole = packet.to_vec();
        }
    }
    assert_eq!((frames.len(), whole), (3, packet.clone()));
    assert_eq!((sender.counters().out_tag_packets, sender.counters().out_data), (1, 0));
    assert_eq!((receiver.counters().in_tag_packets, receiver.counters().in_data), (1, 0));

    let none = LpHeaders::default();
    let carried = LpHeaders { pit_token: PitToken::new(b"abcdef"), no_cache: true, congestion_mark: 2, ..none };
    let frame = wrap(&carried, &LinkFields::default(), &packet);
    let kept = receive_on(link(false, MAX_PACKET_BYTES, false), &frame).unwrap().unwrap();
    assert_eq!(kept.0, LpHeaders { congestion_mark: 2, ..none });
    let nack = LpHeaders { nack: Some(NackReason::Congestion), ..none };
    let next_hop = LpHeaders { next_hop_face_id: Some(FaceId(300)), ..none };
    for (headers, why) in [(nack, LinkDrop::NackWithoutInterest), (next_hop, LinkDrop::MisplacedNextHopFaceId)] {
        let frame = wrap(&headers, &LinkFields::default(), &packet);
        assert_eq!(receive_on(link(false, MAX_PACKET_BYTES, true), &frame), Err(why));
    }
    let announcement = LinkFields { lead: Some(&packet), ..LinkFields::default() };
    assert!(receive_on(link(false, MAX_PACKET_BYTES, true), &wrap(&none, &announcement, &packet)).is_err());
}

#[test]
fn the_peer_has_shown_ndnlp_after_its_first_lp_packet() {
    let mut link = link(false, MAX_PACKET_BYTES, false);
    link.receive(0, &hex(INTEREST)).unwrap();
    assert!(!link.peer_speaks_lp());
    link.receive(0, &hex("6400")).unwrap();
    assert!(link.peer_speaks_lp());
}

#[test]
fn cxx_fragments_reassemble_in_any_order() {
    let fragments = [
        "642E510800000000000003E8520100530103FD0340010150170642070F08036E646E0803746C76080373656714041902",
        "6429510800000000000003E9520101530103501703E81502686916031B010017201A19F58E42035FB1EAF0",
        "6428510800000000000003EA5201025301035016E877D7E35D82785F7F47C6C55ED97389897C24CB92C3",
    ];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut link = link(true, MAX_PACKET_BYTES, false);
        assert_eq!(link.receive(0, &hex(fragments[order[0]])), Ok(Received::Incomplete));
        assert_eq!(link.receive(1, &hex(fragments[order[0]])), Err(LinkDrop::DuplicateFragment));
        assert_eq!(link.receive(2, &hex(fragments[order[1]])), Ok(Received::Incomplete));
        let whole = link.receive(3, &hex(fragments[order[2]]));
        let headers = LpHeaders { congestion_mark: 1, ..LpHeaders::default() };
        assert_eq!(whole, Ok(Received::Reassembled { headers, packet: &hex(CXX_DATA) }));
        assert_eq!(link.counters().in_data, 1);
        assert_eq!(link.next_deadline_ns(), None);
    }
    let mut refuses = link(false, MAX_PACKET_BYTES, false);
    assert_eq!(refuses.receive(0, &hex(fragments[0])), Err(LinkDrop::FragmentationOff));
}

#[test]
fn an_absent_frag_index_means_0() {
    let fragments = [
        "6459510800000000000010005301036204D0D1D2D3504406A9070608014108014215785555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555",
        "645C51080000000000001001520101530103504A5555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555555516031B01001720D95D61",
        "642F51080000000000001002520102530103501DBBB44E324E8F944030FF2B66681ECC0F021FE50C5658191CBDC1A92C49",
    ]
    .map(hex);
    let mut link = link(true, MAX_PACKET_BYTES, false);
    assert_eq!(link.receive(0, &fragments[0]), Ok(Received::Incomplete));
    assert_eq!(link.receive(0, &fragments[1]), Ok(Received::Incomplete));
    let Ok(Received::Reassembled { headers, packet }) = link.receive(0, &fragments[2]) else { panic!() };
    assert_eq!(headers.pit_token, PitToken::new(&[0xD0, 0xD1, 0xD2, 0xD3]));
    assert!(namewire_packet::Data::parse(packet).unwrap().verify_digest_sha256(), "L-ndnts-lp-frag-0..2");
}

#[test]
fn fragments_of_several_senders_are_not_mixed() {
    // On a group's face, two routers that started alike number their fragments alike.
    let packets = [data_of(300), {
        let mut other = data_of(300);
        other[299] = 1;
        other
    }];
    let mut link = link(true, MAX_PACKET_BYTES, false);
    for (sender, packet) in packets.iter().enumerate() {
        let first =
            link.receive_from(0, sender as u64, &fragment(7, 0, 2, &packet[..200])).map(|r| r == Received::Incomplete);
        assert_eq!(first, Ok(true));
    }
    for (sender, packet) in packets.iter().enumerate() {
        let Ok(Received::Reassembled { packet: whole, .. }) =
            link.receive_from(0, sender as u64, &fragment(8, 1, 2, &packet[200..]))
        else {
            panic!("whole");
        };
        assert_eq!(whole, packet);
    }
}

#[test]
fn one_fragment_of_one_needs_no_sequence() {
    let fields = LinkFields { fragment: Some((0, 1)), ..LinkFields::default() };
    let frame = wrap(&LpHeaders::default(), &fields, &hex(INTEREST));
    let whole = receive_on(link(true, MAX_PACKET_BYTES, false), &frame);
    assert_eq!(whole, Ok(Some((LpHeaders::default(), hex(INTEREST)))));
    let refused = receive_on(link(false, MAX_PACKET_BYTES, false), &frame);
    assert_eq!(refused, Err(LinkDrop::FragmentationOff), "even FragCount 1 (§2)");
}

#[test]
fn illegal_fragments_are_plain_drops() {
    let mut link = link(true, MAX_PACKET_BYTES, false);
    let cases = [
        (fragment(9, 3, 3, b"x"), LinkDrop::FragIndexOutOfRange),
        (fragment(9, 0, 0, b"x"), LinkDrop::FragIndexOutOfRange),
        (fragment(9, 0, 1 << 63, b"x"), LinkDrop::TooManyFragments),
        (fragment(9, u64::MAX - 1, u64::MAX, b"x"), LinkDrop::TooManyFragments),
        (fragment(9, 0, MAX_FRAGMENTS + 1, b"x"), LinkDrop::TooManyFragments),
        (
            wrap(&LpHeaders::default(), &LinkFields { fragment: Some((0, 2)), ..LinkFields::default() }, b"x"),
            LinkDrop::MissingSequence,
        ),
    ];
    for (frame, reason) in cases {
        assert_eq!(link.receive(0, &frame), Err(reason));
    }
    assert_eq!(link.next_deadline_ns(), None, "nothing was kept");
    assert_eq!(link.receive(0, &fragment(100, 0, 3, b"x")), Ok(Received::Incomplete));
    assert_eq!(link.receive(0, &fragment(101, 1, 4, b"x")), Err(LinkDrop::FragCountChanged));
    assert_eq!(link.receive(0, &fragment(101, 1, 3, b"x")), Ok(Received::Incomplete), "the message goes on");
}

#[test]
fn the_largest_message_has_400_fragments_and_8800_bytes() {
    let whole = data_of(MAX_PACKET_BYTES);
    // Sequence numbers wrap in the middle of a message.
    let mut link = link(true, MAX_PACKET_BYTES, false);
    let pieces: Vec<&[u8]> = whole.chunks(22).collect();
    assert_eq!(pieces.len() as u64, MAX_FRAGMENTS);
    let first_sequence = u64::MAX - 199;
    for (i, piece) in pieces.iter().enumerate() {
        let frame = fragment(first_sequence.wrapping_add(i as u64), i as u64, MAX_FRAGMENTS, piece);
        let received = link.receive(0, &frame).unwrap();
        match received {
            Received::Incomplete => assert!(i < 399),
            Received::Reassembled { packet, .. } => assert!(i == 399 && packet == whole),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_message_above_8800_bytes_is_given_up() {
    let mut link = link(true, MAX_PACKET_BYTES, false);
    let piece = vec![0; 4500];
    assert_eq!(link.receive(0, &fragment(1, 0, 3, &piece)), Ok(Received::Incomplete));
    assert_eq!(link.receive(0, &fragment(2, 1, 3, &piece)), Err(LinkDrop::ReassemblyOversize));
    assert_eq!(link.next_deadline_ns(), None, "its memory is free");
}

#[test]
fn the_oldest_of_too_many_messages_gives_way() {
    let mut link = link(true, MAX_PACKET_BYTES, false);
    for message in 0..=MAX_MESSAGES as u64 {
        assert_eq!(link.receive(message, &fragment(message * 10, 0, 2, b"\x06\x01")), Ok(Received::Incomplete));
    }
    assert_eq!(link.counters().dropped(LinkDrop::ReassemblyEvicted), 1);
    // The second is still there, the first is not.
    assert!(matches!(link.receive(99, &fragment(11, 1, 2, b"x")), Ok(Received::Reassembled { .. })));
    assert_eq!(link.receive(99, &fragment(1, 1, 2, b"x")), Ok(Received::Incomplete));
}

#[test]
fn bytes_in_progress_are_limited() {
    let options = LinkOptions { fragmentation: true, reassembly_bytes: 20_000, ..LinkOptions::default() };
    let mut link = LinkService::new(options);
    let piece = vec![0; 8000];
    for message in 0..3 {
        assert_eq!(link.receive(message, &fragment(message * 10, 0, 2, &piece)), Ok(Received::Incomplete));
    }
    assert_eq!(link.counters().dropped(LinkDrop::ReassemblyEvicted), 1);
}

#[test]
fn a_message_times_out_500_ms_after_its_last_fragment() {
    let mut link = link(true, MAX_PACKET_BYTES, false);
    link.receive(0, &fragment(1, 0, 3, b"\x06\x02")).unwrap();
    link.receive(TIMEOUT_NS - 1, &fragment(2, 1, 3, b"x")).unwrap();
    assert_eq!(link.next_deadline_ns(), Some(2 * TIMEOUT_NS - 1));
    link.expire(2 * TIMEOUT_NS - 2);
    assert_eq!(link.counters().dropped(LinkDrop::ReassemblyTimeout), 0);
    link.expire(2 * TIMEOUT_NS - 1);
    assert_eq!(link.counters().dropped(LinkDrop::ReassemblyTimeout), 1);
    assert_eq!(link.next_deadline_ns(), None);
    assert_eq!(link.receive(2 * TIMEOUT_NS, &fragment(3, 2, 3, b"y")), Ok(Received::Incomplete), "a new message");
}

#[test]
fn legality_of_a_fragmented_packet_is_that_of_fragment_0() {
    let data = hex(CXX_DATA);
    let fields = |i| LinkFields { sequence: Some(i), fragment: Some((i, 2)), ..LinkFields::default() };
    let nack = LpHeaders { nack: Some(NackReason::NoRoute), ..LpHeaders::default() };
    let first = link(true, MAX_PACKET_BYTES, false);
    let mut link = first;
    link.receive(0, &wrap(&nack, &fields(0), &data[..30])).unwrap();
    let last = wrap(&LpHeaders::default(), &fields(1), &data[30..]);
    assert_eq!(link.receive(0, &last), Err(LinkDrop::NackWithoutInterest));
}

#[test]
fn packets_without_headers_leave_bare() {
    let mut link = link(false, MAX_PACKET_BYTES, false);
    let headers = LpHeaders {
        incoming_face_id: Some(FaceId(256)), // local fields are off
        next_hop_face_id: Some(FaceId(257)), // never sent by a forwarder
        no_cache: true,
        ..LpHeaders::default()
    };
    assert_eq!(frames(&mut link, &headers, &hex(INTEREST)).unwrap(), [hex(INTEREST)]);
    link.set_local_fields(true);
    let with_face = frames(&mut link, &LpHeaders { incoming_face_id: Some(FaceId(258)), ..headers }, &hex(CXX_DATA));
    let expected = "644CFD032C02010250440642070F08036E646E0803746C7608037365671404190203E81502686916031B010017201A19F58E42035FB1EAF0E877D7E35D82785F7F47C6C55ED97389897C24CB92C3";
    assert_eq!(with_face.unwrap(), [hex(expected)], "as ndn-cxx encodes it");
    assert_eq!((link.counters().out_interests, link.counters().out_data), (1, 1));
    assert_eq!(link.counters().out_bytes, (INTEREST.len() + expected.len()) as u64 / 2);
}

#[test]
fn collided_arrives_with_its_data_whole_or_in_pieces() {
    let (headers, data) = (LpHeaders { collided: true, ..LpHeaders::default() }, data_of(1000));
    for mtu in [300, 1452] {
        let mut receiver = link(true, mtu, false);
        let mut arrived = None;
        for frame in frames(&mut link(true, mtu, false), &headers, &data).unwrap() {
            arrived = match receiver.receive(0, &frame).unwrap() {
                Received::Packet { headers, start, len } => Some((headers, frame[start..start + len].to_vec())),
                Received::Reassembled { headers, packet } => Some((headers, packet.to_vec())),
                Received::Incomplete => None,
                Received::Idle => panic!("nothing idle was sent"),
            };
        }
        assert_eq!(arrived, Some((headers, data.clone())), "MTU {mtu}");
    }
}

#[test]
fn a_stream_refuses_what_exceeds_8800_bytes_with_its_header() {
    let mut link = link(false, usize::MAX, false);
    let headers = LpHeaders { pit_token: PitToken::new(b"abcdef"), ..LpHeaders::default() };
    assert_eq!(frames(&mut link, &LpHeaders::default(), &data_of(8800)).unwrap().len(), 1);
    let full = 8800 - (4 + 8 + 4); // outer header, token, Fragment header
    assert_eq!(frames(&mut link, &headers, &data_of(full)).unwrap()[0].len(), 8800);
    assert_eq!(frames(&mut link, &headers, &data_of(full + 1)), Err(LinkDrop::PacketTooLarge));
    assert_eq!(link.counters().dropped(LinkDrop::PacketTooLarge), 1);
}

#[test]
fn fragments_leave_the_room_that_nfd_leaves() {
    let mut link = link(true, 300, false);
    let packet = data_of(1000);
    let headers = LpHeaders { congestion_mark: 1, ..LpHeaders::default() };
    let sent = frames(&mut link, &headers, &packet).unwrap();
    let parsed: Vec<_> = sent.iter().map(|frame| lp::LpPacket::parse(frame).unwrap()).collect();
    let sizes: Vec<usize> = parsed.iter().map(|lp| lp.fragment.unwrap().len()).collect();
    assert_eq!(sizes, [245, 250, 250, 250, 5], "300 - 50, and 5 bytes of CongestionMark on the first");
    for (i, lp) in parsed.iter().enumerate() {
        assert_eq!((lp.frag_index, lp.frag_count, lp.sequence), (i as u64, 5, Some(i as u64)));
        assert_eq!(lp.headers.congestion_mark, u64::from(i == 0));
    }
    assert!(sent.iter().all(|frame| frame.len() <= 300));
    assert_eq!(link.counters().out_data, 1, "one network packet");
    assert_eq!(frames(&mut link, &headers, &data_of(270)).unwrap().len(), 1, "fits in one");
}

#[test]
fn an_mtu_too_small_for_any_payload_refuses() {
    let token = LpHeaders { pit_token: PitToken::new(&[7; 32]), ..LpHeaders::default() };
    for mtu in [0, 49, 50, 64] {
        assert_eq!(frames(&mut link(true, mtu, false), &token, &data_of(300)), Err(LinkDrop::PacketTooLarge));
    }
    // 14 bytes in each of 400 fragments.
    let none = LpHeaders::default();
    assert_eq!(frames(&mut link(true, 64, false), &none, &data_of(5600)).unwrap().len(), 400);
    assert_eq!(frames(&mut link(true, 64, false), &none, &data_of(5601)), Err(LinkDrop::PacketTooLarge));
}

/// Sends Data with an announcement over `mtu`; returns the number of frames, the announcement and the Data received.
fn announced(announcement: &[u8], data: &[u8], fragmentation: bool, mtu: usize) -> (usize, Option<Vec<u8>>, Vec<u8>) {
    let token = PitToken::new(b"abcdef");
    let headers = LpHeaders { pit_token: token, lead_bytes: announcement.len() as u16, ..LpHeaders::default() };
    let sent = frames(&mut link(fragmentation, mtu, false), &headers, &[announcement, data].concat()).unwrap();
    assert!(sent.iter().all(|frame| frame.len() <= mtu));
    let mut receiver = link(fragmentation, mtu, false);
    for (index, frame) in sent.iter().enumerate() {
        let (headers, carried) = match receiver.receive(0, frame).unwrap() {
            Received::Packet { headers, start, len } => (headers, frame[start..start + len].to_vec()),
            Received::Reassembled { headers, packet } => (headers, packet.to_vec()),
            Received::Incomplete => continue,
            Received::Idle => panic!("nothing in a frame"),
        };
        assert_eq!((index, headers.pit_token, receiver.counters().in_data), (sent.len() - 1, token, 1));
        return (sent.len(), headers.announcement(&carried).map(<[u8]>::to_vec), headers.packet(&carried).to_vec());
    }
    panic!("nothing arrived");
}

/// In front of a Data in one frame or many; omitted where it would cost the Data.
#[test]
fn an_announcement_travels_with_its_data() {
    let announcement = data_of(300);
    for (fragmentation, mtu, data_bytes, frames, arrives) in [
        (false, MAX_PACKET_BYTES, 300, 1, true),
        (false, MAX_PACKET_BYTES, 8000, 1, true),
        (false, MAX_PACKET_BYTES, 8500, 1, false),
        (false, 1400, 900, 1, true),
        (false, 1400, 1100, 1, false),
        (true, 1400, 300, 1, true),
        (true, 1400, 1300, 2, true),
        (true, 1400, 8000, 7, true),
        (true, 1400, 8700, 7, false),
        (true, 600, 1000, 2, false),
        (true, 700, 1000, 3, true),
    ] {
        let data = data_of(data_bytes);
        let arrived = announced(&announcement, &data, fragmentation, mtu);
        let expected = (frames, arrives.then(|| announcement.clone()), data);
        assert!(arrived == expected, "MTU {mtu}, {data_bytes} bytes: {} frames", arrived.0);
    }
    // A packet whose only header is its announcement, which does not fit, is sent bare.
    let headers = LpHeaders { lead_bytes: 300, ..LpHeaders::default() };
    let data = data_of(8600);
    let sent = frames(&mut link(false, MAX_PACKET_BYTES, false), &headers, &[&announcement[..], &data].concat());
    assert_eq!(sent, Ok(vec![data]));
}
