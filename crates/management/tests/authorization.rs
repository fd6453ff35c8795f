//! Who may command: faces, users, keys, rules; and the answers to those who may not.

use namewire_management::{
    Effect, FaceProperties, FibChange, HolderId, ManagementConfig, NextHop, PeerCredentials, TrustConfig,
    trust_config::{Authorization, Privileges, Signer as Grant},
};
use namewire_packet::{
    Component, Data, DataBuilder, FaceId, Interest, InterestBuilder, NameBuf, Nonce, SignedInterestFields, digest,
    nfd::{ControlParameters, ControlResponse, RibEntry, decode_dataset},
    signature::signature_type::{DIGEST_SHA256, ED25519, SHA256_ECDSA},
    tlv,
};
use namewire_security::trust::{
    AnchorCertificate, Checker, KeyLocatorRule, NameFilter, NameRelation, PacketKind, Rule, RulesOrAny, SchemaConfig,
    TrustAnchor, ValidatorConfig, lvs::Schema, name_regex::NameRegex,
};
use namewire_security::{Certificate, PrivateKey, Signer, ValidityPeriod, issue_certificate};
use namewire_testbed::{
    management::{
        Bench, LOCAL_FACE, REMOTE, ROUTER_UID, UDP_FACE, answer_in, command_name, for_prefix, fresh_fields, local_face,
        udp_face,
    },
    uri,
};

const NOW_MS: u64 = 1_800_000_000_000;
const DAY_MS: u64 = 86_400_000;
const STRANGER: FaceId = FaceId(310);

#[track_caller]
fn assert_denied(response: &ControlResponse, reason: &str) {
    assert_eq!(response.code, 403, "{response:?}");
    let text = response.text.strip_prefix("authorization rejected: ").unwrap_or_else(|| panic!("{response:?}"));
    assert!(text.contains(reason), "{text:?} does not say {reason:?}");
}

/// A key with a certificate, signed by the key itself or by another.
pub(crate) struct Identity {
    pub(crate) signer: Signer,
    pub(crate) certificate: Certificate,
}

impl Identity {
    pub(crate) fn new(uri: &str, issuer: Option<&Identity>) -> Self {
        Identity::valid(uri, issuer, NOW_MS - DAY_MS, NOW_MS + DAY_MS)
    }

    fn valid(identity: &str, issuer: Option<&Identity>, not_before_ms: u64, not_after_ms: u64) -> Self {
        let key = PrivateKey::generate_ecdsa().expect("random bytes");
        let mut key_name = uri(identity);
        key_name.push_generic(b"KEY").push_generic(b"1");
        let spki = key.public_key().spki().to_vec();
        let signer = Signer::private_key(key, key_name.clone());
        let by = issuer.map_or(&signer, |issuer| &issuer.signer);
        let validity = ValidityPeriod { not_before_ms, not_after_ms };
        let issuer_id = Component::generic(if issuer.is_some() { b"ca" } else { b"self" });
        let certificate = issue_certificate(by, key_name.as_name(), &spki, issuer_id, 1, validity).expect("issued");
        Identity { signer, certificate }
    }

    fn anchor(&self) -> AnchorCertificate {
        AnchorCertificate::parse(self.certificate.wire().to_vec()).expect("a certificate")
    }

    pub(crate) fn command(&self, prefix: &str, command: &str, parameters: &ControlParameters) -> Vec<u8> {
        self.command_with(prefix, command, parameters, &fresh_fields())
    }

    fn command_with(
        &self,
        prefix: &str,
        command: &str,
        parameters: &ControlParameters,
        fields: &SignedInterestFields,
    ) -> Vec<u8> {
        let mut command = uri(&format!("{prefix}/{command}"));
        command.push_generic(&parameters.to_wire());
        let builder = InterestBuilder::new(command).nonce(Nonce([1, 2, 3, 4]));
        self.signer.sign_interest(&builder, fields).expect("signed")
    }

    /// The old format: the signature in the name, with the certificate's name as KeyLocator.
    fn old_command(&self, prefix: &str, command: &str, parameters: &ControlParameters) -> Vec<u8> {
        let mut signed = uri(&format!("{prefix}/{command}"));
        signed.push_generic(&parameters.to_wire());
        let fresh = fresh_fields();
        signed.push_generic(&fresh.time_ms.expect("a time").to_be_bytes()).push_generic(&fresh.nonce);
        let mut info = Vec::new();
        tlv::write_nested(&mut info, tlv::types::SIGNATURE_INFO, |out| {
            tlv::write_nni(out, tlv::types::SIGNATURE_TYPE, SHA256_ECDSA);
            tlv::write_nested(out, tlv::types::KEY_LOCATOR, |out| self.certificate.name().write_tlv(out));
        });
        signed.push_generic(&info);
        let mut value = Vec::new();
        tlv::write_tlv(&mut value, tlv::types::SIGNATURE_VALUE, &self.signer.sign(&[signed.value()]).expect("signed"));
        signed.push_generic(&value);
        InterestBuilder::new(signed).nonce(Nonce([1, 2, 3, 4])).build()
    }
}

/// A certificate of this identity from an issuer whose key is called `issuer`.
fn reissued(identity: &Identity, issuer: &str) -> Certificate {
    let by = Signer::private_key(PrivateKey::generate_ecdsa().expect("random bytes"), uri(issuer));
    let subject = &identity.certificate;
    issue_certificate(&by, subject.key_name(), subject.spki(), Component::generic(b"ca"), 1, subject.validity())
        .expect("issued")
}

fn digest_command(command: &str, parameters: &ControlParameters, fields: &SignedInterestFields) -> Vec<u8> {
    InterestBuilder::new(command_name(command, parameters)).nonce(Nonce([1, 2, 3, 4])).sign_digest(fields)
}

fn unsigned_command(command: &str, parameters: &ControlParameters) -> Vec<u8> {
    InterestBuilder::new(command_name(command, parameters)).nonce(Nonce([1, 2, 3, 4])).build()
}

/// A face of this machine whose peer is `credentials`.
fn application(face: FaceId, credentials: Option<PeerCredentials>) -> FaceProperties {
    FaceProperties { face, credentials, ..local_face() }
}

fn user(uid: u32) -> Option<PeerCredentials> {
    Some(PeerCredentials { uid, gid: 900, groups: vec![901, 902], pid: 5 })
}

/// A bench with an application of the router's own user and an application of a stranger.
fn bench_with(trust: TrustConfig, stranger: Option<PeerCredentials>) -> Bench {
    let mut bench = Bench::with_trust(trust);
    bench.add_face(application(STRANGER, stranger));
    bench
}

fn answer(bench: &mut Bench, face: FaceId, interest: &[u8]) -> ControlResponse {
    bench.send_from(face, interest);
    bench.answer()
}

fn route_of(face: FaceId) -> ControlParameters {
    ControlParameters { face_id: Some(face), ..for_prefix("/x") }
}

/// One command of each module but `rib`.
fn privileged() -> [(&'static str, ControlParameters); 4] {
    let strategy = Some(uri("/localhost/nfd/strategy/multicast"));
    let uri = Some("udp4://192.0.2.7:6363".to_owned());
    [
        ("faces/create", ControlParameters { uri, ..Default::default() }),
        ("fib/add-nexthop", for_prefix("/x")),
        ("cs/config", ControlParameters { capacity: Some(7), ..Default::default() }),
        ("strategy-choice/set", ControlParameters { strategy, ..for_prefix("/x") }),
    ]
}

/// True if the command was carried out: a 200, or a face that is being made.
fn passes(bench: &mut Bench, face: FaceId, interest: &[u8]) -> bool {
    bench.send_from(face, interest);
    matches!(bench.effects[..], [Effect::CreateFace(_)]) || bench.answer().code == 200
}

// ---- without configuration ----

#[test]
fn every_user_s_application_registers_routes_to_itself() {
    for credentials in [user(4000), None] {
        let mut bench = bench_with(TrustConfig::default(), credentials);
        for face_id in [None, Some(FaceId::INVALID), Some(STRANGER)] {
            let parameters = ControlParameters { face_id, ..for_prefix("/x") };
            let register = digest_command("rib/register", &parameters, &fresh_fields());
            assert_eq!(answer(&mut bench, STRANGER, &register).code, 200);
            let unregister = digest_command("rib/unregister", &parameters, &fresh_fields());
            assert_eq!(answer(&mut bench, STRANGER, &unregister).code, 200);
        }
        // An application signs with its own key, which is unknown here.
        let own = Identity::new("/app", None).command("/localhost/nfd", "rib/register", &for_prefix("/x"));
        assert_eq!(answer(&mut bench, STRANGER, &own).code, 200);
    }
}

/// The story: clients of ndn-rs could not register: 403, the DigestSha256 signature does not match. They compute the
/// digest over the whole Interest as it is before the parameters digest is known. Any sender can compute a digest, so
/// on a route to the application itself it proves nothing. ndnd and NFD's default rule accept these commands.
#[test]
fn a_digest_over_other_bytes_is_enough_for_one_s_own_routes_and_for_nothing_else() {
    let over_other_bytes = |command: &str, parameters: &ControlParameters| {
        let builder = InterestBuilder::new(command_name(command, parameters)).nonce(Nonce([1, 2, 3, 4]));
        builder.sign_with(DIGEST_SHA256, None, &fresh_fields(), |signed| {
            // Instead of the components alone, the digest covers the Name element with a digest component of zeros, the
            // Nonce, and the rest.
            let mut whole = command_name(command, parameters);
            whole.push(Component { type_number: tlv::types::PARAMETERS_SHA256_DIGEST, value: &[0; 32] });
            let mut bytes = Vec::new();
            whole.as_name().write_tlv(&mut bytes);
            tlv::write_tlv(&mut bytes, tlv::types::NONCE, &[1, 2, 3, 4]);
            bytes.extend_from_slice(signed[1]);
            digest::sha256(&[&bytes]).to_vec()
        })
    };
    for (credentials, may_all) in [(user(4000), false), (user(ROUTER_UID), true), (None, false)] {
        let mut bench = bench_with(TrustConfig::default(), credentials);
        for face_id in [None, Some(FaceId::INVALID), Some(STRANGER)] {
            let own = ControlParameters { face_id, ..for_prefix("/x") };
            for command in ["rib/register", "rib/unregister"] {
                let interest = over_other_bytes(command, &own);
                assert_eq!(answer(&mut bench, STRANGER, &interest).code, 200, "{command} {face_id:?}");
                assert_denied(&answer(&mut bench, STRANGER, &interest), "replayed");
            }
        }
        // Everywhere else the digest must still match, even where credentials need no digest.
        let of_other = over_other_bytes("rib/register", &route_of(UDP_FACE));
        assert_denied(&answer(&mut bench, STRANGER, &of_other), "bad signature");
        for (command, parameters) in privileged() {
            let wrong = over_other_bytes(command, &parameters);
            assert_denied(&answer(&mut bench, STRANGER, &wrong), "bad signature");
            let right = digest_command(command, &parameters, &fresh_fields());
            assert_eq!(passes(&mut bench, STRANGER, &right), may_all, "{command}");
        }
        assert_denied(&answer(&mut bench, UDP_FACE, &over_other_bytes("rib/register", &for_prefix("/x"))), "not local");
    }
}

#[test]
fn a_stranger_may_do_nothing_else() {
    let mut bench = bench_with(TrustConfig::default(), user(4000));
    for (command, parameters) in privileged() {
        let signed = digest_command(command, &parameters, &fresh_fields());
        assert_denied(&answer(&mut bench, STRANGER, &signed), "not allowed: ");
        assert_denied(&answer(&mut bench, STRANGER, &unsigned_command(command, &parameters)), "uid 4000");
    }
    let of_other = digest_command("rib/register", &route_of(UDP_FACE), &fresh_fields());
    assert_denied(&answer(&mut bench, STRANGER, &of_other), "a route of another face");
    let key = Identity::new("/unheard/of", None);
    let signed = key.command("/localhost/nfd", "rib/register", &route_of(UDP_FACE));
    assert_denied(&answer(&mut bench, STRANGER, &signed), "unknown signer /unheard/of/KEY/1");
    let unsigned = unsigned_command("rib/register", &for_prefix("/x"));
    assert_denied(&answer(&mut bench, STRANGER, &unsigned), "not signed");
    // TCP within this machine: the face is local, but the kernel does not vouch for the peer.
    bench.add_face(application(FaceId(311), None));
    let create = unsigned_command("faces/create", &privileged()[0].1);
    assert_denied(&answer(&mut bench, FaceId(311), &create), "no peer credentials");
}

/// The story: a command of an application that had closed its connection was answered 403. In a storm of connections,
/// every second application had. No application was there to read the answer, and the packet was dropped as
/// unsolicited.
#[test]
fn a_command_of_a_face_that_is_gone_is_counted_and_not_answered() {
    let mut bench = bench_with(TrustConfig::default(), user(ROUTER_UID));
    let register = || digest_command("rib/register", &for_prefix("/x"), &fresh_fields());
    bench.send_from(FaceId(999), &register());
    assert!(bench.effects.is_empty(), "{:?}", bench.effects);
    assert_eq!(bench.management.counters().orphaned, 1);
    bench.send_from(FaceId(999), &unsigned_command("faces/create", &privileged()[0].1));
    assert!(bench.effects.is_empty(), "{:?}", bench.effects);
    assert!(passes(&mut bench, STRANGER, &register()), "others are served");
}

#[test]
fn the_router_s_user_root_and_allowed_groups_may_do_everything() {
    let groups = TrustConfig { allowed_gids: vec![902], ..Default::default() };
    let primary = TrustConfig { allowed_gids: vec![900], ..Default::default() };
    let default = TrustConfig::default;
    for (trust, uid) in [(default(), ROUTER_UID), (default(), 0), (groups.clone(), 4000), (primary, 4000)] {
        let mut bench = bench_with(trust, user(uid));
        for (command, parameters) in privileged() {
            assert!(passes(&mut bench, STRANGER, &unsigned_command(command, &parameters)), "{uid} {command}");
        }
        let of_other = digest_command("rib/register", &route_of(UDP_FACE), &fresh_fields());
        assert_eq!(answer(&mut bench, STRANGER, &of_other).code, 200);
    }
    let off = TrustConfig { peer_credentials: false, ..groups };
    let mut bench = bench_with(off, user(0));
    let create = unsigned_command("faces/create", &privileged()[0].1);
    assert_denied(&answer(&mut bench, STRANGER, &create), "peer credentials do not count here");
}

/// In a user namespace every user outside of it has this number.
#[test]
fn the_number_of_unknown_users_grants_no_privileges() {
    let trust = TrustConfig { allowed_gids: vec![65_534], ..Default::default() };
    let config = ManagementConfig { trust, router_uid: Some(65_534), ..Default::default() };
    let mut bench = Bench::with_config(config);
    let unknown = PeerCredentials { uid: 65_534, gid: 65_534, groups: vec![65_534], pid: 0 };
    bench.add_face(application(STRANGER, Some(unknown)));
    let create = unsigned_command("faces/create", &privileged()[0].1);
    assert_denied(&answer(&mut bench, STRANGER, &create), "the peer (uid 65534, gid 65534)");
}

#[test]
fn datasets_need_nothing() {
    let mut bench = bench_with(TrustConfig::default(), user(4000));
    let request = InterestBuilder::new(uri("/localhost/nfd/faces/list")).can_be_prefix(true).must_be_fresh(true);
    bench.send_from(STRANGER, &request.build());
    let data = Data::parse(bench.reply()).expect("Data");
    assert!(!String::from_utf8_lossy(data.content()).contains("4000"));
    assert!(!data.content().is_empty());
}

// ---- anchors ----

pub(crate) fn granting(identity: &Identity, privileges: Privileges) -> TrustConfig {
    let authorization = Authorization { signer: Grant::Certificate(identity.anchor()), privileges };
    TrustConfig { authorizations: vec![authorization], ..Default::default() }
}

#[test]
fn an_anchor_may_do_what_its_privileges_say() {
    let operator = Identity::new("/operator", None);
    let privileges = Privileges { faces: true, rib: true, ..Default::default() };
    let mut bench = bench_with(granting(&operator, privileges), None);
    let create = &privileged()[0].1;
    let signed = operator.command("/localhost/nfd", "faces/create", create);
    assert!(passes(&mut bench, STRANGER, &signed));
    let other = ControlParameters { uri: Some("udp4://192.0.2.8:6363".to_owned()), ..Default::default() };
    assert!(passes(&mut bench, STRANGER, &operator.old_command("/localhost/nfd", "faces/create", &other)));
    let route = operator.command("/localhost/nfd", "rib/register", &route_of(UDP_FACE));
    assert_eq!(answer(&mut bench, STRANGER, &route).code, 200);
    let fib = operator.command("/localhost/nfd", "fib/add-nexthop", &for_prefix("/x"));
    assert_denied(&answer(&mut bench, STRANGER, &fib), "not allowed: /operator/KEY/1 may not use fib");
    // The same name with another key.
    let liar = Identity::new("/operator", None).command("/localhost/nfd", "faces/create", create);
    assert_denied(&answer(&mut bench, STRANGER, &liar), "bad signature: /operator/KEY/1");
    // A certificate of the anchor is still not the anchor.
    let child = Identity::new("/operator/child", Some(&operator)).command("/localhost/nfd", "faces/create", create);
    assert_denied(&answer(&mut bench, STRANGER, &child), "unknown signer /operator/child/KEY/1");
}

#[test]
fn certificates_have_their_time() {
    let create = &privileged()[0].1;
    let over = Identity::valid("/o", None, 0, NOW_MS - 1000);
    let mut bench = bench_with(granting(&over, Privileges::ALL), None);
    let signed = over.command("/localhost/nfd", "faces/create", create);
    assert_denied(&answer(&mut bench, STRANGER, &signed), "the certificate /o/KEY/1/self/v=1 has expired");
    let early = Identity::valid("/o", None, NOW_MS + 1000, NOW_MS + DAY_MS);
    let mut bench = bench_with(granting(&early, Privileges::ALL), None);
    let signed = early.command("/localhost/nfd", "faces/create", create);
    assert_denied(&answer(&mut bench, STRANGER, &signed), "not yet valid");
}

#[test]
fn a_remote_face_never_uses_localhost() {
    let operator = Identity::new("/operator", None);
    let mut bench = Bench::with_trust(granting(&operator, Privileges::ALL));
    let signed = operator.command("/localhost/nfd", "rib/register", &for_prefix("/x"));
    assert_denied(&answer(&mut bench, UDP_FACE, &signed), "is not local");
}

#[test]
fn certfile_any_is_as_in_nfd() {
    let any =
        Authorization { signer: Grant::Any, privileges: Privileges { rib: true, faces: true, ..Default::default() } };
    let mut bench = bench_with(TrustConfig { authorizations: vec![any], ..Default::default() }, user(4000));
    assert!(passes(&mut bench, STRANGER, &unsigned_command("faces/create", &privileged()[0].1)));
    let fib = unsigned_command("fib/add-nexthop", &for_prefix("/x"));
    assert_denied(&answer(&mut bench, STRANGER, &fib), "fib needs a trusted signature");
    assert_denied(&answer(&mut bench, STRANGER, &unsigned_command("rib/register", &route_of(UDP_FACE))), "not signed");
    let wrong = InterestBuilder::new(command_name("rib/register", &route_of(UDP_FACE)));
    let wrong = wrong.sign_with(DIGEST_SHA256, None, &fresh_fields(), |_| vec![0; 32]);
    assert_eq!(answer(&mut bench, STRANGER, &wrong).code, 200, "presence is all that is asked for");
}

// ---- replay ----

#[test]
fn a_burst_of_a_thousand_passes_and_each_only_once() {
    let mut bench = bench_with(TrustConfig::default(), user(4000));
    let burst: Vec<Vec<u8>> = (0..1000)
        .map(|number| digest_command("rib/register", &for_prefix(&format!("/burst/{number}")), &fresh_fields()))
        .collect();
    for command in &burst {
        assert_eq!(answer(&mut bench, STRANGER, command).code, 200);
    }
    for command in &burst {
        assert_denied(&answer(&mut bench, STRANGER, command), "replayed");
    }
    // A digest does not name a signer: another face has its own clock and nonces.
    assert_eq!(answer(&mut bench, LOCAL_FACE, &burst[0]).code, 200);
    bench.request("/localhost/nfd/status/drops");
    let data = Data::parse(bench.reply()).expect("Data");
    assert!(String::from_utf8_lossy(data.content()).contains("denied.replayed"));
}

#[test]
fn one_client_s_wrong_clock_does_not_lock_others_out() {
    let mut bench = bench_with(TrustConfig::default(), user(4000));
    let ahead = SignedInterestFields { time_ms: Some(NOW_MS + 60_000), ..fresh_fields() };
    assert_eq!(answer(&mut bench, STRANGER, &digest_command("rib/register", &for_prefix("/x"), &ahead)).code, 200);
    let right = digest_command("rib/register", &for_prefix("/x"), &fresh_fields());
    assert_eq!(answer(&mut bench, LOCAL_FACE, &right).code, 200);
}

#[test]
fn rib_wants_a_time_near_the_clock_and_a_nonce() {
    let mut bench = bench_with(TrustConfig::default(), user(4000));
    let mut with = |fields: SignedInterestFields| {
        answer(&mut bench, STRANGER, &digest_command("rib/register", &for_prefix("/x"), &fields))
    };
    assert_denied(
        &with(SignedInterestFields { time_ms: Some(NOW_MS - 200_000), ..fresh_fields() }),
        "expired: signed 200000 ms",
    );
    assert_denied(&with(SignedInterestFields { time_ms: Some(NOW_MS + 200_000), ..fresh_fields() }), "from the future");
    assert_denied(&with(SignedInterestFields { time_ms: None, ..fresh_fields() }), "no time");
    assert_denied(&with(SignedInterestFields { nonce: vec![], ..fresh_fields() }), "no nonce");
    assert_eq!(with(fresh_fields()).code, 200);
}

/// The story: the clock of the machine was set back, and every application was refused until it connected again. Its
/// new commands were before the oldest command that the router remembered.
#[test]
fn applications_and_keys_are_heard_after_the_clock_was_set_back_and_forth() {
    let operator = Identity::new("/operator", None);
    let mut bench = bench_with(granting(&operator, Privileges::ALL), user(4000));
    let mut number = 0;
    let mut old = Vec::new();
    for (minutes, step_ms) in [(10, 0_i64), (10, -300_000), (10, 3_600_000), (10, -3_600_000)] {
        bench.now.unix_ms = bench.now.unix_ms.saturating_add_signed(step_ms);
        for _ in 0..minutes {
            bench.pass_ms(60_000);
            number += 1;
            let unix_ms = bench.now.unix_ms;
            let fields = || SignedInterestFields { time_ms: Some(unix_ms), ..fresh_fields() };
            let own = digest_command("rib/register", &for_prefix(&format!("/own/{number}")), &fields());
            let signed = operator.command_with("/localhost/nfd", "fib/add-nexthop", &for_prefix("/x"), &fields());
            for command in [own, signed] {
                let response = answer(&mut bench, STRANGER, &command);
                assert_eq!(response.code, 200, "{number}, after {step_ms} ms: {}", response.text);
                old.push(command);
            }
            for command in &old {
                assert_eq!(answer(&mut bench, STRANGER, command).code, 403, "it passed before");
            }
        }
    }
}

#[test]
fn an_anchor_s_command_is_not_replayed_over_another_face() {
    let operator = Identity::new("/operator", None);
    let mut bench = bench_with(granting(&operator, Privileges::ALL), None);
    bench.add_face(application(FaceId(311), None));
    let signed = operator.command("/localhost/nfd", "fib/add-nexthop", &for_prefix("/x"));
    assert_eq!(answer(&mut bench, STRANGER, &signed).code, 200);
    assert_denied(&answer(&mut bench, FaceId(311), &signed), "replayed");
    assert_denied(&answer(&mut bench, STRANGER, &signed), "replayed");
}

/// A connection takes up to 8 s, but a client sends its command again after one. The second copy must not answer 403 in
/// place of the first.
#[test]
fn a_command_in_progress_may_be_sent_again() {
    let operator = Identity::new("/operator", None);
    let mut bench = bench_with(granting(&operator, Privileges::ALL), None);
    let signed = operator.command("/localhost/nfd", "faces/create", &privileged()[0].1);
    bench.send_from(STRANGER, &signed);
    let Some(Effect::CreateFace(create)) = bench.effects.pop() else { panic!("no face command") };
    bench.send_from(STRANGER, &signed);
    assert_eq!(bench.effects, []);
    bench.effects.push(Effect::CreateFace(create));
    bench.done(Ok(FaceProperties { face: FaceId(400), remote: REMOTE.parse().expect("URI"), ..udp_face() }));
    assert_eq!(bench.answer().code, 200);
}

// ---- rules ----

fn regex(text: &str) -> NameRegex {
    NameRegex::parse(text).expect(text)
}

/// The rules of NFD's sample configuration for `/localhop`.
pub(crate) fn localhop_rules(anchor: &Identity) -> TrustConfig {
    let commands = Rule {
        id: "commands".to_owned(),
        packet: PacketKind::Interest,
        filters: vec![NameFilter::Regex(regex("^<localhop><nfd><rib>[<register><unregister>]<>{1,3}$"))],
        checkers: vec![Checker {
            signature_type: SHA256_ECDSA,
            key_locator: KeyLocatorRule::Regex(regex("^<>*<KEY><>{1,3}$")),
        }],
        at_signing_time: false,
    };
    let certificates = Rule {
        id: "hierarchy".to_owned(),
        packet: PacketKind::Data,
        filters: vec![NameFilter::Regex(regex("^<>*<KEY><>{1,3}$"))],
        checkers: vec![Checker::hierarchical(SHA256_ECDSA)],
        at_signing_time: false,
    };
    let rules = ValidatorConfig {
        rules: vec![commands, certificates],
        anchors: vec![TrustAnchor::Certificate(anchor.anchor())],
    };
    TrustConfig { localhop_rib: Some(RulesOrAny::Rules(rules)), looks_up_revocations: false, ..Default::default() }
}

#[test]
fn localhop_is_served_only_with_rules() {
    let anchor = Identity::new("/ndn", None);
    let command = anchor.command("/localhop/nfd", "rib/register", &for_prefix("/x"));
    let mut bench = Bench::new();
    bench.send_from(UDP_FACE, &command);
    assert_eq!((bench.effects.len(), bench.management.counters().foreign_prefix), (0, 1));

    let mut bench = Bench::with_trust(localhop_rules(&anchor));
    let next_hops = vec![NextHop { face: FaceId::INTERNAL, cost: 0 }];
    let is_routed = |changes: &[FibChange]| {
        changes.iter().any(|change| {
            matches!(change, FibChange::Insert { name: prefix, next_hops: hops, .. }
                if *prefix == uri("/localhop/nfd") && *hops == next_hops)
        })
    };
    let command = anchor.command("/localhop/nfd", "rib/register", &for_prefix("/x"));
    assert_eq!(answer(&mut bench, UDP_FACE, &command).code, 200);
    assert!(bench.fib_changes().iter().any(|change| matches!(change, FibChange::Insert { next_hops, .. }
        if next_hops[0].face == UDP_FACE)));
    let old = anchor.old_command("/localhop/nfd", "rib/unregister", &for_prefix("/x"));
    assert_eq!(answer(&mut bench, UDP_FACE, &old).code, 200);
    // Settings may change while management runs.
    bench.effects.clear();
    bench.management.set_trust(TrustConfig::default(), &mut bench.effects);
    assert_eq!(bench.fib_changes(), [FibChange::Remove { name: uri("/localhop/nfd") }]);
    bench.effects.clear();
    bench.management.set_trust(localhop_rules(&anchor), &mut bench.effects);
    assert!(is_routed(&bench.fib_changes()));
}

/// The schema `site` of `interop/lvs_cases.py`: operators and routers of a site register routes, whose certificates the
/// site's key and operators sign. Commands of both formats have the same name for it.
#[test]
fn a_schema_decides_for_neighbours() {
    let site = Identity::new("/site", None);
    let [operator, stranger] = ["/site/op/ann", "/site/else/ann"].map(|name| Identity::new(name, Some(&site)));
    let by_operator = Identity::new("/site/op/bob", Some(&operator));
    let schema = Schema::parse(include_bytes!("../../security/tests/lvs/site.tlv")).expect("a schema");
    let rules = RulesOrAny::Schema(SchemaConfig::new(schema, [site.anchor()]).expect("a root of trust"));
    let mut bench = Bench::with_trust(TrustConfig { localhop_rib: Some(rules), ..Default::default() });
    let command = |by: &Identity| by.command("/localhop/nfd", "rib/register", &for_prefix("/x"));

    // The KeyLocator names the key. Its certificate is fetched, and its name decides.
    bench.send_from(UDP_FACE, &command(&operator));
    bench.send_from(FaceId(320), operator.certificate.wire());
    assert_eq!(bench.answer().code, 200);
    let old = operator.old_command("/localhop/nfd", "rib/unregister", &for_prefix("/x"));
    assert_eq!(answer(&mut bench, UDP_FACE, &old).code, 200);
    for (refused, reason) in [(&stranger, "#register of the schema"), (&by_operator, "#operator of the schema")] {
        bench.send_from(UDP_FACE, &command(refused));
        bench.send_from(UDP_FACE, refused.certificate.wire());
        assert_denied(&bench.answer(), reason);
    }
    let mut register = uri("/localhop/nfd/rib/register");
    register.push_generic(&for_prefix("/x").to_wire());
    let digest = InterestBuilder::new(register).nonce(Nonce([1, 2, 3, 4])).sign_digest(&fresh_fields());
    assert_denied(&answer(&mut bench, UDP_FACE, &digest), "the schema does not let DigestSha256 sign");
}

#[test]
fn the_process_of_the_router_needs_no_permission() {
    let strictest = TrustConfig {
        peer_credentials: false,
        localhost_rib: Some(RulesOrAny::Rules(ValidatorConfig::default())),
        ..TrustConfig::default()
    };
    let mut bench = bench_with(strictest, user(0));
    for (command, parameters) in privileged() {
        assert_eq!(answer(&mut bench, STRANGER, &digest_command(command, &parameters, &fresh_fields())).code, 403);
    }
    for (command, parameters) in privileged().into_iter().skip(1).chain([("rib/register", route_of(LOCAL_FACE))]) {
        let fields = fresh_fields();
        let response = answer(&mut bench, FaceId::INTERNAL, &digest_command(command, &parameters, &fields));
        // A next hop needs a face that exists, which the internal one is not.
        let expected = if command == "fib/add-nexthop" { 410 } else { 200 };
        assert_eq!(response.code, expected, "{command}: {response:?}");
    }
    // The face decides: the same route from another face is refused.
    let elsewhere = digest_command("rib/register", &route_of(LOCAL_FACE), &fresh_fields());
    assert_eq!(answer(&mut bench, STRANGER, &elsewhere).code, 403);
    let (command, parameters) = &privileged()[0];
    bench.send_from(FaceId::INTERNAL, &digest_command(command, parameters, &fresh_fields()));
    assert!(bench.effects.iter().any(|effect| matches!(effect, Effect::CreateFace(_))), "{:?}", bench.effects);
}

#[test]
fn neighbours_read_the_routes_where_they_may_register_them() {
    let anchor = Identity::new("/ndn", None);
    let mut bench = Bench::with_trust(localhop_rules(&anchor));
    for (dataset, is_served) in [("/localhop/nfd/rib/list", true), ("/localhop/nfd/faces/list", false)] {
        bench.send_from(UDP_FACE, &InterestBuilder::new(uri(dataset)).can_be_prefix(true).build());
        let [Effect::Reply { packet, .. }] = &bench.effects[..] else { panic!("{:?}", bench.effects) };
        let data = Data::parse(packet).expect("Data");
        assert_eq!(decode_dataset::<RibEntry>(data.content()).is_ok(), is_served, "{dataset}");
        assert_eq!(data.name().last().is_some_and(|last| last.segment().is_some()), is_served, "{dataset}");
    }
}

#[test]
fn what_localhop_refuses() {
    let anchor = Identity::new("/ndn", None);
    let mut bench = Bench::with_trust(localhop_rules(&anchor));
    let mut from_afar = |interest: &[u8]| answer(&mut bench, UDP_FACE, interest);
    let other = anchor.command("/localhop/nfd", "rib/register", &route_of(LOCAL_FACE));
    assert_denied(&from_afar(&other), "a route of another face");
    let unsigned = {
        let mut command = uri("/localhop/nfd/rib/register");
        command.push_generic(&for_prefix("/x").to_wire());
        InterestBuilder::new(command)
    };
    assert_denied(&from_afar(&unsigned.build()), "not signed");
    assert_denied(&from_afar(&unsigned.sign_digest(&fresh_fields())), "rule \"commands\" does not let DigestSha256");
    let liar = Identity::new("/ndn", None).command("/localhop/nfd", "rib/register", &for_prefix("/x"));
    assert_denied(&from_afar(&liar), "bad signature");
    let signed = anchor.command("/localhop/nfd", "rib/register", &for_prefix("/x"));
    assert_eq!(from_afar(&signed).code, 200);
    let faces = anchor.command("/localhop/nfd", "faces/destroy", &ControlParameters::default());
    assert_eq!(from_afar(&faces).code, 501);
    let below = anchor.command("/localhop/nfd", "rib/register", &for_prefix("/localhop/nfd/rib"));
    assert_eq!(from_afar(&below).code, 403);
}

/// The names of the certificates that were just asked for, each with the face that is asked; `None`: the network.
fn asked(bench: &Bench) -> Vec<(String, Option<FaceId>)> {
    let asked = bench.effects.iter().map(|effect| {
        let Effect::Express { packet, to } = effect else { panic!("{effect:?}") };
        let interest = Interest::parse(packet).expect("Interest");
        assert!(interest.can_be_prefix() && interest.must_be_fresh());
        (interest.name().to_string(), *to)
    });
    asked.collect()
}

#[test]
fn a_host_serves_the_certificates_of_its_own_commands() {
    let anchor = Identity::new("/ndn", None);
    let site = Identity::new("/ndn/site", Some(&anchor));
    let user = Identity::new("/ndn/site/user", Some(&site));
    let mut bench = Bench::with_trust(localhop_rules(&anchor));
    bench.send_from(UDP_FACE, &user.command("/localhop/nfd", "rib/register", &for_prefix("/x")));
    bench.send_from(UDP_FACE, user.certificate.wire());
    bench.send_from(UDP_FACE, site.certificate.wire());
    assert_eq!(bench.answer().code, 200);
    let again = user.command("/localhop/nfd", "rib/unregister", &for_prefix("/x"));
    assert_eq!(answer(&mut bench, UDP_FACE, &again).code, 200);
    // What a host told of itself counts for that host alone.
    let elsewhere = add_neighbour(&mut bench);
    bench.send_from(elsewhere, &user.command("/localhop/nfd", "rib/register", &for_prefix("/y")));
    let locator = user.signer.key_locator().expect("a key").to_string();
    assert_eq!(asked(&bench), [(locator.clone(), None), (locator, Some(elsewhere))]);
}

/// A face of another host than that of [`UDP_FACE`].
pub(crate) fn add_neighbour(bench: &mut Bench) -> FaceId {
    let (face, holder) = (FaceId(332), HolderId::from_index(300).expect("the number of a remote holder"));
    bench.add_face(FaceProperties { face, holder, ..udp_face() });
    face
}

/// Another host names the owner's key in a command of its own, so that it is asked, too, and answers with a forgery.
#[test]
fn a_forger_that_sends_commands_does_not_keep_the_owner_out() {
    let anchor = Identity::new("/ndn", None);
    let owner = Identity::new("/ndn/owner", Some(&anchor));
    let liar = Identity::new("/ndn/owner", Some(&Identity::new("/ndn", None)));
    let locator = owner.signer.key_locator().expect("a key").to_string();
    let mut bench = Bench::with_trust(localhop_rules(&anchor));
    let forger = add_neighbour(&mut bench);
    let register = |identity: &Identity| identity.command("/localhop/nfd", "rib/register", &for_prefix("/x"));
    bench.send_from(UDP_FACE, &register(&owner));
    for _ in 0..3 {
        bench.send_from(forger, &register(&liar));
        assert_eq!(asked(&bench), [(locator.clone(), Some(forger))]);
        bench.send_from(forger, liar.certificate.wire());
        assert_denied(&bench.answer(), "bad signature");
        // The forgery ended the owner's Interest, too.
        bench.effects.retain(|effect| matches!(effect, Effect::Express { .. }));
        assert_eq!(asked(&bench), [(locator.clone(), None), (locator.clone(), Some(UDP_FACE))]);
    }
    bench.send_from(UDP_FACE, owner.certificate.wire());
    assert_eq!(bench.answer().code, 200);
}

/// The forgery comes from elsewhere: from the Content Store, or from a host whose command is answered already.
#[test]
fn a_forgery_of_the_network_does_not_keep_the_owner_out() {
    let anchor = Identity::new("/ndn", None);
    let owner = Identity::new("/ndn/owner", Some(&anchor));
    let liar = Identity::new("/ndn/owner", Some(&Identity::new("/ndn", None)));
    let no_certificate = DataBuilder::new(liar.certificate.name()).sign_digest();
    let locator = owner.signer.key_locator().expect("a key").to_string();
    for forgery in [liar.certificate.wire(), &no_certificate] {
        let mut bench = Bench::with_trust(localhop_rules(&anchor));
        let command = owner.command("/localhop/nfd", "rib/register", &for_prefix("/x"));
        bench.send_from(UDP_FACE, &command);
        bench.send_from(FaceId(320), forgery);
        assert_eq!(asked(&bench), [(locator.clone(), Some(UDP_FACE))], "now its own host alone");
        // The next forgery changes nothing; the Interest that it ends is expressed again, up to a limit.
        for again in 0..12 {
            bench.send_from(FaceId(320), forgery);
            assert_eq!(asked(&bench).len(), usize::from(again < 8), "{again}");
        }
        bench.send_from(UDP_FACE, owner.certificate.wire());
        assert_eq!(bench.answer().code, 200);
    }
    // A host that does not answer is told what was wrong with the network's.
    let mut bench = Bench::with_trust(localhop_rules(&anchor));
    bench.send_from(UDP_FACE, &owner.command("/localhop/nfd", "rib/register", &for_prefix("/x")));
    bench.send_from(FaceId(320), liar.certificate.wire());
    bench.pass_ms(2000);
    bench.timers();
    assert_denied(&bench.answer(), "bad signature");
}

#[test]
fn a_chain_of_certificates_is_fetched() {
    let anchor = Identity::new("/ndn", None);
    let site = Identity::new("/ndn/site", Some(&anchor));
    let user = Identity::new("/ndn/site/user", Some(&site));
    let mut bench = Bench::with_trust(localhop_rules(&anchor));
    let ask = |bench: &mut Bench, identity: &Identity, interest: &[u8], face: FaceId| {
        bench.send_from(face, interest);
        let locator = identity.signer.key_locator().expect("a key").to_string();
        assert_eq!(asked(bench), [(locator.clone(), None), (locator, Some(UDP_FACE))]);
    };
    let signed = user.command("/localhop/nfd", "rib/register", &for_prefix("/x"));
    ask(&mut bench, &user, &signed, UDP_FACE);
    // The first certificate shows that another one is needed.
    ask(&mut bench, &site, user.certificate.wire(), FaceId(320));
    bench.send_from(FaceId(320), site.certificate.wire());
    assert_eq!(bench.answer().code, 200);
    // The route belongs to the face of the command, not to the face of the certificate.
    let routes = format!("{:?}", bench.management.rib().routes(uri("/x").as_name()));
    assert!(routes.contains(&format!("{UDP_FACE:?}")), "{routes}");
    // The next time, the certificates are at hand.
    let again = user.command("/localhop/nfd", "rib/unregister", &for_prefix("/x"));
    assert_eq!(answer(&mut bench, UDP_FACE, &again).code, 200);
}

/// The Data is lost on the link, and the client sends the Interest again.
#[test]
fn a_neighbour_that_lost_the_answer_gets_it_again_and_nothing_more() {
    let anchor = Identity::new("/ndn", None);
    let mut bench = Bench::with_trust(localhop_rules(&anchor));
    bench.add_face(FaceProperties { face: FaceId(330), ..udp_face() });
    let register = anchor.command("/localhop/nfd", "rib/register", &for_prefix("/x"));
    let first = answer(&mut bench, UDP_FACE, &register);
    assert_eq!(first.code, 200);
    let unregister = anchor.command("/localhop/nfd", "rib/unregister", &for_prefix("/x"));
    assert_eq!(answer(&mut bench, UDP_FACE, &unregister).code, 200);
    assert_eq!(answer(&mut bench, UDP_FACE, &register), first);
    assert!(bench.management.rib().is_empty(), "it was answered, not carried out");
    assert_denied(&answer(&mut bench, FaceId(330), &register), "replayed");
    bench.pass_ms(8000);
    assert_denied(&answer(&mut bench, UDP_FACE, &register), "replayed");
}

#[test]
fn a_chain_that_does_not_hold() {
    let anchor = Identity::new("/ndn", None);
    let mut bench = Bench::with_trust(localhop_rules(&anchor));
    // Outside of the issuer's name space.
    let foreign = Identity::new("/foreign", Some(&anchor));
    bench.send_from(UDP_FACE, &foreign.command("/localhop/nfd", "rib/register", &for_prefix("/x")));
    bench.send_from(UDP_FACE, foreign.certificate.wire());
    assert_denied(&bench.answer(), "rule \"hierarchy\" does not let /ndn/KEY/1 sign this");
    // Signed by itself, in a circle.
    let own = Identity::new("/ndn/own", None);
    bench.send_from(UDP_FACE, &own.command("/localhop/nfd", "rib/register", &for_prefix("/x")));
    bench.send_from(UDP_FACE, own.certificate.wire());
    assert_denied(&bench.answer(), "unknown signer /ndn/own/KEY/1");
    let over = Identity::valid("/ndn/over", Some(&anchor), 0, NOW_MS - DAY_MS);
    bench.send_from(UDP_FACE, &over.command("/localhop/nfd", "rib/register", &for_prefix("/x")));
    bench.send_from(UDP_FACE, over.certificate.wire());
    assert_denied(&bench.answer(), "the certificate /ndn/over/KEY/1/ca/v=1 has expired");
    // Other Data under the right name; a wrong certificate may be fetched correctly later.
    let late = Identity::new("/ndn/late", Some(&anchor));
    let command = late.command("/localhop/nfd", "rib/register", &for_prefix("/x"));
    bench.send_from(UDP_FACE, &command);
    bench.send_from(UDP_FACE, &DataBuilder::new(late.certificate.name()).sign_digest());
    assert_denied(&bench.answer(), "unknown signer /ndn/late/KEY/1");
    let liar = Identity::new("/ndn/late", Some(&Identity::new("/ndn", None)));
    bench.send_from(UDP_FACE, &command);
    bench.send_from(UDP_FACE, liar.certificate.wire());
    assert_denied(&bench.answer(), "bad signature");
    bench.send_from(UDP_FACE, &command);
    bench.send_from(UDP_FACE, late.certificate.wire());
    assert_eq!(bench.answer().code, 200);
}

#[test]
fn a_certificate_that_does_not_come() {
    let anchor = Identity::new("/ndn", None);
    let site = Identity::new("/ndn/site", Some(&anchor));
    let mut bench = Bench::with_trust(localhop_rules(&anchor));
    let other = HolderId::from_index(300).expect("the number of a remote holder");
    let (ports, neighbour) = ([UDP_FACE, FaceId(331)], FaceId(332));
    bench.add_face(FaceProperties { face: ports[1], ..udp_face() });
    bench.add_face(FaceProperties { face: neighbour, holder: other, ..udp_face() });
    let mut waiting = 0;
    let one_host_and_then_another = [(&ports[..], 28), (&[neighbour], 14)];
    for (faces, share) in one_host_and_then_another {
        for face in faces.iter().cycle().take(share) {
            let command = site.command("/localhop/nfd", "rib/register", &for_prefix(&format!("/{waiting}")));
            bench.send_from(*face, &command);
            // One Interest serves all commands that wait for the same certificate, and one of each face its own.
            let (first, is_first_of_face) = (waiting == 0, waiting < 2 || waiting == 28);
            assert_eq!(bench.effects.len(), usize::from(first) + usize::from(is_first_of_face), "{waiting}");
            waiting += 1;
        }
        for face in faces {
            let one_more = site.command("/localhop/nfd", "rib/register", &for_prefix("/more"));
            assert_denied(&answer(&mut bench, *face, &one_more), "too many commands wait");
        }
    }
    assert_eq!(bench.management.next_deadline(), Some(bench.now.mono_ns + 2_000_000_000));
    bench.pass_ms(2000);
    bench.timers();
    assert_eq!(bench.effects.len(), waiting);
    for effect in &bench.effects {
        let Effect::Reply { packet, .. } = effect else { panic!("{effect:?}") };
        assert_denied(&answer_in(packet), "unknown signer /ndn/site/KEY/1");
    }
    assert_eq!(bench.management.next_deadline(), None);
}

/// A forger answers once for another owner's name, with a certificate that leads nowhere.
#[test]
fn a_forged_certificate_does_not_lock_out_its_owner() {
    let anchor = Identity::new("/ndn", None);
    let site = Identity::new("/ndn/site", Some(&anchor));
    // The rules let a key of `/` sign this; there is no such certificate.
    let forged = reissued(&Identity::new("/ndn/site", None), "/KEY/9");
    let mut bench = Bench::with_trust(localhop_rules(&anchor));
    let command = site.command("/localhop/nfd", "rib/register", &for_prefix("/x"));
    bench.send_from(UDP_FACE, &command);
    bench.send_from(FaceId(320), forged.wire());
    assert_eq!(asked(&bench), [("/KEY/9".to_owned(), None), ("/KEY/9".to_owned(), Some(UDP_FACE))]);
    bench.pass_ms(2000);
    bench.timers();
    assert_denied(&bench.answer(), "unknown signer /KEY/9");
    // The owner tries again and succeeds.
    bench.send_from(UDP_FACE, &command);
    bench.send_from(FaceId(320), site.certificate.wire());
    assert_eq!(bench.answer().code, 200);
}

/// A user of `/home/joe` signs with a KeyLocator that is not a key's name, but the name of the identity above.
#[test]
fn a_key_below_an_identity_does_not_sign_as_that_identity() {
    let anchor = Identity::new("/home", None);
    let joe = Identity::new("/home/joe", Some(&anchor));
    let guest = Identity::new("/home/joe/guest", Some(&anchor));
    let mut trust = localhop_rules(&anchor);
    let Some(RulesOrAny::Rules(rules)) = &mut trust.localhop_rib else { panic!("rules") };
    rules.rules[0].checkers[0].key_locator = KeyLocatorRule::Relation(NameRelation::Equal, uri("/home/joe"));
    let mut bench = Bench::with_trust(trust);
    let signed_as = |locator: &str| {
        let mut command = uri("/localhop/nfd/rib/register");
        command.push_generic(&for_prefix("/x").to_wire());
        InterestBuilder::new(command).nonce(Nonce([1, 2, 3, 4])).sign_with(
            SHA256_ECDSA,
            Some(&uri(locator)),
            &fresh_fields(),
            |pieces| guest.signer.sign(pieces).expect("signed"),
        )
    };
    assert_denied(&answer(&mut bench, UDP_FACE, &signed_as("/home/joe")), "unknown signer /home/joe");
    assert_denied(&answer(&mut bench, UDP_FACE, &signed_as("/home/joe/guest/KEY/1")), "rule \"commands\"");
    // The name of joe's key is requested; the guest's key does not replace it.
    bench.send_from(UDP_FACE, &joe.command("/localhop/nfd", "rib/register", &for_prefix("/x")));
    bench.send_from(FaceId(320), joe.certificate.wire());
    assert_eq!(bench.answer().code, 200);
}

/// Commands of the internal face are all allowed, so no Interest of that face may be a command.
#[test]
fn a_key_whose_name_is_a_command_is_not_asked_for() {
    let mut bench = Bench::with_trust(localhop_rules(&Identity::new("/ndn", None)));
    for own in ["/localhost/nfd/cs/config/x", "/localhop/nfd/rib/register/x"] {
        let command = Identity::new(own, None).command("/localhop/nfd", "rib/register", &for_prefix("/x"));
        assert_denied(&answer(&mut bench, UDP_FACE, &command), &format!("unknown signer {own}/KEY/1"));
    }
}

#[test]
fn relations_of_names_and_the_first_rule_that_catches() {
    let joe = Identity::new("/home/joe", None);
    let ann = Identity::new("/home/ann", None);
    let checker = |relation, with: &str| Checker {
        signature_type: SHA256_ECDSA,
        key_locator: KeyLocatorRule::Relation(relation, uri(with)),
    };
    let rule = |id: &str, filter: Option<NameFilter>, checkers: Vec<Checker>| Rule {
        id: id.to_owned(),
        packet: PacketKind::Interest,
        filters: filter.into_iter().collect(),
        checkers,
        at_signing_time: false,
    };
    let unregister = NameFilter::Relation(NameRelation::IsStrictPrefixOf, uri("/localhost/nfd/rib/unregister"));
    let rules = ValidatorConfig {
        rules: vec![
            rule("joe", Some(unregister), vec![checker(NameRelation::Equal, "/home/joe")]),
            rule(
                "all",
                None,
                vec![
                    Checker { signature_type: ED25519, key_locator: KeyLocatorRule::Any },
                    checker(NameRelation::IsStrictPrefixOf, "/home"),
                ],
            ),
        ],
        anchors: vec![TrustAnchor::Certificate(joe.anchor()), TrustAnchor::Certificate(ann.anchor())],
    };
    let trust = TrustConfig { localhost_rib: Some(RulesOrAny::Rules(rules)), ..Default::default() };
    let mut bench = bench_with(trust, user(0));
    let mut send = |who: &Identity, verb: &str| {
        answer(&mut bench, STRANGER, &who.command("/localhost/nfd", verb, &route_of(UDP_FACE)))
    };
    assert_eq!(send(&joe, "rib/register").code, 200);
    assert_eq!(send(&ann, "rib/register").code, 200);
    assert_eq!(send(&joe, "rib/unregister").code, 200);
    assert_denied(&send(&ann, "rib/unregister"), "rule \"joe\" does not let /home/ann/KEY/1");
    // A name that only looks the same, and that the first rule does not catch, does not pass either.
    assert_eq!(send(&ann, "rib/32=unregister").code, 501);
    assert_eq!(send(&ann, "32=rib/unregister").code, 400);
    // With rules for `rib`, credentials do not count there; elsewhere they do.
    let digest = digest_command("rib/register", &for_prefix("/x"), &fresh_fields());
    assert_denied(&answer(&mut bench, STRANGER, &digest), "rule \"all\"");
    assert!(passes(&mut bench, STRANGER, &unsigned_command("fib/add-nexthop", &for_prefix("/x"))));
}

#[test]
fn rules_for_digests_and_for_anything() {
    let digest = Rule {
        id: "digest".to_owned(),
        packet: PacketKind::Interest,
        filters: vec![],
        checkers: vec![Checker { signature_type: DIGEST_SHA256, key_locator: KeyLocatorRule::Any }],
        at_signing_time: false,
    };
    let rules = RulesOrAny::Rules(ValidatorConfig { rules: vec![digest], anchors: vec![] });
    let wrong = || {
        InterestBuilder::new(command_name("rib/register", &route_of(UDP_FACE))).sign_with(
            DIGEST_SHA256,
            None,
            &fresh_fields(),
            |_| vec![0; 32],
        )
    };
    let right = || digest_command("rib/register", &route_of(UDP_FACE), &fresh_fields());
    let mut bench = bench_with(TrustConfig { localhost_rib: Some(rules), ..Default::default() }, None);
    assert_eq!(answer(&mut bench, STRANGER, &right()).code, 200);
    assert_denied(&answer(&mut bench, STRANGER, &wrong()), "bad signature");
    let any = TrustConfig { localhost_rib: Some(RulesOrAny::Any), ..Default::default() };
    let mut bench = bench_with(any, None);
    assert_eq!(answer(&mut bench, STRANGER, &right()).code, 200);
    assert_eq!(answer(&mut bench, STRANGER, &wrong()).code, 200);
    let unsigned = unsigned_command("rib/register", &for_prefix("/x"));
    assert_denied(&answer(&mut bench, STRANGER, &unsigned), "not signed");
}

#[test]
fn anchors_in_files_are_given_by_the_router() {
    let anchor = Identity::new("/ndn", None);
    let mut trust = localhop_rules(&anchor);
    let Some(RulesOrAny::Rules(rules)) = &mut trust.localhop_rib else { panic!("rules") };
    let file = TrustAnchor::File { path: "keys/ndn.cert".into(), refresh: None };
    rules.anchors = vec![file.clone()];
    assert_eq!(trust.anchor_files().collect::<Vec<_>>(), [&file]);
    let mut bench = Bench::with_trust(trust);
    let send = |bench: &mut Bench| {
        bench.send_from(UDP_FACE, &anchor.command("/localhop/nfd", "rib/register", &for_prefix("/x")));
        bench.effects.clone()
    };
    assert!(matches!(send(&mut bench)[..], [Effect::Express { .. }, Effect::Express { .. }]));
    bench.management.set_anchors("keys/ndn.cert".into(), vec![anchor.anchor()]);
    send(&mut bench);
    assert_eq!(bench.answer().code, 200);
}

#[test]
fn announcements_have_rules_of_their_own() {
    let owner = Identity::new("/ndn", None);
    let announce = |identity: &Identity| {
        identity.signer.sign_data(&DataBuilder::new(uri("/ndn/32=PA/v=1/seg=0")).content_type(5)).expect("signed")
    };
    let judge_from = |bench: &mut Bench, face: FaceId, wire: &[u8]| {
        let data = Data::parse(wire).expect("Data");
        bench.management.authorize_announcement(bench.now, face, &data).map_err(|why| why.to_string())
    };
    let judge = |bench: &mut Bench, wire: &[u8]| judge_from(bench, LOCAL_FACE, wire);
    let mut bench = Bench::new();
    assert_eq!(judge(&mut bench, &announce(&owner)), Ok(()), "as it may register");
    let from_afar = judge_from(&mut bench, UDP_FACE, &announce(&owner)).expect_err("no rules");
    assert!(from_afar.contains("from other hosts"), "{from_afar}");
    let rule = Rule {
        id: "owners".to_owned(),
        packet: PacketKind::Data,
        filters: vec![],
        checkers: vec![Checker::hierarchical(SHA256_ECDSA)],
        at_signing_time: false,
    };
    let anchors = vec![TrustAnchor::Certificate(owner.anchor())];
    let rules = RulesOrAny::Rules(ValidatorConfig { rules: vec![rule], anchors });
    let mut bench = Bench::with_trust(TrustConfig { prefix_announcement: Some(rules), ..Default::default() });
    assert_eq!(judge(&mut bench, &announce(&owner)), Ok(()));
    let stranger = judge(&mut bench, &announce(&Identity::new("/ndn/x", None))).expect_err("not below its name");
    assert!(stranger.contains("rule \"owners\""), "{stranger}");
    let any = TrustConfig { prefix_announcement: Some(RulesOrAny::Any), ..Default::default() };
    assert_eq!(judge(&mut Bench::with_trust(any), &announce(&Identity::new("/who", None))), Ok(()));
}

#[test]
fn long_names_do_not_make_long_texts() {
    let mut bench = bench_with(TrustConfig::default(), user(4000));
    let long: NameBuf = uri(&format!("/{}", "x".repeat(1500)));
    let signer = Identity::new(&long.to_string(), None);
    let signed = signer.command("/localhost/nfd", "fib/add-nexthop", &for_prefix("/x"));
    let response = answer(&mut bench, STRANGER, &signed);
    assert_denied(&response, "unknown signer /xxx");
    assert!(response.text.len() < 600, "{}", response.text.len());
}
