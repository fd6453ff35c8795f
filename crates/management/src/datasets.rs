//! Status datasets, and the answers to requests for them.
//!
//! Source: management.md §6. As in NFD, a name may go on behind the dataset's: clients append signatures and
//! parameters. What follows is not read, but it is part of the answer's name, so that the answer satisfies the
//! Interest.

use crate::{
    command::{Refusal, malformed, refusal},
    dataset_store::{Asked, COUNTERS_SHARED_MS, MAX_REQUEST_NAME_BYTES, SNAPSHOT_SHARED_MS, segment_bytes},
    effect::Effect,
    environment::{Environment, Times},
    log_commands::{log_plane, read_number},
    management::Management,
    replies::ReplyTo,
    tag_commands::tag_plane,
};
use namewire_packet::{
    DataBuilder, Interest, Name, content_type,
    nfd::{
        ChannelStatus, ControlResponse, DatasetEntry, DropCounter, FaceQueryFilter, FaceStatus, ForwarderStatus,
        encode_dataset,
    },
    tlv::types,
};

/// Longest FaceQueryFilter in bytes.
const MAX_FILTER_BYTES: usize = 512;

/// Components of a dataset's name, without a query filter.
const DATASET_NAME_LEN: usize = 4;

/// A status dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dataset {
    StatusGeneral,
    StatusDrops,
    StatusDropped,
    StatusHolders,
    StatusPrivileges,
    StatusSettings,
    FacesList,
    FacesQuery,
    FacesChannels,
    FacesHealth,
    FibList,
    RibList,
    StrategyChoiceList,
    CsInfo,
    CsUsage,
    FibUsage,
    TagTrees,
    TagRoutes,
    LogLevels,
    LogRecent,
}

impl Dataset {
    /// The dataset `/localhost/nfd/<module>/<verb>`.
    pub(crate) fn find(module: &[u8], verb: &[u8]) -> Option<Self> {
        Some(match (module, verb) {
            (b"status", b"general") => Dataset::StatusGeneral,
            (b"status", b"drops") => Dataset::StatusDrops,
            (b"status", b"dropped") => Dataset::StatusDropped,
            (b"status", b"holders") => Dataset::StatusHolders,
            (b"status", b"privileges") => Dataset::StatusPrivileges,
            (b"status", b"settings") => Dataset::StatusSettings,
            (b"faces", b"list") => Dataset::FacesList,
            (b"faces", b"query") => Dataset::FacesQuery,
            (b"faces", b"channels") => Dataset::FacesChannels,
            (b"faces", b"health") => Dataset::FacesHealth,
            (b"fib", b"list") => Dataset::FibList,
            (b"rib", b"list") => Dataset::RibList,
            (b"strategy-choice", b"list") => Dataset::StrategyChoiceList,
            (b"cs", b"info") => Dataset::CsInfo,
            (b"cs", b"usage") => Dataset::CsUsage,
            (b"fib", b"usage") => Dataset::FibUsage,
            (b"tags", b"trees") => Dataset::TagTrees,
            (b"tags", b"list") => Dataset::TagRoutes,
            (b"log", b"levels") => Dataset::LogLevels,
            (b"log", b"recent") => Dataset::LogRecent,
            _ => return None,
        })
    }

    /// The part of a request's name that says what is asked for: the dataset's own name, and a query if there is one.
    fn asked_in(self, name: Name<'_>) -> Name<'_> {
        let query_type = match self {
            Dataset::FacesQuery => Some(types::GENERIC_COMPONENT),
            Dataset::LogRecent => Some(types::SEQUENCE_NUM_COMPONENT),
            _ => None,
        };
        let next = name.get(DATASET_NAME_LEN).map(|component| component.type_number);
        let has_query = next.is_some() && next == query_type;
        name.prefix(DATASET_NAME_LEN + usize::from(has_query))
    }

    /// True if neighbours may read it under `/localhop/nfd`, where they may register routes: as in NFD, `rib/list`.
    pub(crate) const fn is_for_other_hosts(self) -> bool {
        matches!(self, Dataset::RibList)
    }

    /// True if the dataset shows what changes without management.
    pub(crate) fn changes_by_itself(self) -> bool {
        matches!(
            self,
            Dataset::StatusGeneral
                | Dataset::StatusDrops
                | Dataset::StatusDropped
                | Dataset::StatusHolders
                | Dataset::StatusSettings
                | Dataset::FacesList
                | Dataset::FacesQuery
                | Dataset::FacesHealth
                | Dataset::CsInfo
                | Dataset::CsUsage
                | Dataset::FibUsage
                | Dataset::TagTrees
                | Dataset::TagRoutes
                | Dataset::LogLevels
                | Dataset::LogRecent
        )
    }
}

impl Management {
    /// Answers a request for a dataset, or for a segment of one.
    pub(crate) fn on_dataset_request(
        &mut self,
        now: Times,
        dataset: Dataset,
        interest: &Interest<'_>,
        reply_to: &ReplyTo,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) {
        let name = interest.name();
        let asked = Asked { dataset: dataset.asked_in(name), name };
        if is_of_snapshot(name) {
            let segment = self.replies.store.stored(asked, now.mono_ns);
            return self.send_segment(segment, reply_to, out);
        }
        if let Some(refusal) = too_long(name) {
            return self.refuse_query(&refusal, reply_to, out);
        }
        if !interest.can_be_prefix() {
            let refusal = malformed("a dataset request needs CanBePrefix, for its Data has a version and a segment");
            return self.replies.refuse(reply_to, &refusal, out);
        }
        let query = match Query::read(dataset, asked.dataset) {
            Ok(query) => query,
            Err(refusal) => return self.refuse_query(&refusal, reply_to, out),
        };
        let age_ms_max = if dataset.changes_by_itself() { COUNTERS_SHARED_MS } else { SNAPSHOT_SHARED_MS };
        if let Some(segment) = self.replies.store.shared(asked, now.mono_ns, age_ms_max) {
            return self.send_segment(Some(segment), reply_to, out);
        }
        let content = match self.dataset_content(now, dataset, &query, environment) {
            Ok(content) => content,
            Err(refusal) => return self.refuse_query(&refusal, reply_to, out),
        };
        let content_bytes = content.len();
        let store = &mut self.replies.store;
        // Whoever follows the log asks often. Those answers must not displace the snapshots of others.
        let first = if dataset == Dataset::LogRecent && content_bytes <= segment_bytes(name) {
            store.pass(asked, content, now.unix_ms)
        } else {
            store.add(asked, content, now.mono_ns, now.unix_ms)
        };
        match first {
            Some(segment) => self.send_segment(Some(segment), reply_to, out),
            None => {
                let text = format!("The dataset of {content_bytes} bytes is larger than this forwarder's limit");
                self.refuse_query(&refusal(507, text), reply_to, out);
            }
        }
    }

    /// What was dropped or refused, by place and reason, in the router and here: `status/drops`.
    pub fn drop_counters(&self, environment: &dyn Environment) -> Vec<DropCounter> {
        let mut counters = environment.drop_counters();
        counters.extend(self.authorizer.drop_counters());
        counters.extend(self.replies.counters.drop_counters());
        counters
    }

    pub(crate) fn send_segment(&mut self, segment: Option<Vec<u8>>, reply_to: &ReplyTo, out: &mut Vec<Effect>) {
        match segment {
            Some(packet) => {
                self.replies.counters.segments += u64::from(self.replies.send(packet, reply_to.pit_token, out))
            }
            None => self.replies.counters.not_kept += 1,
        }
    }

    /// Sends a ControlResponse in place of the dataset, marked as NFD marks it.
    pub(crate) fn refuse_query(&mut self, refusal: &ControlResponse, reply_to: &ReplyTo, out: &mut Vec<Effect>) {
        self.replies.counters.refused += 1;
        let content = refusal.to_wire();
        let data = DataBuilder::new(&reply_to.name).content_type(content_type::NACK).content(&content);
        self.replies.send(data.sign_digest(), reply_to.pit_token, out);
    }

    fn dataset_content(
        &self,
        now: Times,
        dataset: Dataset,
        query: &Query,
        environment: &mut dyn Environment,
    ) -> Result<Vec<u8>, Refusal> {
        Ok(match dataset {
            Dataset::StatusGeneral => {
                let status = ForwarderStatus {
                    n_fib_entries: self.routes.fib.len() as u64,
                    current_timestamp_ms: now.unix_ms,
                    ..environment.forwarder_status()
                };
                let mut content = Vec::new();
                status.encode(&mut content);
                content
            }
            Dataset::StatusDropped => encode_dataset(&environment.dropped_packets()),
            Dataset::StatusDrops => encode_dataset(&self.drop_counters(environment)),
            Dataset::StatusHolders => encode_dataset(&environment.pool_holdings()),
            Dataset::StatusPrivileges => encode_dataset(&[environment.process_privileges()]),
            Dataset::StatusSettings => encode_dataset(&environment.settings_in_force(&self.routes.strategies)),
            Dataset::FacesList | Dataset::FacesQuery => {
                let faces = self.faces.dataset(environment).filter(|face| query.faces.matches(face));
                encode_dataset(&faces.collect::<Vec<FaceStatus>>())
            }
            Dataset::FacesChannels => {
                let channel = |local: namewire_packet::nfd::FaceUri| ChannelStatus { local_uri: local.to_string() };
                encode_dataset(&environment.channels().into_iter().map(channel).collect::<Vec<_>>())
            }
            Dataset::FacesHealth => encode_dataset(&environment.face_health()),
            Dataset::FibList => joined(self.routes.fib.dataset(|face| self.faces.is_gone(face))),
            Dataset::RibList => joined(self.routes.rib.dataset(now.mono_ns)),
            Dataset::StrategyChoiceList => joined(self.routes.strategies.dataset()),
            Dataset::CsInfo => encode_dataset(&[environment.cs_info()]),
            Dataset::CsUsage => encode_dataset(&[environment.cs_usage()]),
            Dataset::FibUsage => encode_dataset(&[environment.fib_usage()]),
            Dataset::TagTrees => encode_dataset(&tag_plane(environment)?.trees()),
            Dataset::TagRoutes => encode_dataset(&tag_plane(environment)?.routes()),
            Dataset::LogLevels => encode_dataset(&log_plane(environment)?.levels()),
            Dataset::LogRecent => encode_dataset(&log_plane(environment)?.recent(query.after)),
        })
    }
}

/// True if the name ends in a version or segment, and so asks for a snapshot that was made before.
pub(crate) fn is_of_snapshot(name: Name<'_>) -> bool {
    name.last().is_some_and(|last| last.version().is_some() || last.segment().is_some())
}

/// Refuses a name that leaves too little room in the packets of the answer.
pub(crate) fn too_long(name: Name<'_>) -> Option<Refusal> {
    (name.value().len() > MAX_REQUEST_NAME_BYTES)
        .then(|| refusal(414, format!("Name of a dataset request cannot exceed {MAX_REQUEST_NAME_BYTES} bytes")))
}

/// Encodes large tables entry by entry, without an intermediate list of all entries.
fn joined<T: DatasetEntry>(entries: impl Iterator<Item = T>) -> Vec<u8> {
    let mut content = Vec::new();
    entries.for_each(|entry| entry.encode(&mut content));
    content
}

/// What the name of a request says beside the dataset.
#[derive(Default)]
struct Query {
    /// The filter of `faces/query`: all faces if none is given.
    faces: FaceQueryFilter,
    /// The number after which lines of `log/recent` are asked for.
    after: u64,
}

impl Query {
    /// Reads the component after the dataset's name, if it is a query.
    fn read(dataset: Dataset, asked: Name<'_>) -> Result<Self, Refusal> {
        let Some(component) = asked.get(DATASET_NAME_LEN) else { return Ok(Query::default()) };
        if dataset == Dataset::LogRecent {
            return Ok(Query { after: read_number(component)?, ..Query::default() });
        }
        let is_short = component.value.len() <= MAX_FILTER_BYTES;
        let filter = is_short.then(|| FaceQueryFilter::decode(component.value).ok()).flatten();
        let faces = filter.ok_or_else(|| refusal(400, "Malformed filter"))?;
        Ok(Query { faces, ..Query::default() })
    }
}
