//! A page of the guide: its blocks, in order.
//!
//! | fence | what it is |
//! | --- | --- |
//! | `sh` | commands, as typed on the only machine of the page |
//! | `sh NAME` | commands, as typed on the machine of that name |
//! | `output` | the output of the commands above it. `…` is any text, and any number of blanks is one |
//! | `console` | commands that no test runs; [`crate::NOT_RUN`] has the reasons |
//!
//! Blocks with another fence are examples of files and pictures.

/// What a block is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Commands { machine: String },
    Output,
    NotRun,
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

/// Where the only machine of a page has no name in its fences.
const ONLY_MACHINE: &str = "here";

pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let text: String = lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
        let kind = match info.split_once(' ').unwrap_or((info, ONLY_MACHINE)) {
            ("sh", machine) => Kind::Commands { machine: machine.to_owned() },
            ("output", _) => Kind::Output,
            ("console", _) => Kind::NotRun,
            _ => continue,
        };
        blocks.push(Block { kind, text });
    }
    blocks
}

/// The first expected line that `found` does not have, or does not have after those before it.
pub(crate) fn first_missing<'a>(expected: &'a str, found: &str) -> Option<&'a str> {
    let mut found = found.lines().map(one_blank);
    expected.lines().find(|line| {
        let line = one_blank(line);
        line != "…" && !found.any(|found| matches(&line, &found))
    })
}

fn one_blank(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a line is the pattern, where `…` is any text.
fn matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn expected_output_is_found_in_its_order() {
    let found = "one  2 three\nfour\n4.31 ms\n";
    for right in ["one 2 three", "one … three\nfour", "…\n… ms", "one…\n4.… ms", ""] {
        assert_eq!(first_missing(right, found), None, "{right}");
    }
    for (wrong, missing) in [("one", "one"), ("four\none 2 three", "one 2 three"), ("one … two", "one … two")] {
        assert_eq!(first_missing(wrong, found), Some(missing));
    }
}

#[test]
fn blocks_have_machines() {
    let found = blocks("a\n```sh\nb\n```\n```sh alice\nc\nd\n```\n```toml\ne\n```\n```output\nf\n```\n");
    let commands = |machine: &str| Kind::Commands { machine: machine.to_owned() };
    let kinds: Vec<(&Kind, &str)> = found.iter().map(|block| (&block.kind, block.text.as_str())).collect();
    assert_eq!(kinds, [(&commands("here"), "b\n"), (&commands("alice"), "c\nd\n"), (&Kind::Output, "f\n")]);
}
