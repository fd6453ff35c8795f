//! `ndnsec list`: identities, keys and certificates as a tree, sorted by name.

use crate::{
    arguments::Arguments,
    chain::{self, Chain},
    describe::describe,
    stop::Stop,
};
use namewire_security::key_chain::Entry;

/// How much is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    Identities,
    Keys,
    Certificates,
    FullCertificates,
}

pub(crate) fn list(arguments: &Arguments) -> Result<String, Stop> {
    let verbose = match arguments.count("verbose") {
        0 => Depth::Identities,
        1 => Depth::Keys,
        2 => Depth::Certificates,
        _ => Depth::FullCertificates,
    };
    let wanted = match (arguments.is_set("cert"), arguments.is_set("key")) {
        (true, _) => Depth::Certificates,
        (false, true) => Depth::Keys,
        (false, false) => Depth::Identities,
    };
    let chain = Chain::open()?;
    let mut tree = Tree { text: format!("{}\n", chain.locator), depth: wanted.max(verbose), chain };
    tree.identities()?;
    Ok(tree.text)
}

struct Tree {
    chain: Chain,
    depth: Depth,
    text: String,
}

impl Tree {
    fn identities(&mut self) -> Result<(), Stop> {
        for (entry, branch) in branches(self.chain.inner.pib().identities()?, "") {
            self.row(&entry, &branch);
            if self.depth >= Depth::Keys {
                self.keys(&entry, &branch.below)?;
            }
        }
        Ok(())
    }

    fn keys(&mut self, identity: &Entry, indent: &str) -> Result<(), Stop> {
        for (entry, branch) in branches(self.chain.inner.pib().keys(identity.name.as_name())?, indent) {
            self.row(&entry, &branch);
            if self.depth >= Depth::Certificates {
                self.certificates(&entry, &branch.below)?;
            }
        }
        Ok(())
    }

    fn certificates(&mut self, key: &Entry, indent: &str) -> Result<(), Stop> {
        for (entry, branch) in branches(self.chain.inner.pib().certificates(key.name.as_name())?, indent) {
            self.row(&entry, &branch);
            if self.depth == Depth::FullCertificates {
                let text = describe(&chain::parse(&entry)?);
                self.text.extend(text.lines().map(|line| format!("{}  {line}\n", branch.below)));
            }
        }
        Ok(())
    }

    fn row(&mut self, entry: &Entry, branch: &Branch) {
        let mark = if entry.is_default { '*' } else { '─' };
        self.text += &format!("{}{mark} {}\n", branch.before, entry.name);
    }
}

/// The lines of the tree at one row.
struct Branch {
    before: String,
    /// Before the rows that belong to this one.
    below: String,
}

/// The rows by name, each with its branch.
fn branches(mut entries: Vec<Entry>, indent: &str) -> Vec<(Entry, Branch)> {
    entries.sort_by(|left, right| left.name.cmp(&right.name));
    let last = entries.len().saturating_sub(1);
    let branch = |index| match index == last {
        true => Branch { before: format!("{indent}└─"), below: format!("{indent}    ") },
        false => Branch { before: format!("{indent}├─"), below: format!("{indent}│   ") },
    };
    entries.into_iter().enumerate().map(|(index, entry)| (entry, branch(index))).collect()
}
