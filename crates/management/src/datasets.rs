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
    log_commands::read_number,
    management::Management,
    replies::ReplyTo,
    request::Request,
};
use namewire_packet::{
    DataBuilder, Name, content_type,
    nfd::{ControlResponse, DatasetEntry, DropCounter, FaceQueryFilter, NodeState, Part},
    tlv::types,
};

/// Longest FaceQueryFilter in bytes.
const MAX_FILTER_BYTES: usize = 512;

/// Components of a dataset's name, without a query filter.
const DATASET_NAME_LEN: usize = 4;

/// Encodes a dataset.
pub(crate) type Encode = fn(&Management, &Query, &mut dyn Environment) -> Result<Vec<u8>, Refusal>;

/// The content of a dataset.
pub(crate) enum Content {
    /// A part of what the node says of itself.
    Part(Part),
    By(Encode),
}

/// A status dataset.
pub(crate) struct Dataset {
    /// What a request may say behind the dataset's name.
    pub(crate) query: Option<QueryKind>,
    /// True if it shows what changes without management.
    pub(crate) changes_by_itself: bool,
    pub(crate) content: Content,
}

/// What a request asks of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryKind {
    /// A FaceQueryFilter.
    Faces,
    /// A sequence number: the lines of the log after it.
    LinesAfter,
}

impl QueryKind {
    /// The type of the name component that holds it.
    const fn component_type(self) -> u32 {
        match self {
            QueryKind::Faces => types::GENERIC_COMPONENT,
            QueryKind::LinesAfter => types::SEQUENCE_NUM_COMPONENT,
        }
    }
}

impl Dataset {
    /// The part of a request's name that says what is asked for: the dataset's own name, and a query if there is one.
    fn asked_in<'n>(&self, name: Name<'n>) -> Name<'n> {
        let next = name.get(DATASET_NAME_LEN).map(|component| component.type_number);
        let has_query = next.is_some() && next == self.query.map(QueryKind::component_type);
        name.prefix(DATASET_NAME_LEN + usize::from(has_query))
    }
}

impl Management {
    /// Answers a request for a dataset, or for a segment of one.
    pub(crate) fn on_dataset_request(
        &mut self,
        request: &Request<'_>,
        dataset: &Dataset,
        environment: &mut dyn Environment,
        out: &mut Vec<Effect>,
    ) {
        let &Request { now, interest, ref reply_to, .. } = request;
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
        let query = match Query::read(now, dataset, asked.dataset) {
            Ok(query) => query,
            Err(refusal) => return self.refuse_query(&refusal, reply_to, out),
        };
        let age_ms_max = if dataset.changes_by_itself { COUNTERS_SHARED_MS } else { SNAPSHOT_SHARED_MS };
        if let Some(segment) = self.replies.store.shared(asked, now.mono_ns, age_ms_max) {
            return self.send_segment(Some(segment), reply_to, out);
        }
        let content = match dataset.content {
            Content::Part(part) => self.state(now, &[part], environment).encode(part),
            Content::By(content) => match content(self, &query, environment) {
                Ok(content) => content,
                Err(refusal) => return self.refuse_query(&refusal, reply_to, out),
            },
        };
        let content_bytes = content.len();
        let store = &mut self.replies.store;
        // Whoever follows the log asks often. Those answers must not displace the snapshots of others.
        let first = if dataset.query == Some(QueryKind::LinesAfter) && content_bytes <= segment_bytes(name) {
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

    /// These parts of what the node says of itself.
    pub fn state(&self, now: Times, parts: &[Part], environment: &dyn Environment) -> NodeState {
        let mut state = NodeState::default();
        for &part in parts {
            match part {
                Part::Faces => state.faces = self.faces.dataset().collect(),
                Part::Settings | Part::Strategies => state.strategies = self.routes.strategies.dataset().collect(),
                _ => {}
            }
            environment.fill(part, &mut state);
            match (part, &mut state.general) {
                (Part::General, Some(general)) => {
                    general.n_fib_entries = self.routes.fib.len() as u64; // also those that are hidden
                    general.current_timestamp_ms = now.unix_ms;
                }
                (Part::Drops, _) => state.drops.extend(self.own_drops()),
                (Part::Faces, _) => state.faces.iter_mut().for_each(|face| {
                    let is_less = |path: &u64| face.mtu.is_some_and(|mtu| *path < mtu);
                    face.path_mtu = face.path_mtu.filter(is_less);
                }),
                _ => {}
            }
        }
        state
    }

    fn own_drops(&self) -> impl Iterator<Item = DropCounter> {
        self.authorizer.drop_counters().chain(self.replies.counters.drop_counters())
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
pub(crate) fn joined<T: DatasetEntry>(entries: impl Iterator<Item = T>) -> Vec<u8> {
    let mut content = Vec::new();
    entries.for_each(|entry| entry.encode(&mut content));
    content
}

/// What a request says beside the dataset.
#[derive(Default)]
pub(crate) struct Query {
    pub(crate) now: Times,
    /// The filter of `faces/query`: all faces if none is given.
    pub(crate) faces: FaceQueryFilter,
    /// The number after which lines of `log/recent` are asked for.
    pub(crate) after: u64,
}

impl Query {
    /// Reads the component after the dataset's name, if it is a query.
    fn read(now: Times, dataset: &Dataset, asked: Name<'_>) -> Result<Self, Refusal> {
        let query = Query { now, ..Query::default() };
        let (Some(component), Some(kind)) = (asked.get(DATASET_NAME_LEN), dataset.query) else { return Ok(query) };
        match kind {
            QueryKind::LinesAfter => Ok(Query { after: read_number(component)?, ..query }),
            QueryKind::Faces => {
                let is_short = component.value.len() <= MAX_FILTER_BYTES;
                let filter = is_short.then(|| FaceQueryFilter::decode(component.value).ok()).flatten();
                Ok(Query { faces: filter.ok_or_else(|| refusal(400, "Malformed filter"))?, ..query })
            }
        }
    }
}
