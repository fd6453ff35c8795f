//! The table of all that a client can ask of management: one row for each verb and each dataset.
//!
//! Source: management.md §5 (fields of commands), §6 (datasets). A new verb is a row here and its handler. Each part of
//! what the node says of itself ([`Part`]) is a row by itself; any other dataset is a row whose function encodes it.
//! The dispatcher itself knows no verb.
//!
//! Cost: a request compares its module and verb with the rows, one after the other.

use crate::{
    authorization::Module,
    capture_commands::{add_to_capture, start_capture, stop_capture},
    command::{Field, Refusal, invalid_parameters},
    datasets::{Content, Dataset, Encode, QueryKind, joined},
    effect::Effect,
    environment::Environment,
    log_commands::{log_plane, set_log_levels},
    log_lines::{self, Done},
    management::Management,
    process_commands::{last_outcome, reload, upgrade},
    request::Request,
    tag_commands::{advertise_tags, join_tags, tag_plane, withdraw_tags},
};
use Field::{
    BaseCongestionMarkingInterval, Capacity, Cost, Count, DefaultCongestionThreshold, ExpirationPeriod, FaceId,
    FacePersistency, Flags, LocalUri, Mask, Mtu, Name, Origin, Strategy, Tags, Uri,
};
use namewire_packet::nfd::{ControlParameters, Part, encode_dataset};
use std::sync::LazyLock;

/// One verb or dataset: what answers `/localhost/nfd/<module>/<verb>`.
pub(crate) struct Row {
    pub(crate) module: &'static str,
    pub(crate) verb: &'static str,
    /// Other hosts may ask for it under `/localhop/nfd`, where the configuration lets them register routes.
    pub(crate) is_for_other_hosts: bool,
    pub(crate) kind: Kind,
}

/// How a row answers.
pub(crate) enum Kind {
    Command(Command),
    Dataset(Dataset),
    /// The function answers, refuses or waits as it needs.
    Other(fn(&mut Management, &Request<'_>, &mut dyn Environment, &mut Vec<Effect>)),
}

/// Carries out a command. `None`: the answer comes later.
type Run = fn(
    &mut Management,
    &Request<'_>,
    ControlParameters,
    &mut dyn Environment,
    &mut Vec<Effect>,
) -> Result<Option<ControlParameters>, Refusal>;

/// What a command takes and does.
pub(crate) struct Command {
    /// For authorization.
    pub(crate) module: Module,
    /// Fields that must be there.
    required: &'static [Field],
    /// Fields that may be there; all others are forbidden.
    optional: &'static [Field],
    /// FaceId 0, or none, means the face that the command came from.
    pub(crate) takes_self: bool,
    pub(crate) run: Run,
    /// Writes the log's line of a command that was carried out.
    pub(crate) log: fn(&Done<'_>),
}

/// Every row.
static TABLE: &[Row] = &[
    command(
        Module::Faces,
        "create",
        &[Uri],
        &[LocalUri, Flags, Mask, FacePersistency, BaseCongestionMarkingInterval, DefaultCongestionThreshold, Mtu],
        |management, request, parameters, _, out| management.create_face(parameters, &request.reply_to, out),
        log_lines::elsewhere,
    ),
    command(
        Module::Faces,
        "update",
        &[],
        &[FaceId, Flags, Mask, FacePersistency, BaseCongestionMarkingInterval, DefaultCongestionThreshold, Mtu],
        |management, request, parameters, _, out| management.update_face(parameters, &request.reply_to, out),
        log_lines::elsewhere,
    )
    .of_own_face(),
    command(
        Module::Faces,
        "destroy",
        &[FaceId],
        &[],
        |management, request, parameters, _, out| management.destroy_face(parameters, &request.reply_to, out),
        log_lines::elsewhere,
    ),
    other("faces", "events", |management, request, _, out| {
        management.events.on_request(request, &mut management.replies, out);
    }),
    dataset("faces", "query", |management, asked, environment| {
        let mut state = management.state(asked.now, &[Part::Faces], environment);
        state.faces.retain(|face| asked.faces.matches(face));
        Ok(state.encode(Part::Faces))
    })
    .counting()
    .with_query(QueryKind::Faces),
    command(
        Module::Fib,
        "add-nexthop",
        &[Name],
        &[FaceId, Cost],
        |management, _, parameters, _, out| management.add_next_hop(parameters, out).map(Some),
        log_lines::next_hop_added,
    )
    .of_own_face(),
    command(
        Module::Fib,
        "remove-nexthop",
        &[Name],
        &[FaceId],
        |management, _, parameters, _, out| management.remove_next_hop(parameters, out).map(Some),
        log_lines::next_hop_removed,
    )
    .of_own_face(),
    dataset("fib", "list", |management, _, _| {
        Ok(joined(management.routes.fib.dataset(|face| management.faces.is_gone(face))))
    }),
    command(
        Module::Rib,
        "register",
        &[Name],
        &[FaceId, Origin, Cost, Flags, ExpirationPeriod],
        |management, request, parameters, _, out| management.register(request, parameters, out).map(Some),
        log_lines::route_registered,
    )
    .of_own_face()
    .for_other_hosts(),
    command(
        Module::Rib,
        "unregister",
        &[Name],
        &[FaceId, Origin],
        |management, _, parameters, _, out| management.unregister(parameters, out).map(Some),
        log_lines::route_unregistered,
    )
    .of_own_face()
    .for_other_hosts(),
    other("rib", "announce", |management, request, _, out| management.on_announce(request, out)).for_other_hosts(),
    dataset("rib", "list", |management, asked, _| Ok(joined(management.routes.rib.dataset(asked.now.mono_ns))))
        .for_other_hosts(),
    command(
        Module::StrategyChoice,
        "set",
        &[Name, Strategy],
        &[],
        |management, _, parameters, environment, out| management.set_strategy(parameters, environment, out).map(Some),
        log_lines::strategy_set,
    ),
    command(
        Module::StrategyChoice,
        "unset",
        &[Name],
        &[],
        |management, _, parameters, environment, out| management.unset_strategy(parameters, environment, out).map(Some),
        log_lines::strategy_unset,
    ),
    command(
        Module::Cs,
        "config",
        &[],
        &[Capacity, Flags, Mask],
        |management, _, parameters, environment, out| management.configure_cs(parameters, environment, out).map(Some),
        log_lines::cs_configured,
    ),
    command(
        Module::Cs,
        "erase",
        &[Name],
        &[Count],
        |management, request, parameters, _, out| management.erase_cs(parameters, &request.reply_to, out),
        log_lines::elsewhere,
    ),
    command(
        Module::Tags,
        "advertise",
        &[Tags, Flags],
        &[FaceId, ExpirationPeriod],
        |_, request, parameters, environment, _| advertise_tags(request, parameters, environment).map(Some),
        log_lines::tags_advertised,
    )
    .of_own_face(),
    command(
        Module::Tags,
        "withdraw",
        &[Tags],
        &[FaceId],
        |_, request, parameters, environment, _| withdraw_tags(request, parameters, environment).map(Some),
        log_lines::tags_withdrawn,
    )
    .of_own_face(),
    command(
        Module::Tags,
        "join",
        &[],
        &[FaceId],
        |_, request, parameters, environment, _| join_tags(request, &parameters, environment).map(Some),
        log_lines::may_push,
    )
    .of_own_face(),
    dataset("tags", "trees", |_, _, environment| Ok(encode_dataset(&tag_plane(environment)?.trees()))).counting(),
    dataset("tags", "list", |_, _, environment| Ok(encode_dataset(&tag_plane(environment)?.routes()))).counting(),
    command(
        Module::Capture,
        "start",
        &[],
        &[Name, FaceId, LocalUri, Count, Mtu],
        |_, request, parameters, environment, _| start_capture(request, parameters, environment).map(Some),
        log_lines::capture_started,
    ),
    command(
        Module::Capture,
        "add",
        &[Name, FaceId],
        &[],
        |_, request, parameters, environment, _| add_to_capture(request, parameters, environment).map(Some),
        log_lines::elsewhere,
    ),
    command(
        Module::Capture,
        "stop",
        &[Name],
        &[],
        |_, request, parameters, environment, _| stop_capture(request, parameters, environment).map(Some),
        log_lines::capture_stopped,
    ),
    other("capture", "piece", |management, request, environment, _| management.on_piece_request(request, environment)),
    command(
        Module::Log,
        "set",
        &[],
        &[],
        |_, _, parameters, environment, _| set_log_levels(&parameters, environment).map(Some),
        log_lines::log_levels_set,
    ),
    command(Module::Log, "mark", &[Name], &[], |_, _, parameters, _, _| Ok(Some(parameters)), log_lines::log_marked),
    dataset("log", "levels", |_, _, environment| Ok(encode_dataset(&log_plane(environment)?.levels()))).counting(),
    dataset("log", "recent", |_, asked, environment| Ok(encode_dataset(&log_plane(environment)?.recent(asked.after))))
        .counting()
        .with_query(QueryKind::LinesAfter),
    command(
        Module::Process,
        "reload",
        &[],
        &[],
        |_, _, _, environment, _| reload(environment).map(Some),
        log_lines::task_begun,
    ),
    command(
        Module::Process,
        "upgrade",
        &[],
        &[Uri, Flags, Mask, ExpirationPeriod],
        |_, _, parameters, environment, _| upgrade(parameters, environment).map(Some),
        log_lines::task_begun,
    ),
    command(
        Module::Process,
        "outcome",
        &[],
        &[],
        |_, _, _, environment, _| last_outcome(environment).map(Some),
        log_lines::elsewhere,
    ),
    other("status", "name", |management, request, _, out| management.on_name_request(request, out)),
];

/// The rows of the parts of what the node says of itself. What they show changes without management, except for the
/// strategies.
static PARTS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let row = |&part: &Part| {
        let (module, verb) = part.name().split_once('/').expect("module and name");
        let content = Content::Part(part);
        let dataset = Dataset { query: None, changes_by_itself: part != Part::Strategies, content };
        Row { module, verb, is_for_other_hosts: false, kind: Kind::Dataset(dataset) }
    };
    Part::ALL.iter().map(row).collect()
});

/// The row of `/localhost/nfd/<module>/<verb>`.
pub(crate) fn find(module: &[u8], verb: &[u8]) -> Option<&'static Row> {
    TABLE.iter().chain(&*PARTS).find(|row| (row.module.as_bytes(), row.verb.as_bytes()) == (module, verb))
}

const fn command(
    module: Module,
    verb: &'static str,
    required: &'static [Field],
    optional: &'static [Field],
    run: Run,
    log: fn(&Done<'_>),
) -> Row {
    let command = Command { module, required, optional, takes_self: false, run, log };
    Row { module: module.name(), verb, is_for_other_hosts: false, kind: Kind::Command(command) }
}

const fn dataset(module: &'static str, verb: &'static str, content: Encode) -> Row {
    let dataset = Dataset { query: None, changes_by_itself: false, content: Content::By(content) };
    Row { module, verb, is_for_other_hosts: false, kind: Kind::Dataset(dataset) }
}

const fn other(
    module: &'static str,
    verb: &'static str,
    serve: fn(&mut Management, &Request<'_>, &mut dyn Environment, &mut Vec<Effect>),
) -> Row {
    Row { module, verb, is_for_other_hosts: false, kind: Kind::Other(serve) }
}

impl Row {
    /// Served under `/localhop/nfd`, too.
    const fn for_other_hosts(self) -> Self {
        Row { is_for_other_hosts: true, ..self }
    }

    /// A command whose FaceId 0, or none, means the face that it came from (§5).
    const fn of_own_face(mut self) -> Self {
        if let Kind::Command(command) = &mut self.kind {
            command.takes_self = true;
        }
        self
    }

    /// A dataset that changes without management: packets change it.
    const fn counting(mut self) -> Self {
        if let Kind::Dataset(dataset) = &mut self.kind {
            dataset.changes_by_itself = true;
        }
        self
    }

    const fn with_query(mut self, query: QueryKind) -> Self {
        if let Kind::Dataset(dataset) = &mut self.kind {
            dataset.query = Some(query);
        }
        self
    }
}

impl Command {
    /// Checks that required fields are there and forbidden fields are not, and that Flags come with Mask in verbs that
    /// have Mask.
    ///
    /// # Errors
    /// The answer that names the first field that is wrong.
    pub(crate) fn check_fields(&self, parameters: &ControlParameters) -> Result<(), Refusal> {
        for (field, is_present) in Field::presence(parameters) {
            let is_required = self.required.contains(&field);
            if is_required && !is_present {
                return Err(invalid_parameters(&format!("{field:?} is required")));
            }
            if is_present && !is_required && !self.optional.contains(&field) {
                return Err(invalid_parameters(&format!("{field:?} is forbidden")));
            }
        }
        if self.optional.contains(&Mask) && parameters.flags.is_some() != parameters.mask.is_some() {
            return Err(invalid_parameters("Flags and Mask must come together"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_has_one_row() {
        for (at, row) in TABLE.iter().chain(&*PARTS).enumerate() {
            let first =
                TABLE.iter().chain(&*PARTS).position(|other| (other.module, other.verb) == (row.module, row.verb));
            assert_eq!(first, Some(at), "{}/{}", row.module, row.verb);
        }
        assert!(find(b"rib", b"register").is_some() && find(b"rib", b"").is_none());
    }

    #[test]
    fn a_verb_that_takes_its_own_face_also_takes_a_face_id() {
        for row in TABLE {
            if let Kind::Command(command) = &row.kind
                && command.takes_self
            {
                assert!(command.optional.contains(&FaceId), "{}/{}", row.module, row.verb);
            }
        }
    }
}
