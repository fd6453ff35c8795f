//! Every vector of `test-vectors.json`: packets on which five other decoders agree.
//!
//! `expect` is binding. For "implementation-defined" packets the `recommend` text is binding, and the table in
//! [`recommended`] states our reading of this text, packet by packet.

use namewire_packet::{
    Data, DataBuilder, Interest, InterestBuilder, NackReason, Name, NameBuf, NameError, PacketError, lp::LpPacket, tlv,
};
use serde_json::Value;

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/test-vectors.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("no list {key}"))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no text {key} in {value}"))
}

/// A forwarder that gets `wire` as one datagram: accepts or refuses.
fn decode(kind: &str, wire: &[u8]) -> Result<(), PacketError> {
    match kind {
        "interest" => Interest::parse(wire).map(drop),
        "data" => Data::parse(wire).map(drop),
        "lp" => LpPacket::parse(wire).map(drop),
        other => panic!("unknown kind {other}"),
    }
}

#[test]
fn var_numbers() {
    let all = vectors();
    for v in list(&all["var_number"], "valid") {
        let number = v["value"].as_u64().unwrap();
        let wire = unhex(text(v, "var_number"));
        assert_eq!(tlv::read_var_number(&wire), Ok((number, wire.len())));
        let mut out = Vec::new();
        tlv::write_var_number(&mut out, number);
        assert_eq!(out, wire);
        let mut element = wire.clone();
        element.push(0);
        assert_eq!(tlv::read_element(&element).is_ok(), v["as_type"].as_bool().unwrap(), "{number} as type");
    }
    for v in list(&all["var_number"], "invalid") {
        assert!(tlv::read_var_number(&unhex(text(v, "hex"))).is_err(), "{v}");
    }
    for v in list(&all, "non_negative_integer") {
        let wire = unhex(text(v, "shortest"));
        assert_eq!(tlv::read_nni(&wire), Ok(v["value"].as_u64().unwrap()));
        assert_eq!(tlv::nni_size(v["value"].as_u64().unwrap()), wire.len());
    }
}

#[test]
fn names() {
    for v in list(&vectors(), "names") {
        let uri = text(v, "uri");
        let parsed = uri.parse::<NameBuf>();
        match text(v, "expect") {
            "accept" => {
                let name = parsed.unwrap_or_else(|e| panic!("{uri}: {e}"));
                let mut wire = Vec::new();
                name.as_name().write_tlv(&mut wire);
                assert_eq!(hex(&wire), text(v, "name_tlv"), "{uri}");
                assert_eq!(name.as_name().canonical_uri(), text(v, "canonical"), "{uri}");
                assert_eq!(name.to_string(), text(v, "alternate"), "{uri}");
                assert_eq!(Name::parse_tlv(&wire), Ok(name.as_name()));
            }
            // All of ours: "reject …" (the recommendation for malformed escapes).
            _ => assert!(parsed.is_err(), "{uri} was accepted: {v}"),
        }
    }
}

#[test]
fn canonical_order() {
    let all = vectors();
    let names: Vec<NameBuf> =
        list(&all["canonical_order"], "ascending").iter().map(|v| v.as_str().unwrap().parse().unwrap()).collect();
    for (i, a) in names.iter().enumerate() {
        for (j, b) in names.iter().enumerate() {
            assert_eq!(a.cmp(b), i.cmp(&j), "{a} against {b}");
            let by_component: Vec<_> = a.as_name().components().collect();
            assert_eq!(by_component.cmp(&b.as_name().components().collect()), i.cmp(&j));
        }
    }
}

/// Our reading of the `recommend` texts of implementation-defined packets.
fn recommended(id: &str) -> bool {
    match id {
        "I-fh-empty" | "I-fh-old" | "I-digest-noapp" | "I-sig-novalue" | "D-empty-name" => true,
        // Parse at the link layer; reassembly and the network layer drop them (tested there).
        "L-frag-idx" | "L-in-lp" | "L-nack-data" => true,
        "I-hoplimit-after-app" | "I-2digests" | "I-trailing" | "D-fbi-two" => false,
        "L-cache-unk" | "L-cache-empty" | "L-nondisc-value" | "L-frag-empty" => false,
        other => panic!("{other}: decide what we do with it"),
    }
}

#[test]
fn packets_are_accepted_and_refused() {
    let all = vectors();
    for v in list(&all, "packets") {
        let (id, wire) = (text(v, "id"), unhex(text(v, "hex")));
        let result = decode(text(v, "kind"), &wire);
        let expected = match text(v, "expect") {
            "accept" => true,
            // A forwarder need not check the digest; an application asks for it.
            "reject" if id == "I-app-baddigest" => {
                assert!(!Interest::parse(&wire).unwrap().parameters_digest_is_valid());
                true
            }
            "reject" => false,
            _ => recommended(id),
        };
        assert_eq!(result.is_ok(), expected, "{id}: {result:?}");
    }
}

#[test]
fn packet_fields() {
    let mut checked = 0;
    for v in list(&vectors(), "packets") {
        let Some(fields) = v["fields"].as_object() else { continue };
        let (id, wire) = (text(v, "id"), unhex(text(v, "hex")));
        for (key, want) in fields {
            checked += 1;
            let ok = match text(v, "kind") {
                "interest" => interest_field(&Interest::parse(&wire).unwrap(), key, want),
                "data" => data_field(&Data::parse(&wire).unwrap(), key, want),
                _ => lp_field(&LpPacket::parse(&wire).unwrap(), key, want),
            };
            assert!(ok, "{id}: {key} is not {want}");
        }
    }
    assert!(checked > 60, "only {checked} fields checked");
}

fn interest_field(interest: &Interest<'_>, key: &str, want: &Value) -> bool {
    let number = want.as_u64();
    let signature = interest.signature_info();
    match key {
        "name" => interest.name().canonical_uri() == *want,
        "nonce" => hex(&interest.nonce().unwrap().0) == *want,
        "lifetime_ms" => Some(interest.lifetime_ms()) == number,
        "can_be_prefix" => interest.can_be_prefix() == *want,
        "must_be_fresh" => interest.must_be_fresh() == *want,
        "hop_limit" => interest.hop_limit().map(u64::from) == number,
        "forwarding_hint" => {
            let uris: Vec<_> = interest.forwarding_hint().map(|n| n.canonical_uri()).collect();
            *want == serde_json::json!(uris)
        }
        "application_parameters" => hex(interest.application_parameters().unwrap()) == *want,
        "params_digest" => interest.parameters_digest_is_valid(),
        "signature_type" => signature.map(|s| s.signature_type()) == number,
        "sig_time_ms" => signature.and_then(|s| s.time_ms()) == number,
        "sig_nonce" => signature.and_then(|s| s.nonce()).map(hex).as_deref() == want.as_str(),
        "sig_seq_num" => signature.and_then(|s| s.seq_num()) == number,
        "key_locator" => match signature.and_then(|s| s.key_locator()) {
            Some(namewire_packet::KeyLocator::Name(name)) => name.canonical_uri() == *want,
            _ => false,
        },
        "signature" => match signature.unwrap().signature_type() {
            0 => {
                let (name, parameters) = interest.signed_portion().unwrap();
                interest.signature_value().unwrap() == namewire_packet::digest::sha256(&[name, parameters])
            }
            _ => interest.signed_portion().is_some() && !interest.signature_value().unwrap().is_empty(),
        },
        other => panic!("unknown field {other}"),
    }
}

fn data_field(data: &Data<'_>, key: &str, want: &Value) -> bool {
    match key {
        // Vectors write names with or without explicit types.
        "name" => data.name() == want.as_str().unwrap().parse::<NameBuf>().unwrap().as_name(),
        "content" => hex(data.content()) == *want,
        "content_type" => Some(data.content_type()) == want.as_u64(),
        "freshness_ms" => Some(data.freshness_ms()) == want.as_u64(),
        "signature_type" => Some(data.signature_info().signature_type()) == want.as_u64(),
        "final_block_id" => {
            let mut name = NameBuf::new();
            name.push(data.final_block_id().unwrap());
            name.as_name().canonical_uri() == *want
        }
        "validity" => want
            .as_array()
            .unwrap()
            .iter()
            .all(|at| data.wire().windows(15).any(|window| window == at.as_str().unwrap().as_bytes())),
        other => panic!("unknown field {other}"),
    }
}

fn lp_field(lp: &LpPacket<'_>, key: &str, want: &Value) -> bool {
    match key {
        "fragment" => lp.fragment.map(hex).as_deref() == want.as_str(),
        "nack" => lp.headers.nack == want.as_u64().map(NackReason::from_code),
        "nack_raw" => lp.headers.nack == Some(NackReason::None), // unknown numbers mean None
        other => panic!("unknown field {other}"),
    }
}

#[test]
fn signed_portions() {
    for v in list(&vectors(), "packets") {
        let Some(portion) = v["signed_portion"].as_str() else { continue };
        let wire = unhex(text(v, "hex"));
        let ours = match text(v, "kind") {
            "data" => hex(Data::parse(&wire).unwrap().signed_portion()),
            _ => {
                let (name, parameters) = Interest::parse(&wire).unwrap().signed_portion().unwrap();
                hex(name) + &hex(parameters)
            }
        };
        assert_eq!(ours, portion, "{}", text(v, "id"));
    }
}

#[test]
fn digest_signatures_verify() {
    let all = vectors();
    for id in ["D-py-digest", "D-py-default", "D-full", "D-min", "D-ndnts-data-segment", "D-cxx-frag-whole"] {
        let v = list(&all, "packets").iter().find(|v| text(v, "id") == id).unwrap();
        assert!(Data::parse(&unhex(text(v, "hex"))).unwrap().verify_digest_sha256(), "{id}");
    }
}

#[test]
fn matching() {
    for v in list(&vectors(), "matching") {
        let (interest, data) = (unhex(text(v, "interest")), unhex(text(v, "data")));
        if text(v, "id") == "MT-digest-in-data" {
            // ndn-cxx accepts a digest in the name of Data; here such Data is malformed.
            assert!(Data::parse(&data).is_err());
            continue;
        }
        let answer = Interest::parse(&interest).unwrap().matches(&Data::parse(&data).unwrap());
        assert_eq!(answer, v["match"].as_bool().unwrap(), "{}", text(v, "id"));
    }
}

#[test]
fn lp_headers_survive_rewriting() {
    for v in list(&vectors(), "packets") {
        if text(v, "kind") != "lp" || text(v, "expect") != "accept" {
            continue;
        }
        let wire = unhex(text(v, "hex"));
        let lp = LpPacket::parse(&wire).unwrap();
        let acks: Vec<u64> = lp.acks().collect();
        let link = namewire_packet::lp::LinkFields {
            sequence: lp.sequence,
            fragment: lp.has_fragmentation_fields.then_some((lp.frag_index, lp.frag_count)),
            tx_sequence: lp.tx_sequence,
            acks: &acks,
            lead: lp.prefix_announcement.or(lp.path_label),
        };
        let fragment = lp.fragment.unwrap_or_default();
        let mut out = Vec::new();
        namewire_packet::lp::write_headers(&mut out, &lp.headers, &link, fragment.len());
        out.extend_from_slice(fragment);
        let again = LpPacket::parse(&out).unwrap();
        assert_eq!((again.headers, again.fragment, again.sequence), (lp.headers, lp.fragment, lp.sequence));
        assert_eq!(again.acks().collect::<Vec<_>>(), acks);
        if text(v, "id").starts_with("L-cxx") && text(v, "id") != "L-cxx-nack-None" {
            assert_eq!(hex(&out), text(v, "hex"), "ndn-cxx writes the same bytes: {}", text(v, "id"));
        }
    }
}

/// The defect: Data with an implicit digest in its name was accepted. It then answered the Interest for the digest of
/// other Data. The digest is computed from the packet; no packet may claim one (§5).
#[test]
fn no_data_name_has_an_implicit_digest() {
    let digests = "/sha256digest=".to_owned() + &"07".repeat(32);
    for (before, after) in [("", ""), ("/a", ""), ("/a/b", "/c"), ("", "/c"), ("/a/v=1", "/seg=0")] {
        let name: NameBuf = format!("{before}{digests}{after}").parse().unwrap();
        let wire = DataBuilder::new(&name).content(b"x").sign_digest();
        assert_eq!(Data::parse(&wire), Err(PacketError::Name(NameError::DigestInDataName)), "{name}");
        let interest = InterestBuilder::new(&name).build();
        assert_eq!(Interest::parse(&interest).unwrap().name(), name.as_name());
        // The digest of an Interest's parameters stays in the name of the Data that answers it (§4.1).
        let name: NameBuf = name.to_string().replace("sha256digest", "params-sha256").parse().unwrap();
        let wire = DataBuilder::new(&name).content(b"x").sign_digest();
        assert_eq!(Data::parse(&wire).unwrap().name(), name.as_name());
    }
}
