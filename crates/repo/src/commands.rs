//! Commands: the Interests under the repository's own name.
//!
//! | Interest | answer |
//! | --- | --- |
//! | `/<repo>/<verb>/notify/<digest>` | an empty Data, once the command has a status |
//! | `/<repo>/<verb> check/<digest>` | the status of a command |
//! | `/<repo>/stats` | counters as JSON |
//! | `/<repo>/list/<digest>` | names that are stored |
//!
//! ```text
//!   client ── notify (publisher, nonce) ──► repo
//!   client ◄── Interest /<publisher>/msg/<repo>/insert/<nonce> ── repo      3 tries
//!   client ── Data: the command ──► repo ── access ── status ── acknowledgement of the notify
//!                                          └─ job: waits for its turn, then fetches and stores
//! ```
//!
//! A command that is denied or malformed has a status, too (403). The repository ignores a notification whose nonce it
//! has seen within [`NONCE_KEPT`]. So a recorded command cannot be replayed. Its own nonce is ignored; with another
//! nonce the command has another name, which its signature does not cover.
//!
//! Clients of ndn-python-repo before 0.4 send commands and status queries of another form
//! ([`crate::command::earlier`]), and get answers of that form.
//!
//! The verbs are `insert`, `delete`, `sync/join`, `sync/leave`, and `delete prefix`, which only Namewire has, for all
//! Data below a name. Only Namewire has a check for `sync/join` and `sync/leave`; its name is `/<repo>/sync/join
//! check/<digest>`.
//!
//! Only Namewire has `list` and `stats`, too. The parameters of `list` are a prefix, and optionally the name after
//! which the list continues. The answer has as many Name TLVs as fit. At the end of the list it is empty. If the store
//! has no order, the answer is an application Nack.
//!
//! Source: repo-protocol §3.2, §3.3. Limits: [`CommandLimits`]; each face has a share of them ([`crate::shares`]).
//! Notifications beyond them get a Nack (Congestion).

use crate::{
    access::push_verb,
    command::{
        Command, CommandResult, Notification, RequestNo, decode_query,
        earlier::{self, EarlierCommand},
        status,
    },
    groups::Groups,
    jobs::Workshop,
    log_lines,
    shares::{Holder, Place, Shares},
    statistics::{Refusal, Statistics},
    statuses::{JobStatus, Statuses, Verb},
    store::{Store, StoreError},
};
use namewire_client::{DataBuf, IncomingInterest, InterestStream, Responder};
use namewire_packet::{
    DataBuilder, FaceId, Interest, InterestBuilder, MAX_PACKET_BYTES, NackReason, Name, NameBuf, content_type,
    tlv::{Reader, types},
};
use namewire_security::Signer;
use std::{
    collections::{HashSet, VecDeque},
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    task::{JoinSet, spawn_blocking},
    time::Instant,
};

/// How long a nonce is remembered.
const NONCE_KEPT: Duration = Duration::from_secs(60);
/// Most nonces that are remembered.
const NONCES_MAX: usize = 65_536;
/// Interests for one command.
const MESSAGE_TRIES: usize = 3;
/// InterestLifetime of these.
const MESSAGE_LIFETIME_MS: u64 = 4000;
/// FreshnessPeriod of a status.
const STATUS_FRESHNESS_MS: u64 = 1000;
/// FreshnessPeriod of statistics and lists.
const DATASET_FRESHNESS_MS: u64 = 10;
/// Bytes of an answer beside its name and Content.
const ANSWER_OVERHEAD_BYTES: usize = 512;

/// How many commands are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandLimits {
    /// Commands that are known and have not ended.
    pub commands_max: usize,
    /// Those of them that fetch and store at the same time.
    pub running_max: usize,
}

impl Default for CommandLimits {
    fn default() -> Self {
        CommandLimits { commands_max: 2048, running_max: 256 }
    }
}

/// The nonces of the last minute.
#[derive(Default)]
struct Nonces {
    seen: HashSet<(NameBuf, Vec<u8>)>,
    order: VecDeque<(Instant, NameBuf, Vec<u8>, Place)>,
}

impl Nonces {
    fn forget_old(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(at, ..)| now.duration_since(*at) >= NONCE_KEPT) {
            let (_, publisher, nonce, _) = self.order.pop_front().expect("it has a front");
            self.seen.remove(&(publisher, nonce));
        }
    }

    /// False if the nonce came before.
    fn insert(&mut self, notification: &Notification, place: Place, now: Instant) -> bool {
        let key = (notification.publisher.clone(), notification.nonce.clone());
        let is_new = self.seen.insert(key.clone());
        if is_new {
            self.order.push_back((now, key.0, key.1, place));
        }
        is_new
    }
}

/// What an Interest asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topic {
    Notify(Verb),
    Check(Verb),
    Stats,
    List,
}

impl Topic {
    /// `rest` follows the repository's name.
    fn of(rest: Name<'_>) -> Option<Self> {
        let mut components = rest.components();
        let mut next = || components.next().filter(|one| one.type_number == types::GENERIC_COMPONENT);
        let first = next()?.value;
        let what = match first {
            b"stats" => return Some(Topic::Stats),
            b"list" => return Some(Topic::List),
            b"sync" => [first, b"/", next()?.value].concat(),
            _ => first.to_vec(),
        };
        let verb = |name: &[u8]| Verb::ALL.into_iter().find(|verb| verb.name().as_bytes() == name);
        match what.strip_suffix(b" check") {
            Some(name) => verb(name).map(Topic::Check),
            None => (next()?.value == b"notify").then_some(Topic::Notify(verb(&what)?)),
        }
    }
}

/// Answers the Interests under the repository's name.
pub(crate) struct CommandServer {
    workshop: Arc<Workshop>,
    signer: Signer,
    statuses: Statuses,
    nonces: Mutex<Nonces>,
    nonce_places: Arc<Shares>,
    groups: Groups,
    commands: Arc<Shares>,
    running: Arc<Shares>,
}

impl CommandServer {
    pub(crate) fn new(workshop: Arc<Workshop>, signer: Signer, limits: CommandLimits) -> Self {
        CommandServer {
            workshop,
            signer,
            statuses: Statuses::default(),
            nonces: Mutex::default(),
            nonce_places: Shares::new(NONCES_MAX),
            groups: Groups::default(),
            commands: Shares::new(limits.commands_max),
            running: Shares::new(limits.running_max),
        }
    }

    fn statistics(&self) -> &Statistics {
        &self.workshop.statistics
    }

    /// Becomes a member of the sync groups that the store remembers, and of these.
    pub(crate) async fn restore_groups(&self, configured: &[NameBuf]) -> Result<(), StoreError> {
        self.groups.restore(&self.workshop, configured).await
    }

    /// Answers Interests until the connection is lost. Dropping the future ends the commands under way.
    pub(crate) async fn run(self: Arc<Self>, mut interests: InterestStream) {
        let mut jobs = JoinSet::new();
        while let Some(incoming) = interests.next().await {
            while jobs.try_join_next().is_some() {}
            let rest = after(incoming.interest().name(), &self.workshop.repo);
            match rest.as_ref().and_then(|rest| Topic::of(rest.as_name())) {
                Some(Topic::Notify(verb)) => {
                    if let Some((accepted, place)) = self.accept(verb, incoming).await {
                        let this = Arc::clone(&self);
                        jobs.spawn(async move { this.serve(accepted, place).await });
                    }
                }
                Some(Topic::Check(verb)) => self.check(verb, incoming).await,
                Some(Topic::Stats) => self.stats(incoming).await,
                Some(Topic::List) => self.list(incoming).await,
                None => self.statistics().refuse(Refusal::CommandMalformed),
            }
        }
    }

    /// Decides whether a notification leads to a command.
    async fn accept(&self, verb: Verb, incoming: IncomingInterest) -> Option<(Accepted, Place)> {
        let notification = match parameters(&incoming.interest()).map(Notification::decode) {
            Some(Ok(notification)) => notification,
            None | Some(Err(_)) => {
                self.refuse(verb, Refusal::CommandMalformed, incoming.incoming_face_id);
                return None;
            }
        };
        let (face, now) = (incoming.incoming_face_id, Instant::now());
        self.nonces().forget_old(now);
        let places = match self.place(&self.commands, face).await {
            Some(place) => self.place(&self.nonce_places, face).await.map(|of_nonce| (place, of_nonce)),
            None => None,
        };
        let Some((place, of_nonce)) = places else {
            self.refuse(verb, Refusal::CommandOverload, face);
            let _ = incoming.nack(NackReason::Congestion).await; // without a connection, there is no client
            return None;
        };
        if !self.nonces().insert(&notification, of_nonce, now) {
            self.refuse(verb, Refusal::CommandReplayed, face);
            return None;
        }
        self.statistics().add_command();
        let name = incoming.interest().name().to_buf();
        Some((Accepted { verb, notification, name, face, responder: incoming.responder() }, place))
    }

    fn refuse(&self, verb: Verb, why: Refusal, face: Holder) {
        self.statistics().refuse(why);
        log_lines::command_refused(verb.name(), why, face);
    }

    fn nonces(&self) -> MutexGuard<'_, Nonces> {
        self.nonces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a client behind this face. Whether the face is local is asked only when places are scarce.
    async fn place(&self, places: &Arc<Shares>, face: Holder) -> Option<Place> {
        match places.try_take(face, false) {
            Some(place) => Some(place),
            None => places.try_take(face, self.workshop.access.is_local_holder(face).await),
        }
    }

    /// Fetches the command, gives it a status, acknowledges it and carries it out.
    async fn serve(&self, accepted: Accepted, _place: Place) {
        let Some(message) = self.fetch(&accepted).await else {
            return self.refuse(accepted.verb, Refusal::CommandNotSent, accepted.face);
        };
        let data = message.data();
        let (number, decoded) = read_command(accepted.verb, data.content());
        let (command, result) = match decoded {
            None => {
                self.refuse(accepted.verb, Refusal::CommandMalformed, accepted.face);
                (None, CommandResult::of_code(status::REFUSED))
            }
            Some(command) => {
                let mut result = command.accepted();
                for object in &mut result.objects {
                    *if accepted.verb == Verb::Insert { &mut object.inserted } else { &mut object.deleted } = Some(0);
                }
                let verb = accepted.verb.name();
                let access = &self.workshop.access;
                match access.check_command(verb, &command, accepted.face, message.incoming_face_id, &data).await {
                    Ok(()) => (Some(command), result),
                    Err(_) => {
                        self.refuse(accepted.verb, Refusal::CommandDenied, accepted.face);
                        result.code = status::REFUSED;
                        result.objects.iter_mut().for_each(|object| object.code = status::REFUSED);
                        result.groups.iter_mut().for_each(|group| group.code = status::REFUSED);
                        (None, result)
                    }
                }
            }
        };
        let job = self.statuses.begin(accepted.verb, number, result);
        self.answer(accepted.responder, DataBuilder::new(accepted.name)).await;
        if let Some(command) = command {
            let is_local = self.workshop.access.is_local_holder(accepted.face).await;
            log_lines::command_begins(accepted.verb.name(), &command, accepted.face);
            let _turn = self.running.take(accepted.face, is_local).await;
            match accepted.verb {
                Verb::Join | Verb::Leave => self.change_groups(accepted.verb, &command, &job).await,
                verb => self.workshop.carry_out(verb, &command, &job).await,
            }
            log_lines::command_ended(accepted.verb.name(), &command);
        }
    }

    async fn change_groups(&self, verb: Verb, command: &Command, job: &JobStatus) {
        let mut are_done = true;
        for (at, param) in command.groups.iter().enumerate() {
            let code = match verb {
                Verb::Leave => self.groups.leave(&self.workshop, param).await,
                _ => self.groups.join(&self.workshop, param).await,
            };
            are_done &= code == status::DONE;
            job.update(|result| result.groups.get_mut(at).into_iter().for_each(|group| group.code = code));
        }
        job.update(|result| result.code = if are_done { status::DONE } else { status::FAILED });
    }

    async fn fetch(&self, accepted: &Accepted) -> Option<DataBuf> {
        let mut topic = self.workshop.repo.clone();
        push_verb(&mut topic, accepted.verb.name());
        let name = accepted.notification.message_name(topic.as_name());
        let mut interest = InterestBuilder::new(name).lifetime_ms(MESSAGE_LIFETIME_MS);
        if !accepted.notification.forwarding_hint.is_empty() {
            interest = interest.forwarding_hint(&accepted.notification.forwarding_hint);
        }
        for _ in 0..MESSAGE_TRIES {
            if let Ok(data) = self.workshop.client.express(&interest).await {
                return Some(data);
            }
        }
        None
    }

    async fn check(&self, verb: Verb, incoming: IncomingInterest) {
        let status = |number| self.statuses.get(verb, number);
        let content = match question(&incoming.interest()) {
            Some(Question::Request(number)) => {
                status(number).unwrap_or(CommandResult::of_code(status::UNKNOWN)).encode()
            }
            Some(Question::Process(id)) => match status(earlier::request_no(&id)) {
                Some(result) => earlier::encode_answer(Some(&id), &result),
                None => earlier::encode_answer(None, &CommandResult::of_code(status::UNKNOWN)),
            },
            None => {
                self.statistics().refuse(Refusal::CommandMalformed);
                CommandResult::of_code(status::REFUSED).encode()
            }
        };
        let name = incoming.interest().name().to_buf();
        let data = DataBuilder::new(name).freshness_ms(STATUS_FRESHNESS_MS).content(&content);
        self.answer(incoming.responder(), data).await;
    }

    async fn stats(&self, incoming: IncomingInterest) {
        let workshop = Arc::clone(&self.workshop);
        let json = spawn_blocking(move || workshop.statistics_json().to_string()).await;
        let Ok(json) = json else { return }; // the repository is stopping
        let name = incoming.interest().name().to_buf();
        let data = DataBuilder::new(name).freshness_ms(DATASET_FRESHNESS_MS).content(json.as_bytes());
        self.answer(incoming.responder(), data).await;
    }

    async fn list(&self, incoming: IncomingInterest) {
        let name = incoming.interest().name().to_buf();
        let Some((prefix, after)) = parameters(&incoming.interest()).and_then(list_parameters) else {
            return self.statistics().refuse(Refusal::CommandMalformed);
        };
        let room = MAX_PACKET_BYTES.saturating_sub(name.value().len() + ANSWER_OVERHEAD_BYTES);
        let store = Arc::clone(&self.workshop.store);
        let listed = spawn_blocking(move || list_names(&*store, &prefix, after.as_ref(), room)).await;
        let Ok(listed) = listed else { return }; // the repository is stopping
        let data = DataBuilder::new(name).freshness_ms(DATASET_FRESHNESS_MS);
        let responder = incoming.responder();
        match listed {
            Ok(content) => self.answer(responder, data.content(&content)).await,
            Err(error) => {
                let text = error.to_string();
                self.answer(responder, data.content_type(content_type::NACK).content(text.as_bytes())).await;
            }
        }
    }

    async fn answer(&self, responder: Responder, data: DataBuilder<'_>) {
        if let Ok(wire) = self.signer.sign_data(&data) {
            let _ = responder.data(&wire).await; // without a connection, there is no client
        }
    }
}

/// A notification that leads to a command.
struct Accepted {
    verb: Verb,
    notification: Notification,
    /// The notification's name.
    name: NameBuf,
    /// The router's face that it came from.
    face: Option<FaceId>,
    responder: Responder,
}

/// The components after `prefix`, if the name has it.
fn after(name: Name<'_>, prefix: &NameBuf) -> Option<NameBuf> {
    let rest = name.value().strip_prefix(prefix.value())?;
    Name::parse_value(rest).ok().map(|rest| rest.to_buf())
}

/// ApplicationParameters whose digest the name has.
fn parameters<'a>(interest: &Interest<'a>) -> Option<&'a [u8]> {
    interest.application_parameters().filter(|_| interest.parameters_digest_is_valid())
}

/// A command of either form, and the number of its status. `None`: it is none, or not for this verb.
fn read_command(verb: Verb, content: &[u8]) -> (RequestNo, Option<Command>) {
    if let Ok(EarlierCommand { object, process_id }) = EarlierCommand::decode(content) {
        let command = Command { objects: vec![object], groups: Vec::new() };
        return (earlier::request_no(&process_id), Some(command).filter(|_| !verb.is_about_groups()));
    }
    let is_for_verb = |command: &Command| match verb.is_about_groups() {
        true => !command.groups.is_empty() && command.objects.is_empty(),
        false => !command.objects.is_empty() && command.groups.is_empty(),
    };
    (Command::request_no(content), Command::decode(content).ok().filter(is_for_verb))
}

/// What a question for a status asks for.
enum Question {
    Request(RequestNo),
    Process(Vec<u8>),
}

fn question(interest: &Interest<'_>) -> Option<Question> {
    match parameters(interest) {
        Some(parameters) => decode_query(parameters).ok().map(Question::Request),
        None => earlier::decode_query(interest.name().last()?.value).ok().map(Question::Process),
    }
}

fn list_parameters(parameters: &[u8]) -> Option<(NameBuf, Option<NameBuf>)> {
    let mut reader = Reader::new(parameters);
    let mut next = || -> Option<Option<NameBuf>> {
        match reader.next_element().ok()? {
            Some(element) if element.type_number == types::NAME => {
                Some(Some(Name::parse_value(element.value).ok()?.to_buf()))
            }
            Some(_) => None,
            None => Some(None),
        }
    };
    Some((next()??, next()?))
}

/// Name TLVs under a prefix, after a name, as many as fit. A name that fits in no answer is left out.
fn list_names(
    store: &dyn Store,
    prefix: &NameBuf,
    after: Option<&NameBuf>,
    room: usize,
) -> Result<Vec<u8>, StoreError> {
    let mut listed = Vec::new();
    store.scan(prefix.value(), after.map(NameBuf::value), &mut |name, _| {
        let Ok(name) = Name::parse_value(name) else { return ControlFlow::Continue(()) };
        if name.tlv_size() > room {
            return ControlFlow::Continue(());
        }
        if listed.len() + name.tlv_size() > room {
            return ControlFlow::Break(());
        }
        name.write_tlv(&mut listed);
        ControlFlow::Continue(())
    })?;
    Ok(listed)
}
