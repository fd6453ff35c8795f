//! Requesters and authorities that lie, flood and guess. Everything is refused with a reason, and costs others nothing.

use crate::{Clock, DAY_MS, Site, add_key, name, open, requested, wire::Network};
use namewire_certificates::request::{
    CaProfile, CaTrust, CertificationError, Challenge, Parameters, Question, RequestedKey, Terms, ca_profile,
    request_certificate,
};
use namewire_certification::authority::{
    Authority, CommandSaid, NEW_PER_SECOND, Offer, Outcome, Reply, Settings,
    requests::{PER_ASKER_MAX, UNPROVEN_MS},
};
use namewire_client::{
    Component, Data, DataBuilder, Interest,
    packet::{
        Nonce, SignedInterestFields,
        tlv::{types, write_nested, write_nni, write_tlv},
    },
    security::{
        Certificate, PrivateKey, Signer, ValidityPeriod, issue_certificate,
        trust::{RevocationRecord, revocation::Reason},
    },
};
use namewire_ndncert::{Requester, RequesterError, Step, messages::Refusal, profile::ProfileError, requester::Stamp};

const NOW_MS: u64 = 1_796_000_000_000;

/// A key with a self-signed certificate.
struct Key {
    signer: Signer,
    certificate: Certificate,
}

impl Key {
    fn new(identity: &str) -> Self {
        Key::valid(identity, NOW_MS - DAY_MS, NOW_MS + 365 * DAY_MS)
    }

    fn valid(identity: &str, not_before_ms: u64, not_after_ms: u64) -> Self {
        let (key, mut key_name) = (PrivateKey::generate_ecdsa().unwrap(), name(identity));
        key_name.push_generic(b"KEY").push_generic(&fastrand_id());
        let spki = key.public_key().spki().to_vec();
        let signer = Signer::private_key(key, key_name.clone());
        let validity = ValidityPeriod { not_before_ms, not_after_ms };
        let id = Component::generic(b"self");
        let certificate = issue_certificate(&signer, key_name.as_name(), &spki, id, 1, validity).unwrap();
        Key { signer, certificate }
    }

    fn requested(&self) -> RequestedKey {
        let certificate = &self.certificate;
        let (name, spki) = (certificate.key_name().to_buf(), certificate.spki().to_vec());
        RequestedKey { name, spki, signer: self.signer.clone() }
    }

    /// A certificate of another key by this one.
    fn certify(&self, other: &Key, not_after_ms: u64) -> Certificate {
        let validity = ValidityPeriod { not_before_ms: NOW_MS - DAY_MS, not_after_ms };
        let (of, id) = (&other.certificate, Component::generic(b"by"));
        issue_certificate(&self.signer, of.key_name(), of.spki(), id, 2, validity).unwrap()
    }
}

fn fastrand_id() -> [u8; 8] {
    let mut id = [0; 8];
    getrandom::fill(&mut id).unwrap();
    id
}

fn authority(ca: &Key, proofs: Vec<Offer>) -> Authority {
    let settings = Settings {
        prefix: name("/site"),
        info: "the site".to_owned(),
        max_validity_ms: 30 * DAY_MS,
        max_suffix: 1,
        issuer_id: "NDNCERT".to_owned(),
        proofs,
    };
    Authority::new(settings, ca.certificate.clone(), ca.signer.clone(), NOW_MS).unwrap()
}

fn profile(authority: &Authority) -> CaProfile {
    CaProfile::of_data(&Data::parse(authority.profile().1).unwrap()).unwrap()
}

fn stamp(time_ms: u64) -> Stamp {
    let fields = SignedInterestFields { nonce: fastrand_id().to_vec(), time_ms: Some(time_ms), seq_num: None };
    Stamp { nonce: Nonce([1; 4]), fields }
}

fn begin(authority: &Authority, key: RequestedKey) -> Result<(Requester, Vec<u8>), RequesterError> {
    Requester::begin(profile(authority), key, None, NOW_MS, &stamp(NOW_MS))
}

/// What the authority answers to these bytes.
fn handle(authority: &mut Authority, wire: &[u8], asker: u64, now_ms: u64) -> Reply {
    match authority.handle(&Interest::parse(wire).unwrap(), asker, now_ms) {
        Outcome::Reply(reply) => reply,
        other => panic!("{other:?}"),
    }
}

fn data(reply: Reply) -> Vec<u8> {
    match reply {
        Reply::Data(wire) => wire,
        other => panic!("{other:?}"),
    }
}

/// Begins a request, chooses this challenge, and returns what the authority said.
fn choose(authority: &mut Authority, key: RequestedKey, challenge: &Challenge) -> (Requester, Result<Step, String>) {
    let (mut requester, new) = begin(authority, key).unwrap();
    let answer = data(handle(authority, &new, 1, NOW_MS));
    requester.on_new(&Data::parse(&answer).unwrap()).unwrap();
    let step = say(authority, &mut requester, challenge.id(), challenge.first());
    (requester, step)
}

fn say(
    authority: &mut Authority,
    requester: &mut Requester,
    challenge: &str,
    parameters: Parameters,
) -> Result<Step, String> {
    let wire = requester.answer(challenge, parameters, &stamp(NOW_MS + 1)).unwrap();
    let answer = data(handle(authority, &wire, 1, NOW_MS));
    requester.on_challenge(&Data::parse(&answer).unwrap()).map_err(|error| error.to_string())
}

fn refusal(reply: Reply) -> Refusal {
    Refusal::read(Data::parse(&data(reply)).unwrap().content()).expect("a refusal")
}

#[test]
fn three_wrong_codes_end_a_request_and_no_answer_helps_after_that() {
    let (ca, bob) = (Key::new("/site"), Key::new("/site/bob"));
    let mut authority = authority(&ca, vec![Offer::Pin]);
    let (mut requester, step) = choose(&mut authority, bob.requested(), &Challenge::Pin);
    assert!(matches!(&step, Ok(Step::Asked(question)) if question.remaining_tries == 3), "{step:?}");
    let mut guess = || say(&mut authority, &mut requester, "pin", Parameters::default().with("code", "none"));
    assert!(matches!(guess(), Ok(Step::Asked(question)) if question.status == "wrong-code"));
    assert!(matches!(guess(), Ok(Step::Asked(question)) if question.remaining_tries == 1));
    assert_eq!(guess(), Err("the authority refused: too many wrong answers (code 7)".to_owned()));
    let after = guess().unwrap_err();
    assert!(after.contains("it is over"), "{after}");
}

#[test]
fn names_elsewhere_too_deep_or_of_the_authority_are_refused() {
    let ca = Key::new("/site");
    let mut authority = authority(&ca, vec![Offer::Pin]);
    let other = begin(&authority, Key::new("/other/bob").requested()).unwrap_err();
    assert!(matches!(other, RequesterError::NotUnder(..)), "{other}");
    for identity in ["/site", "/site/a/b", "/site/CA"] {
        let (_, new) = begin(&authority, Key::new(identity).requested()).unwrap();
        let refused = refusal(handle(&mut authority, &new, 1, NOW_MS));
        assert_eq!(refused.code, 5, "{identity}: {refused}");
    }
}

/// Mallory asks for a certificate of Bob's key, which she does not have, with her own signature.
#[test]
fn a_request_for_another_s_key_is_refused() {
    let (ca, bob, mallory) = (Key::new("/site"), Key::new("/site/bob"), Key::new("/site/mallory"));
    let mut authority = authority(&ca, vec![Offer::Pin]);
    let stolen = RequestedKey { signer: mallory.signer, ..bob.requested() };
    let (_, new) = begin(&authority, stolen).unwrap();
    assert_eq!(refusal(handle(&mut authority, &new, 1, NOW_MS)).code, 3);
}

#[test]
fn only_a_valid_certificate_of_the_name_s_owner_is_a_proof() {
    let (ca, bob, mallory) = (Key::new("/site"), Key::new("/site/bob"), Key::new("/site/mallory"));
    let (ndn, bob_there, forger) = (Key::new("/ndn/ucla"), Key::new("/ndn/ucla/bob"), Key::new("/site"));
    let (good, over) = (NOW_MS + DAY_MS, NOW_MS - 1);
    let mut authority = authority(&ca, vec![Offer::Possession(vec![ndn.certificate.clone()])]);
    let mut prove = |held: Certificate, signer: &Key, asked: &Key| {
        let challenge = Challenge::Possession(Box::new(held), signer.signer.clone());
        let (mut requester, step) = choose(&mut authority, asked.requested(), &challenge);
        match step? {
            Step::Asked(question) => {
                let answer = challenge.answer(&question, None).unwrap();
                say(&mut authority, &mut requester, "possession", answer)
            }
            issued => Ok(issued),
        }
    };
    assert!(matches!(prove(ca.certify(&bob, good), &bob, &bob), Ok(Step::Issued { .. })), "a renewal");
    assert!(matches!(prove(ndn.certify(&bob_there, good), &bob_there, &bob), Ok(Step::Issued { .. })), "the same name");
    let refused = [
        ("expired", prove(ca.certify(&bob, over), &bob, &bob)),
        ("another name", prove(ca.certify(&mallory, good), &mallory, &bob)),
        ("another name elsewhere", prove(ndn.certify(&bob_there, good), &bob_there, &mallory)),
        ("a forged issuer", prove(forger.certify(&bob, good), &bob, &bob)),
        ("self-signed", prove(bob.certificate.clone(), &bob, &bob)),
        ("without its key", prove(ca.certify(&bob, good), &mallory, &bob)),
        ("the anchor itself", prove(ndn.certificate.clone(), &ndn, &bob)),
    ];
    for (what, outcome) in refused {
        assert!(outcome.is_err(), "{what}: {outcome:?}");
    }
}

#[test]
fn an_interest_again_has_the_same_answer_and_a_changed_one_none() {
    let (ca, bob) = (Key::new("/site"), Key::new("/site/bob"));
    let mut authority = authority(&ca, vec![Offer::Pin]);
    let (mut requester, new) = begin(&authority, bob.requested()).unwrap();
    let first = handle(&mut authority, &new, 1, NOW_MS);
    assert_eq!(handle(&mut authority, &new, 1, NOW_MS + 1), first);
    assert_eq!(authority.requests().len(), 1);
    requester.on_new(&Data::parse(&data(first)).unwrap()).unwrap();
    let choose = requester.answer("pin", Parameters::default(), &stamp(NOW_MS)).unwrap();
    let asked = handle(&mut authority, &choose, 1, NOW_MS);
    assert_eq!(handle(&mut authority, &choose, 1, NOW_MS + 5), asked, "its answer was lost");
    let mut changed = choose;
    let last = changed.len() - 1;
    changed[last] ^= 1;
    assert_eq!(handle(&mut authority, &changed, 1, NOW_MS), Reply::Nothing, "the digest in its name is wrong");
}

#[test]
fn a_flood_takes_its_own_share_and_no_more() {
    let (ca, flooder, bob) = (Key::new("/site"), Key::new("/site/flood"), Key::new("/site/bob"));
    let mut authority = authority(&ca, vec![Offer::Pin]);
    let flood = |authority: &mut Authority, now_ms| {
        let (_, new) = begin(authority, flooder.requested()).unwrap();
        handle(authority, &new, 1, now_ms)
    };
    let at_once = (0..100).filter(|_| matches!(flood(&mut authority, NOW_MS), Reply::Data(_))).count();
    assert_eq!(at_once, 2 * NEW_PER_SECOND as usize);
    // A second of requests every second, until its share is full: those that nobody goes on with end after a minute.
    for second in 1..=UNPROVEN_MS / 1000 + 60 {
        (0..NEW_PER_SECOND).for_each(|_| drop(flood(&mut authority, NOW_MS + 1000 * second)));
    }
    let waiting = authority.requests().len();
    assert!(waiting <= PER_ASKER_MAX && waiting <= (UNPROVEN_MS / 1000 + 2) as usize * NEW_PER_SECOND as usize);
    let (_, new) = begin(&authority, bob.requested()).unwrap();
    assert!(matches!(handle(&mut authority, &new, 2, NOW_MS + 1000), Reply::Data(_)), "another asker");
    // Challenges of nobody's requests.
    let refused = |i: u64| {
        let (_, new) = begin(&authority, bob.requested()).unwrap();
        namewire_client::InterestBuilder::new(name(&format!("/site/CA/CHALLENGE/request{i}")))
            .application_parameters(new)
            .build()
    };
    let wires: Vec<Vec<u8>> = (0..200).map(refused).collect();
    let answered =
        wires.iter().filter(|wire| matches!(handle(&mut authority, wire, 1, NOW_MS), Reply::Data(_))).count();
    assert!(answered <= 40, "{answered}");
}

/// ndn-cxx signs Interests in the old format: SignatureInfo and SignatureValue at the end of the name.
#[test]
fn a_request_signed_in_the_old_format_is_taken_and_a_forged_one_is_not() {
    let (ca, bob, mallory) = (Key::new("/site"), Key::new("/site/bob"), Key::new("/site/mallory"));
    let mut authority = authority(&ca, vec![Offer::Pin]);
    let mut ask = |signer: &Signer| {
        let (_, new) = begin(&authority, bob.requested()).unwrap();
        let parameters = Interest::parse(&new).unwrap().application_parameters().unwrap().to_vec();
        let unsigned = namewire_client::InterestBuilder::new(name("/site/CA/NEW")).application_parameters(parameters);
        let mut name = Interest::parse(&unsigned.build()).unwrap().name().to_buf();
        let mut info = Vec::new();
        write_nested(&mut info, types::SIGNATURE_INFO, |out| {
            write_nni(out, types::SIGNATURE_TYPE, signer.signature_type());
            let locator = signer.key_locator().unwrap();
            write_nested(out, types::KEY_LOCATOR, |out| locator.as_name().write_tlv(out));
        });
        name.push_generic(&info);
        let mut value = Vec::new();
        write_tlv(&mut value, types::SIGNATURE_VALUE, &signer.sign(&[name.value()]).unwrap());
        name.push_generic(&value);
        // The builder would add the digest again, so the packet is put together here.
        let mut wire = Vec::new();
        write_nested(&mut wire, types::INTEREST, |out| {
            name.as_name().write_tlv(out);
            write_tlv(out, types::NONCE, &[1; 4]);
            let unsigned = unsigned.build();
            let parameters = Interest::parse(&unsigned).unwrap().application_parameters().unwrap();
            write_tlv(out, types::APPLICATION_PARAMETERS, parameters);
        });
        handle(&mut authority, &wire, 1, NOW_MS)
    };
    assert_eq!(refusal(ask(&mallory.signer)).code, 3);
    let taken = data(ask(&bob.signer));
    assert_eq!(Refusal::read(Data::parse(&taken).unwrap().content()), None);
}

/// A stranger answers under the authority's name.
#[tokio::test(start_paused = true)]
async fn another_authority_is_not_believed() {
    let (network, clock) = (Network::default(), Clock::start());
    let (site, liar) = (Site::new(clock), Site::new(clock));
    let (authority, _) = network.client();
    liar.serve(authority, vec![Offer::Pin]);
    let (bob, _) = network.client();
    let home = tempfile::tempdir().unwrap();
    let chain = open(home.path());
    let own = add_key(&chain, "/site/bob", clock);
    let digest = site.certificate.data().implicit_digest();
    for trust in [CaTrust::Certificate(&site.certificate), CaTrust::Digest(digest), CaTrust::IssuerOf(&own)] {
        let found = ca_profile(&bob, &name("/site"), trust).await;
        assert!(matches!(found, Err(CertificationError::NotTrusted(..))), "{found:?}");
    }
    // Its packets do not pass for those of the true one either.
    let true_profile = CaProfile { certificate: site.certificate.clone(), ..liar.profile(&bob).await };
    let terms = Terms { now_ms: clock.now_ms(), period_ms: None };
    let nobody = async |_, _| Ok(None);
    let asked = request_certificate(&bob, true_profile, requested(&chain, &own), &Challenge::Pin, terms, nobody).await;
    assert!(matches!(asked, Err(CertificationError::Request(RequesterError::NotItsAnswer(_)))), "{asked:?}");
}

/// The certificate that an authority gives must be of the requester's key, and by the authority.
#[test]
fn a_certificate_of_another_key_or_by_another_is_not_accepted() {
    let (ca, bob, mallory) = (Key::new("/site"), Key::new("/site/bob"), Key::new("/site/mallory"));
    let authority = authority(&ca, vec![Offer::Pin]);
    let (requester, _) = begin(&authority, bob.requested()).unwrap();
    let accept = |certificate: &Certificate| requester.accept(certificate.wire(), certificate.name(), NOW_MS);
    assert!(accept(&ca.certify(&bob, NOW_MS + DAY_MS)).is_ok());
    let other = accept(&ca.certify(&mallory, NOW_MS + DAY_MS));
    assert!(matches!(other, Err(RequesterError::OtherCertificate(_))), "{other:?}");
    let over = accept(&ca.certify(&bob, NOW_MS - 1));
    assert!(matches!(over, Err(RequesterError::OtherCertificate(_))), "{over:?}");
    let forged = accept(&mallory.certify(&bob, NOW_MS + DAY_MS));
    assert!(matches!(forged, Err(RequesterError::Forged(_))), "{forged:?}");
}

/// A member of the site signs a profile of the site. The site's certificate vouches for the member, but the member is
/// not the authority.
#[test]
fn a_member_cannot_pose_as_the_authority() {
    let (ca, mallory) = (Key::new("/site"), Key::new("/site/mallory"));
    let member = ca.certify(&mallory, NOW_MS + DAY_MS);
    let profile = CaProfile { certificate: member, ..profile(&authority(&ca, vec![Offer::Pin])) };
    let content = profile.content();
    let packet = DataBuilder::new(name("/site/CA/INFO/v=1/seg=0")).content(&content);
    let wire = mallory.signer.sign_data(&packet).unwrap();
    let refused = CaProfile::of_data(&Data::parse(&wire).unwrap());
    assert!(matches!(refused, Err(ProfileError::OtherIdentity(..))), "{refused:?}");
}

/// The proof of possession is a signature of what the authority sends: that must not be a packet.
#[test]
fn only_a_nonce_is_signed() {
    let bob = Key::new("/site/bob");
    let challenge = Challenge::Possession(Box::new(bob.certificate.clone()), bob.signer);
    let asked = |nonce: &[u8]| {
        let parameters = Parameters::default().with("nonce", nonce);
        challenge.answer(&Question { status: "need-proof".to_owned(), parameters, ..Question::default() }, None)
    };
    assert!(asked(&[1; 16]).is_ok());
    let packet = DataBuilder::new(name("/site/bob/i-owe-mallory")).content(b"100").sign_digest();
    assert!(asked(&packet).is_err() && asked(&[1; 17]).is_err() && asked(&[1; 15]).is_err());
}

#[test]
fn a_revoked_certificate_proves_nothing() {
    let (ca, bob) = (Key::new("/site"), Key::new("/site/bob"));
    let mut authority = authority(&ca, vec![Offer::Possession(vec![])]);
    let held = ca.certify(&bob, NOW_MS + DAY_MS);
    let record = RevocationRecord::make(&ca.signer, &held, Reason::KEY_COMPROMISE, NOW_MS).unwrap();
    authority.set_revoked(vec![record]);
    let challenge = Challenge::Possession(Box::new(held), bob.signer.clone());
    let (_, step) = choose(&mut authority, bob.requested(), &challenge);
    assert!(step.as_ref().is_err_and(|why| why.contains("was revoked")), "{step:?}");
}

/// The operator's command takes longer than an Interest lives, and asks back.
#[test]
fn an_operator_s_command_is_asked_once_for_an_interest_and_a_few_times_in_all() {
    let (ca, bob) = (Key::new("/site"), Key::new("/site/bob"));
    let mut authority = authority(&ca, vec![Offer::Command("badge".to_owned())]);
    let (mut requester, new) = begin(&authority, bob.requested()).unwrap();
    let answer = data(handle(&mut authority, &new, 1, NOW_MS));
    requester.on_new(&Data::parse(&answer).unwrap()).unwrap();
    for round in 0..10 {
        let wire = requester.answer("badge", Parameters::default(), &stamp(NOW_MS + round)).unwrap();
        let interest = Interest::parse(&wire).unwrap();
        let Outcome::Errand(errand) = authority.handle(&interest, 1, NOW_MS) else { panic!("round {round}") };
        assert_eq!(authority.handle(&interest, 1, NOW_MS), Outcome::Repeated);
        let said = authority.finish(&errand, CommandSaid::Ask("which number?".to_owned()), NOW_MS);
        assert_eq!(authority.finish(&errand, CommandSaid::Yes, NOW_MS), Reply::Nothing, "an answer is final");
        let step = requester.on_challenge(&Data::parse(&data(said)).unwrap());
        match step {
            Ok(Step::Asked(_)) => {}
            Err(error) => {
                assert!(error.to_string().contains("too many wrong answers") && round == 5, "{round}: {error}");
                return;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("it can be asked without end");
}
