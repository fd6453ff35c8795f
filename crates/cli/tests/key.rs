//! `namewire key` and `--identity` as a user meets them: the real binary, with a separate home directory.

use base64::{Engine, prelude::BASE64_STANDARD};
use namewire_packet::{Interest, KeyLocator, NameBuf};
use namewire_security::{
    Certificate, KeyAlgorithm,
    key_chain::{KeyChain, KeyChainLocation},
};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::Path,
    process::{Command, Output, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

fn namewire(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_namewire"));
    command.env("HOME", home).env_remove("NDN_CLIENT_PIB").env_remove("NDN_CLIENT_TPM");
    command
}

fn run(home: &Path, line: &str) -> Output {
    namewire(home).args(line.split_whitespace()).output().unwrap()
}

/// Runs a command that must succeed, and gives what it prints.
fn ok(home: &Path, line: &str) -> String {
    let output = run(home, line);
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(home: &Path, line: &str, code: i32, why: &str) {
    let output = run(home, line);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{line}: {said}");
    assert!(said.contains(why), "{line}: {said}");
}

fn json(home: &Path, line: &str) -> Value {
    serde_json::from_str(&ok(home, &format!("--json {line}"))).unwrap()
}

fn certificate(home: &Path, name: &str) -> Certificate {
    certificate_in(&ok(home, &format!("key export-cert {name}")))
}

fn certificate_in(text: &str) -> Certificate {
    let text: String = text.split_whitespace().collect();
    Certificate::parse(&BASE64_STANDARD.decode(text).unwrap()).unwrap()
}

#[test]
fn keys_are_made_listed_shown_and_deleted() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    refused(home, "key list", 3, "namewire key make");
    let made = json(home, "key make /alice");
    let file = Path::new(made["private_key_file"].as_str().unwrap());
    assert!(file.starts_with(home.join(".ndn/ndnsec-key-file")));
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o400);
    ok(home, "key make /bob --type ed25519");

    let list = json(home, "key list");
    assert_eq!([&list[0]["identity"], &list[1]["identity"]], ["/bob", "/alice"], "canonical order: shorter first");
    let default = |list: &Value| [0, 1].map(|at| list[at]["is_default"].as_bool().unwrap());
    assert_eq!(default(&list), [false, true]);
    assert_eq!(list[1]["keys"][0]["key"], made["key"]);
    assert_eq!(list[1]["keys"][0]["algorithm"], "ECDSA P-256");
    assert_eq!(list[0]["keys"][0]["algorithm"], "Ed25519");
    ok(home, "key default /bob");
    assert_eq!(default(&json(home, "key list")), [true, false]);
    let text = ok(home, "key list");
    assert!(text.starts_with("* /bob\n  * /bob/KEY/"), "{text}");

    let shown = json(home, "key show /alice");
    assert_eq!(shown["certificate"], made["certificate"]);
    assert_eq!(shown["signed_by"], made["key"]);
    for yes in ["is_self_signed", "is_valid_now", "has_private_key"] {
        assert_eq!(shown[yes], true, "{yes}");
    }
    assert_eq!(certificate(home, "/alice").name().to_string(), made["certificate"].as_str().unwrap());

    ok(home, "key delete /alice");
    assert!(!file.exists());
    refused(home, "key show /alice", 3, "/alice is not in the key chain");
    refused(home, "key make /carol --type rsa", 2, "openssl");
}

#[test]
fn a_key_of_openssl_is_taken_as_pem_and_as_der() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let vectors: Value = serde_json::from_str(include_str!("../../security/tests/vectors.json")).unwrap();
    let digits = vectors["keys"][1]["pkcs8"].as_str().unwrap();
    let der: Vec<u8> =
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", BASE64_STANDARD.encode(&der));
    fs::write(home.join("rsa.pem"), pem).unwrap();
    fs::write(home.join("rsa.der"), der).unwrap();
    for (identity, file) in [("/pem", "rsa.pem"), ("/der", "rsa.der")] {
        ok(home, &format!("key make {identity} --from {}", home.join(file).display()));
        let key = certificate(home, identity).public_key().unwrap();
        assert_eq!(key.algorithm(), KeyAlgorithm::Rsa { bits: 2048 });
    }
    fs::write(home.join("none"), "-----\nQUJD\n").unwrap();
    refused(home, &format!("key make /none --from {}", home.join("none").display()), 1, "not the DER of a private key");
}

#[test]
fn a_safe_bag_moves_a_key_and_an_issuer_certifies_it() {
    let (alice, bob) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (alice, bob) = (alice.path(), bob.path());
    let phrase = alice.join("phrase");
    fs::write(&phrase, "open sesame\n").unwrap();
    ok(alice, "key make /alice");
    let bag = alice.join("alice.bag");
    ok(alice, &format!("key export /alice --passphrase-file {} -o {}", phrase.display(), bag.display()));
    assert_eq!(fs::metadata(&bag).unwrap().permissions().mode() & 0o777, 0o600);
    refused(bob, &format!("key import {}", bag.display()), 2, "--passphrase-file");
    fs::write(bob.join("phrase"), "something else").unwrap();
    refused(
        bob,
        &format!("key import {} --passphrase-file {}", bag.display(), bob.join("phrase").display()),
        1,
        "pass phrase",
    );
    ok(bob, &format!("key import {} --passphrase-file {}", bag.display(), phrase.display()));
    assert_eq!(certificate(bob, "/alice"), certificate(alice, "/alice"));

    ok(bob, "key make /bob");
    let request = bob.join("bob.cert");
    ok(bob, &format!("key export-cert /bob -o {}", request.display()));
    let issued = alice.join("issued.cert");
    refused(alice, &format!("key issue {}", request.display()), 2, "--identity");
    ok(alice, &format!("--identity /alice key issue {} --issuer-id alice -o {}", request.display(), issued.display()));
    ok(bob, &format!("key import {}", issued.display()));
    let key_name = certificate(bob, "/bob").key_name().to_string();
    let list = json(bob, "key list");
    let keys = list.as_array().unwrap().iter().flat_map(|identity| identity["keys"].as_array().unwrap());
    let certificates =
        keys.clone().find(|key| key["key"] == key_name.as_str()).unwrap()["certificates"].as_array().unwrap();
    let name = certificates.iter().map(|c| c["certificate"].as_str().unwrap()).find(|c| c.contains("/alice/v="));
    let by_alice = certificate(bob, name.unwrap());
    assert_eq!(by_alice.verify(&certificate(alice, "/alice").public_key().unwrap()), Ok(()));
    assert!(!by_alice.names_itself_as_issuer());
}

#[test]
fn a_certificate_is_renewed_where_the_key_of_its_issuer_is() {
    let (alice, bob) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (alice, bob) = (alice.path(), bob.path());
    ok(alice, "key make /alice");
    ok(bob, "key make /bob");
    assert!(!ok(bob, "key list").contains("expires"), "a self-signed certificate holds for twenty years");
    let file = alice.join("file");
    let path = file.display();
    // Bob sends a request to Alice, and imports her answer.
    ok(bob, &format!("key export-cert /bob -o {path}"));
    ok(alice, &format!("--identity /alice key issue {path} -o {path}"));
    ok(bob, &format!("key import {path}"));
    ok(bob, &format!("key default {}", certificate_in(&fs::read_to_string(&file).unwrap()).name()));
    refused(bob, "key renew /bob", 1, "the issuer must issue another certificate");

    ok(alice, "key make /alice/car");
    ok(alice, &format!("key export-cert /alice/car -o {path}"));
    ok(alice, &format!("--identity /alice key issue {path} --days 3 -o {path}"));
    ok(alice, &format!("key import {path}"));
    let by_alice = certificate_in(&fs::read_to_string(&file).unwrap());
    ok(alice, &format!("key default {}", by_alice.name()));
    let renewed = json(alice, "key renew /alice/car --days 10");
    assert!(renewed["not_after_ms"].as_u64().unwrap() > by_alice.validity().not_after_ms + 6 * 24 * 3600 * 1000);
    let now = certificate(alice, "/alice/car");
    assert_eq!(now.name().to_string(), renewed["certificate"].as_str().unwrap());
    assert_eq!(now.verify(&certificate(alice, "/alice").public_key().unwrap()), Ok(()));
}

/// Its certificate is made here, because `key issue` makes none that ends today.
#[test]
fn a_command_says_that_its_certificate_ends() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    ok(home, "key make /a");
    let location = KeyChainLocation::new(None, None, home).unwrap();
    let chain = KeyChain::open_or_create(&location, home).unwrap();
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let in_file = home.join("a.cert");
    for (age_days, text) in [(99, "expires in 23 h"), (101, "has expired")] {
        let made_ms = now_ms - age_days * 24 * 3600 * 1000 - 60_000;
        let ends = chain.renew("/a".parse::<NameBuf>().unwrap().as_name(), Some(100 * 24 * 3600 * 1000), made_ms);
        ends.unwrap();
        for line in ["key list", "key show /a"] {
            assert!(ok(home, line).contains(text), "{line}");
        }
        ok(home, &format!("key export-cert /a -o {}", in_file.display()));
        let issued = run(home, &format!("--identity /a key issue {}", in_file.display()));
        let said = String::from_utf8(issued.stderr).unwrap();
        assert!(issued.status.success() && said.contains(text) && said.contains("key renew"), "{said}");
    }
}

#[test]
fn environment_and_client_conf_say_where_the_key_chain_is() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fs::create_dir(home.join(".ndn")).unwrap();
    let conf = format!("pib=pib-sqlite3:{0}/conf\ntpm=tpm-file:{0}/keys\n", home.display());
    fs::write(home.join(".ndn/client.conf"), conf).unwrap();
    let made = json(home, "key make /a");
    assert!(home.join("conf/pib.db").exists());
    assert!(Path::new(made["private_key_file"].as_str().unwrap()).starts_with(home.join("keys/ndnsec-key-file")));
    let locator = format!("pib-sqlite3:{}/other", home.display());
    let elsewhere = namewire(home).args(["key", "list"]).env("NDN_CLIENT_PIB", locator).output().unwrap();
    assert_eq!(elsewhere.status.code(), Some(3), "{elsewhere:?}");
    let memory = namewire(home).args(["key", "list"]).env("NDN_CLIENT_PIB", "pib-memory:").output().unwrap();
    assert!(String::from_utf8(memory.stderr).unwrap().contains("only pib-sqlite3:"));
}

/// What arrives at a forwarder is a command that the certificate's key has signed.
#[test]
fn commands_are_signed_by_the_identity_that_is_named() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let socket = home.join("nfd.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let transport = format!("unix://{}", socket.display());
    refused(home, &format!("--transport {transport} --identity /alice status"), 3, "no key chain");
    for kind in ["ecdsa", "ed25519"] {
        let identity = format!("/{kind}");
        ok(home, &format!("key make {identity} --type {kind}"));
        let certificate = certificate(home, &identity);
        let mut asked = namewire(home)
            .args(["--transport", &transport, "--identity", &identity, "strategy", "set", "/a", "multicast"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = vec![0; 8800];
        let size = stream.read(&mut bytes).unwrap();
        let interest = Interest::parse(&bytes[..size]).unwrap();
        let info = interest.signature_info().unwrap();
        assert_eq!(info.key_locator(), Some(KeyLocator::Name(certificate.name())));
        assert!(info.nonce().is_some() && info.time_ms().is_some());
        let (front, back) = interest.signed_portion().unwrap();
        let signature = interest.signature_value().unwrap();
        let key = certificate.public_key().unwrap();
        assert_eq!(key.verify(info.signature_type(), &[front, back], signature), Ok(()));
        asked.kill().unwrap();
        asked.wait().unwrap();
    }
}

/// The owner's programs may sign as whoever they like: the router knows its user by the socket, and what they serve is
/// signed for those who ask.
#[test]
fn an_identity_signs_what_it_serves_through_a_router() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let socket = home.join("nfd.sock");
    let mut router = namewire(home)
        .args(["run", "--no-udp", "--no-tcp", "--socket"])
        .arg(&socket)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(router.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let transport = format!("--transport unix://{}", socket.display());
    ok(home, "key make /alice");
    ok(home, "key make /mallory");
    let anchors = ["alice", "mallory"].map(|name| {
        let certificate = home.join(format!("{name}.cert"));
        ok(home, &format!("key export-cert /{name} -o {}", certificate.display()));
        certificate
    });
    let set = run(home, &format!("{transport} --identity /alice strategy set /a multicast"));
    let file = home.join("file");
    fs::write(&file, [7; 20_000]).unwrap();
    let mut serving = namewire(home)
        .args(format!("{transport} --identity /alice put {} /alice/file", file.display()).split_whitespace())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut served = String::new();
    BufReader::new(serving.stdout.take().unwrap()).read_line(&mut served).unwrap();
    let peeked = run(home, &format!("{transport} --json peek /alice/file -p"));
    let copies = anchors.map(|anchor| {
        let copy = anchor.with_extension("copy");
        let line = format!("{transport} get /alice/file --anchor {} -o {}", anchor.display(), copy.display());
        (run(home, &line), fs::read(copy).ok())
    });
    for mut process in [serving, router] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let [(trusted, copy), (distrusted, none)] = copies;
    assert!(trusted.status.success() && copy == Some(vec![7; 20_000]), "{trusted:?}");
    assert_eq!((distrusted.status.code(), none), (Some(1), None));
    let said = String::from_utf8(distrusted.stderr).unwrap();
    assert!(said.contains("is not trusted: unknown signer /alice/KEY/"), "{said}");
    assert!(set.status.success(), "{set:?}");
    let peeked: Value = serde_json::from_slice(&peeked.stdout).unwrap();
    assert_eq!(peeked["signature_type"], 3, "{served}");
}
