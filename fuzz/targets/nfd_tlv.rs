//! Question: can any bytes make a management decoder panic, and does every decoded element survive being encoded and
//! decoded again?
//!
//! Input: one management element or a dataset; every decoder gets it.
#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use namewire_packet::nfd::prefix_announcement::{PrefixAnnouncement, announce_with_digest};
use namewire_packet::nfd::{
    CaptureRecord, CaptureStream, ChannelStatus, ControlParameters, ControlResponse, CsInfo, CsUsage, DatasetEntry,
    DropCounter, FaceEventNotification, FaceQueryFilter, FaceStatus, FaceUri, FibEntry, FibUsage, ForwarderStatus,
    PoolHolding, ProbeReply, RibEntry, StrategyChoice, decode_dataset, encode_dataset,
};
use namewire_packet::path_label::PathLabel;
use namewire_packet::probe::Probe;
use namewire_packet::{Data, Name};

/// What a forwarder says of itself to whoever traces a route, and the path that its answer takes.
fn probe(bytes: &[u8]) {
    if let Ok(reply) = ProbeReply::parse_content(bytes) {
        assert_eq!(ProbeReply::parse_content(&reply.to_content()).expect("what we write, we read"), reply);
    }
    if let Ok(mut path) = PathLabel::parse_tlv(bytes) {
        let labels: Vec<u16> = path.labels().collect();
        assert_eq!(PathLabel::of(path.mode(), &labels).labels().collect::<Vec<_>>(), labels);
        assert_eq!(path.pop(), labels.last().copied());
    }
    if let Ok(name) = Name::parse_value(bytes)
        && let Some(probe) = Probe::of_name(name)
    {
        assert!(probe.target.is_prefix_of(&name) && probe.kind.may_end(bytes));
    }
}

/// Decodes, encodes, decodes: both results are equal.
macro_rules! round_trip {
    ($kind:ty, $bytes:expr) => {
        if let Ok(value) = <$kind>::decode($bytes) {
            let mut wire = Vec::new();
            value.encode(&mut wire);
            assert_eq!(<$kind>::decode(&wire).expect("what we write, we read"), value);
        }
    };
}

fuzz_target!(|bytes: &[u8]| {
    round_trip!(ControlParameters, bytes);
    round_trip!(ControlResponse, bytes);
    round_trip!(FaceQueryFilter, bytes);
    round_trip!(FaceEventNotification, bytes);
    round_trip!(ForwarderStatus, bytes);
    dataset::<FaceStatus>(bytes);
    dataset::<ChannelStatus>(bytes);
    dataset::<FibEntry>(bytes);
    dataset::<RibEntry>(bytes);
    dataset::<StrategyChoice>(bytes);
    dataset::<CsInfo>(bytes);
    dataset::<CsUsage>(bytes);
    dataset::<FibUsage>(bytes);
    dataset::<DropCounter>(bytes);
    dataset::<PoolHolding>(bytes);
    capture(bytes);
    probe(bytes);
    if let Ok(data) = Data::parse(bytes)
        && let Ok(announcement) = PrefixAnnouncement::read(&data)
    {
        assert!(announcement.lifetime_ms(0) <= announcement.expiration_ms);
        let again = announce_with_digest(announcement.prefix, announcement.version, announcement.expiration_ms);
        let data = Data::parse(&again).expect("what we write, we read");
        let read = PrefixAnnouncement::read(&data).expect("and it is an announcement");
        assert_eq!((read.prefix, read.version), (announcement.prefix, announcement.version));
        assert_eq!(read.expiration_ms, announcement.expiration_ms);
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(uri) = text.parse::<FaceUri>()
    {
        assert_eq!(uri.to_string().parse::<FaceUri>().expect("a FaceUri reads itself"), uri);
    }
});

fn dataset<T: DatasetEntry + PartialEq + Debug>(bytes: &[u8]) {
    if let Ok(entries) = decode_dataset::<T>(bytes) {
        let wire = encode_dataset(&entries);
        assert_eq!(decode_dataset::<T>(&wire).expect("what we write, we read"), entries);
    }
}

/// A stream of records: the same ones come out wherever it is cut.
fn capture(bytes: &[u8]) {
    let records = |piece_bytes: usize| {
        let (mut stream, mut records) = (CaptureStream::default(), Vec::<CaptureRecord>::new());
        for piece in bytes.chunks(piece_bytes) {
            stream.push(piece);
            loop {
                match stream.next_record() {
                    Ok(Some(record)) => records.push(record),
                    Ok(None) => break,
                    Err(_) => return records,
                }
            }
        }
        records
    };
    assert_eq!(records(3), records(bytes.len().max(1)));
}
