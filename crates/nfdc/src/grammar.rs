//! Grammar: which commands exist, and which arguments does each take? One row per command.
//!
//! Source: the manual pages of NFD's `nfdc` and drop-in §5. A command is a noun and a verb; each noun has at most one
//! verb that may be left out. A user gives an argument by name (`cost 10`). A positional argument may also be given by
//! its place.

/// What an argument's value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No value: the name alone switches something.
    Switch,
    /// `on`, `off` and their synonyms.
    Boolean,
    /// An integer from 0 to 2^63 - 1.
    Unsigned,
    /// Any text.
    Text,
    /// `text` or `xml`.
    Format,
    /// A name prefix.
    Name,
    /// A FaceUri.
    FaceUri,
    /// A face number or a FaceUri.
    Face,
    /// `persistent` or `permanent`.
    Persistency,
    /// Who registers a route: a word or a number.
    Origin,
}

/// One argument of a command.
#[derive(Debug)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) is_required: bool,
    pub(crate) is_positional: bool,
    /// Stands for the value in messages.
    pub(crate) placeholder: &'static str,
}

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    StatusReport,
    StatusShow,
    ChannelList,
    FibList,
    CsInfo,
    FaceList,
    FaceShow,
    FaceCreate,
    FaceDestroy,
    RouteList,
    RouteShow,
    RouteAdd,
    RouteRemove,
    CsConfig,
    CsErase,
    StrategyList,
    StrategyShow,
    StrategySet,
    StrategyUnset,
}

/// One command.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) noun: &'static str,
    pub(crate) verb: &'static str,
    /// The noun alone means this verb.
    pub(crate) is_default: bool,
    /// For the list of commands.
    pub(crate) summary: &'static str,
    pub(crate) arguments: &'static [Argument],
    pub(crate) action: Action,
}

impl Kind {
    const fn placeholder(self) -> &'static str {
        match self {
            Kind::Switch => "",
            Kind::Boolean => "bool",
            Kind::Unsigned => "uint",
            Kind::Text => "str",
            Kind::Format => "fmt",
            Kind::Name => "name",
            Kind::FaceUri => "uri",
            Kind::Face => "face",
            Kind::Persistency => "persistency",
            Kind::Origin => "origin",
        }
    }
}

/// An argument that may be left out and is given by name only.
const fn named(name: &'static str, kind: Kind) -> Argument {
    Argument { name, kind, is_required: false, is_positional: false, placeholder: kind.placeholder() }
}

/// An argument that may be left out and may be given by place.
const fn placed(name: &'static str, kind: Kind) -> Argument {
    Argument { is_positional: true, ..named(name, kind) }
}

/// An argument that must be there and may be given by place.
const fn required(name: &'static str, kind: Kind) -> Argument {
    Argument { is_required: true, ..placed(name, kind) }
}

const fn command(
    noun: &'static str,
    verb: &'static str,
    summary: &'static str,
    arguments: &'static [Argument],
    action: Action,
) -> Command {
    Command { noun, verb, is_default: false, summary, arguments, action }
}

/// A command whose verb may be left out.
const fn default(
    noun: &'static str,
    verb: &'static str,
    summary: &'static str,
    arguments: &'static [Argument],
    action: Action,
) -> Command {
    Command { is_default: true, ..command(noun, verb, summary, arguments, action) }
}

/// All commands, in the order in which help lists them.
pub(crate) const COMMANDS: &[Command] = &[
    command("status", "report", "everything below at once", &[placed("format", Kind::Format)], Action::StatusReport),
    default("status", "show", "the forwarder's counters and tables", &[], Action::StatusShow),
    default("channel", "list", "addresses that take connections", &[], Action::ChannelList),
    default("fib", "list", "prefixes and next hops in use", &[], Action::FibList),
    default("cs", "info", "the Content Store's state", &[], Action::CsInfo),
    default("face", "list", "all faces, or those that match", FACE_LIST, Action::FaceList),
    command("face", "show", "one face in full", &[required("id", Kind::Unsigned)], Action::FaceShow),
    command("face", "create", "make a face, or change one", FACE_CREATE, Action::FaceCreate),
    command("face", "destroy", "take a face away", &[required("face", Kind::Face)], Action::FaceDestroy),
    default("route", "list", "all routes, or those that match", ROUTE_LIST, Action::RouteList),
    command("route", "show", "the routes of one prefix", &[required("prefix", Kind::Name)], Action::RouteShow),
    command("route", "add", "make a route, or change one", ROUTE_ADD, Action::RouteAdd),
    command("route", "remove", "take a route away", ROUTE_REMOVE, Action::RouteRemove),
    command("cs", "config", "change the Content Store's settings", CS_CONFIG, Action::CsConfig),
    command("cs", "erase", "forget stored Data of a prefix", CS_ERASE, Action::CsErase),
    default("strategy", "list", "all strategy choices", &[], Action::StrategyList),
    command("strategy", "show", "the choice for a name", &[required("prefix", Kind::Name)], Action::StrategyShow),
    command("strategy", "set", "choose a strategy for a prefix", STRATEGY_SET, Action::StrategySet),
    command("strategy", "unset", "undo a choice", &[required("prefix", Kind::Name)], Action::StrategyUnset),
];

const FACE_LIST: &[Argument] = &[
    placed("remote", Kind::FaceUri),
    named("local", Kind::FaceUri),
    Argument { placeholder: "scheme", ..named("scheme", Kind::Text) },
];

const FACE_CREATE: &[Argument] = &[
    required("remote", Kind::FaceUri),
    placed("persistency", Kind::Persistency),
    named("local", Kind::FaceUri),
    named("reliability", Kind::Boolean),
    named("congestion-marking", Kind::Boolean),
    named("congestion-marking-interval", Kind::Unsigned),
    named("default-congestion-threshold", Kind::Unsigned),
    // Text, because "auto" takes an override away.
    named("mtu", Kind::Text),
];

const ROUTE_LIST: &[Argument] = &[placed("nexthop", Kind::Face), named("origin", Kind::Origin)];

const ROUTE_ADD: &[Argument] = &[
    required("prefix", Kind::Name),
    required("nexthop", Kind::Face),
    named("origin", Kind::Origin),
    named("cost", Kind::Unsigned),
    named("no-inherit", Kind::Switch),
    named("capture", Kind::Switch),
    named("expires", Kind::Unsigned),
];

const ROUTE_REMOVE: &[Argument] =
    &[required("prefix", Kind::Name), required("nexthop", Kind::Face), named("origin", Kind::Origin)];

const CS_CONFIG: &[Argument] =
    &[named("capacity", Kind::Unsigned), named("admit", Kind::Boolean), named("serve", Kind::Boolean)];

const CS_ERASE: &[Argument] = &[required("prefix", Kind::Name), named("count", Kind::Unsigned)];

const STRATEGY_SET: &[Argument] = &[required("prefix", Kind::Name), required("strategy", Kind::Name)];

/// The command of a noun and a verb; an empty verb is the noun's default one.
pub(crate) fn find(noun: &str, verb: &str) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .find(|command| command.noun == noun && (command.verb == verb || (verb.is_empty() && command.is_default)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rows_and_argument_names_are_unique() {
        let rows: BTreeSet<_> = COMMANDS.iter().map(|command| (command.noun, command.verb)).collect();
        assert_eq!(rows.len(), COMMANDS.len());
        for command in COMMANDS {
            let names: BTreeSet<_> = command.arguments.iter().map(|argument| argument.name).collect();
            assert_eq!(names.len(), command.arguments.len(), "{command:?}");
            let switches_are_named = command.arguments.iter().all(|a| a.kind != Kind::Switch || !a.is_positional);
            assert!(switches_are_named, "{command:?}");
        }
    }

    #[test]
    fn each_noun_alone_means_one_verb() {
        for (noun, verb) in [
            ("status", "show"),
            ("channel", "list"),
            ("fib", "list"),
            ("cs", "info"),
            ("face", "list"),
            ("route", "list"),
            ("strategy", "list"),
        ] {
            assert_eq!(find(noun, "").unwrap().verb, verb);
            let defaults = COMMANDS.iter().filter(|command| command.noun == noun && command.is_default).count();
            assert_eq!(defaults, 1, "{noun}");
        }
        assert!(find("face", "fly").is_none());
        assert!(find("", "").is_none());
    }
}
