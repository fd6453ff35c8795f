//! The choice among certificates, and the shares.

use super::*;
use namewire_client::InterestBuilder;
use namewire_packet::Component;
use namewire_security::{PrivateKey, Signer, ValidityPeriod, issue_certificate};

const NOW_MS: u64 = 1_795_254_446_000;
const DAY_MS: u64 = 24 * 3600 * 1000;

fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

/// Certificates of this key, with an issuer whose key is another one.
struct Key {
    name: NameBuf,
    own: Signer,
    site: Signer,
    spki: Vec<u8>,
}

impl Key {
    fn new(uri: &str) -> Key {
        let (key, site) = (PrivateKey::generate_ed25519().unwrap(), PrivateKey::generate_ed25519().unwrap());
        let spki = key.public_key().spki().to_vec();
        let site = Signer::private_key(site, name("/site/KEY/s/self/v=1"));
        Key { name: name(uri), own: Signer::private_key(key, name(uri)), site, spki }
    }

    /// Valid between these days from now.
    fn issued(&self, issuer: &str, version: u64, days: [i64; 2]) -> Certificate {
        let [not_before_ms, not_after_ms] = days.map(|day| NOW_MS.saturating_add_signed(day * DAY_MS as i64));
        let validity = ValidityPeriod { not_before_ms, not_after_ms };
        let signer = if issuer == "self" { &self.own } else { &self.site };
        let issuer = Component::generic(issuer.as_bytes());
        issue_certificate(signer, self.name.as_name(), &self.spki, issuer, version, validity).unwrap()
    }
}

/// The certificate that an Interest gets.
fn found(store: &CertificateStore, interest: &InterestBuilder) -> Option<String> {
    let wire = interest.build();
    store.find(&Interest::parse(&wire).unwrap(), NOW_MS).map(|certificate| certificate.name().to_string())
}

fn exact(name: impl Into<NameBuf>) -> InterestBuilder {
    InterestBuilder::new(name)
}

fn under(uri: &str) -> InterestBuilder {
    InterestBuilder::new(name(uri)).can_be_prefix(true)
}

fn store(lasting: &[Certificate]) -> CertificateStore {
    let mut store = CertificateStore::new(Limits::default());
    assert_eq!(store.replace(Source::KeyChain, lasting.to_vec()), 0);
    store
}

#[test]
fn a_prefix_gets_the_newest_valid_certificate_of_the_issuer_that_it_names() {
    let key = Key::new("/alice/KEY/k");
    let [own, old, new, other] = [
        key.issued("self", 50, [-1, 9000]),
        key.issued("site", 10, [-9, 9]),
        key.issued("site", 11, [-8, 8]),
        key.issued("other", 5, [-20, 20]),
    ];
    let store = store(&[own.clone(), old, new.clone(), other.clone()]);
    for (prefix, expected) in [
        ("/alice/KEY/k", Some(&new)),
        ("/alice/KEY/k/site", Some(&new)),
        ("/alice/KEY/k/other", Some(&other)),
        ("/alice/KEY/k/self", Some(&own)),
        ("/alice/KEY/k/nobody", None),
        ("/alice/KEY/other", None),
        ("/alice/KEY", None),
        ("/alice", None),
        ("/KEY/KEY/KEY/KEY", None),
    ] {
        for fresh in [false, true] {
            let answer = found(&store, &under(prefix).must_be_fresh(fresh));
            assert_eq!(answer, expected.map(|certificate| certificate.name().to_string()), "{prefix}");
        }
        assert_eq!(found(&store, &exact(name(prefix))), None, "{prefix} without CanBePrefix");
    }
}

#[test]
fn an_expired_certificate_is_found_by_its_name_and_never_preferred() {
    let key = Key::new("/alice/KEY/k");
    let [expired, valid, future] =
        [key.issued("site", 90, [-20, -1]), key.issued("site", 7, [-30, 1]), key.issued("site", 91, [1, 30])];
    let mut store = store(&[expired.clone(), valid.clone(), future]);
    let text = |certificate: &Certificate| Some(certificate.name().to_string());
    assert_eq!(found(&store, &exact(expired.name())), text(&expired));
    assert_eq!(found(&store, &exact(expired.name()).must_be_fresh(true)), text(&expired), "it names one Data");
    assert_eq!(found(&store, &exact(expired.name()).can_be_prefix(true)), text(&expired));
    assert_eq!(found(&store, &under("/alice/KEY/k")), text(&valid));
    store.replace(Source::KeyChain, vec![expired.clone()]);
    assert_eq!(found(&store, &under("/alice/KEY/k").must_be_fresh(true)), None, "it holds no more");
    assert_eq!(found(&store, &under("/alice/KEY/k")), text(&expired), "for old Data");
}

#[test]
fn the_digest_in_a_name_counts() {
    let key = Key::new("/alice/KEY/k");
    let certificate = key.issued("site", 1, [-1, 1]);
    let store = store(std::slice::from_ref(&certificate));
    let digest = namewire_packet::digest::sha256(&[certificate.wire()]);
    let with = |digest: [u8; 32]| {
        let mut name = certificate.name().to_buf();
        name.push(Component { type_number: 1, value: &digest });
        exact(name)
    };
    assert_eq!(found(&store, &with(digest)), Some(certificate.name().to_string()));
    assert_eq!(found(&store, &with([0; 32])), None);
}

#[test]
fn chosen_certificates_come_before_fetched_ones() {
    let key = Key::new("/alice/KEY/k");
    let (chosen, fetched) = (key.issued("site", 1, [-9, 9]), key.issued("site", 99, [-1, 99]));
    let mut store = store(std::slice::from_ref(&chosen));
    store.add(7, fetched.clone()).unwrap();
    assert_eq!(found(&store, &under("/alice/KEY/k")), Some(chosen.name().to_string()));
    assert_eq!(store.keys(), [(name("/alice/KEY/k"), 2, Source::KeyChain)]);
    assert_eq!(found(&store, &exact(fetched.name())), Some(fetched.name().to_string()));
    store.replace(Source::KeyChain, vec![]);
    assert_eq!(found(&store, &under("/alice/KEY/k")), Some(fetched.name().to_string()));
    assert_eq!(store.keys(), [(name("/alice/KEY/k"), 1, Source::Fetched(7))]);
    store.remove_all(Source::Fetched(7));
    assert!(store.is_empty() && store.bytes() == 0);
}

#[test]
fn a_flood_of_fetched_certificates_pushes_out_only_those_of_its_own_source() {
    let limits = Limits { fetched_of_source: 4, fetched: 8, ..Limits::default() };
    let mut store = CertificateStore::new(limits);
    let key = Key::new("/alice/KEY/k");
    let certificate = |version| key.issued("site", version, [-1, 1]);
    store.replace(Source::KeyChain, vec![certificate(1)]);
    store.replace(Source::Files, vec![certificate(2)]);
    for version in 10..13 {
        store.add(1, certificate(version)).unwrap();
    }
    for version in 1000..1100 {
        store.add(2, certificate(version)).unwrap();
    }
    let has = |store: &CertificateStore, version| found(store, &exact(certificate(version).name())).is_some();
    for version in [1, 2, 10, 11, 12, 1096, 1097, 1098, 1099] {
        assert!(has(&store, version), "{version}");
    }
    assert!(!has(&store, 1095), "the oldest of the source goes first");
    // One more for source 3, and all room is taken: it may replace its own only.
    store.add(3, certificate(20)).unwrap();
    store.add(3, certificate(21)).unwrap();
    assert!(!has(&store, 20) && has(&store, 21) && has(&store, 10));
    assert_eq!(store.add(4, certificate(30)), Err(AddError::Full));
    // The same certificate again takes no more room.
    for _ in 0..10 {
        store.add(1, certificate(10)).unwrap();
    }
    assert!(has(&store, 11) && has(&store, 12));
    assert_eq!(store.len(), 2 + 8);
}

#[test]
fn bytes_and_numbers_have_limits() {
    let key = Key::new("/alice/KEY/k");
    let certificates: Vec<_> = (0..10).map(|version| key.issued("site", version, [-1, 1])).collect();
    let size = certificates[0].wire().len();
    let limits = Limits { lasting: 4, fetched_of_source_bytes: 2 * size, ..Limits::default() };
    let mut store = CertificateStore::new(limits);
    assert_eq!(store.replace(Source::Files, certificates.clone()), 6);
    assert_eq!((store.len(), store.bytes()), (4, 4 * size));
    for certificate in &certificates[4..] {
        store.add(1, certificate.clone()).unwrap();
    }
    assert_eq!(store.bytes(), 6 * size);
    assert_eq!(store.replace(Source::Files, vec![]), 0);
    assert_eq!(store.bytes(), 2 * size);
    let mut small = CertificateStore::new(Limits { lasting_bytes: 2 * size, fetched_bytes: size - 1, ..limits });
    assert_eq!(small.replace(Source::KeyChain, certificates.clone()), 8);
    assert_eq!(small.add(1, certificates[0].clone()), Err(AddError::TooLarge));

    let mut many = CertificateStore::new(Limits { prefixes: 2, ..Limits::default() });
    let of = |uri: &str| Key::new(uri).issued("self", 1, [-1, 1]);
    many.replace(Source::Files, vec![of("/a/KEY/a"), of("/b/KEY/b")]);
    many.replace(Source::KeyChain, vec![of("/z/KEY/z")]);
    let keys: Vec<_> = many.keys().into_iter().map(|(key, ..)| key).collect();
    assert_eq!(keys, [name("/z/KEY/z"), name("/a/KEY/a")], "those of the key chain first");
    assert_eq!(many.keys_refused(), 1);
}
