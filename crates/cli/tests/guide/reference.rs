//! Reference pages: made from the program's help and from the comments of the code. A page that differs fails its test;
//! `UPDATE=1 cargo test -p namewire-cli --test guide` rewrites it.

use crate::router_process::{NAMEWIRE, text};
use regex_lite::Regex;
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const COLUMNS: usize = 118;

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the repository.
pub(crate) fn file(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The page must have this text. With `UPDATE=1` it gets it.
pub(crate) fn must_be(page: &str, expected: &str) {
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        fs::write(repository().join(page), expected).expect("a page");
    }
    assert!(file(page) == expected, "{page} differs: UPDATE=1 cargo test -p namewire-cli --test guide writes it anew");
}

/// `text` in lines of at most [`COLUMNS`]; the first and the others are indented.
fn wrapped(text: &str, first: usize, others: usize) -> String {
    let (mut lines, mut line) = (String::new(), " ".repeat(first));
    for (place, word) in text.split(' ').enumerate() {
        if !line.trim().is_empty() && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines += &(line + "\n");
            line = " ".repeat(others) + word;
        } else {
            line += if place == 0 { "" } else { " " };
            line += word;
        }
    }
    lines + &line + "\n"
}

// --- options ---

fn help(command: &[String]) -> String {
    let output = Command::new(NAMEWIRE).args(command).arg("--help").output().expect("the program");
    assert!(output.status.success(), "{command:?}: {output:?}");
    text(&output.stdout)
}

fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    let (_, listed) = help.split_once("\nCommands:\n").unwrap_or_default();
    let names = listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| !["help", "nfdc", "ndnsec"].contains(name)) // the last two have pages of their own
}

/// The help of a command and of those below it.
fn write_help(command: &[String], page: &mut String) {
    let help = help(command);
    let _ = writeln!(page, "\n## {}\n\n```text", [&["namewire".to_owned()], command].concat().join(" "));
    for line in help.trim_end().lines() {
        let indent = line.len() - line.trim_start().len();
        *page += &wrapped(line.trim(), indent, indent + 4);
    }
    *page += "```\n";
    for name in subcommands(&help) {
        write_help(&[command, &[name.to_owned()]].concat(), page);
    }
}

#[test]
fn options() {
    let mut page = "# Commands and options\n\n\
        What `--help` of each command prints; a test makes this page. [nfdc](../nfdc.md) and [ndnsec](../ndnsec.md) \
        have pages of their own.\n"
        .to_owned();
    write_help(&[], &mut page);
    must_be("docs/reference/options.md", &page);
}

// --- comments of the code ---

/// What `pattern` finds in lines of a file, each with the comment above it.
fn commented(path: &str, pattern: &str) -> Vec<(String, String)> {
    // Links between items of the code mean nothing on a page.
    let (pattern, item) = (Regex::new(pattern).unwrap(), Regex::new(r" ?\(\[`\w+::\w+`\]\([^)]*\)\)").unwrap());
    let link = Regex::new(r"\[(`[^`]+`)\](?:\([^)]*\))?").unwrap();
    let meaning = |comment: &[&str]| link.replace_all(&item.replace_all(&comment.join(" "), ""), "$1").into_owned();
    let (mut found, mut comment) = (Vec::new(), Vec::new());
    for line in file(path).lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///").or(line.strip_prefix("//")) {
            comment.push(text.trim());
        } else if let Some(captures) = pattern.captures(line) {
            assert!(!comment.is_empty(), "{path}: no comment says what {:?} means", &captures[1]);
            found.push((captures[1].to_owned(), meaning(&comment)));
            comment.clear();
        } else if !line.starts_with("#[") {
            comment.clear();
        }
    }
    assert!(!found.is_empty(), "{path}: nothing is {pattern}");
    found
}

#[test]
fn exit_codes() {
    let about = "Of `namewire`, except as `nfdc`, which has [nfdc's](../nfdc.md), as `ndnsec`, which has \
        [ndnsec's](../ndnsec.md), and as `namewire nfd`, which has \
        [NFD's](../drop-in.md#files-processes-environment). A test makes this page from `crates/tools/src/failure.rs`. \
        [Troubleshooting](../troubleshooting.md#exit-codes) says what to do.";
    let table = "\n| code | meaning |\n| --- | --- |\n| 0 | Done. |\n";
    let mut page = format!("# Exit codes\n\n{}{table}", wrapped(about, 0, 0));
    for (code, meaning) in commented("crates/tools/src/failure.rs", r"^[A-Z]\w+ = (\d+),$") {
        let _ = writeln!(page, "| {code} | {meaning} |");
    }
    must_be("docs/reference/exit-codes.md", &page);
}

/// Where counters are declared: what comes before their names, the file, and the lines that name one.
const COUNTERS: &[(&str, &str, &str)] = &[
    ("engine.", "crates/counters/src/drop_reason.rs", REASON),
    ("limit.", "crates/counters/src/limit_met.rs", REASON),
    ("link.", "crates/links/src/link_drop.rs", REASON),
    ("router.", "crates/worker/src/router_drop.rs", REASON),
    ("router.", "crates/tables/src/fib/entry.rs", REASON),
    ("websocket.", "crates/websocket/src/lib.rs", REASON),
    ("tag.", "crates/tagnet/src/forwarder/tag_drop.rs", REASON),
    ("tag-routing.", "crates/tagnet/src/routing/refusal.rs", REASON),
    ("tag-routing.", "crates/router/src/control/tags.rs", r#"\("([a-z-]+)", self"#),
    ("", "crates/management/src/counters.rs", COUNTER),
    ("", "crates/counters/src/lib.rs", COUNTER),
    ("", "crates/links/src/face_counters.rs", COUNTER),
    ("", "crates/worker/src/shared.rs", COUNTER),
    ("", "crates/router/src/control/status.rs", r#"^report\.add(?:_cuts)?\("([a-z.-]+)","#),
    ("", "crates/worker/src/drop_report.rs", r#"^self\.add_cuts\("([a-z.-]+)","#),
    ("", "crates/worker/src/pool_report.rs", r#"^report\.add\((?:&format!\()?"([a-z.-]+)[."]"#),
    ("", "crates/management/src/authorization.rs", r#"^\("([a-z.-]+)", self.replay"#),
    ("state.", "crates/router/src/control/held_answers.rs", r#"^\("([a-z-]+)", "#),
    ("", "crates/shares/src/pool.rs", REASON),
];
const REASON: &str = r#"^[A-Z]\w+ = "([a-z-]+)",$"#;
const COUNTER: &str = r#"\w+(?:: u64)? = "([a-z-]+\.[a-z-]+)",$"#;

/// Faces that ended by themselves: the names are in one file, the meanings in another.
fn closed_faces() -> Vec<(String, String)> {
    let mut meanings = BTreeMap::new();
    for (variant, meaning) in commented("crates/faces/src/face_event.rs", r"^([A-Z]\w+)(?:\(.*\))?,$") {
        meanings.entry(variant).or_insert(meaning); // an enum behind has a variant of the same name
    }
    let arm = Regex::new(r#"CloseReason::(\w+)(?:\(_\))? => "([a-z-]+)","#).unwrap();
    let source = file("crates/router/src/control/faces.rs");
    arm.captures_iter(&source).map(|arm| (format!("face-closed.{}", &arm[2]), meanings[&arm[1]].clone())).collect()
}

/// Refused commands: names and meanings are in one file, in the same order.
fn denials() -> Vec<(String, String)> {
    let path = ["crates/security", "crates/management"]
        .iter()
        .flat_map(|folder| rust_files(&repository().join(folder)))
        .find(|path| fs::read_to_string(path).is_ok_and(|source| source.contains("pub enum Denial {")))
        .expect("the denials are in one of the two crates");
    let path = path.strip_prefix(repository()).expect("a file of the repository").display().to_string();
    let source = file(&path);
    let (_, names) = source.split_once("NAMES: [").expect("names");
    let names = names.lines().skip(1).map_while(|line| line.trim().strip_prefix('"')?.strip_suffix("\","));
    let meanings = commented(&path, r"^([A-Z]\w+)(?:\(.*\))?(?:,| \{)$");
    let names: Vec<&str> = names.collect();
    assert_eq!(names.len(), meanings.len(), "a name for each denial");
    names.iter().zip(meanings).map(|(name, (_, meaning))| (format!("denied.{name}"), meaning)).collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let files = entries.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|ending| ending == "rs")).collect()
}

fn counters() -> BTreeMap<String, String> {
    let declared = COUNTERS.iter().flat_map(|(place, path, pattern)| {
        commented(path, pattern).into_iter().map(move |(name, meaning)| (format!("{place}{name}"), meaning))
    });
    let per_pool = ["share-used", "pool-full", "displaced"];
    let named = |(name, meaning): (String, String)| match name.as_str() {
        "cut" | "management-cut" => (name + ".face-N", meaning),
        _ if per_pool.contains(&name.as_str()) => (name + ".POOL", meaning),
        _ => (name, meaning),
    };
    declared.chain(closed_faces()).chain(denials()).map(named).collect()
}

#[test]
fn drops() {
    let about = "Every counter that `namewire status` may show under *Drops* or *Events*, with its meaning in the code; a test makes \
        this page. [The guide](../guide.md#drops-by-reason) says what each place is, [limits](../limits.md#the-pools) what \
        a POOL is, and [troubleshooting](../troubleshooting.md#drops) what to do. `namewire drops` shows the last packets \
        that were dropped.";
    let mut page = format!("# Drop reasons and limits\n\n{}", wrapped(about, 0, 0));
    let mut last = "";
    let counters = counters();
    for (name, meaning) in &counters {
        let place = name.split_once('.').expect("a place").0;
        if place != last {
            let _ = writeln!(page, "\n## {place}\n");
            last = place;
        }
        page += &wrapped(&format!("- `{name}`: {meaning}"), 0, 2);
    }
    must_be("docs/reference/drops.md", &page);
}

/// A counter that code reports must be on the page.
#[test]
fn every_place_that_the_router_reports_is_on_the_page() {
    let reported = Regex::new(r#"\.add(?:_all|_cuts)?\(\s*(?:&format!\()?"([a-z-]+)[."]"#).unwrap();
    let counters = counters();
    for path in rust_files(&repository().join("crates/router/src")) {
        let source = fs::read_to_string(&path).expect("a file");
        if source.contains("DropReport") {
            for place in reported.captures_iter(&source).map(|found| found[1].to_owned()) {
                let is_there = counters.keys().any(|name| name.split_once('.').is_some_and(|(of, _)| of == place));
                assert!(is_there, "{}: no counter of {place} is on the page", path.display());
            }
        }
    }
}
