//! Commands whose certificates were revoked: by records in files, and by records of the network.

use super::authorization::{Identity, add_neighbour, granting, localhop_rules};
use namewire_management::{Effect, TrustConfig, trust_config::Privileges};
use namewire_packet::{FaceId, Interest, InterestBuilder, NackReason, nfd::ControlParameters};
use namewire_security::trust::{RevocationRecord, revocation::Reason};
use namewire_testbed::{
    management::{Bench, LOCAL_FACE, UDP_FACE, answer_in},
    uri,
};

const WAIT_NS: u64 = 500_000_000;
const INTERVAL_NS: u64 = 8_000_000_000;

fn register(signer: &Identity, prefix: &str) -> Vec<u8> {
    let parameters = ControlParameters { name: Some(uri(prefix)), ..Default::default() };
    signer.command("/localhop/nfd", "rib/register", &parameters)
}

fn record(by: &Identity, of: &Identity) -> RevocationRecord {
    RevocationRecord::make(&by.signer, &of.certificate, Reason::UNSPECIFIED, 1).expect("a record")
}

/// The site's certificate is fetched, and the network is asked for records.
fn bench_that_looks_up(anchor: &Identity) -> Bench {
    let trust = localhop_rules(anchor);
    let mut bench = Bench::with_trust(trust.clone());
    let trust = TrustConfig { looks_up_revocations: true, ..trust };
    bench.management.set_trust(trust, &mut bench.effects);
    bench
}

/// The command and what it lacks arrive. The result is what the router asks for then.
fn command(bench: &mut Bench, face: FaceId, site: &Identity, prefix: &str) -> Vec<String> {
    bench.send_from(face, &register(site, prefix));
    if asked(bench).iter().any(|name| name.contains("/KEY/")) {
        bench.send_from(face, site.certificate.wire());
    }
    asked(bench)
}

fn asked(bench: &Bench) -> Vec<String> {
    let names = bench.effects.iter().filter_map(|effect| match effect {
        Effect::Express { packet, .. } => Some(Interest::parse(packet).expect("an Interest").name().to_string()),
        _ => None,
    });
    names.collect()
}

fn nack(bench: &mut Bench, name: &str) {
    bench.effects.clear();
    let interest = InterestBuilder::new(uri(name)).build();
    let (now, router, out) = (bench.now, &mut bench.router, &mut bench.effects);
    bench.management.on_answer(now, None, &interest, Some(NackReason::NoRoute), router, out);
}

fn answers(bench: &Bench) -> Vec<u64> {
    let replies = bench.effects.iter().filter_map(|effect| match effect {
        Effect::Reply { packet, .. } => Some(answer_in(packet).code),
        _ => None,
    });
    replies.collect()
}

/// True if a denial for this reason was counted.
fn is_counted(bench: &mut Bench) -> bool {
    let drops = bench.fetch("/localhost/nfd/status/drops");
    String::from_utf8_lossy(&drops).contains("denied.certificate-revoked")
}

const OF_SITE: &str = "/ndn/site/REVOKE/1/ca/v=1";
const OF_ANCHOR: &str = "/ndn/REVOKE/1/self/v=1";

#[test]
fn a_record_in_a_file_refuses_commands_until_the_settings_no_longer_name_it() {
    let operator = Identity::new("/operator", None);
    let trust = TrustConfig {
        peer_credentials: false,
        revocations: vec!["revoked".into()],
        ..granting(&operator, Privileges::ALL)
    };
    let mut bench = Bench::with_trust(trust.clone());
    let parameters = ControlParameters { name: Some(uri("/x")), face_id: Some(UDP_FACE), ..Default::default() };
    let send = |bench: &mut Bench| {
        bench.send_from(LOCAL_FACE, &operator.command("/localhost/nfd", "rib/register", &parameters));
        bench.answer()
    };
    assert_eq!(send(&mut bench).code, 200);
    bench.management.set_revocations("revoked".into(), vec![record(&operator, &operator)]);
    let refused = send(&mut bench);
    assert!(refused.code == 403 && is_counted(&mut bench));
    assert!(refused.text.contains("was revoked on 1970-01-01T00:00:00Z (unspecified)"), "{}", refused.text);
    // Another key of that name is no reason.
    let impostor = Identity::new("/operator", None);
    bench.management.set_revocations("revoked".into(), vec![record(&impostor, &impostor)]);
    assert_eq!(send(&mut bench).code, 200);
    bench.management.set_revocations("revoked".into(), vec![record(&operator, &operator)]);
    assert_eq!(send(&mut bench).code, 403);
    bench
        .management
        .set_trust(TrustConfig { revocations: Vec::new(), looks_up_revocations: false, ..trust }, &mut bench.effects);
    assert_eq!(send(&mut bench).code, 200);
}

#[test]
fn the_first_command_waits_for_the_records_and_silence_refuses_nothing() {
    let anchor = Identity::new("/ndn", None);
    let site = Identity::new("/ndn/site", Some(&anchor));
    let mut bench = bench_that_looks_up(&anchor);
    assert_eq!(command(&mut bench, UDP_FACE, &site, "/x"), [OF_SITE, OF_ANCHOR]);
    assert_eq!((answers(&bench), bench.management.next_deadline()), (vec![], Some(bench.now.mono_ns + WAIT_NS)));
    // Another command meanwhile does not overtake the question.
    assert!(command(&mut bench, UDP_FACE, &site, "/y").is_empty() && answers(&bench).is_empty());
    bench.now.mono_ns += WAIT_NS;
    bench.timers();
    assert_eq!(answers(&bench), [200, 200]);
    assert!(command(&mut bench, UDP_FACE, &site, "/z").is_empty());
    assert_eq!(answers(&bench), [200], "asked a moment ago");
}

#[test]
fn nacks_end_the_wait() {
    let anchor = Identity::new("/ndn", None);
    let site = Identity::new("/ndn/site", Some(&anchor));
    let mut bench = bench_that_looks_up(&anchor);
    command(&mut bench, UDP_FACE, &site, "/x");
    nack(&mut bench, OF_SITE);
    assert!(answers(&bench).is_empty());
    nack(&mut bench, OF_ANCHOR);
    assert_eq!(answers(&bench), [200]);
}

/// Who signs the record that arrives: is the command refused?
#[test]
fn a_record_of_the_network_counts_by_the_owner_and_by_the_issuer_only() {
    let anchor = Identity::new("/ndn", None);
    let site = Identity::new("/ndn/site", Some(&anchor));
    let (other_site, other_issuer) = (Identity::new("/ndn/site", Some(&anchor)), Identity::new("/ndn", None));
    for (by, counts) in [(&anchor, true), (&site, true), (&other_site, false), (&other_issuer, false)] {
        let mut bench = bench_that_looks_up(&anchor);
        command(&mut bench, UDP_FACE, &site, "/x");
        bench.send_from(UDP_FACE, record(by, &site).wire());
        nack(&mut bench, OF_ANCHOR);
        assert_eq!(answers(&bench), [if counts { 403 } else { 200 }]);
        assert_eq!(is_counted(&mut bench), counts);
    }
}

#[test]
fn the_key_of_an_anchor_can_revoke_it_and_no_one_below_can() {
    let anchor = Identity::new("/ndn", None);
    let site = Identity::new("/ndn/site", Some(&anchor));
    let below = Identity { signer: site.signer.clone(), certificate: anchor.certificate.clone() };
    assert!(RevocationRecord::make(&below.signer, &anchor.certificate, Reason::KEY_COMPROMISE, 1).is_err());
    let mut bench = bench_that_looks_up(&anchor);
    command(&mut bench, UDP_FACE, &site, "/x");
    bench.send_from(UDP_FACE, record(&anchor, &anchor).wire());
    nack(&mut bench, OF_SITE);
    assert_eq!(answers(&bench), [403]);
}

#[test]
fn certificates_in_steady_use_are_asked_about_behind_the_commands() {
    let anchor = Identity::new("/ndn", None);
    let site = Identity::new("/ndn/site", Some(&anchor));
    let mut bench = bench_that_looks_up(&anchor);
    command(&mut bench, UDP_FACE, &site, "/x");
    nack(&mut bench, OF_SITE);
    nack(&mut bench, OF_ANCHOR);
    bench.now.mono_ns += INTERVAL_NS;
    assert_eq!(command(&mut bench, UDP_FACE, &site, "/y"), [OF_SITE, OF_ANCHOR]);
    assert_eq!(answers(&bench), [200]);
    bench.send_from(UDP_FACE, record(&anchor, &site).wire());
    assert!(command(&mut bench, UDP_FACE, &site, "/z").is_empty());
    assert_eq!(answers(&bench), [403]);
    // It stays revoked, whatever is answered later.
    bench.now.mono_ns += 3 * INTERVAL_NS;
    command(&mut bench, UDP_FACE, &site, "/z");
    assert_eq!(answers(&bench), [403]);
}

/// The thief answers for its own certificate a second time: that does not end the wait for the record.
#[test]
fn a_host_does_not_end_the_wait_by_a_certificate() {
    let anchor = Identity::new("/ndn", None);
    let site = Identity::new("/ndn/site", Some(&anchor));
    let mut bench = bench_that_looks_up(&anchor);
    let thief = add_neighbour(&mut bench);
    command(&mut bench, thief, &site, "/x");
    bench.send_from(thief, site.certificate.wire());
    assert!(answers(&bench).is_empty());
    bench.send_from(UDP_FACE, record(&anchor, &site).wire());
    nack(&mut bench, OF_ANCHOR);
    assert_eq!(answers(&bench), [403]);
}

#[test]
fn too_many_commands_that_wait_for_records_are_refused() {
    let anchor = Identity::new("/ndn", None);
    let site = Identity::new("/ndn/site", Some(&anchor));
    let mut bench = bench_that_looks_up(&anchor);
    let codes: Vec<u64> = (0..80)
        .flat_map(|number| {
            command(&mut bench, UDP_FACE, &site, &format!("/x/{number}"));
            answers(&bench)
        })
        .collect();
    assert!(!codes.is_empty() && codes.len() < 80 && codes.iter().all(|code| *code == 403), "{codes:?}");
}
