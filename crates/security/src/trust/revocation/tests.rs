use super::*;
use crate::{
    PrivateKey, ValidityPeriod, issue_certificate,
    trust::{
        Certificates, DataValidator, Denial, NotAccepted,
        rules::{AnchorCertificate, RulesOrAny, TrustAnchor, ValidatorConfig},
    },
};
use proptest::prelude::*;

const YEAR_MS: u64 = 365 * 24 * 3600 * 1000;
const NOW_MS: u64 = 50 * YEAR_MS;

struct Key {
    name: NameBuf,
    signer: Signer,
    spki: Vec<u8>,
}

impl Key {
    fn new(uri: &str) -> Self {
        let (name, key) = (uri.parse::<NameBuf>().unwrap(), PrivateKey::generate_ed25519().unwrap());
        let spki = key.public_key().spki().to_vec();
        Key { signer: Signer::private_key(key, name.clone()), name, spki }
    }

    /// Valid from and to these times, in years from now.
    fn certified_by(&self, issuer: &Key, version: u64, from: i64, to: i64) -> Certificate {
        let at = |years: i64| NOW_MS.saturating_add_signed(years * YEAR_MS as i64);
        let validity = ValidityPeriod { not_before_ms: at(from), not_after_ms: at(to) };
        let id = if issuer.name == self.name { b"self".as_slice() } else { b"site" };
        let id = Component::generic(id);
        issue_certificate(&issuer.signer, self.name.as_name(), &self.spki, id, version, validity).unwrap()
    }

    /// Data under `/site/bob`, signed at this time.
    fn data(&self, signed_ms: Option<u64>) -> Vec<u8> {
        let mut time = Vec::new();
        if let Some(signed_ms) = signed_ms {
            tlv::write_nni(&mut time, tlv::types::SIGNATURE_TIME, signed_ms);
        }
        let name: NameBuf = "/site/bob/letter".parse().unwrap();
        self.signer.sign_data(&DataBuilder::new(name).signature_info_extension(&time)).unwrap()
    }
}

/// The site certifies Bob's key; the site's own certificate is the anchor.
struct Site {
    site: Key,
    bob: Key,
    anchor: Certificate,
    of_bob: Certificate,
}

impl Site {
    fn new() -> Self {
        Self::with_periods([-9, 9], [-9, 9])
    }

    fn with_periods(of_site: [i64; 2], of_bob: [i64; 2]) -> Self {
        let (site, bob) = (Key::new("/site/KEY/1"), Key::new("/site/bob/KEY/1"));
        let anchor = site.certified_by(&site, 1, of_site[0], of_site[1]);
        let of_bob = bob.certified_by(&site, 1, of_bob[0], of_bob[1]);
        Site { site, bob, anchor, of_bob }
    }

    fn validator(&self) -> DataValidator {
        let anchor = AnchorCertificate::parse(self.anchor.wire().to_vec()).unwrap();
        let mut validator = DataValidator::new(RulesOrAny::Rules(ValidatorConfig::hierarchical([anchor])));
        validator.add_certificate(self.of_bob.wire()).unwrap();
        validator
    }

    /// The verdict about a letter of Bob's with this record in a file.
    fn with_file(&self, record: &RevocationRecord) -> Result<Option<NameBuf>, NotAccepted> {
        let mut validator = self.validator();
        validator.revocations_mut().set_file("records".into(), vec![record.clone()]);
        validator.judge(&Data::parse(&self.bob.data(None)).unwrap(), NOW_MS)
    }

    fn due(validator: &mut DataValidator, bob: &Key, mono_ns: u64) -> Vec<Lookup> {
        validator.due_lookups(&Data::parse(&bob.data(None)).unwrap(), NOW_MS, mono_ns)
    }
}

fn is_revoked<T: std::fmt::Debug>(verdict: &Result<T, NotAccepted>) -> bool {
    matches!(verdict, Err(NotAccepted::Denied(Denial::CertificateRevoked { .. })))
}

/// A record as its signer wants it, whether it may or not.
fn record_by(signer: &Signer, certificate: &Certificate, publisher: &[u8], content: &[u8]) -> Vec<u8> {
    let name = record_prefix(certificate.name()).join(Component::generic(publisher));
    signer.sign_data(&DataBuilder::new(name).content(content)).unwrap()
}

fn content(time_ms: u64, reason: u64, spki: &[u8], not_before_ms: Option<u64>) -> Vec<u8> {
    let mut content = Vec::new();
    tlv::write_nni(&mut content, TIMESTAMP, time_ms);
    tlv::write_nni(&mut content, REASON, reason);
    tlv::write_tlv(&mut content, KEY_HASH, &sha256(&[spki]));
    if let Some(not_before_ms) = not_before_ms {
        tlv::write_nni(&mut content, NOT_BEFORE, not_before_ms);
    }
    content
}

#[test]
fn a_record_has_the_name_and_the_elements_of_the_ecosystem() {
    let Site { site, bob, of_bob, anchor } = Site::new();
    let by_issuer = RevocationRecord::make(&site.signer, &of_bob, Reason::SUPERSEDED, 1_700_000_000_000).unwrap();
    let by_owner = RevocationRecord::make(&bob.signer, &of_bob, Reason::KEY_COMPROMISE, 5).unwrap();
    let of_anchor = RevocationRecord::make(&site.signer, &anchor, Reason::UNSPECIFIED, 5).unwrap();
    assert_eq!(by_issuer.name().to_string(), "/site/bob/REVOKE/1/site/v=1/site");
    assert_eq!(by_owner.name().to_string(), "/site/bob/REVOKE/1/site/v=1/self");
    assert_eq!(of_anchor.name().to_string(), "/site/REVOKE/1/self/v=1/self");
    assert_eq!(by_issuer.certificate(), of_bob.name());
    let expected =
        [&b"\xc9\x08\x00\x00\x01\x8b\xcf\xe5\x68\x00\xcb\x01\x04\xca\x20"[..], &sha256(&[&bob.spki])].concat();
    let data = Data::parse(by_issuer.wire()).unwrap();
    assert_eq!((data.content(), data.content_type()), (&expected[..], CONTENT_TYPE_KEY));
    let stranger = Key::new("/stranger/KEY/1");
    let refused = RevocationRecord::make(&stranger.signer, &of_bob, Reason::UNSPECIFIED, 5);
    assert_eq!(refused, Err(RevokeError::NotEntitled));
}

#[test]
fn what_is_no_record_is_refused() {
    let Site { bob, of_bob, .. } = Site::new();
    let good = content(1, 0, &bob.spki, None);
    let parse = |publisher: &[u8], content: &[u8]| {
        RevocationRecord::parse(&record_by(&bob.signer, &of_bob, publisher, content)).map(|_| ())
    };
    assert_eq!(parse(b"self", &good), Ok(()));
    assert_eq!(parse(b"site", &[&good[..], &[204, 1, 0]].concat()), Ok(()), "an element that need not be known");
    assert_eq!(parse(b"other", &good), Err(RecordError::BadName));
    let bad = [
        Vec::new(),
        good[..good.len() - 1].to_vec(),
        [&good[..], &[REASON as u8, 1, 0]].concat(),
        [&good[..], &[207, 0]].concat(),
        content(1, 0, &bob.spki, None)[..13].to_vec(),
    ];
    for content in bad {
        assert_eq!(parse(b"self", &content), Err(RecordError::BadContent), "{content:?}");
    }
    let endless = [&good[..], &[204, 0].repeat(RECORD_BYTES_MAX / 2)].concat();
    assert!(matches!(parse(b"self", &endless), Err(RecordError::TooLong(_))));
    for name in ["/REVOKE/1/self/v=1", "/site/bob/KEY/1/site/v=1/site", "/", "/a/REVOKE/1/x/v=1/32=self"] {
        let wire = DataBuilder::new(name.parse::<NameBuf>().unwrap()).content(&good).sign_digest();
        assert_eq!(RevocationRecord::parse(&wire), Err(RecordError::BadName), "{name}");
    }
}

/// Who signs, what about, with which key in the hash: does it count?
#[test]
fn a_record_counts_by_the_owner_and_by_the_issuer_and_by_no_other() {
    let all = Site::new();
    let Site { site, bob, of_bob, anchor } = &all;
    let (stranger, other_issuer) = (Key::new("/stranger/KEY/1"), Key::new("/site/KEY/2"));
    // It calls itself by the name of the issuer's key.
    let impostor = Key::new("/site/KEY/1");
    let good = content(NOW_MS, 0, &bob.spki, None);
    let table: &[(&str, Vec<u8>, bool)] = &[
        ("the owner", record_by(&bob.signer, of_bob, b"self", &good), true),
        ("the issuer", record_by(&site.signer, of_bob, b"site", &good), true),
        ("the issuer, as ndnd names it", record_by(&bob.signer, of_bob, b"site", &good), true),
        ("a stranger", record_by(&stranger.signer, of_bob, b"site", &good), false),
        ("another issuer", record_by(&other_issuer.signer, of_bob, b"site", &good), false),
        ("one with the issuer's name", record_by(&impostor.signer, of_bob, b"site", &good), false),
        ("a digest", record_by(&Signer::digest(), of_bob, b"site", &good), false),
        ("the owner, for another key", record_by(&bob.signer, of_bob, b"self", &content(1, 1, b"", None)), false),
        ("the anchor itself", record_by(&site.signer, anchor, b"self", &content(1, 0, &site.spki, None)), true),
        ("Bob for the anchor", record_by(&bob.signer, anchor, b"self", &content(1, 1, &site.spki, None)), false),
        ("a stranger for it", record_by(&stranger.signer, anchor, b"self", &content(1, 1, &site.spki, None)), false),
    ];
    for (who, wire, counts) in table {
        let record = RevocationRecord::parse(wire).unwrap();
        assert_eq!(is_revoked(&all.with_file(&record)), *counts, "{who}, in a file");
        // Whatever look-up a record answers, it counts for the certificate that it is about.
        let mut validator = all.validator();
        for lookup in Site::due(&mut validator, bob, 1) {
            validator.add_revocation(&lookup, wire);
        }
        let verdict = validator.judge(&Data::parse(&bob.data(None)).unwrap(), NOW_MS);
        assert_eq!(is_revoked(&verdict), *counts, "{who}, from the network");
        assert_eq!(validator.revocations_mut().fetched_len(), usize::from(*counts), "{who}");
    }
}

#[test]
fn the_reason_for_the_denial_says_which_when_and_why() {
    let all = Site::new();
    let record = RevocationRecord::make(&all.site.signer, &all.of_bob, Reason::SUPERSEDED, 1_000).unwrap();
    let Err(NotAccepted::Denied(denial)) = all.with_file(&record) else { panic!("accepted") };
    let text = "the certificate /site/bob/KEY/1/site/v=1 was revoked on 1970-01-01T00:00:01Z (superseded)";
    assert_eq!((denial.to_string().as_str(), Denial::NAMES[denial.index()]), (text, "certificate-revoked"));
}

#[test]
fn a_compromise_reaches_a_renewed_certificate_of_the_key_and_another_reason_does_not() {
    let mut all = Site::new();
    let old = all.of_bob.clone();
    all.of_bob = all.bob.certified_by(&all.site, 2, -1, 9);
    for (reason, reaches) in
        [(Reason::KEY_COMPROMISE, true), (Reason::CA_COMPROMISE, true), (Reason::SUPERSEDED, false)]
    {
        let record = RevocationRecord::make(&all.site.signer, &old, reason, 1).unwrap();
        assert_eq!(is_revoked(&all.with_file(&record)), reaches, "{reason}");
    }
}

/// One line per row: periods of anchor and certificate and times in years from now.
#[test]
fn old_data_is_judged_at_its_signing_time_where_the_rule_asks() {
    let (slack_ms, future) = (crate::trust::CLOCK_SLACK_MS, 0);
    let years = |years: i64| Some(NOW_MS.saturating_add_signed(years * YEAR_MS as i64));
    let rows = [
        // anchor, Bob's certificate, SignatureTime: accepted by the usual rule, and at the signing time
        ([-9, 9], [-5, 5], None, true, true),
        ([-9, 9], [-5, -1], None, false, false),
        ([-9, 9], [-5, -1], years(-2), false, true),
        ([-9, 9], [-5, -1], years(-6), false, false),
        ([-9, 9], [-5, -1], years(0), false, false),
        ([-9, 9], [-5, -1], years(3), false, false),
        ([-9, 9], [-5, -1], Some(NOW_MS + slack_ms + 1), false, false),
        ([-9, -1], [-5, -3], years(-4), false, true),
        ([-9, -5], [-4, -1], years(-3), false, false),
        ([-1, 9], [-5, -3], years(-4), false, true),
        ([-9, 9], [1, 5], years(2), false, false),
        ([-9, 9], [-2, 5], years(-4), true, true),
        ([future, 9], [-9, 9], years(1), true, true),
    ];
    for (of_site, of_bob, signed_ms, usual, at_signing_time) in rows {
        let all = Site::with_periods(of_site, of_bob);
        let wire = all.bob.data(signed_ms);
        let mut validator = all.validator();
        let data = Data::parse(&wire).unwrap();
        let row = (of_site, of_bob, signed_ms.map(|ms| (ms as i64 - NOW_MS as i64) / YEAR_MS as i64));
        assert_eq!(validator.judge(&data, NOW_MS).is_ok(), usual, "{row:?}, now");
        validator.accept_at_signing_time();
        assert_eq!(validator.judge(&data, NOW_MS).is_ok(), at_signing_time, "{row:?}, then");
    }
}

/// Reason, time, field 205 and SignatureTime: does the record refuse, now and at the signing time?
#[test]
fn a_revocation_does_not_reach_signatures_before_it_unless_the_key_was_stolen() {
    let all = Site::new();
    let at = |years: i64| NOW_MS.saturating_add_signed(years * YEAR_MS as i64);
    let (compromise, replaced) = (1, 4);
    let rows = [
        (replaced, at(-2), None, at(-3), true, false),
        (replaced, at(-2), None, at(-2), true, true),
        (replaced, at(-2), None, at(-1), true, true),
        (replaced, at(-2), Some(at(-4)), at(-3), true, true),
        (replaced, at(-2), Some(at(-1)), at(-2), true, false),
        (replaced, at(1), None, at(-1), false, false),
        (77, at(-2), None, at(-3), true, false),
        (compromise, at(-2), None, at(-3), true, true),
        (compromise, at(-2), Some(at(-1)), at(-3), true, true),
        (compromise, at(2), Some(at(3)), at(-3), true, true),
        (2, at(-2), None, at(-3), true, true),
    ];
    for (reason, time_ms, not_before_ms, signed_ms, now, then) in rows {
        let content = content(time_ms, reason, &all.bob.spki, not_before_ms);
        let record = RevocationRecord::parse(&record_by(&all.bob.signer, &all.of_bob, b"self", &content)).unwrap();
        let mut validator = all.validator();
        validator.revocations_mut().set_file("records".into(), vec![record]);
        let wire = all.bob.data(Some(signed_ms));
        let data = Data::parse(&wire).unwrap();
        let row = (reason, time_ms, not_before_ms, signed_ms);
        assert_eq!(is_revoked(&validator.judge(&data, NOW_MS)), now, "{row:?}, now");
        validator.accept_at_signing_time();
        assert_eq!(is_revoked(&validator.judge(&data, NOW_MS)), then, "{row:?}, at the signing time");
    }
}

#[test]
fn the_thief_of_a_key_cannot_soften_what_its_owner_said() {
    let all = Site::new();
    let mut validator = all.validator();
    let lookups = Site::due(&mut validator, &all.bob, 1);
    let record = |reason, time_ms| RevocationRecord::make(&all.bob.signer, &all.of_bob, reason, time_ms).unwrap();
    assert!(validator.add_revocation(&lookups[0], record(Reason::SUPERSEDED, NOW_MS).wire()));
    assert!(validator.add_revocation(&lookups[0], record(Reason::KEY_COMPROMISE, NOW_MS).wire()));
    for time_ms in 0..200 {
        validator.add_revocation(&lookups[0], record(Reason::SUPERSEDED, NOW_MS + time_ms).wire());
    }
    assert_eq!(validator.revocations_mut().fetched_len(), 1);
    validator.accept_at_signing_time();
    let wire = all.bob.data(Some(1));
    assert!(is_revoked(&validator.judge(&Data::parse(&wire).unwrap(), NOW_MS)));
}

#[test]
fn each_certificate_of_the_chain_is_looked_up_once_per_interval() {
    let all = Site::new();
    let mut validator = all.validator();
    let names = |lookups: Vec<Lookup>| lookups.iter().map(|one| one.prefix.to_string()).collect::<Vec<_>>();
    let both = ["/site/bob/REVOKE/1/site/v=1", "/site/REVOKE/1/self/v=1"];
    assert_eq!(names(Site::due(&mut validator, &all.bob, 1)), both);
    assert!(Site::due(&mut validator, &all.bob, LOOKUP_INTERVAL_NS).is_empty());
    assert_eq!(names(Site::due(&mut validator, &all.bob, LOOKUP_INTERVAL_NS + 1)), both);
    let stranger = Key::new("/stranger/KEY/1");
    assert!(Site::due(&mut validator, &stranger, LOOKUP_INTERVAL_NS + 1).is_empty(), "no certificate at hand");
}

#[test]
fn look_ups_and_records_have_limits() {
    let site = Key::new("/site/KEY/1");
    let anchor = site.certified_by(&site, 1, -9, 9);
    let anchors = [TrustAnchor::Certificate(AnchorCertificate::parse(anchor.wire().to_vec()).unwrap())];
    let (mut certificates, mut lookups) = (Certificates::default(), Lookups::default());
    let mut asked = 0;
    for number in 0..200 {
        let key = Key::new(&format!("/site/{number}/KEY/1"));
        let certificate = key.certified_by(&site, 1, -9, 9);
        certificates.add_fetched(certificate.clone(), None);
        let chain = chain(key.name.as_name(), &anchors, &certificates, None, NOW_MS);
        for lookup in lookups.due(&chain, 1) {
            asked += 1;
            assert!(lookup.is_urgent && lookups.open(&chain, 2, 2).contains(&lookup.prefix));
            assert!(lookups.open(&chain, 3, 2).is_empty(), "too late");
            assert!(lookups.answered_by(lookup.prefix.as_name()).is_some());
            assert!(!lookups.open(&chain, 2, 2).contains(&lookup.prefix));
        }
        let record = RevocationRecord::make(&site.signer, &certificate, Reason::UNSPECIFIED, 1).unwrap();
        assert!(certificates.revocations_mut().add_fetched(record, &certificate, Some(&anchor)));
    }
    assert_eq!(asked, LOOKUPS_PER_SECOND_MAX);
    assert_eq!(certificates.revocations().fetched_len(), MAX_OF_SIGNER);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A later signature is never better off, and a stricter record refuses whatever the milder one refuses.
    #[test]
    fn refusals_only_grow(
        a in (0_u64..4, 0_u64..9, prop::option::of(0_u64..9)),
        b in (0_u64..4, 0_u64..9, prop::option::of(0_u64..9)),
        signed in 0_u64..9,
        now in 0_u64..9,
    ) {
        let of = |(reason, time_ms, not_before_ms)| RevocationRecord {
            wire: Vec::new(),
            certificate: NameBuf::new(),
            time_ms,
            reason: Reason(reason),
            key_hash: [0; 32],
            not_before_ms,
        };
        let (a, b) = (of(a), of(b));
        prop_assert!(!a.refuses(Some(signed), now) || a.refuses(Some(signed + 1), now));
        if a.is_as_strict_as(&b) {
            prop_assert!(!b.refuses(Some(signed), now) || a.refuses(Some(signed), now));
            prop_assert!(!b.refuses(None, now) || a.refuses(None, now));
        }
        prop_assert!(a.is_as_strict_as(&b) || b.is_as_strict_as(&a));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(content in prop::collection::vec(any::<u8>(), 0..80)) {
        let name: NameBuf = "/a/REVOKE/1/x/v=1/x".parse().unwrap();
        let _ = RevocationRecord::parse(&DataBuilder::new(name).content(&content).sign_digest());
        let _ = RevocationRecord::parse(&content);
    }
}
