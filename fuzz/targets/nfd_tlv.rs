//! Question: can any octets make a management decoder panic, and does what each
//! decoder understood survive being encoded and decoded again?
//!
//! Input: one management element or a dataset; every decoder gets it.
#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use namewire_packet::Data;
use namewire_packet::nfd::prefix_announcement::{PrefixAnnouncement, announce_with_digest};
use namewire_packet::nfd::{
    ChannelStatus, ControlParameters, ControlResponse, CsInfo, CsUsage, DatasetEntry, DropCounter,
    FaceEventNotification, FaceQueryFilter, FaceStatus, FaceUri, FibEntry, FibUsage, ForwarderStatus, RibEntry,
    StrategyChoice, decode_dataset, encode_dataset,
};

/// Decodes, encodes, decodes: both readings are the same.
macro_rules! round_trip {
    ($kind:ty, $octets:expr) => {
        if let Ok(value) = <$kind>::decode($octets) {
            let mut wire = Vec::new();
            value.encode(&mut wire);
            assert_eq!(<$kind>::decode(&wire).expect("what we write, we read"), value);
        }
    };
}

fuzz_target!(|octets: &[u8]| {
    round_trip!(ControlParameters, octets);
    round_trip!(ControlResponse, octets);
    round_trip!(FaceQueryFilter, octets);
    round_trip!(FaceEventNotification, octets);
    round_trip!(ForwarderStatus, octets);
    dataset::<FaceStatus>(octets);
    dataset::<ChannelStatus>(octets);
    dataset::<FibEntry>(octets);
    dataset::<RibEntry>(octets);
    dataset::<StrategyChoice>(octets);
    dataset::<CsInfo>(octets);
    dataset::<CsUsage>(octets);
    dataset::<FibUsage>(octets);
    dataset::<DropCounter>(octets);
    if let Ok(data) = Data::parse(octets)
        && let Ok(announcement) = PrefixAnnouncement::read(&data)
    {
        assert!(announcement.lifetime_ms(0) <= announcement.expiration_ms);
        let again = announce_with_digest(announcement.prefix, announcement.version, announcement.expiration_ms);
        let data = Data::parse(&again).expect("what we write, we read");
        let read = PrefixAnnouncement::read(&data).expect("and it is an announcement");
        assert_eq!((read.prefix, read.version), (announcement.prefix, announcement.version));
        assert_eq!(read.expiration_ms, announcement.expiration_ms);
    }
    if let Ok(text) = std::str::from_utf8(octets)
        && let Ok(uri) = text.parse::<FaceUri>()
    {
        assert_eq!(uri.to_string().parse::<FaceUri>().expect("a FaceUri reads itself"), uri);
    }
});

fn dataset<T: DatasetEntry + PartialEq + Debug>(octets: &[u8]) {
    if let Ok(entries) = decode_dataset::<T>(octets) {
        let wire = encode_dataset(&entries);
        assert_eq!(decode_dataset::<T>(&wire).expect("what we write, we read"), entries);
    }
}
