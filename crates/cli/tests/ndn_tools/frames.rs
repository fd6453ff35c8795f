//! Captured frames for `ndndump`: packets of all kinds, damaged ones too, on each link that it knows.

use namewire_packet::{DataBuilder, InterestBuilder, NackReason, NameBuf, Nonce, lp, lp::LinkFields, lp::LpHeaders};
use std::path::Path;

const ETHERNET: u32 = 1;
const PPP: u32 = 9;
const RAW: u32 = 101;
const LINUX_SLL: u32 = 113;
const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// Writes the files that the session names.
pub(crate) fn write(folder: &Path) {
    let packets = [packets(), damaged_packets()].concat();
    let ethernet: Vec<Vec<u8>> = packets.iter().map(|packet| frame(0x8624, packet)).chain(ip_frames()).collect();
    let with_header = |header: &[u8], packet: &[u8]| [header, packet].concat();
    let ip = ipv4(UDP, &udp(6363, 9, &packets[0]));
    let sll = |protocol: u16| [&[0; 14][..], &protocol.to_be_bytes()].concat();
    let cooked = [sll(0x8624), sll(0x0800)];
    let ppp = vec![
        with_header(&[0xFF, 3, 0, 0x77, 0, 0], &packets[0]),
        with_header(&[0x77, 0, 0], &packets[1]),
        with_header(&[0, 0x21], &ip),
        vec![0, 0x77, 0],
        vec![0],
    ];
    let save = |name: &str, file: Vec<u8>| std::fs::write(folder.join(name), file).unwrap();
    save("ethernet.pcap", pcap(0xA1B2_C3D4, ETHERNET, &ethernet));
    save("nanoseconds.pcap", pcap(0xA1B2_3C4D, ETHERNET, &ethernet[..3]));
    let cooked = vec![with_header(&cooked[0], &packets[0]), with_header(&cooked[1], &ip), vec![0; 15]];
    save("cooked.pcap", pcap(0xA1B2_C3D4, LINUX_SLL, &cooked));
    save("ppp.pcap", pcap(0xA1B2_C3D4, PPP, &ppp));
    save("raw.pcap", pcap(0xA1B2_C3D4, RAW, &[ip]));
    save("other.pcap", pcap(0xA1B2_C3D4, 147, &[]));
    save("empty.pcap", pcap(0xA1B2_C3D4, ETHERNET, &[]));
    save("nothing.pcap", Vec::new());
    save("text.pcap", b"this is no capture".to_vec());
    let file = pcap(0xA1B2_C3D4, ETHERNET, &ethernet);
    save("cut-header.pcap", file[..10].to_vec());
    save("cut-record.pcap", file[..30].to_vec());
    save("cut-frame.pcap", file[..50].to_vec());
    save("section.pcapng", pcapng(&ethernet[..2]));
}

/// A file with a frame each 1.5 s.
fn pcap(magic: u32, link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = [magic, 0x0004_0002, 0, 0, 65_535, link].map(u32::to_le_bytes).concat();
    for (at, frame) in frames.iter().enumerate() {
        let (time_ms, length) = (1_700_000_000_000 + 1500 * at as u64, frame.len() as u32);
        let units = if magic == 0xA1B2_3C4D { 1_000_000 } else { 1000 };
        let record = [(time_ms / 1000) as u32, (time_ms % 1000) as u32 * units, length, length];
        file.extend(record.map(u32::to_le_bytes).as_flattened());
        file.extend_from_slice(frame);
    }
    file
}

/// A section with one interface, whose times are in microseconds.
fn pcapng(frames: &[Vec<u8>]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = words(&[0x0A0D_0D0A, 28, 0x1A2B_3C4D, 1, u32::MAX, u32::MAX, 28, 1, 20, ETHERNET, 0, 20]);
    for frame in frames {
        let padded = frame.len().next_multiple_of(4);
        let (length, total) = (frame.len() as u32, padded as u32 + 32);
        file.extend(words(&[6, total, 0, 391_000, 123_456_789, length, length]));
        file.extend_from_slice(frame);
        file.resize(file.len() + padded - frame.len(), 0);
        file.extend(words(&[total]));
    }
    file
}

fn frame(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    [&[0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2][..], &ethertype.to_be_bytes(), packet].concat()
}

fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let [high, low] = length.to_be_bytes();
    let header = [0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&header[..], payload].concat()
}

fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let address = |last: u8| [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    [&[0x60, 0, 0, 0, high, low, protocol, 64][..], &address(1), &address(2), payload].concat()
}

fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let header = [from, to, (8 + payload.len()) as u16, 0];
    [header.map(u16::to_be_bytes).as_flattened(), payload].concat()
}

fn tcp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let ports = [from, to].map(u16::to_be_bytes);
    [ports.as_flattened(), &[0; 8], &[0x50, 0x10, 0, 0, 0, 0, 0, 0], payload].concat()
}

fn interest(uri: &str) -> InterestBuilder {
    let name: NameBuf = uri.parse().unwrap();
    InterestBuilder::new(name).nonce(Nonce([1, 2, 3, 4]))
}

fn in_link_packet(headers: &LpHeaders, link: &LinkFields<'_>, packet: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    lp::write_headers(&mut frame, headers, link, packet.len());
    [frame, packet.to_vec()].concat()
}

fn packets() -> Vec<Vec<u8>> {
    let data_name: NameBuf = "/data/v=7/seg=3".parse().unwrap();
    let plain = interest("/test").build();
    let data = DataBuilder::new(data_name).freshness_ms(1000).content(b"content").sign_digest();
    let nack = LpHeaders { nack: Some(NackReason::Duplicate), ..LpHeaders::default() };
    let no_route = LpHeaders { nack: Some(NackReason::NoRoute), ..LpHeaders::default() };
    let marked = LpHeaders { congestion_mark: 1, ..LpHeaders::default() };
    let none = LinkFields::default();
    vec![
        plain.clone(),
        data.clone(),
        interest("/ping/%00%01/a%20b/8=x/32=key").can_be_prefix(true).must_be_fresh(true).lifetime_ms(50).build(),
        interest("/hop").hop_limit(9).build(),
        in_link_packet(&nack, &none, &plain),
        in_link_packet(&no_route, &none, &plain),
        in_link_packet(&marked, &none, &data),
        // A fragment: the first bytes of a Data.
        [&[100, 6, 80, 4][..], &data[..4]].concat(),
        vec![100, 0],
    ]
}

fn damaged_packets() -> Vec<Vec<u8>> {
    let element = |bytes: &[u8]| bytes.to_vec();
    vec![
        element(&[5, 14, 7, 6]),
        element(&[7, 0]),
        // Name /a, then: an element of the first version of the format; a Nonce of one byte; one twice.
        element(&[5, 7, 7, 3, 8, 1, b'a', 9, 0]),
        element(&[5, 8, 7, 3, 8, 1, b'a', 10, 1, 0]),
        element(&[5, 9, 7, 3, 8, 1, b'a', 33, 0, 33, 0]),
        element(&[5, 9, 7, 3, 8, 1, b'a', 18, 0, 33, 0]),
        element(&[5, 2, 7, 0]),
        element(&[5, 2, 10, 0]),
        element(&[5, 3, 7, 9, 8]),
        element(&[6, 5, 7, 3, 8, 1, b'a']),
        element(&[6, 9, 7, 3, 8, 1, b'a', 22, 0, 23, 0]),
        element(&[6, 7, 7, 3, 8, 1, b'a', 9, 0]),
        element(&[6, 0]),
        element(&[100, 2, 4, 0]),
        element(&[100, 3, 80, 9, 5]),
        element(&[100, 4, 80, 2, 7, 0]),
        element(&[0, 0]),
        element(&[253]),
    ]
}

fn ip_frames() -> Vec<Vec<u8>> {
    let plain = interest("/over/ip").build();
    let v4 = |packet: Vec<u8>| frame(0x0800, &packet);
    let v6 = |packet: Vec<u8>| frame(0x86DD, &packet);
    let changed = |mut packet: Vec<u8>, at: usize, byte: u8| {
        packet[at] = byte;
        packet
    };
    let datagram = ipv4(UDP, &udp(6363, 9000, &plain));
    let segment = ipv4(TCP, &tcp(9000, 6363, &plain));
    vec![
        v4(datagram.clone()),
        v4(ipv4(UDP, &udp(9000, 56_363, &plain))),
        v4(ipv4(UDP, &udp(9000, 80, &plain))),
        v4(segment.clone()),
        v4(ipv4(TCP, &tcp(6363, 9000, &[]))),
        v4(ipv4(TCP, &tcp(6363, 9000, b"GET / HTTP"))),
        v6(ipv6(UDP, &udp(6363, 6363, &plain))),
        v6(ipv6(TCP, &tcp(9000, 6363, &plain))),
        v6(ipv6(59, &[])),
        v4(ipv4(SCTP, &[0x18, 0xDB, 0x18, 0xDB])),
        v4(changed(datagram.clone(), 0, 0x75)),
        v4(changed(datagram.clone(), 0, 0x42)),
        v4(changed(datagram.clone(), 3, 10)),
        v4(changed(datagram.clone(), 2, 4)),
        v4(changed(datagram.clone(), 6, 0x20)),
        v4(changed(datagram.clone(), 7, 1)),
        v4(changed(datagram.clone(), 25, 3)),
        v4(changed(datagram.clone(), 24, 3)),
        v4(changed(segment.clone(), 32, 0x20)),
        v4(changed(segment, 32, 0xF0)),
        v4(ipv4(TCP, &[0x18, 0xDB, 0, 9, 0])),
        v4(ipv4(UDP, &[0x18, 0xDB, 0, 9, 0])),
        v4(vec![42]),
        v6(changed(ipv6(UDP, &udp(6363, 9, &plain)), 0, 0xA0)),
        v6(changed(ipv6(UDP, &udp(6363, 9, &plain)), 4, 5)),
        v6(vec![0x60; 39]),
        frame(0x0806, &[0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]),
        frame(0x7777, &plain),
        vec![0; 13],
    ]
}
