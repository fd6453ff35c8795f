//! Revoked certificates: a router and a consumer that refuse them, with the records of `namewire key revoke`.

use crate::router_process::{Router, eventually, free_port, make_identity, namewire_of, text, text_of_failure};
use crate::tools::Running;
use std::{fs, io::Write, net::TcpStream, path::Path};

fn ok(home: &Path, line: &str) -> String {
    let output = namewire_of(home).args(line.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    text(&output.stdout)
}

#[test]
fn a_router_refuses_the_commands_of_a_certificate_from_the_moment_that_its_record_is_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    make_identity(home, "/operator", &home.join("operator.ndncert"));
    fs::create_dir(home.join("revoked")).unwrap();
    let file = home.join("namewire.toml");
    let trust = "[trust]\npeer_credentials = false\nrevocations = [\"revoked\"]\n\
                 [[trust.authorize]]\ncertificate = \"operator.ndncert\"\nprivileges = [\"strategy-choice\"]\n";
    fs::write(&file, trust).unwrap();
    let router = Router::run(home, &["--config", file.to_str().unwrap()]);
    let command = || router.tool_of(home, &["--identity", "/operator", "strategy", "set", "/a", "multicast"]);
    let passed = command();
    assert!(passed.status.success(), "{passed:?}");

    // A stranger's record for a certificate of the same name.
    let stranger = home.join("stranger");
    fs::create_dir(&stranger).unwrap();
    make_identity(&stranger, "/operator", &stranger.join("operator.ndncert"));
    let refused = namewire_of(&stranger).args(["key", "revoke"]).arg(home.join("operator.ndncert")).output().unwrap();
    assert!(text_of_failure(&refused).contains("only the key of the certificate, or its issuer's key"), "{refused:?}");
    ok(&stranger, &format!("key revoke /operator -o {}", home.join("revoked/forged").display()));
    let record = home.join("revoked/record");
    let said = ok(home, &format!("key revoke /operator --reason key-compromise -o {}", record.display()));
    assert!(said.contains("/operator/REVOKE/") && said.contains("key compromise"), "{said}");
    eventually("the command is refused", || !command().status.success());
    let why = text_of_failure(&command());
    assert!(why.contains("was revoked on 2") && why.contains("(key compromise)"), "{why}");
    let drops = namewire_of(home).args(["--transport", &router.uri(), "status"]).output().unwrap();
    assert!(text(&drops.stdout).contains("denied.certificate-revoked"), "{drops:?}");

    // A broken file takes no record away, and the operator can.
    fs::write(&record, "?").unwrap();
    router.wait_for(&["revoked/record: not base64"]);
    assert!(!command().status.success());
    fs::remove_file(&record).unwrap();
    eventually("the record is gone", || command().status.success());
}

/// Alice's certificate is revoked by its issuer, and a repository serves the record.
#[test]
fn get_refuses_data_of_a_revoked_certificate_when_a_repository_serves_its_record() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    make_identity(home, "/site", &home.join("site.cert"));
    make_identity(home, "/site/alice", &home.join("alice.cert"));
    ok(home, &format!("--identity /site key issue {0}/alice.cert -o {0}/alice-by-site.cert", home.display()));
    ok(home, &format!("key import {}/alice-by-site.cert", home.display()));
    let listed: Vec<String> = ok(home, "key list").split_whitespace().map(str::to_owned).collect();
    let certificate = listed.iter().find(|word| word.contains("/alice/KEY") && word.contains("/NA/")).unwrap();
    let router = Router::run(home, &[]);
    let port = free_port().to_string();
    let repo_arguments =
        ["repo", "run", "--store", "memory", "--prefix", "/site/alice/REVOKE", "--prefix", "/site/alice/KEY"];
    let bulk = format!("127.0.0.1:{port}");
    let repo = Running::start(router.command().args(repo_arguments).args(["--bulk-listen", &bulk]));
    repo.wait_for("is running");
    let store = |packet: &[u8]| TcpStream::connect(&bulk).unwrap().write_all(packet).unwrap();
    let packet = |file: &str| {
        let text = fs::read(home.join(file)).unwrap();
        namewire_security::base64_lines::decode(&text).unwrap().to_vec()
    };
    store(&packet("alice-by-site.cert"));
    let letter = home.join("letter");
    fs::write(&letter, "a letter").unwrap();
    let letter = letter.to_str().unwrap();
    let mut put = namewire_of(home);
    put.args(["--transport", &router.uri(), "--identity", certificate, "put", letter, "/site/alice/letter"]);
    let put = Running::start(&mut put);
    put.wait_for("serving ");
    let anchor = home.join("site.cert");
    let get = || router.tool(&["get", "/site/alice/letter", "-q", "--anchor", anchor.to_str().unwrap()]);
    eventually("the letter is accepted", || get().status.success());

    ok(home, &format!("key revoke {}/alice-by-site.cert -o {}/record", home.display(), home.display()));
    store(&packet("record"));
    eventually("the letter is refused", || !get().status.success());
    let why = text_of_failure(&get());
    assert!(why.contains("was revoked on"), "{why}");
}
