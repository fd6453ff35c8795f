//! `ndnsec` and its `ndnsec-…` forms against the recorded output of ndn-cxx's own.
//!
//! The files of `tests/ndnsec_golden` are sessions as those of `nfdc_golden`: shell command lines (`$ …`), their
//! standard output (`> …`) and standard error (`2> …`), and their exit codes (`= …`), recorded with the ndnsec of
//! ndn-cxx 0.9.0-34-ga362e65e. A session has one home folder, in which its commands run. Text that varies from run to
//! run has a placeholder, and so has text that differs on purpose (`docs/ndnsec.md`).
//!
//! To record again, with a folder that has the program `ndnsec` and its links:
//!
//! ```sh
//! NDNSEC_FOLDER=/usr/bin cargo test -p namewire-cli --test commands ndnsec::record -- --ignored
//! ```

use crate::{
    nfdc::session::{Session, Step},
    router_process::NAMEWIRE,
};
use regex_lite::{Captures, Regex};
use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const SESSIONS: [&str; 4] = ["usage", "keys", "certificates", "bags"];

/// The forms that scripts type.
const LINKS: [&str; 13] = [
    "ndnsec",
    "ndnsec-list",
    "ndnsec-get-default",
    "ndnsec-set-default",
    "ndnsec-delete",
    "ndnsec-key-gen",
    "ndnsec-sign-req",
    "ndnsec-cert-gen",
    "ndnsec-cert-dump",
    "ndnsec-cert-install",
    "ndnsec-export",
    "ndnsec-import",
    "ndnsec-unlock-tpm",
];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ndnsec_golden").join(format!("{name}.txt"))
}

/// A folder with links to our program.
fn links(folder: &Path) -> PathBuf {
    let bin = folder.join("bin");
    std::fs::create_dir(&bin).unwrap();
    LINKS.iter().for_each(|link| symlink(NAMEWIRE, bin.join(link)).unwrap());
    bin
}

/// A home folder, and the folder of the programs.
struct Shell {
    home: tempfile::TempDir,
    programs: PathBuf,
}

impl Shell {
    fn ours() -> Self {
        let home = tempfile::tempdir().unwrap();
        let programs = links(home.path());
        Shell { home, programs }
    }

    /// Runs a line: exit code, standard output, standard error.
    fn run(&self, line: &str) -> (String, String, String) {
        let path = format!("{}:{}", self.programs.display(), std::env::var("PATH").unwrap());
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(&self.home)
            .env("PATH", path)
            .env("HOME", self.home.path())
            .env_remove("NDN_CLIENT_PIB")
            .env_remove("NDN_CLIENT_TPM")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().map_or_else(|| "signal".to_owned(), |code| code.to_string());
        (code, text(output.stdout), text(output.stderr))
    }

    fn step(&self, command: &str, placeholders: &Placeholders) -> Step {
        let (code, out, err) = self.run(command);
        let [out, err] = [out, err].map(|text| placeholders.lines(&text));
        Step { command: command.to_owned(), out, err, code, ..Step::default() }
    }
}

/// Placeholders for text that varies from run to run, or that differs on purpose.
struct Placeholders {
    key_id: Regex,
    time: Regex,
    rules: [(Regex, &'static str); 3],
}

impl Placeholders {
    fn new() -> Self {
        let rule = |pattern, placeholder| (Regex::new(pattern).unwrap(), placeholder);
        Placeholders {
            key_id: Regex::new(r"/KEY/([^/\s`'\]]+)").unwrap(),
            time: Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d").unwrap(),
            rules: [
                rule(r"v=\d{13}", "v=<VERSION>"),
                rule(r"(not in base64 format) \(.*\)$", "${1} (<REASON>)"),
                rule(
                    "^ERROR: (bad lexical cast|Month number|basic_string|'[^']*' is not a time).*$",
                    "ERROR: <NOT A TIME>",
                ),
            ],
        }
    }

    fn lines(&self, text: &str) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut is_in_base64 = false;
        for line in text.lines() {
            if line.starts_with("Usage: ") {
                lines.push("<USAGE>".to_owned());
                return lines;
            }
            let word = line.trim_start_matches([' ', '│']);
            let indent = &line[..line.len() - word.len()];
            let is_base64 = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
            if is_in_base64 && is_base64 && !word.is_empty() {
                continue;
            }
            is_in_base64 = is_base64 && word.len() == 64;
            lines.push(if is_in_base64 { format!("{indent}<BASE64>") } else { self.line(line) });
        }
        if !text.is_empty() && !text.ends_with('\n') {
            lines.push("<NO END OF LINE>".to_owned());
        }
        lines
    }

    fn line(&self, line: &str) -> String {
        // Key ids of the session are short; those of a program are random.
        let line = self.key_id.replace_all(line, |found: &Captures<'_>| match &found[1] {
            chosen if chosen.len() == 2 => found[0].to_owned(),
            _ => "/KEY/<KEYID>".to_owned(),
        });
        // Times of the session are midnights.
        let line = self.time.replace_all(&line, |found: &Captures<'_>| match &found[0] {
            chosen if chosen.ends_with("-01-01T00:00:00") => chosen.to_owned(),
            _ => "<TIME>".to_owned(),
        });
        let replaced = self.rules.iter().fold(line.into_owned(), |line, (pattern, placeholder)| {
            pattern.replace_all(&line, *placeholder).into_owned()
        });
        replaced.trim_end().to_owned()
    }
}

/// Runs a session; every step must print what ndn-cxx's ndnsec printed.
fn replay(name: &str) {
    let (shell, placeholders) = (Shell::ours(), Placeholders::new());
    let golden = Session::read(&golden(name));
    let mut differences = Vec::new();
    for expected in &golden.steps {
        let found = shell.step(&expected.command, &placeholders);
        if found != *expected {
            differences.push(format!("--- ndn-cxx's ndnsec\n{expected}--- ours\n{found}"));
        }
    }
    let count = golden.steps.len();
    assert!(differences.is_empty(), "{} of {count} steps:\n{}", differences.len(), differences.join("\n"));
    assert!(count > 5, "the session was read");
}

#[test]
fn usage() {
    replay("usage");
}

#[test]
fn keys() {
    replay("keys");
}

#[test]
fn certificates() {
    replay("certificates");
}

#[test]
fn bags() {
    replay("bags");
}

/// Writes down what another ndnsec prints: see above.
#[test]
#[ignore = "needs ndn-cxx's ndnsec"]
fn record() {
    let programs = PathBuf::from(std::env::var("NDNSEC_FOLDER").expect("NDNSEC_FOLDER: where ndn-cxx's ndnsec is"));
    for name in SESSIONS {
        let shell = Shell { home: tempfile::tempdir().unwrap(), programs: programs.clone() };
        let mut session = Session::read(&golden(name));
        for step in &mut session.steps {
            *step = shell.step(&step.command, &Placeholders::new());
        }
        std::fs::write(golden(name), session.to_string()).unwrap();
    }
}

/// What the recordings cannot show: other texts, and what ndn-cxx after 0.9.0 no longer has.
#[test]
fn differences_on_purpose() {
    let shell = Shell::ours();
    let version = format!("namewire-{}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(shell.run("ndnsec version"), ("0".to_owned(), version, String::new()));
    let (code, _, err) = shell.run("ndnsec key-gen -t r /alice");
    assert!(code == "1" && err.contains("openssl genrsa 2048 | namewire key make /alice --from -"), "{err}");
    assert_eq!(shell.run("ndnsec-unlock-tpm").0, "0");
    assert_eq!(shell.run("ndnsec-key-gen /alice > alice.cert").0, "0");
    let (code, _, err) = shell.run("ndnsec export -P pw -o nowhere/alice.bag /alice");
    assert!(code == "1" && err.contains("nowhere/alice.bag: No such file or directory"), "{err}");
    assert_eq!(shell.run("ndnsec export -P pw -o alice.bag /alice; stat -c %a alice.bag").1, "600\n");
    assert_eq!(shell.run("ndnsec set-default /a%").0, "2");
}

/// A certificate goes to a repository's port for bulk insertion as it is.
#[test]
fn a_certificate_is_sent_to_a_repository() {
    let shell = Shell::ours();
    shell.run("ndnsec-key-gen /alice | ndnsec cert-dump -f - > alice.cert");
    let repository = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = repository.local_addr().unwrap().port();
    let line = format!("ndnsec cert-dump -r -H 127.0.0.1 -P {port} -i /alice");
    assert_eq!(shell.run(&line), ("0".to_owned(), String::new(), String::new()));
    let mut received = Vec::new();
    std::io::Read::read_to_end(&mut repository.accept().unwrap().0, &mut received).unwrap();
    let text = std::fs::read(shell.home.path().join("alice.cert")).unwrap();
    assert_eq!(received, *namewire_security::base64_lines::decode(&text).unwrap());
}

/// `namewire ndnsec` is the same program, on the same key chain as `namewire key`.
#[test]
fn the_subcommand_shares_the_key_chain_of_namewire_key() {
    let shell = Shell::ours();
    symlink(NAMEWIRE, shell.programs.join("namewire")).unwrap();
    assert_eq!(shell.run("namewire ndnsec key-gen /alice | namewire key import -").0, "0");
    let listed = shell.run("ndnsec list -c").1;
    assert_eq!(shell.run("namewire ndnsec list -c").1, listed);
    let certificate = shell.run("namewire ndnsec get-default -c").1;
    assert!(shell.run("namewire key show /alice").1.contains(certificate.trim()));
    assert_eq!(shell.run("namewire key make /bob && ndnsec export -P pw /bob | wc -l").0, "0");
    assert_eq!(shell.run("namewire --json ndnsec list").0, "2");
    assert_eq!(shell.run("namewire ndnsec list --json").0, "2");
}
