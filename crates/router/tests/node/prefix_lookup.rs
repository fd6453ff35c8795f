//! The store answers under every prefix of a stored Data's name, over real sockets, with one worker and with four.

use crate::application::{Application, eventually, name, start_with};
use namewire_packet::{Component, Data, DataBuilder, FaceId, NackReason, NameBuf, tlv::types::IMPLICIT_SHA256_DIGEST};
use namewire_tables::PrefixLookup;

fn content(uri: &str, content: u8) -> Vec<u8> {
    DataBuilder::new(name(uri)).content(&[content; 100]).freshness_ms(3_600_000).sign_digest()
}

fn full_name(wire: &[u8]) -> NameBuf {
    let data = Data::parse(wire).unwrap();
    data.name().to_buf().join(Component { type_number: IMPLICIT_SHA256_DIGEST, value: &data.implicit_digest() })
}

/// Enough objects for each of four workers to own some.
const OBJECTS: u64 = 12;

/// One application stores Data, two versions under each name, and goes. Another asks by shorter prefixes, and by the
/// digest of the older version.
#[test]
fn what_an_application_left_is_found_under_every_prefix() {
    for (workers, lookup) in
        [(1, PrefixLookup::Own), (1, PrefixLookup::All), (4, PrefixLookup::Own), (4, PrefixLookup::All)]
    {
        let (router, _directory) = start_with(workers, |config| config.settings.cs.prefix_lookup.0 = lookup);
        let mut consumer = Application::connect(&router);
        consumer.turn_on_local_fields();
        let mut producer = Application::connect(&router);
        producer.register("/left");
        for (number, version) in (0..OBJECTS).flat_map(|number| [(number, 1), (number, 2)]) {
            let wire = content(&format!("/left/{number}/seg=0"), version);
            let interest = consumer.interest(full_name(&wire)).lifetime_ms(60_000).build();
            consumer.send(&interest);
            producer.receive().expect("the Interest");
            producer.send(&wire);
            assert_eq!(consumer.receive().expect("its Data").bytes, wire);
        }
        drop(producer);
        let mut operator = Application::connect(&router);
        eventually("the producer is gone", || {
            let routes: Vec<namewire_packet::nfd::RibEntry> = operator.dataset("/rib/list");
            routes.iter().all(|route| route.name != name("/left"))
        });
        let mut stored = |name: NameBuf, can_be_prefix: bool| {
            let interest = consumer.interest(name).can_be_prefix(can_be_prefix).lifetime_ms(60_000).build();
            consumer.send(&interest);
            let answer = consumer.receive().expect("an answer");
            match answer.headers.nack {
                None => {
                    assert_eq!(answer.headers.incoming_face_id, Some(FaceId::CONTENT_STORE));
                    Some(answer.bytes)
                }
                Some(reason) => {
                    assert_eq!(reason, NackReason::NoRoute);
                    None
                }
            }
        };
        let is_all = lookup == PrefixLookup::All;
        for number in 0..OBJECTS {
            let versions = [1, 2].map(|version| content(&format!("/left/{number}/seg=0"), version));
            let first = versions.iter().min_by_key(|wire| full_name(wire)).filter(|_| is_all).cloned();
            assert_eq!(stored(name(&format!("/left/{number}")), true), first, "{workers} workers, {lookup:?}");
            assert_eq!(stored(full_name(&versions[0]), false), is_all.then(|| versions[0].clone()));
            assert_eq!(stored(full_name(&versions[1]), false), Some(versions[1].clone()));
        }
        assert_eq!(stored(name("/left"), true).is_some(), is_all);
        assert_eq!(stored(name("/other"), true), None);
    }
}
