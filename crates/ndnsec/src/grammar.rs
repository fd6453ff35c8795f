//! Grammar: which commands exist, and which options does each take? One row per command.
//!
//! Source: the manual pages of ndn-cxx 0.9's `ndnsec`, and recordings of it (`crates/cli/tests/ndnsec_golden.txt`).

/// What an option's value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No value: the option switches something, and occurs once.
    Switch,
    /// No value: the number of times that it occurs counts.
    Count,
    /// Any text.
    Text,
    /// Any text; the option may be repeated.
    Texts,
    /// One character.
    Letter,
    /// A name.
    Name,
}

/// One option of a command.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) long: &'static str,
    pub(crate) short: Option<char>,
    pub(crate) kind: Kind,
    /// For help; an option without a text is given by place only.
    pub(crate) about: &'static str,
}

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    List,
    GetDefault,
    SetDefault,
    Delete,
    KeyGen,
    SignReq,
    CertGen,
    CertDump,
    CertInstall,
    Export,
    Import,
    UnlockTpm,
}

/// One command.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// For the list of commands.
    pub(crate) summary: &'static str,
    /// The option that a word without one gives, and its placeholder in help. A command without such an option ignores
    /// these words.
    pub(crate) operand: Option<(&'static str, &'static str)>,
    pub(crate) options: &'static [Choice],
    pub(crate) action: Action,
}

impl Kind {
    pub(crate) const fn takes_value(self) -> bool {
        !matches!(self, Kind::Switch | Kind::Count)
    }
}

const fn option(long: &'static str, short: char, kind: Kind, about: &'static str) -> Choice {
    Choice { long, short: Some(short), kind, about }
}

const fn switch(long: &'static str, short: char, about: &'static str) -> Choice {
    option(long, short, Kind::Switch, about)
}

const HELP: Choice = switch("help", 'h', "print this text");

/// All commands, in the order in which help lists them.
pub(crate) const COMMANDS: &[Command] = &[
    Command {
        name: "list",
        summary: "list identities, keys and certificates",
        operand: None,
        options: LIST,
        action: Action::List,
    },
    Command {
        name: "get-default",
        summary: "print the default identity, key or certificate",
        operand: None,
        options: GET_DEFAULT,
        action: Action::GetDefault,
    },
    Command {
        name: "set-default",
        summary: "choose the default identity, key or certificate",
        operand: Some(("name", "NAME")),
        options: SET_DEFAULT,
        action: Action::SetDefault,
    },
    Command {
        name: "delete",
        summary: "delete an identity, a key or a certificate",
        operand: Some(("name", "NAME")),
        options: DELETE,
        action: Action::Delete,
    },
    Command {
        name: "key-gen",
        summary: "make a key of an identity, with a self-signed certificate",
        operand: Some(("identity", "IDENTITY")),
        options: KEY_GEN,
        action: Action::KeyGen,
    },
    Command {
        name: "sign-req",
        summary: "print a request for a certificate",
        operand: Some(("name", "NAME")),
        options: SIGN_REQ,
        action: Action::SignReq,
    },
    Command {
        name: "cert-gen",
        summary: "issue a certificate for a request",
        operand: Some(("request", "FILE")),
        options: CERT_GEN,
        action: Action::CertGen,
    },
    Command {
        name: "cert-dump",
        summary: "print a certificate",
        operand: Some(("name", "NAME")),
        options: CERT_DUMP,
        action: Action::CertDump,
    },
    Command {
        name: "cert-install",
        summary: "import a certificate of a key in this key chain",
        operand: Some(("cert-file", "FILE")),
        options: CERT_INSTALL,
        action: Action::CertInstall,
    },
    Command {
        name: "export",
        summary: "print a private key with its certificate, as a safe bag",
        operand: Some(("name", "NAME")),
        options: EXPORT,
        action: Action::Export,
    },
    Command {
        name: "import",
        summary: "import a safe bag",
        operand: Some(("input", "FILE")),
        options: IMPORT,
        action: Action::Import,
    },
    Command {
        name: "unlock-tpm",
        summary: "do nothing: private keys in files have no lock",
        operand: None,
        options: &[HELP],
        action: Action::UnlockTpm,
    },
];

const LIST: &[Choice] = &[
    HELP,
    switch("key", 'k', "list keys too"),
    switch("cert", 'c', "list keys and certificates too"),
    option("verbose", 'v', Kind::Count, "list more: -v is -k, -vv is -c, -vvv prints certificates in full"),
];

const GET_DEFAULT: &[Choice] = &[
    HELP,
    switch("default-key", 'k', "print the default key"),
    switch("default-cert", 'c', "print the default certificate"),
    option("identity", 'i', Kind::Name, "of this identity"),
    option("key", 'K', Kind::Name, "of this key"),
    switch("quiet", 'q', "print no end of line"),
];

const SET_DEFAULT: &[Choice] = &[
    HELP,
    option("name", 'n', Kind::Name, "name of the identity, key or certificate"),
    switch("default-key", 'k', "the name is that of a key"),
    switch("default-cert", 'c', "the name is that of a certificate"),
];

const DELETE: &[Choice] = &[
    HELP,
    switch("delete-key", 'k', "the name is that of a key"),
    switch("delete-cert", 'c', "the name is that of a certificate"),
    option("name", 'n', Kind::Text, "name of the identity, key or certificate"),
];

const KEY_GEN: &[Choice] = &[
    HELP,
    option("identity", 'i', Kind::Name, "identity of the key, for example /alice"),
    switch("not-default", 'n', "leave the default identity as it is"),
    option("type", 't', Kind::Letter, "kind of key: e for ECDSA (the default)"),
    option("keyid-type", 'k', Kind::Letter, "key id: h for a digest of the key, r for a random number (the default)"),
    Choice { long: "keyid", short: None, kind: Kind::Text, about: "this key id" },
];

const SIGN_REQ: &[Choice] = &[
    HELP,
    option("name", 'n', Kind::Name, "name of the identity or key"),
    switch("key", 'k', "the name is that of a key"),
];

const CERT_GEN: &[Choice] = &[
    HELP,
    option("request", 'r', Kind::Text, "file of the request; - is standard input (the default)"),
    option("not-before", 'S', Kind::Text, "first moment of the certificate, YYYYMMDDhhmmss in UTC (default: now)"),
    option("not-after", 'E', Kind::Text, "last moment of the certificate (default: 365 days after the first)"),
    option("info", 'I', Kind::Texts, "a word, a space and a text to write into the certificate; may be repeated"),
    option("sign-id", 's', Kind::Name, "identity that signs (default: the default identity)"),
    option("issuer-id", 'i', Kind::Text, "issuer component of the certificate's name (default: NA)"),
];

const CERT_DUMP: &[Choice] = &[
    HELP,
    switch("pretty", 'p', "print it for people"),
    switch("identity", 'i', "the name is that of an identity"),
    switch("key", 'k', "the name is that of a key"),
    switch("file", 'f', "the name is that of a file; - is standard input"),
    option("name", 'n', Kind::Text, "name of the certificate"),
    switch("repo-output", 'r', "insert it into a repository"),
    option("repo-host", 'H', Kind::Text, "host of the repository (default: localhost)"),
    option("repo-port", 'P', Kind::Text, "port of the repository (default: 7376)"),
];

const CERT_INSTALL: &[Choice] = &[
    HELP,
    option("cert-file", 'f', Kind::Text, "file of the certificate; - is standard input"),
    switch("identity-default", 'I', "make it the default of its identity"),
    switch("key-default", 'K', "make it the default of its key"),
    switch("no-default", 'N', "change no default"),
];

const EXPORT: &[Choice] = &[
    HELP,
    switch("identity", 'i', "the name is that of an identity (the default)"),
    switch("key", 'k', "the name is that of a key"),
    switch("cert", 'c', "the name is that of a certificate"),
    option("output", 'o', Kind::Text, "file to write; - is standard output (the default)"),
    option("password", 'P', Kind::Text, "pass phrase (default: asked for)"),
    Choice { long: "name", short: None, kind: Kind::Name, about: "" },
];

const IMPORT: &[Choice] = &[
    HELP,
    option("input", 'i', Kind::Text, "file to read; - is standard input (the default)"),
    option("password", 'P', Kind::Text, "pass phrase (default: asked for)"),
];

/// The command of this name.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_options_are_unique_and_operands_are_options() {
        let names: BTreeSet<_> = COMMANDS.iter().map(|command| command.name).collect();
        assert_eq!(names.len(), COMMANDS.len());
        for command in COMMANDS {
            let longs: BTreeSet<_> = command.options.iter().map(|option| option.long).collect();
            let shorts: Vec<_> = command.options.iter().filter_map(|option| option.short).collect();
            assert_eq!(longs.len(), command.options.len(), "{}", command.name);
            assert_eq!(shorts.iter().collect::<BTreeSet<_>>().len(), shorts.len(), "{}", command.name);
            assert!(command.operand.is_none_or(|(long, _)| longs.contains(long)), "{}", command.name);
        }
    }
}
