//! The messages between a repository and its clients, as ndn-python-repo and NDNts write them.
//!
//! A command is a list of objects and sync groups without an outer type. Its answer has one result for each. The
//! SHA-256 of the command's bytes is its RequestNo, by which clients ask for its status.
//!
//! | type | element | value |
//! | --- | --- | --- |
//! | 301 | ObjectParam | Name, \[ForwardingHint 211\], \[StartBlockId 204\], \[EndBlockId 205\], \[RegisterPrefix 212\] |
//! | 302 | ObjectResult | Name, StatusCode 208, \[InsertNum 209\], \[DeleteNum 210\] |
//! | 401 | SyncParam | SyncPrefix 405, \[RegisterPrefix 212\], \[SyncDataNameDedupe 403\], \[SyncReset 404\] |
//! | 402 | SyncResult | Name, StatusCode 208 |
//! | 206 | RequestNo | 32 bytes |
//! | 128 | nonce of a notification | bytes |
//!
//! Elements come in this order. As in NDN packets, an unknown even type is ignored and an unknown odd type is an error
//! (repo-protocol §3.1, §6).
//!
//! Limits: [`OBJECTS_MAX`] objects, as many sync groups, and an answer of [`RESULT_BYTES_MAX`].

pub mod earlier;

use namewire_packet::{
    Name, NameBuf,
    digest::sha256,
    tlv::{self, Element, Reader, types},
};

/// Most objects, and most sync groups, in one command.
pub const OBJECTS_MAX: usize = 512;
/// Most bytes of an answer, so that it fits in one Data.
pub const RESULT_BYTES_MAX: usize = 8192;
/// Most bytes of a notification's nonce.
pub const NONCE_BYTES_MAX: usize = 64;

mod repo_types {
    pub(super) const NONCE: u32 = 128;
    pub(super) const START_BLOCK_ID: u32 = 204;
    pub(super) const END_BLOCK_ID: u32 = 205;
    pub(super) const REQUEST_NO: u32 = 206;
    pub(super) const STATUS_CODE: u32 = 208;
    pub(super) const INSERT_NUM: u32 = 209;
    pub(super) const DELETE_NUM: u32 = 210;
    pub(super) const FORWARDING_HINT: u32 = 211;
    pub(super) const REGISTER_PREFIX: u32 = 212;
    pub(super) const CHECK_PREFIX: u32 = 213;
    pub(super) const OBJECT_PARAM: u32 = 301;
    pub(super) const OBJECT_RESULT: u32 = 302;
    pub(super) const SYNC_PARAM: u32 = 401;
    pub(super) const SYNC_RESULT: u32 = 402;
    pub(super) const SYNC_DATA_NAME_DEDUPE: u32 = 403;
    pub(super) const SYNC_RESET: u32 = 404;
    pub(super) const SYNC_PREFIX: u32 = 405;
}
use repo_types as repo;

/// The number that a status is asked by: SHA-256 of the command's bytes.
pub type RequestNo = [u8; 32];

/// Codes of results.
pub mod status {
    /// Accepted, not begun.
    pub const QUEUED: u64 = 100;
    /// Done.
    pub const DONE: u64 = 200;
    /// Under way.
    pub const RUNNING: u64 = 300;
    /// Not done, or only a part of it.
    pub const FAILED: u64 = 400;
    /// Not allowed, or malformed.
    pub const REFUSED: u64 = 403;
    /// There is no such request.
    pub const UNKNOWN: u64 = 404;
    /// Of an object, Namewire's own: the store does not answer.
    pub const UNAVAILABLE: u64 = 503;
    /// Of an object, Namewire's own: the store or its disk is full.
    pub const FULL: u64 = 507;
}

/// Why bytes are no message of a repository's client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// An element cannot be read.
    #[error("malformed: {0}")]
    Tlv(#[from] tlv::TlvError),
    /// A name cannot be read.
    #[error("malformed name: {0}")]
    Name(#[from] namewire_packet::NameError),
    /// An odd type that is unknown, repeated or out of order.
    #[error("element {0} is unknown, repeated or out of order")]
    Unexpected(u32),
    /// An element that must be there.
    #[error("element {0} is absent")]
    Missing(u32),
    /// A value of a wrong length.
    #[error("element {0} has a value that is not allowed")]
    BadValue(u32),
    /// No object and no sync group.
    #[error("the command is empty")]
    Empty,
    /// More than [`OBJECTS_MAX`], or an answer above [`RESULT_BYTES_MAX`].
    #[error("the command has too many objects")]
    TooMany,
}

/// Walks the elements of one value in the order of the grammar.
struct Fields<'a> {
    reader: Reader<'a>,
    next: Option<Element<'a>>,
}

impl<'a> Fields<'a> {
    fn new(value: &'a [u8]) -> Result<Self, CommandError> {
        let mut fields = Fields { reader: Reader::new(value), next: None };
        fields.advance()?;
        Ok(fields)
    }

    fn advance(&mut self) -> Result<(), CommandError> {
        self.next = self.reader.next_element()?;
        Ok(())
    }

    /// The element of this type, if it is the next one that the grammar knows.
    fn take(&mut self, wanted: u32, known: &[u32]) -> Result<Option<&'a [u8]>, CommandError> {
        while let Some(element) = self.next {
            if element.type_number == wanted {
                self.advance()?;
                return Ok(Some(element.value));
            }
            if known.contains(&element.type_number) || !element.type_number.is_multiple_of(2) {
                return Ok(None);
            }
            self.advance()?;
        }
        Ok(None)
    }

    fn require(&mut self, wanted: u32, known: &[u32]) -> Result<&'a [u8], CommandError> {
        self.take(wanted, known)?.ok_or(CommandError::Missing(wanted))
    }

    /// Nothing that matters is left.
    fn end(mut self, known: &[u32]) -> Result<(), CommandError> {
        self.take(0, known)?;
        self.next.map_or(Ok(()), |element| Err(CommandError::Unexpected(element.type_number)))
    }
}

fn number(value: Option<&[u8]>) -> Result<Option<u64>, CommandError> {
    Ok(value.map(tlv::read_nni).transpose()?)
}

/// A name inside of another element.
fn nested_name(value: &[u8]) -> Result<NameBuf, CommandError> {
    const KNOWN: &[u32] = &[types::NAME];
    let mut fields = Fields::new(value)?;
    let name = Name::parse_value(fields.require(types::NAME, KNOWN)?)?.to_buf();
    fields.end(KNOWN)?;
    Ok(name)
}

fn nested_names(value: &[u8]) -> Result<Vec<NameBuf>, CommandError> {
    const KNOWN: &[u32] = &[types::NAME];
    let (mut fields, mut names) = (Fields::new(value)?, Vec::new());
    while let Some(name) = fields.take(types::NAME, KNOWN)? {
        names.push(Name::parse_value(name)?.to_buf());
    }
    fields.end(KNOWN)?;
    Ok(names)
}

fn write_nested_name(out: &mut Vec<u8>, type_number: u32, name: &NameBuf) {
    tlv::write_nested(out, type_number, |out| name.as_name().write_tlv(out));
}

fn write_hint(out: &mut Vec<u8>, hint: &[NameBuf]) {
    if !hint.is_empty() {
        let write = |out: &mut Vec<u8>| hint.iter().for_each(|name| name.as_name().write_tlv(out));
        tlv::write_nested(out, repo::FORWARDING_HINT, write);
    }
}

/// One object to insert or delete: a packet, or segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectParam {
    /// The packet's name, or that of the segments without their numbers.
    pub name: NameBuf,
    /// Where to send Interests for it; empty: nowhere in particular.
    pub forwarding_hint: Vec<NameBuf>,
    /// The first segment.
    pub start: Option<u64>,
    /// The last segment.
    pub end: Option<u64>,
    /// A prefix that the repository is to register, or no longer.
    pub register_prefix: Option<NameBuf>,
}

impl ObjectParam {
    const KNOWN: &[u32] =
        &[types::NAME, repo::FORWARDING_HINT, repo::START_BLOCK_ID, repo::END_BLOCK_ID, repo::REGISTER_PREFIX];

    fn decode(value: &[u8]) -> Result<Self, CommandError> {
        let mut fields = Fields::new(value)?;
        let object = ObjectParam {
            name: Name::parse_value(fields.require(types::NAME, Self::KNOWN)?)?.to_buf(),
            forwarding_hint: fields.take(repo::FORWARDING_HINT, Self::KNOWN)?.map_or(Ok(Vec::new()), nested_names)?,
            start: number(fields.take(repo::START_BLOCK_ID, Self::KNOWN)?)?,
            end: number(fields.take(repo::END_BLOCK_ID, Self::KNOWN)?)?,
            register_prefix: fields.take(repo::REGISTER_PREFIX, Self::KNOWN)?.map(nested_name).transpose()?,
        };
        fields.end(Self::KNOWN)?;
        Ok(object)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, repo::OBJECT_PARAM, |out| {
            self.name.as_name().write_tlv(out);
            write_hint(out, &self.forwarding_hint);
            self.start.into_iter().for_each(|start| tlv::write_nni(out, repo::START_BLOCK_ID, start));
            self.end.into_iter().for_each(|end| tlv::write_nni(out, repo::END_BLOCK_ID, end));
            self.register_prefix.iter().for_each(|prefix| write_nested_name(out, repo::REGISTER_PREFIX, prefix));
        });
    }
}

/// One sync group to join or leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncParam {
    /// The group's prefix.
    pub sync_prefix: NameBuf,
    /// A prefix that the repository is to register, or no longer.
    pub register_prefix: Option<NameBuf>,
    /// Names of published Data repeat the group's prefix, which is to be left out.
    pub data_name_dedupe: bool,
    /// Start from an empty state.
    pub reset: bool,
}

impl SyncParam {
    const KNOWN: &[u32] = &[repo::SYNC_PREFIX, repo::REGISTER_PREFIX, repo::SYNC_DATA_NAME_DEDUPE, repo::SYNC_RESET];

    pub(crate) fn decode(value: &[u8]) -> Result<Self, CommandError> {
        let mut fields = Fields::new(value)?;
        let sync_prefix = nested_name(fields.require(repo::SYNC_PREFIX, Self::KNOWN)?)?;
        let register_prefix = fields.take(repo::REGISTER_PREFIX, Self::KNOWN)?.map(nested_name).transpose()?;
        let data_name_dedupe = fields.take(repo::SYNC_DATA_NAME_DEDUPE, Self::KNOWN)?.is_some();
        let reset = fields.take(repo::SYNC_RESET, Self::KNOWN)?.is_some();
        fields.end(Self::KNOWN)?;
        Ok(SyncParam { sync_prefix, register_prefix, data_name_dedupe, reset })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, repo::SYNC_PARAM, |out| self.encode_value(out));
    }

    /// What [`SyncParam::decode`] reads.
    pub(crate) fn encode_value(&self, out: &mut Vec<u8>) {
        write_nested_name(out, repo::SYNC_PREFIX, &self.sync_prefix);
        self.register_prefix.iter().for_each(|prefix| write_nested_name(out, repo::REGISTER_PREFIX, prefix));
        let flags = [(self.data_name_dedupe, repo::SYNC_DATA_NAME_DEDUPE), (self.reset, repo::SYNC_RESET)];
        let set = flags.into_iter().filter(|(is_set, _)| *is_set);
        set.for_each(|(_, type_number)| tlv::write_tlv(out, type_number, &[]));
    }
}

/// A command: RepoCommandParam.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Objects to insert or delete.
    pub objects: Vec<ObjectParam>,
    /// Sync groups to join or leave.
    pub groups: Vec<SyncParam>,
}

impl Command {
    /// The RequestNo of a command with these bytes.
    pub fn request_no(bytes: &[u8]) -> RequestNo {
        sha256(&[bytes])
    }

    /// Reads the bytes of a command.
    ///
    /// # Errors
    /// If they are no command, or one beyond the limits.
    pub fn decode(bytes: &[u8]) -> Result<Self, CommandError> {
        const KNOWN: &[u32] = &[repo::OBJECT_PARAM, repo::SYNC_PARAM];
        let (mut fields, mut command) = (Fields::new(bytes)?, Command::default());
        while let Some(value) = fields.take(repo::OBJECT_PARAM, KNOWN)? {
            if command.objects.len() == OBJECTS_MAX {
                return Err(CommandError::TooMany);
            }
            command.objects.push(ObjectParam::decode(value)?);
        }
        while let Some(value) = fields.take(repo::SYNC_PARAM, KNOWN)? {
            if command.groups.len() == OBJECTS_MAX {
                return Err(CommandError::TooMany);
            }
            command.groups.push(SyncParam::decode(value)?);
        }
        fields.end(KNOWN)?;
        if command.objects.is_empty() && command.groups.is_empty() {
            return Err(CommandError::Empty);
        }
        let largest = command.results(|| Some(u64::MAX)).encode();
        if largest.len() > RESULT_BYTES_MAX { Err(CommandError::TooMany) } else { Ok(command) }
    }

    /// The bytes of the command.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.objects.iter().for_each(|object| object.encode(&mut out));
        self.groups.iter().for_each(|group| group.encode(&mut out));
        out
    }

    /// Every name that the command is about: objects, sync groups and the prefixes to register.
    pub fn names(&self) -> Vec<NameBuf> {
        let objects = self.objects.iter().map(|object| (&object.name, &object.register_prefix));
        let groups = self.groups.iter().map(|group| (&group.sync_prefix, &group.register_prefix));
        let names = objects.chain(groups).flat_map(|(name, prefix)| [Some(name), prefix.as_ref()]);
        names.flatten().cloned().collect()
    }

    /// The answer before anything is done, with these counts.
    fn results(&self, count: impl Fn() -> Option<u64>) -> CommandResult {
        let object = |object: &ObjectParam| ObjectResult {
            name: object.name.clone(),
            code: status::QUEUED,
            inserted: count(),
            deleted: None,
        };
        let group = |group: &SyncParam| SyncResult { name: group.sync_prefix.clone(), code: status::QUEUED };
        CommandResult {
            code: status::RUNNING,
            objects: self.objects.iter().map(object).collect(),
            groups: self.groups.iter().map(group).collect(),
        }
    }

    /// The answer before anything is done.
    pub fn accepted(&self) -> CommandResult {
        self.results(|| None)
    }
}

/// The result of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectResult {
    /// Its name.
    pub name: NameBuf,
    /// One of [`status`].
    pub code: u64,
    /// Packets stored so far.
    pub inserted: Option<u64>,
    /// Packets deleted so far.
    pub deleted: Option<u64>,
}

/// The result of one sync group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncResult {
    /// Its prefix.
    pub name: NameBuf,
    /// One of [`status`].
    pub code: u64,
}

/// The answer to a question for a status: RepoCommandRes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandResult {
    /// One of [`status`].
    pub code: u64,
    /// One for each object, in the order of the command.
    pub objects: Vec<ObjectResult>,
    /// One for each sync group.
    pub groups: Vec<SyncResult>,
}

impl CommandResult {
    /// An answer that is only a code.
    pub fn of_code(code: u64) -> Self {
        CommandResult { code, ..CommandResult::default() }
    }

    /// Reads the bytes of an answer.
    ///
    /// # Errors
    /// If they are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, CommandError> {
        const KNOWN: &[u32] = &[repo::STATUS_CODE, repo::OBJECT_RESULT, repo::SYNC_RESULT];
        let mut fields = Fields::new(bytes)?;
        let mut result = CommandResult::of_code(tlv::read_nni(fields.require(repo::STATUS_CODE, KNOWN)?)?);
        while let Some(value) = fields.take(repo::OBJECT_RESULT, KNOWN)? {
            result.objects.push(ObjectResult::decode(value)?);
        }
        while let Some(value) = fields.take(repo::SYNC_RESULT, KNOWN)? {
            result.groups.push(SyncResult::decode(value)?);
        }
        fields.end(KNOWN)?;
        Ok(result)
    }

    /// The bytes of the answer.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::write_nni(&mut out, repo::STATUS_CODE, self.code);
        for object in &self.objects {
            tlv::write_nested(&mut out, repo::OBJECT_RESULT, |out| {
                object.name.as_name().write_tlv(out);
                tlv::write_nni(out, repo::STATUS_CODE, object.code);
                object.inserted.into_iter().for_each(|count| tlv::write_nni(out, repo::INSERT_NUM, count));
                object.deleted.into_iter().for_each(|count| tlv::write_nni(out, repo::DELETE_NUM, count));
            });
        }
        for group in &self.groups {
            tlv::write_nested(&mut out, repo::SYNC_RESULT, |out| {
                group.name.as_name().write_tlv(out);
                tlv::write_nni(out, repo::STATUS_CODE, group.code);
            });
        }
        out
    }
}

impl ObjectResult {
    fn decode(value: &[u8]) -> Result<Self, CommandError> {
        const KNOWN: &[u32] = &[types::NAME, repo::STATUS_CODE, repo::INSERT_NUM, repo::DELETE_NUM];
        let mut fields = Fields::new(value)?;
        let result = ObjectResult {
            name: Name::parse_value(fields.require(types::NAME, KNOWN)?)?.to_buf(),
            code: tlv::read_nni(fields.require(repo::STATUS_CODE, KNOWN)?)?,
            inserted: number(fields.take(repo::INSERT_NUM, KNOWN)?)?,
            deleted: number(fields.take(repo::DELETE_NUM, KNOWN)?)?,
        };
        fields.end(KNOWN)?;
        Ok(result)
    }
}

impl SyncResult {
    fn decode(value: &[u8]) -> Result<Self, CommandError> {
        const KNOWN: &[u32] = &[types::NAME, repo::STATUS_CODE];
        let mut fields = Fields::new(value)?;
        let result = SyncResult {
            name: Name::parse_value(fields.require(types::NAME, KNOWN)?)?.to_buf(),
            code: tlv::read_nni(fields.require(repo::STATUS_CODE, KNOWN)?)?,
        };
        fields.end(KNOWN)?;
        Ok(result)
    }
}

/// A notification that a client has a command: NotifyAppParam.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The client's prefix: the command is `/<publisher>/msg/<topic>/<nonce>`.
    pub publisher: NameBuf,
    /// Makes the command's name unique; 1 to [`NONCE_BYTES_MAX`] bytes.
    pub nonce: Vec<u8>,
    /// Where to send the Interest for the command; empty: nowhere in particular.
    pub forwarding_hint: Vec<NameBuf>,
}

impl Notification {
    const KNOWN: &[u32] = &[types::NAME, repo::NONCE, repo::FORWARDING_HINT];

    /// Reads ApplicationParameters.
    ///
    /// # Errors
    /// If they are no notification.
    pub fn decode(parameters: &[u8]) -> Result<Self, CommandError> {
        let mut fields = Fields::new(parameters)?;
        let publisher = Name::parse_value(fields.require(types::NAME, Self::KNOWN)?)?.to_buf();
        let nonce = fields.require(repo::NONCE, Self::KNOWN)?;
        if nonce.is_empty() || nonce.len() > NONCE_BYTES_MAX {
            return Err(CommandError::BadValue(repo::NONCE));
        }
        let forwarding_hint = fields.take(repo::FORWARDING_HINT, Self::KNOWN)?.map_or(Ok(Vec::new()), nested_names)?;
        fields.end(Self::KNOWN)?;
        Ok(Notification { publisher, nonce: nonce.to_vec(), forwarding_hint })
    }

    /// The ApplicationParameters.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.publisher.as_name().write_tlv(&mut out);
        tlv::write_tlv(&mut out, repo::NONCE, &self.nonce);
        write_hint(&mut out, &self.forwarding_hint);
        out
    }

    /// The name of the command, for a topic such as `/testrepo/insert`.
    pub fn message_name(&self, topic: Name<'_>) -> NameBuf {
        let mut name = self.publisher.clone();
        name.push_generic(b"msg").append(topic).push_generic(&self.nonce);
        name
    }
}

/// Reads the ApplicationParameters of a question for a status: RepoStatQuery.
///
/// # Errors
/// If there is no RequestNo of 32 bytes.
pub fn decode_query(parameters: &[u8]) -> Result<RequestNo, CommandError> {
    const KNOWN: &[u32] = &[repo::REQUEST_NO];
    let mut fields = Fields::new(parameters)?;
    let number = fields.require(repo::REQUEST_NO, KNOWN)?;
    fields.end(KNOWN)?;
    number.try_into().map_err(|_| CommandError::BadValue(repo::REQUEST_NO))
}

/// The ApplicationParameters of a question for a status.
pub fn encode_query(request_no: &RequestNo) -> Vec<u8> {
    let mut out = Vec::new();
    tlv::write_tlv(&mut out, repo::REQUEST_NO, request_no);
    out
}

#[cfg(test)]
mod tests;
