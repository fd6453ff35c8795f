//! Certificates served through a router in this process.

use namewire_certificates::{CertificateServer, KeyChainPart, Limits, ServerEvent, Sources};
use namewire_client::{
    Client, Component, ExpressError, InterestBuilder, NameBuf, Validator,
    security::{
        Certificate, PrivateKey, Signer, ValidityPeriod, issue_certificate,
        key_chain::{KeyChain, KeyChainLocation},
        trust::AnchorCertificate,
    },
};
use namewire_configuration::Settings;
use namewire_router::{Router, RouterHandle};
use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::sleep,
};

struct Node {
    router: Option<RouterHandle>,
    folder: TempDir,
}

impl Node {
    fn start() -> Node {
        let mut node = Node { router: None, folder: tempfile::tempdir().unwrap() };
        node.start_router();
        node
    }

    fn start_router(&mut self) {
        let mut settings = Settings::listening_nowhere();
        (settings.faces.unix.enabled, settings.faces.unix.path) = (true, Some(self.socket()));
        self.router = Some(Router::start(&settings.into()).unwrap());
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("nfd.sock")
    }

    async fn client(&self) -> Client {
        Client::connect_to(format!("unix://{}", self.socket().display()).parse().unwrap()).await.unwrap()
    }

    fn key_chain(&self) -> KeyChain {
        let location = KeyChainLocation::new(None, None, self.folder.path()).unwrap();
        KeyChain::open_or_create(&location, self.folder.path()).unwrap()
    }

    fn key_chain_part(&self) -> Sources {
        let part = KeyChainPart { pib_directory: self.folder.path().join(".ndn"), names: None };
        Sources { key_chain: Some(part), ..Sources::default() }
    }
}

fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// Runs a server, and gives what it says.
async fn run(node: &Node, server: &CertificateServer) -> UnboundedReceiver<ServerEvent> {
    let (client, server) = (node.client().await, server.clone());
    let (sender, events) = unbounded_channel();
    tokio::spawn(async move { server.run(&client, |event| sender.send(event).unwrap()).await });
    events
}

async fn next(events: &mut UnboundedReceiver<ServerEvent>, mut is_it: impl FnMut(&ServerEvent) -> bool) -> ServerEvent {
    loop {
        let event = events.recv().await.expect("the server runs");
        if is_it(&event) {
            return event;
        }
    }
}

async fn settled(events: &mut UnboundedReceiver<ServerEvent>) -> (usize, usize) {
    match next(events, |event| matches!(event, ServerEvent::Settled { .. })).await {
        ServerEvent::Settled { certificates, keys } => (certificates, keys),
        other => panic!("{other:?}"),
    }
}

/// What an Interest gets, asked for again if a busy machine was late.
async fn ask(client: &Client, interest: InterestBuilder) -> NameBuf {
    for _ in 0..20 {
        match client.express(&interest.clone().lifetime_ms(5000)).await {
            Ok(data) => return data.data().name().to_buf(),
            Err(ExpressError::Timeout(_) | ExpressError::Nack(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no answer for {}", interest.name());
}

fn certificate(key_name: &str, version: u64) -> Certificate {
    let key = PrivateKey::generate_ed25519().unwrap();
    let spki = key.public_key().spki().to_vec();
    let signer = Signer::private_key(key, name("/site/KEY/s"));
    let validity = ValidityPeriod { not_before_ms: now_ms() - 1000, not_after_ms: now_ms() + 3_600_000 };
    let issuer = Component::generic(b"site");
    issue_certificate(&signer, name(key_name).as_name(), &spki, issuer, version, validity).unwrap()
}

#[tokio::test]
async fn the_key_chain_is_served_as_it_is_now() {
    let node = Node::start();
    let chain = node.key_chain();
    let alice = name("/alice");
    let first = chain.add_identity_key(alice.as_name(), PrivateKey::generate_ecdsa().unwrap(), now_ms()).unwrap();
    let server = CertificateServer::new(node.key_chain_part(), Limits::default());
    let mut events = run(&node, &server).await;
    assert_eq!(settled(&mut events).await, (1, 1));
    let consumer = node.client().await;
    let key = first.key_name().to_buf();
    assert_eq!(ask(&consumer, InterestBuilder::new(first.name())).await, first.name().to_buf());
    assert_eq!(ask(&consumer, InterestBuilder::new(&key).can_be_prefix(true)).await, first.name().to_buf());

    // A second key, and then no key at all.
    let second = chain.add_identity_key(alice.as_name(), PrivateKey::generate_ecdsa().unwrap(), now_ms()).unwrap();
    let is_serving = |event: &ServerEvent| matches!(event, ServerEvent::Serving { .. });
    let expected = ServerEvent::Serving { key: second.key_name().to_buf(), certificates: 1 };
    assert_eq!(next(&mut events, is_serving).await, expected);
    assert_eq!(ask(&consumer, InterestBuilder::new(second.name())).await, second.name().to_buf());
    chain.remove(alice.as_name()).unwrap();
    for _ in 0..2 {
        next(&mut events, |event| matches!(event, ServerEvent::Withdrawn { .. })).await;
    }
    // The route is gone: the router says so at once. The name was not asked for before, so no cache has it.
    let absent = InterestBuilder::new(key.join(Component::generic(b"absent"))).lifetime_ms(60_000);
    assert!(matches!(consumer.express(&absent).await, Err(ExpressError::Nack(_))));
}

#[tokio::test]
async fn certificates_that_are_handed_in_are_served_and_a_restarted_router_gets_the_routes_again() {
    let mut node = Node::start();
    let server = CertificateServer::new(Sources::default(), Limits::default());
    let mut events = run(&node, &server).await;
    assert_eq!(settled(&mut events).await, (0, 0));
    let (one, two) = (certificate("/a/KEY/1", 1), certificate("/a/KEY/1", 2));
    server.add(1, one.clone()).unwrap();
    server.add(1, two.clone()).unwrap();
    while settled(&mut events).await != (2, 1) {}
    let consumer = node.client().await;
    assert_eq!(ask(&consumer, InterestBuilder::new(one.name())).await, one.name().to_buf());

    node.router.take().unwrap().stop();
    next(&mut events, |event| matches!(event, ServerEvent::Lost(_))).await;
    node.start_router();
    next(&mut events, |event| *event == ServerEvent::Restored).await;
    assert_eq!(settled(&mut events).await, (2, 1));
    let consumer = node.client().await;
    assert_eq!(ask(&consumer, InterestBuilder::new(two.name())).await, two.name().to_buf());
    server.forget(1);
    next(&mut events, |event| matches!(event, ServerEvent::Withdrawn { .. })).await;
}

#[tokio::test]
async fn another_producer_of_the_prefix_answers_what_is_missing_here() {
    let node = Node::start();
    let here = certificate("/a/KEY/1", 1);
    let server = CertificateServer::new(Sources { given: vec![here], ..Sources::default() }, Limits::default());
    let mut events = run(&node, &server).await;
    settled(&mut events).await;
    let there = certificate("/a/KEY/1", 2);
    let other = node.client().await;
    let wire = there.wire().to_vec();
    let mut interests = other.interests(&name("/a")).await.unwrap();
    let answer = tokio::spawn(async move {
        while let Some(interest) = interests.next().await {
            let _ = interest.respond(&wire).await;
        }
    });
    // The first Interest goes to the longer route and gets silence; then the router prefers the other next hop.
    let consumer = node.client().await;
    let interest = InterestBuilder::new(there.name()).lifetime_ms(300);
    let mut tries = 0;
    while consumer.express(&interest).await.is_err() {
        tries += 1;
        assert!(tries < 100, "the other producer is never asked");
    }
    assert!(server.counters().missing > 0);
    answer.abort();
}

#[tokio::test]
async fn floods_of_interests_for_missing_certificates_take_no_room_here() {
    let node = Node::start();
    let here = certificate("/a/KEY/1", 1);
    let given = Sources { given: vec![here.clone()], ..Sources::default() };
    let server = CertificateServer::new(given, Limits::default());
    let mut events = run(&node, &server).await;
    settled(&mut events).await;
    let attacker = node.client().await;
    let mut flood = tokio::task::JoinSet::new();
    for number in 0..3_000_u64 {
        let mut missing = name("/a/KEY/1/site");
        missing.push_version(number + 10);
        let attacker = attacker.clone();
        flood.spawn(async move { attacker.express(&InterestBuilder::new(missing).lifetime_ms(500)).await });
    }
    let consumer = node.client().await;
    assert_eq!(ask(&consumer, InterestBuilder::new(here.name())).await, here.name().to_buf());
    while let Some(answer) = flood.join_next().await {
        assert!(answer.unwrap().is_err());
    }
    let counters = server.counters();
    assert!(counters.missing > 0 && counters.answered > 0, "{counters:?}");
}

#[tokio::test]
async fn many_keys_are_registered_a_few_at_a_time() {
    let node = Node::start();
    let given = (0..300).map(|number| certificate(&format!("/many/KEY/{number}"), 1)).collect();
    let server =
        CertificateServer::new(Sources { given, ..Sources::default() }, Limits { prefixes: 200, ..Limits::default() });
    let mut events = run(&node, &server).await;
    let problem = next(&mut events, |event| matches!(event, ServerEvent::Problem(_))).await;
    assert_eq!(problem, ServerEvent::Problem("100 keys are beyond the limit and not registered".to_owned()));
    assert_eq!(settled(&mut events).await, (200, 200));
    // New sources take the place of all.
    server.set_sources(Sources { given: vec![certificate("/one/KEY/1", 1)], ..Sources::default() });
    while settled(&mut events).await != (1, 1) {}
}

/// The example: the certificate was made 80 days ago and expires in ten days. A consumer that trusts the key fetches
/// the new one.
#[tokio::test]
async fn a_program_renews_the_certificate_of_its_key_and_publishes_it() {
    const DAY_MS: u64 = 24 * 3600 * 1000;
    let node = Node::start();
    let chain = node.key_chain();
    let made_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64 - 80 * DAY_MS;
    let alice = name("/alice");
    chain.add_identity_key(alice.as_name(), PrivateKey::generate_ecdsa().unwrap(), made_ms).unwrap();
    let due = chain.renew(alice.as_name(), Some(90 * DAY_MS), made_ms).unwrap();

    let example = std::env::current_exe().unwrap();
    let example = example.parent().and_then(Path::parent).unwrap().join("examples/kept_key");
    let mut program = Command::new(example)
        .arg("/alice")
        .env("NDN_CLIENT_TRANSPORT", format!("unix://{}", node.socket().display()))
        .env("HOME", node.folder.path())
        .env_remove("NDN_CLIENT_PIB")
        .env_remove("NDN_CLIENT_TPM")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    assert!(line.starts_with("renewed: /alice/KEY/"), "{line}");
    let client = node.client().await;
    let of_key = InterestBuilder::new(due.key_name()).can_be_prefix(true).must_be_fresh(true);
    let certificate = loop {
        match client.express(&of_key).await {
            Ok(certificate) => break certificate,
            Err(_) => sleep(Duration::from_millis(5)).await, // until the prefix is registered
        }
    };
    assert_ne!(certificate.name(), due.name());
    let validator = Validator::hierarchical([AnchorCertificate::parse(certificate.wire().to_vec()).unwrap()]);
    let letter = client.express_trusted(&InterestBuilder::new(name("/alice/letter")), &validator).await.unwrap();
    assert_eq!(letter.content(), b"signed by a kept key");
}
