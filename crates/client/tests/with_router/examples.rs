//! The programs of the folder examples, as processes. Some tests restart the router.

use crate::node::Node;
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

/// Long enough for any machine; nothing here waits so long.
const PATIENCE: Duration = Duration::from_secs(120);

impl Node {
    fn run(&self, example: &str, arguments: &[&str]) -> Running {
        let program = std::env::current_exe().unwrap();
        let program = program.parent().and_then(Path::parent).unwrap().join("examples").join(example);
        assert!(program.exists(), "{} is not there: cargo build -p namewire-client --examples", program.display());
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(self.folder.path())
            .env("NDN_CLIENT_TRANSPORT", format!("unix://{}", self.socket().display()))
            .env("HOME", self.folder.path())
            .env_remove("NDN_CLIENT_PIB")
            .env_remove("NDN_CLIENT_TPM")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let other = sender.clone();
        thread::spawn(move || {
            BufReader::new(out).lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)))
        });
        thread::spawn(move || {
            BufReader::new(err).lines().map_while(Result::ok).for_each(|line| drop(other.send(line)))
        });
        let input = child.stdin.take();
        Running { child, input, lines, seen: Vec::new() }
    }
}

/// A program, its input and the lines that it prints. Dropping it ends it.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    /// Waits for a line with this text.
    fn wait_for(&mut self, text: &str) {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(error) => panic!("{text:?} did not come ({error}); instead: {:#?}", self.seen),
            }
            if self.seen.last().unwrap().contains(text) {
                return;
            }
        }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits for its end. Returns whether it succeeded, and all lines.
    fn end(mut self) -> (bool, String) {
        drop(self.input.take());
        let is_success = self.child.wait().unwrap().success();
        self.seen.extend(self.lines.iter());
        (is_success, self.seen.join("\n"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

/// Asks until the producer has registered its prefix.
fn hello(node: &Node) {
    while node.run("consumer", &[]).end() != (true, "hello".to_owned()) {}
}

#[test]
fn a_producer_serves_again_after_its_router_restarts() {
    let mut node = Node::start();
    let _producer = node.run("producer", &[]);
    for _ in 0..2 {
        hello(&node);
        node.stop_router();
        node.start_router();
    }
}

#[test]
fn a_file_is_fetched_while_the_router_restarts() {
    let mut node = Node::start();
    let content: Vec<u8> = (0..1_000_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    std::fs::write(node.folder.path().join("file"), &content).unwrap();
    let mut publisher = node.run("publish_file", &["file", "/me/file"]);
    publisher.wait_for("in 125 segments");
    for round in ["first", "second"] {
        while !node.run("fetch_file", &["/me/file", round]).end().0 {}
        assert!(std::fs::read(node.folder.path().join(round)).unwrap() == content, "{round}: other content");
        node.stop_router();
        node.start_router();
    }
}

#[test]
fn only_data_with_a_chain_of_certificates_is_accepted() {
    let node = Node::start();
    let (is_success, said) = node.run("signed_data", &[]).end();
    assert!(is_success, "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "accepted: from Bob");
    assert!(lines[1].starts_with("refused: the answer is not trusted: not allowed: rule \"hierarchical\""), "{said}");
}

/// The anchor is a file in base64, as `namewire key export-cert` writes it.
#[tokio::test]
async fn a_consumer_trusts_an_anchor_in_a_file() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use namewire_client::{
        Component, DataBuilder, IncomingInterest, NameBuf,
        security::{PrivateKey, Signer, ValidityPeriod, issue_certificate},
    };

    let node = Node::start();
    let identity = |name: &str, file: &str| {
        let (key, name) = (PrivateKey::generate_ecdsa().unwrap(), name.parse::<NameBuf>().unwrap());
        let public = key.public_key().spki().to_vec();
        let signer = Signer::private_key(key, name.clone());
        let always = ValidityPeriod { not_before_ms: 0, not_after_ms: 4_000_000_000_000 };
        let issuer = Component::generic(b"self");
        let certificate = issue_certificate(&signer, name.as_name(), &public, issuer, 1, always).unwrap();
        std::fs::write(node.folder.path().join(file), STANDARD.encode(certificate.wire()) + "\n").unwrap();
        signer
    };
    let (signer, _) = (identity("/site/KEY/1", "anchor"), identity("/site/KEY/1", "other"));
    let producer = node.client().await;
    let interests = producer.interests(&"/site".parse().unwrap()).await.unwrap();
    let serving = tokio::spawn(interests.serve(move |interest: IncomingInterest| {
        let data = DataBuilder::new(interest.interest().name()).freshness_ms(1000).content(b"signed");
        let signed = signer.sign_data(&data).ok();
        async move { signed }
    }));
    let (accepting, refusing) = (["anchor", "/site/letter"], ["other", "/site/letter"]);
    let ended = |arguments: [&'static str; 2]| {
        let running = node.run("trusting_consumer", &arguments);
        tokio::task::spawn_blocking(move || running.end())
    };
    assert_eq!(ended(accepting).await.unwrap(), (true, "signed".to_owned()));
    let (is_success, said) = ended(refusing).await.unwrap();
    assert!(!is_success && said.contains("NotTrusted"), "{said}");
    serving.abort();
}

#[test]
fn members_of_a_chat_read_each_other_in_both_versions() {
    for group in ["/chat", "/chat/32=svs/v=3"] {
        let node = Node::start();
        let (mut alice, mut bob) = (node.run("chat", &[group, "/alice"]), node.run("chat", &[group, "/bob"]));
        alice.say("hello");
        bob.wait_for("/alice: hello");
        bob.say("good evening");
        alice.wait_for("/bob: good evening");
        // Who comes late hears what was said before.
        let mut carol = node.run("chat", &[group, "/carol"]);
        for _ in 0..2 {
            carol.wait_for(": ");
        }
        carol.seen.sort();
        assert_eq!(carol.seen, ["/alice: hello", "/bob: good evening"], "{group}");
    }
}

#[test]
fn a_concert_is_found_by_its_tags() {
    let node = Node::start();
    let start = Instant::now();
    // A router that has just started waits for others before it is the root of its tree.
    let said = loop {
        match node.run("tag_concert", &[]).end() {
            (true, said) => break said,
            (false, said) => assert!(start.elapsed() < PATIENCE, "{said}"),
        }
    };
    assert!(said.contains("tonight: Symphony no. 9") && said.contains("news: the tenor is ill"), "{said}");
}
