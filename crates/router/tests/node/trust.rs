//! Who may command a running router: users that the kernel names, and holders of keys; no one else.

use crate::application::{Application, name, start, start_with};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use namewire_management::{
    TrustConfig,
    trust_config::{Authorization, Privileges, Signer as Grant},
};
use namewire_packet::{
    Component, Data, FaceId, Interest, InterestBuilder, Nonce, SignedInterestFields,
    lp::{LinkFields, LpHeaders, LpPacket, write_headers},
    nfd::{ControlParameters, ControlResponse, RibEntry, StrategyChoice},
    signature::signature_type::SHA256_ECDSA,
};
use namewire_router::RouterHandle;
use namewire_security::trust::{
    AnchorCertificate, Checker, KeyLocatorRule, NameFilter, PacketKind, Rule, RulesOrAny, TrustAnchor, ValidatorConfig,
    name_regex::NameRegex,
};
use namewire_security::{Certificate, PrivateKey, Signer, ValidityPeriod, issue_certificate};
use rustix::process::{Gid, Uid, geteuid};
use std::{
    fs::{self, Permissions},
    net::UdpSocket,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A user that is neither root nor the user that runs the tests.
const NOBODY: u32 = 65_534;
/// A group for one test; the stranger becomes a member of it.
const OPERATORS: u32 = 47_011;

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

/// A connection of another user. `None`, with the reason printed, if the tests do not run as root: only root can become
/// another user.
fn connect_as_nobody(router: &RouterHandle, directory: &Path, groups: &[u32]) -> Option<Application> {
    if !geteuid().is_root() {
        eprintln!("skipped: only root can connect as another user");
        return None;
    }
    fs::set_permissions(directory, Permissions::from_mode(0o755)).expect("our own directory");
    let groups: Vec<Gid> = groups.iter().map(|&gid| Gid::from_raw(gid)).collect();
    std::thread::scope(|scope| {
        // Linux keeps users and groups per thread. This thread ends when it has connected.
        let stranger = scope.spawn(|| {
            rustix::thread::set_thread_groups(&groups).expect("root may");
            rustix::thread::set_thread_res_gid(Gid::from_raw(NOBODY), Gid::from_raw(NOBODY), Gid::from_raw(NOBODY))
                .expect("root may");
            rustix::thread::set_thread_res_uid(Uid::from_raw(NOBODY), Uid::from_raw(NOBODY), Uid::from_raw(NOBODY))
                .expect("root may");
            Application::connect(router)
        });
        Some(stranger.join().expect("connected"))
    })
}

struct Identity {
    signer: Signer,
    certificate: Certificate,
}

impl Identity {
    fn new(uri: &str, issuer: Option<&Identity>) -> Self {
        let key = PrivateKey::generate_ecdsa().expect("random bytes");
        let mut key_name = name(uri);
        key_name.push_generic(b"KEY").push_generic(b"1");
        let spki = key.public_key().spki().to_vec();
        let signer = Signer::private_key(key, key_name.clone());
        let by = issuer.map_or(&signer, |issuer| &issuer.signer);
        let validity = ValidityPeriod { not_before_ms: unix_ms() - 60_000, not_after_ms: unix_ms() + 3_600_000 };
        let issuer_id = Component::generic(b"test");
        let certificate = issue_certificate(by, key_name.as_name(), &spki, issuer_id, 1, validity).expect("issued");
        Identity { signer, certificate }
    }

    fn anchor(&self) -> AnchorCertificate {
        AnchorCertificate::parse(self.certificate.wire().to_vec()).expect("a certificate")
    }

    fn command(&self, command: &str, parameters: &ControlParameters) -> Vec<u8> {
        let mut command = name(command);
        command.push_generic(&parameters.to_wire());
        let fields = SignedInterestFields {
            nonce: fastrand::u64(..).to_be_bytes().to_vec(),
            time_ms: Some(unix_ms()),
            seq_num: None,
        };
        let builder = InterestBuilder::new(command).nonce(Nonce::from_u32(fastrand::u32(..)));
        self.signer.sign_interest(&builder, &fields).expect("signed")
    }
}

fn for_prefix(prefix: &str) -> ControlParameters {
    ControlParameters { name: Some(name(prefix)), ..Default::default() }
}

fn create_face() -> ControlParameters {
    ControlParameters { uri: Some("udp4://127.0.0.1:9".to_owned()), ..Default::default() }
}

/// NFD's sample rules for `/localhop`, below this anchor.
fn localhop(anchor: TrustAnchor) -> TrustConfig {
    let regex = |text| NameRegex::parse(text).expect(text);
    let rule = |id: &str, packet, filter, checker| Rule {
        id: id.to_owned(),
        packet,
        filters: vec![NameFilter::Regex(regex(filter))],
        checkers: vec![checker],
        at_signing_time: false,
    };
    let keys = "^<>*<KEY><>{1,3}$";
    let any_key = Checker { signature_type: SHA256_ECDSA, key_locator: KeyLocatorRule::Regex(regex(keys)) };
    let commands = "^<localhop><nfd><rib>[<register><unregister>]<>{1,3}$";
    let rules = vec![
        rule("commands", PacketKind::Interest, commands, any_key),
        rule("certificates", PacketKind::Data, keys, Checker::hierarchical(SHA256_ECDSA)),
    ];
    let rules = RulesOrAny::Rules(ValidatorConfig { rules, anchors: vec![anchor] });
    TrustConfig { localhop_rib: Some(rules), ..TrustConfig::default() }
}

/// The frame that answers an Interest for one of these certificates.
fn asked_for(frame: &[u8], certificates: &[&Certificate]) -> Option<Vec<u8>> {
    let lp = LpPacket::parse(frame).ok();
    let (headers, packet) = lp.map_or((LpHeaders::default(), Some(frame)), |lp| (lp.headers, lp.fragment));
    let interest = Interest::parse(packet?).ok()?;
    let certificate = certificates.iter().find(|one| interest.name().is_prefix_of(&one.name()))?;
    let headers = LpHeaders { pit_token: headers.pit_token, ..LpHeaders::default() };
    let mut answer = Vec::new();
    write_headers(&mut answer, &headers, &LinkFields::default(), certificate.wire().len());
    answer.extend_from_slice(certificate.wire());
    Some(answer)
}

/// A host beyond a UDP link.
struct Remote(UdpSocket);

impl Remote {
    fn new(router: &RouterHandle) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect(router.udp()[0]).expect("an address");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        Remote(socket)
    }

    fn command(&self, interest: &[u8]) -> ControlResponse {
        self.command_with(interest, &[])
    }

    /// Sends a command, and serves these certificates until its answer comes.
    fn command_with(&self, interest: &[u8], certificates: &[&Certificate]) -> ControlResponse {
        self.0.send(interest).expect("sent");
        loop {
            let mut buffer = [0; 9000];
            let size = self.0.recv(&mut buffer).expect("an answer");
            if let Some(certificate) = asked_for(&buffer[..size], certificates) {
                self.0.send(&certificate).expect("sent");
            } else if let Ok(data) = Data::parse(&buffer[..size]) {
                return ControlResponse::decode(data.content()).expect("a ControlResponse");
            }
        }
    }
}

#[test]
fn another_user_registers_its_routes_and_nothing_else() {
    let (router, directory) = start(2);
    let mut own = Application::connect(&router);
    let Some(mut stranger) = connect_as_nobody(&router, directory.path(), &[]) else { return };
    let face = stranger.register("/stranger");
    assert_ne!(face, own.register("/own"));
    let refused = stranger.command("/faces/create", create_face());
    assert_eq!(refused.code, 403);
    assert!(
        refused.text.contains("authorization rejected: not allowed") && refused.text.contains("uid 65534"),
        "{refused:?}"
    );
    let of_other = ControlParameters { face_id: Some(FaceId(256)), ..for_prefix("/theirs") };
    assert_eq!(stranger.command("/rib/register", of_other).code, 403);
    assert_eq!(own.command("/faces/create", create_face()).code, 200);
    assert_eq!(own.drops("denied.not-allowed"), 2);
    // The registration works: the packet goes from one user to the other.
    let interest = own.interest(name("/stranger/x")).build();
    own.send(&interest);
    stranger.serve(1, b"from nobody");
    assert_eq!(own.receive().expect("Data").data().content(), b"from nobody");
}

#[test]
fn a_member_of_an_allowed_group_is_an_operator() {
    let trust = TrustConfig { allowed_gids: vec![OPERATORS], ..TrustConfig::default() };
    let (router, directory) = start_with(1, |config| config.trust = trust);
    let Some(mut member) = connect_as_nobody(&router, directory.path(), &[100, OPERATORS]) else { return };
    assert_eq!(member.command("/faces/create", create_face()).code, 200);
    let mut other = connect_as_nobody(&router, directory.path(), &[100]).expect("root as before");
    assert_eq!(other.command("/faces/create", create_face()).code, 403);
}

#[test]
fn tcp_within_this_machine_needs_a_key() {
    let operator = Identity::new("/operator", None);
    let grant = Authorization { signer: Grant::Certificate(operator.anchor()), privileges: Privileges::ALL };
    let trust = TrustConfig { authorizations: vec![grant], ..TrustConfig::default() };
    let (router, _directory) = start_with(2, |config| config.trust = trust);
    let mut application = Application::connect_tcp(router.tcp()[0]);
    application.register("/over-tcp");
    let refused = application.command("/faces/create", create_face());
    assert!(refused.code == 403 && refused.text.contains("no peer credentials"), "{refused:?}");
    let signed = operator.command("/localhost/nfd/faces/create", &create_face());
    application.send(&signed);
    let answer = application.receive().expect("an answer");
    assert_eq!(ControlResponse::decode(answer.data().content()).expect("a response").code, 200);
}

#[test]
fn a_remote_host_registers_only_with_an_anchor_s_signature() {
    let anchor = Identity::new("/ndn", None);
    let trust = localhop(TrustAnchor::Certificate(anchor.anchor()));
    let (router, _directory) = start_with(4, |config| config.trust = trust);
    let remote = Remote::new(&router);
    let register = "/localhop/nfd/rib/register";
    let mut unsigned = name(register);
    unsigned.push_generic(&for_prefix("/far").to_wire());
    let unsigned = InterestBuilder::new(unsigned).nonce(Nonce::from_u32(fastrand::u32(..))).build();
    let refused = remote.command(&unsigned);
    assert_eq!((refused.code, refused.text.as_str()), (403, "authorization rejected: not signed"));
    let liar = Identity::new("/ndn", None).command(register, &for_prefix("/far"));
    assert!(remote.command(&liar).text.contains("bad signature"));
    let accepted = remote.command(&anchor.command(register, &for_prefix("/far")));
    assert_eq!(accepted.code, 200);
    let face = accepted.body.expect("a body").face_id.expect("its own face");
    let mut own = Application::connect(&router);
    let routes: Vec<RibEntry> = own.dataset("/rib/list");
    assert!(routes.iter().any(|entry| entry.name == name("/far") && entry.routes[0].face_id == face), "{routes:?}");
    let elsewhere = ControlParameters { face_id: Some(FaceId(face.0 + 1)), ..for_prefix("/far") };
    assert_eq!(remote.command(&anchor.command(register, &elsewhere)).code, 403);
}

#[test]
fn certificates_of_a_chain_are_fetched_through_the_router_itself() {
    let anchor = Identity::new("/ndn", None);
    let site = Identity::new("/ndn/site", Some(&anchor));
    let trust = localhop(TrustAnchor::Certificate(anchor.anchor()));
    let (router, _directory) = start_with(4, |config| config.trust = trust);
    let mut repository = Application::connect(&router);
    repository.register("/ndn/site/KEY");
    let certificate = site.certificate.wire().to_vec();
    let serving = std::thread::spawn(move || {
        let asked = repository.receive().expect("an Interest for the certificate");
        assert_eq!(asked.interest().name(), name("/ndn/site/KEY/1").as_name());
        repository.send(&certificate);
        repository
    });
    let remote = Remote::new(&router);
    let command = site.command("/localhop/nfd/rib/register", &for_prefix("/ndn/site"));
    assert_eq!(remote.command(&command).code, 200);
    drop(serving.join().expect("served"));
}

/// The commanding host is the only one that has its certificates (NDNts' prefix registration with a testbed router).
#[test]
fn a_host_serves_the_certificates_of_its_own_commands() {
    let anchor = Identity::new("/ndn", None);
    let site = Identity::new("/ndn/site", Some(&anchor));
    let user = Identity::new("/ndn/site/user", Some(&site));
    let trust = localhop(TrustAnchor::Certificate(anchor.anchor()));
    let (router, _directory) = start_with(4, |config| config.trust = trust);
    let remote = Remote::new(&router);
    let command = user.command("/localhop/nfd/rib/register", &for_prefix("/ndn/site/user"));
    let certificates = [&user.certificate, &site.certificate];
    assert_eq!(remote.command_with(&command, &certificates).code, 200);
    // Over TCP, and with a chain of one. Of another site: the router may know the certificate of the first one by now.
    let other = Identity::new("/ndn/other", Some(&anchor));
    let mut far = Application::connect_tcp(router.tcp()[0]);
    far.send(&other.command("/localhop/nfd/rib/register", &for_prefix("/ndn/other")));
    let asked = far.receive().expect("an Interest for the certificate");
    assert_eq!(asked.interest().name(), name("/ndn/other/KEY/1").as_name());
    let headers = LpHeaders { pit_token: asked.headers.pit_token, ..LpHeaders::default() };
    far.send_with(&headers, other.certificate.wire());
    let answer = far.receive().expect("an answer");
    assert_eq!(ControlResponse::decode(answer.data().content()).expect("a ControlResponse").code, 200);
}

#[test]
fn localhop_is_not_served_unless_it_is_configured() {
    let (router, _directory) = start(1);
    let mut own = Application::connect(&router);
    let fib: Vec<namewire_packet::nfd::FibEntry> = own.dataset("/fib/list");
    assert!(fib.iter().all(|entry| entry.name != name("/localhop/nfd")), "{fib:?}");
    // Settings may be added later, and removed.
    let anchor = Identity::new("/ndn", None);
    let remote = Remote::new(&router);
    router.set_trust(localhop(TrustAnchor::Certificate(anchor.anchor())));
    let command = anchor.command("/localhop/nfd/rib/register", &for_prefix("/far"));
    own.faces(); // an answer says that control has taken the settings
    assert_eq!(remote.command(&command).code, 200);
}

/// Interests that management expresses have the face of the router's own operator. If one came back to management, the
/// name of a key could be a command that needs no permission.
#[test]
fn the_name_of_a_key_that_is_a_command_is_not_carried_out() {
    let trust = localhop(TrustAnchor::Certificate(Identity::new("/ndn", None).anchor()));
    let (router, _directory) = start_with(2, |config| config.trust = trust);
    let mut own = Application::connect(&router);
    let strategy = |short: &str| Some(name(&format!("/localhost/nfd/strategy/{short}")));
    for forwarding in ["best-route", "multicast", "asf", "random"] {
        let parameters = ControlParameters { strategy: strategy(forwarding), ..for_prefix("/localhost/nfd") };
        assert_eq!(own.command("/strategy-choice/set", parameters).code, 200);
        let mut key_name = name("/localhost/nfd/strategy-choice/set");
        let parameters = ControlParameters { strategy: strategy("multicast"), ..for_prefix("/taken/over") };
        key_name.push_generic(&parameters.to_wire()).push_generic(b"KEY").push_generic(forwarding.as_bytes());
        let signer = Signer::private_key(PrivateKey::generate_ecdsa().expect("random bytes"), key_name);
        let stranger = Identity { signer, certificate: Identity::new("/x", None).certificate };
        let remote = Remote::new(&router);
        remote.0.send(&stranger.command("/localhop/nfd/rib/register", &for_prefix("/far"))).expect("sent");
    }
    crate::application::eventually("all were refused", || own.drops("denied.unknown-signer") == 4);
    let choices = own.dataset::<StrategyChoice>("/strategy-choice/list");
    assert!(choices.iter().all(|choice| choice.name != name("/taken/over")), "{choices:?}");
}

#[test]
fn anchors_in_files_are_read_at_the_start_and_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("ndn.cert");
    let (first, second) = (Identity::new("/ndn", None), Identity::new("/ndn", None));
    let write = |identity: &Identity| {
        let lines = STANDARD.encode(identity.certificate.wire());
        let lines: Vec<&str> =
            lines.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("ASCII")).collect();
        fs::write(&path, lines.join("\n")).expect("written");
    };
    write(&first);
    let trust = localhop(TrustAnchor::File { path: path.clone(), refresh: Some(Duration::from_secs(1)) });
    let (router, _socket) = start_with(1, |config| config.trust = trust);
    let remote = Remote::new(&router);
    let register =
        |identity: &Identity| remote.command(&identity.command("/localhop/nfd/rib/register", &for_prefix("/far"))).code;
    assert_eq!((register(&first), register(&second)), (200, 403));
    write(&second);
    crate::application::eventually("the new certificate is read", || register(&second) == 200);
    assert_eq!(register(&first), 403);
}

/// A router whose `nfd.conf` named a certificate that somebody else was still to bring did not start. NFD starts, and
/// finds the certificate later.
#[test]
fn anchors_may_come_later_than_the_router() {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, folder) = (directory.path().join("ndn.cert"), directory.path().join("anchors"));
    let refresh = Some(Duration::from_secs(1));
    let anchor = Identity::new("/ndn", None);
    let text = STANDARD.encode(anchor.certificate.wire());
    let register =
        |remote: &Remote| remote.command(&anchor.command("/localhop/nfd/rib/register", &for_prefix("/far"))).code;
    let of_file = localhop(TrustAnchor::File { path: file.clone(), refresh });
    let (router, _socket) = start_with(1, |config| config.trust = of_file);
    let (remote, mut own) = (Remote::new(&router), Application::connect(&router));
    assert_eq!(register(&remote), 403);
    assert!(own.drops("router.anchor-unreadable") >= 1);
    fs::write(&file, &text).expect("written");
    crate::application::eventually("the file is found", || register(&remote) == 200);
    fs::remove_file(&file).expect("removed");
    crate::application::eventually("the file is gone again", || register(&remote) == 403);

    router.set_trust(localhop(TrustAnchor::Directory { path: folder.clone(), refresh }));
    own.faces(); // an answer says that control has taken the settings
    assert_eq!(register(&remote), 403);
    fs::create_dir(&folder).expect("made");
    fs::write(folder.join("ndn.cert"), &text).expect("written");
    crate::application::eventually("the directory is found", || register(&remote) == 200);
}

/// Other files in a directory of anchors do not keep the router from starting.
#[test]
fn a_directory_of_anchors_may_hold_other_things() {
    let directory = tempfile::tempdir().expect("a directory");
    let anchor = Identity::new("/ndn", None);
    fs::write(directory.path().join("ndn.cert"), STANDARD.encode(anchor.certificate.wire())).expect("written");
    fs::write(directory.path().join("README"), "not a certificate").expect("written");
    fs::create_dir(directory.path().join("old")).expect("made");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, directory.path().join("pipe"), rustix::fs::FileType::Fifo, mode, 0)
        .expect("a pipe");
    let trust = localhop(TrustAnchor::Directory { path: directory.path().to_owned(), refresh: None });
    let (started, starting) = std::sync::mpsc::channel();
    std::thread::spawn(move || drop(started.send(start_with(1, |config| config.trust = trust))));
    let (router, _socket) = starting.recv_timeout(Duration::from_secs(10)).expect("it starts");
    let remote = Remote::new(&router);
    assert_eq!(remote.command(&anchor.command("/localhop/nfd/rib/register", &for_prefix("/far"))).code, 200);
}

#[test]
fn a_burst_of_commands_passes_once() {
    let (router, _directory) = start(4);
    let mut application = Application::connect(&router);
    let burst: Vec<Vec<u8>> = (0..1000)
        .map(|number| application.command_packet("/rib/register", &for_prefix(&format!("/burst/{number}"))))
        .collect();
    let send = |application: &mut Application, code| {
        for window in burst.chunks(50) {
            window.iter().for_each(|command| application.send(command));
            for _ in window {
                let answer = application.receive().expect("an answer");
                let answer = ControlResponse::decode(answer.data().content()).expect("a response");
                assert_eq!(answer.code, code, "{answer:?}");
            }
        }
    };
    send(&mut application, 200);
    send(&mut application, 403);
    assert_eq!(application.drops("denied.replayed"), 1000);
}
