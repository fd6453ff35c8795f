//! The client's side: puts, deletes and lists Data, and asks for the status of commands, at any repository that speaks
//! the protocol of ndn-python-repo.
//!
//! ```text
//!   register /<publisher>/msg (and the object's name)
//!   notify ──► repository ──► Interest for the command ──► command ──► acknowledgement
//!   the repository fetches the object from here
//!   check, again and again ──► status, until it is final
//! ```
//!
//! Each status query has a SignatureNonce and thus a unique name, so no cache answers it. [`RemoteRepo::list`],
//! [`RemoteRepo::statistics`] and [`RemoteRepo::delete_prefix`] work with Namewire's repository only.
//!
//! Source: repo-protocol §3.2. Limits: [`NOTIFY_TRIES`] notifications and [`CHECK_TRIES`] unanswered status queries.

use crate::access::push_verb;
use crate::command::{
    Command, CommandError, CommandResult, Notification, OBJECTS_MAX, ObjectParam, SyncParam, encode_query, status,
};
use namewire_client::{
    Client, CloseReason, ControlError, DataBuf, ExpressError, InterestOptions, InterestStream, PublishCounters,
    PublishError, SegmentPublisher, ServeError,
};
use namewire_packet::{
    DataBuilder, InterestBuilder, MAX_PACKET_BYTES, Name, NameBuf, SignedInterestFields, content_type,
    tlv::{Reader, types},
};
use namewire_security::{SignError, Signer};
use std::{future::Future, time::Duration};
use tokio::time::{Instant, sleep};

/// Notifications for one command.
pub const NOTIFY_TRIES: u32 = 3;
/// Unanswered questions for a status in a row.
pub const CHECK_TRIES: u32 = 10;
const NOTIFY_LIFETIME_MS: u64 = 4000;
const CHECK_LIFETIME_MS: u64 = 1000;
/// The first pause between two questions, and the longest. Between them it is this part of the time so far, so that a
/// client learns the end not much later than it came.
const CHECK_PAUSE: Duration = Duration::from_millis(20);
const CHECK_PAUSE_LAST: Duration = Duration::from_secs(1);
const CHECK_PAUSE_PART: u32 = 16;
/// Most bytes of the objects in one of several commands, and what an object takes beside its names.
const COMMAND_BYTES_MAX: usize = 6000;
const OBJECT_OVERHEAD_BYTES: usize = 48;
/// Bytes of a nonce.
const NONCE_BYTES: usize = 8;

/// Why a repository did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The forwarder does not register a prefix.
    #[error("cannot register a prefix: {0}")]
    Register(#[from] ControlError),
    /// Its prefix cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The object cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// A packet cannot be signed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The repository does not answer.
    #[error("the repository does not answer: {0}")]
    NoAnswer(ExpressError),
    /// The answer cannot be read.
    #[error("the repository's answer is malformed: {0}")]
    Malformed(CommandError),
    /// The command does not fit in one packet.
    #[error("the command has {0} bytes, more than fit in one packet")]
    TooLarge(usize),
    /// The command was denied or failed, at least in part.
    #[error("{}", describe(.0))]
    Refused(CommandResult),
    /// The repository says why it cannot do this.
    #[error("the repository refuses: {0}")]
    NotPossible(String),
}

fn describe(result: &CommandResult) -> String {
    let code = |code| match code {
        status::REFUSED => "denied or malformed",
        status::UNKNOWN => "not known to the repository",
        status::FULL => "the store or its disk is full",
        status::UNAVAILABLE => "the store does not answer",
        _ => "failed",
    };
    let bad = result.objects.iter().filter(|object| object.code != status::DONE);
    let bad: Vec<String> = bad
        .map(|object| {
            let count = object.inserted.or(object.deleted).unwrap_or(0);
            format!("{}: {} after {count} packets", object.name, code(object.code))
        })
        .collect();
    let groups = result.groups.iter().filter(|group| group.code != status::DONE);
    let bad: Vec<String> =
        bad.into_iter().chain(groups.map(|group| format!("{}: {}", group.name, code(group.code)))).collect();
    let detail = if bad.is_empty() { String::new() } else { format!(" ({})", bad.join("; ")) };
    format!("the repository answers: {}{detail}", code(result.code))
}

/// A repository, from a client's side.
#[derive(Clone)]
pub struct RemoteRepo {
    client: Client,
    repo: NameBuf,
    publisher: NameBuf,
    signer: Signer,
}

/// How the bytes of a put get on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutProgress {
    /// Packets that the repository has stored.
    pub stored: u64,
    /// All packets.
    pub total: u64,
}

impl RemoteRepo {
    /// The repository of this name. Commands are fetched from a random prefix under `/localhost`, so the repository
    /// must be on the same forwarder: see [`RemoteRepo::publish_under`].
    pub fn new(client: Client, repo: NameBuf) -> Self {
        let mut publisher = NameBuf::new();
        publisher.push_generic(b"localhost").push_generic(b"repo-client").push_generic(&random_bytes());
        RemoteRepo { client, repo, publisher, signer: Signer::digest() }
    }

    /// The prefix under which the repository can fetch commands from here.
    pub fn publish_under(mut self, publisher: NameBuf) -> Self {
        self.publisher = publisher;
        self
    }

    /// Signs commands.
    pub fn sign_with(mut self, signer: Signer) -> Self {
        self.signer = signer;
        self
    }

    /// Has the repository fetch and store an object, and answer for its name. Calls `progress` after each status.
    ///
    /// # Errors
    /// See [`RemoteError`]. After [`RemoteError::Refused`] a part may be stored.
    pub async fn put(
        &self,
        mut object: SegmentPublisher,
        mut progress: impl FnMut(PutProgress),
    ) -> Result<CommandResult, RemoteError> {
        let mut interests = object.open(&self.client).await?;
        let prefix = interests.prefix().clone();
        let total = object.segments();
        let command = Command {
            objects: vec![ObjectParam {
                name: object.versioned_name().clone(),
                start: Some(0),
                end: Some(total - 1),
                register_prefix: Some(prefix.clone()),
                ..ObjectParam::default()
            }],
            groups: Vec::new(),
        };
        let report = |result: &CommandResult| {
            let stored = result.objects.first().and_then(|object| object.inserted).unwrap_or(0);
            progress(PutProgress { stored, total });
        };
        let result = tokio::select! {
            result = self.command("insert", &command, report) => result,
            // It ends only with the connection, and so does the command.
            _ = object.serve(&mut interests, |_: &PublishCounters| ()) => std::future::pending().await,
        };
        // The forwarder also forgets it with this face.
        let _ = self.client.unregister_prefix(&prefix).await;
        result
    }

    /// Has the repository fetch and store these objects, which `serving` answers for, in as many commands as they need.
    /// Calls `progress` after each status.
    ///
    /// # Errors
    /// See [`RemoteError`]. What was stored before stays.
    pub async fn put_all(
        &self,
        objects: &[ObjectParam],
        serving: impl Future<Output = ()>,
        mut progress: impl FnMut(PutProgress),
    ) -> Result<PutProgress, RemoteError> {
        let packets = |object: &ObjectParam| object.end.map_or(1, |end| end + 1);
        let mut done = PutProgress { stored: 0, total: objects.iter().map(packets).sum() };
        let commands = async {
            for objects in commands_of(objects) {
                let command = Command { objects: objects.to_vec(), groups: Vec::new() };
                let inserted = |result: &CommandResult| {
                    done.stored + result.objects.iter().filter_map(|object| object.inserted).sum::<u64>()
                };
                let report = |result: &CommandResult| progress(PutProgress { stored: inserted(result), ..done });
                let result = self.command("insert", &command, report).await?;
                done.stored = inserted(&result);
            }
            Ok(done)
        };
        tokio::select! {
            done = commands => done,
            // It ends only with the connection, and so does the command.
            () = serving => Err(RemoteError::NoAnswer(ExpressError::Closed(CloseReason::Remote))),
        }
    }

    /// Deletes objects.
    ///
    /// # Errors
    /// See [`RemoteError`].
    pub async fn delete(&self, objects: Vec<ObjectParam>) -> Result<CommandResult, RemoteError> {
        self.command("delete", &Command { objects, groups: Vec::new() }, |_| ()).await
    }

    /// Deletes all Data below a prefix. Calls `progress` with the number that is gone, after each status.
    ///
    /// # Errors
    /// See [`RemoteError`]. Namewire's repository only; others do not answer.
    pub async fn delete_prefix(&self, prefix: NameBuf, mut progress: impl FnMut(u64)) -> Result<u64, RemoteError> {
        let deleted = |result: &CommandResult| result.objects.first().and_then(|object| object.deleted).unwrap_or(0);
        let object = ObjectParam { name: prefix.clone(), register_prefix: Some(prefix), ..ObjectParam::default() };
        let command = Command { objects: vec![object], groups: Vec::new() };
        let result = self.command("delete prefix", &command, |result| progress(deleted(result))).await?;
        Ok(deleted(&result))
    }

    /// Makes the repository a member of a sync group.
    ///
    /// # Errors
    /// See [`RemoteError`]. Other repositories may join without telling the status.
    pub async fn join(&self, group: SyncParam) -> Result<CommandResult, RemoteError> {
        let command = Command { objects: Vec::new(), groups: vec![group] };
        self.command("sync/join", &command, |_| ()).await
    }

    /// Ends the repository's membership of a sync group. What is stored stays.
    ///
    /// # Errors
    /// See [`RemoteError`].
    pub async fn leave(&self, group: SyncParam) -> Result<CommandResult, RemoteError> {
        let command = Command { objects: Vec::new(), groups: vec![group] };
        self.command("sync/leave", &command, |_| ()).await
    }

    /// Sends a command of this verb and waits until its status is final. Calls `progress` with every status.
    ///
    /// # Errors
    /// See [`RemoteError`]; [`RemoteError::Refused`] unless the status is 200.
    pub async fn command(
        &self,
        verb: &str,
        command: &Command,
        progress: impl FnMut(&CommandResult),
    ) -> Result<CommandResult, RemoteError> {
        let content = command.encode();
        let mut topic = self.repo.clone();
        push_verb(&mut topic, verb);
        let nonce = random_bytes();
        let notification =
            Notification { publisher: self.publisher.clone(), nonce: nonce.to_vec(), forwarding_hint: Vec::new() };
        let name = notification.message_name(topic.as_name());
        let message = self.signer.sign_data(&DataBuilder::new(name.clone()).content(&content))?;
        if message.len() > MAX_PACKET_BYTES {
            return Err(RemoteError::TooLarge(content.len()));
        }
        let options = InterestOptions { route: None, ..InterestOptions::default() };
        let interests = self.client.interests_with(&name, options).await?;
        let mut prefix = self.publisher.clone();
        prefix.push_generic(b"msg");
        self.client.register_prefix(&prefix).await?;
        let mut notify = topic;
        notify.push_generic(b"notify");
        let notify =
            InterestBuilder::new(notify).lifetime_ms(NOTIFY_LIFETIME_MS).application_parameters(notification.encode());
        let notified = while_serving(interests, &message, self.notify(notify)).await;
        let result = self.wait_for(verb, &Command::request_no(&content), progress).await?;
        match (result.code, notified) {
            (status::DONE, _) => Ok(result),
            // Perhaps only the acknowledgement was lost, so the status decides.
            (status::UNKNOWN, Err(error)) => Err(error),
            _ => Err(RemoteError::Refused(result)),
        }
    }

    async fn notify(&self, notify: InterestBuilder) -> Result<(), RemoteError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.client.express_wire(&self.signer.sign_interest(&notify, &fresh_fields())?).await {
                Ok(_) => return Ok(()),
                Err(ExpressError::Timeout(_) | ExpressError::Nack(_)) if tries < NOTIFY_TRIES => {
                    sleep(CHECK_PAUSE * tries).await;
                }
                Err(error) => return Err(RemoteError::NoAnswer(error)),
            }
        }
    }

    async fn wait_for(
        &self,
        verb: &str,
        number: &[u8; 32],
        mut progress: impl FnMut(&CommandResult),
    ) -> Result<CommandResult, RemoteError> {
        let mut name = self.repo.clone();
        push_verb(&mut name, &format!("{verb} check"));
        let (started, mut unanswered) = (Instant::now(), 0);
        loop {
            let check = InterestBuilder::new(&name).must_be_fresh(true).lifetime_ms(CHECK_LIFETIME_MS);
            let check = check.application_parameters(encode_query(number));
            match self.client.express_wire(&Signer::digest().sign_interest(&check, &fresh_fields())?).await {
                Ok(answer) => {
                    let result = CommandResult::decode(answer.data().content()).map_err(RemoteError::Malformed)?;
                    progress(&result);
                    if !matches!(result.code, status::RUNNING | status::QUEUED) {
                        return Ok(result);
                    }
                    unanswered = 0;
                }
                Err(ExpressError::Timeout(_) | ExpressError::Nack(_)) if unanswered < CHECK_TRIES => unanswered += 1,
                Err(error) => return Err(RemoteError::NoAnswer(error)),
            }
            sleep((started.elapsed() / CHECK_PAUSE_PART).clamp(CHECK_PAUSE, CHECK_PAUSE_LAST)).await;
        }
    }

    /// Names under a prefix in canonical order, after a name: as many as fit in one packet. None at the end.
    ///
    /// # Errors
    /// If the repository does not answer, or has no order of names.
    pub async fn list(&self, prefix: Name<'_>, after: Option<Name<'_>>) -> Result<Vec<NameBuf>, RemoteError> {
        let mut parameters = Vec::new();
        prefix.write_tlv(&mut parameters);
        after.iter().for_each(|after| after.write_tlv(&mut parameters));
        let answer = self.ask(b"list", Some(parameters)).await?;
        let (data, mut names) = (answer.data(), Vec::new());
        let mut reader = Reader::new(data.content());
        let malformed = |error| RemoteError::Malformed(error);
        while let Some(element) = reader.next_element().map_err(|error| malformed(error.into()))? {
            if element.type_number == types::NAME {
                names.push(Name::parse_value(element.value).map_err(|error| malformed(error.into()))?.to_buf());
            }
        }
        Ok(names)
    }

    /// The repository's statistics.
    ///
    /// # Errors
    /// If the repository does not answer, or has none.
    pub async fn statistics(&self) -> Result<serde_json::Value, RemoteError> {
        let answer = self.ask(b"stats", None).await?;
        serde_json::from_slice(answer.data().content()).map_err(|error| RemoteError::NotPossible(error.to_string()))
    }

    async fn ask(&self, what: &[u8], parameters: Option<Vec<u8>>) -> Result<DataBuf, RemoteError> {
        let mut name = self.repo.clone();
        name.push_generic(what);
        let mut interest = InterestBuilder::new(name).must_be_fresh(true).lifetime_ms(NOTIFY_LIFETIME_MS);
        if let Some(parameters) = parameters {
            interest = interest.application_parameters(parameters);
        }
        let answer = self.client.express(&interest).await.map_err(RemoteError::NoAnswer)?;
        if answer.data().content_type() == content_type::NACK {
            return Err(RemoteError::NotPossible(String::from_utf8_lossy(answer.data().content()).into_owned()));
        }
        Ok(answer)
    }
}

/// Answers every Interest with this Data until `work` is done.
async fn while_serving<T>(mut interests: InterestStream, data: &[u8], work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            Some(incoming) = interests.next() => {
                // Without a connection the work fails.
                let _ = incoming.respond(data).await;
            }
        }
    }
}

/// Cuts a list of objects so that each command, and its answer, fit in a packet.
fn commands_of(objects: &[ObjectParam]) -> impl Iterator<Item = &[ObjectParam]> {
    let weight = |object: &ObjectParam| {
        let registered = object.register_prefix.as_ref().map_or(0, |prefix| prefix.value().len());
        object.name.value().len() + registered + OBJECT_OVERHEAD_BYTES
    };
    let mut rest = objects;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |object: &&ObjectParam| {
            bytes += weight(object);
            bytes <= COMMAND_BYTES_MAX
        };
        let count = rest.iter().take_while(fits).count().clamp(1, OBJECTS_MAX);
        let (command, after) = rest.split_at_checked(count)?;
        rest = after;
        Some(command)
    })
}

fn random_bytes() -> [u8; NONCE_BYTES] {
    let mut bytes = [0; NONCE_BYTES];
    if getrandom::fill(&mut bytes).is_err() {
        // They must differ between commands; they need not be secret.
        bytes = fastrand::u64(..).to_ne_bytes();
    }
    bytes
}

fn fresh_fields() -> SignedInterestFields {
    SignedInterestFields { nonce: random_bytes().to_vec(), ..SignedInterestFields::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_and_its_answer_fit_in_a_packet() {
        let object = |number: usize| ObjectParam {
            name: format!("/folder/n{}/{number}/v=1700000000000000000", "n".repeat(number * 7 % 900)).parse().unwrap(),
            start: Some(0),
            end: Some(number as u64),
            register_prefix: (number == 999).then(|| "/folder".parse().unwrap()),
            ..ObjectParam::default()
        };
        let objects: Vec<ObjectParam> = (0..1000).map(object).collect();
        let commands: Vec<&[ObjectParam]> = commands_of(&objects).collect();
        assert_eq!(commands.concat(), objects);
        assert!(commands.len() < 100, "{}", commands.len());
        for objects in commands {
            let command = Command { objects: objects.to_vec(), groups: Vec::new() }.encode();
            assert!(Command::decode(&command).is_ok(), "the answer fits");
            assert!(command.len() < MAX_PACKET_BYTES - 1000, "{}", command.len());
        }
        assert_eq!(commands_of(&[]).count(), 0);
    }
}
