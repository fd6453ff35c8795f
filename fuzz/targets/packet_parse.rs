//! Question: can any bytes make the Interest or Data view, one of its accessors or a builder panic or contradict
//! itself?
//!
//! Input: one packet. Checks: every accessor; a packet rebuilt from the view reads the same; the patching functions
//! keep everything else; the straight way for packets in the usual form reads what the general way reads.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_packet::{
    Data, DataBuilder, Interest, InterestBuilder, Name, NameBuf, Nonce, SignatureInfo,
    interest::{write_with_nonce, write_without_forwarding_hint},
    tlv,
};

fuzz_target!(|wire: &[u8]| {
    check_framing(wire);
    assert_eq!(Interest::parse(wire), Interest::parse_any_form(wire));
    assert_eq!(Data::parse(wire), Data::parse_any_form(wire));
    if let Ok(interest) = Interest::parse(wire) {
        check_interest(&interest);
        rebuild_interest(&interest);
        patch_interest(&interest);
    }
    if let Ok(data) = Data::parse(wire) {
        check_data(&data);
        rebuild_data(&data);
    }
});

/// A stream reader with `element_size` finds the same elements as `read_element`.
fn check_framing(wire: &[u8]) {
    if let Ok(element) = tlv::read_element(wire) {
        assert_eq!(tlv::element_size(wire), Ok(Some(element.wire.len())));
        assert!(element.wire.ends_with(element.value));
        let header = &wire[..element.wire.len() - element.value.len()];
        for cut in 0..header.len() {
            assert_eq!(tlv::element_size(&wire[..cut]), Ok(None), "a truncated header needs more bytes");
        }
    } else if let Ok(Some(size)) = tlv::element_size(wire) {
        assert!(size > wire.len(), "a whole element was refused although its size was accepted");
    }
}

fn check_name(name: Name<'_>) {
    assert_eq!(name.components().count(), name.len());
    assert_eq!(name.get(name.len()), None);
    assert_eq!(name.last(), name.components().last());
    assert!(name.parent().is_prefix_of(&name));
    assert_eq!(name.prefix(name.len()), name);
    let half = name.prefix(name.len() / 2);
    assert!(half.is_prefix_of(&name) && half <= name);
    let mut copy = NameBuf::new();
    name.components().for_each(|component| {
        copy.push(component);
    });
    assert_eq!(copy.as_name(), name);
}

fn check_signature_info(info: &SignatureInfo<'_>) {
    let _ = (info.signature_type(), info.key_locator(), info.nonce(), info.time_ms(), info.seq_num());
}

fn check_interest(interest: &Interest<'_>) {
    check_name(interest.name());
    assert!(!interest.name().is_empty());
    let delegations = interest.forwarding_hint().inspect(|name| check_name(*name)).count();
    assert!(delegations == 0 || interest.has_forwarding_hint());
    let _ = (interest.parameters_digest_is_valid(), interest.implicit_digest(), interest.lifetime_ms());
    if let Some(at) = interest.nonce_offset() {
        assert_eq!(Some(Nonce(interest.wire()[at..at + 4].try_into().unwrap())), interest.nonce());
    }
    if let Some(at) = interest.hop_limit_offset() {
        assert_eq!(Some(interest.wire()[at]), interest.hop_limit());
    }
    if let Some(info) = interest.signature_info() {
        check_signature_info(&info);
    }
    if let Some((name, parameters)) = interest.signed_portion() {
        assert!(interest.name().value().starts_with(name) && !parameters.is_empty());
    }
}

/// Writes again the fields that make sense without parameters; they read the same.
fn rebuild_interest(interest: &Interest<'_>) {
    let hint: Vec<NameBuf> = interest.forwarding_hint().map(|name| name.to_buf()).collect();
    let mut builder = InterestBuilder::new(interest.name())
        .can_be_prefix(interest.can_be_prefix())
        .must_be_fresh(interest.must_be_fresh())
        .forwarding_hint(&hint)
        .lifetime_ms(interest.lifetime_ms());
    if let Some(nonce) = interest.nonce() {
        builder = builder.nonce(nonce);
    }
    if let Some(hop_limit) = interest.hop_limit() {
        builder = builder.hop_limit(hop_limit);
    }
    let wire = builder.build();
    let rebuilt = Interest::parse(&wire).expect("what the builder writes, the view reads");
    assert_eq!(rebuilt.name(), interest.name());
    assert_eq!(rebuilt.can_be_prefix(), interest.can_be_prefix());
    assert_eq!(rebuilt.must_be_fresh(), interest.must_be_fresh());
    assert_eq!(rebuilt.lifetime_ms(), interest.lifetime_ms());
    assert_eq!(rebuilt.nonce(), interest.nonce());
    assert_eq!(rebuilt.hop_limit(), interest.hop_limit());
    assert!(rebuilt.forwarding_hint().eq(interest.forwarding_hint()));
}

fn patch_interest(interest: &Interest<'_>) {
    let nonce = Nonce([9, 8, 7, 6]);
    let mut wire = Vec::new();
    write_with_nonce(interest, nonce, &mut wire);
    let patched = Interest::parse(&wire).expect("a nonce keeps the packet valid");
    assert_eq!(patched.nonce(), Some(nonce));
    assert_eq!(patched.name(), interest.name());
    assert_eq!(patched.lifetime_ms(), interest.lifetime_ms());
    assert_eq!(patched.hop_limit(), interest.hop_limit());
    assert_eq!(patched.parameters_digest_is_valid(), interest.parameters_digest_is_valid());

    wire.clear();
    write_without_forwarding_hint(interest, &mut wire);
    let stripped = Interest::parse(&wire).expect("the hint is optional");
    assert!(!stripped.has_forwarding_hint());
    assert_eq!(stripped.name(), interest.name());
    assert_eq!(stripped.nonce(), interest.nonce());
}

fn check_data(data: &Data<'_>) {
    check_name(data.name());
    let has_digest = data.name().components().any(|c| c.type_number == tlv::types::IMPLICIT_SHA256_DIGEST);
    assert!(!has_digest, "a digest that the packet claims for itself");
    check_signature_info(&data.signature_info());
    let _ = data.verify_digest_sha256();
    assert!(data.wire().len() > data.signed_portion().len());
    assert!(data.content().len() <= data.signed_portion().len());

    if data.name().is_empty() {
        return; // no Interest has such a name
    }
    let exact = InterestBuilder::new(data.name()).build();
    let exact = Interest::parse(&exact).expect("a name that Data has");
    assert!(exact.matches(data), "the exact name matches");
    let digest = data.implicit_digest();
    let mut full_name = data.name().to_buf();
    full_name.push(namewire_packet::Component { type_number: tlv::types::IMPLICIT_SHA256_DIGEST, value: &digest });
    let by_digest = InterestBuilder::new(&full_name).build();
    assert!(Interest::parse(&by_digest).expect("a full name").matches(data));
}

fn rebuild_data(data: &Data<'_>) {
    let mut builder = DataBuilder::new(data.name())
        .content_type(data.content_type())
        .freshness_ms(data.freshness_ms())
        .content(data.content());
    if let Some(component) = data.final_block_id() {
        builder = builder.final_block_id(component);
    }
    let wire = builder.sign_digest();
    let rebuilt = Data::parse(&wire).expect("what the builder writes, the view reads");
    assert!(rebuilt.verify_digest_sha256());
    assert_eq!(rebuilt.name(), data.name());
    assert_eq!(rebuilt.content(), data.content());
    assert_eq!(rebuilt.content_type(), data.content_type());
    assert_eq!(rebuilt.freshness_ms(), data.freshness_ms());
    assert_eq!(rebuilt.final_block_id(), data.final_block_id());
}
