//! The messages of ndn-python-repo before version 0.4, which is the release that package registries have.
//!
//! A command is about one object, without an outer type. Its client chooses a process id, and asks for the status by
//! `/<repo>/insert check/<parameters>`, where the last component holds the id.
//!
//! | message | elements, in this order |
//! | --- | --- |
//! | command | Name, \[ForwardingHint 211\], \[StartBlockId 204\], \[EndBlockId 205\], ProcessId 206, \[RegisterPrefix 212\], \[CheckPrefix 213\] |
//! | question | ProcessId 206 |
//! | answer | \[ProcessId 206\], StatusCode 208, \[InsertNum 209\], \[DeleteNum 210\] |
//!
//! A ForwardingHint and a RegisterPrefix may be empty. CheckPrefix is ignored, as in ndn-python-repo.
//!
//! Source: ndn-python-repo 0.3 (`command/repo_commands.py`, `handle/`).

use super::{CommandError, CommandResult, Fields, ObjectParam, RequestNo, nested_name, nested_names, number, repo};
use namewire_packet::{
    Name,
    digest::sha256,
    tlv::{self, types},
};

/// Most bytes of a process id; clients use four.
pub const PROCESS_ID_BYTES_MAX: usize = 32;

const KNOWN: &[u32] = &[
    types::NAME,
    repo::FORWARDING_HINT,
    repo::START_BLOCK_ID,
    repo::END_BLOCK_ID,
    repo::REQUEST_NO,
    repo::REGISTER_PREFIX,
    repo::CHECK_PREFIX,
];

/// A command about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierCommand {
    /// The object.
    pub object: ObjectParam,
    /// By which the client asks for its status.
    pub process_id: Vec<u8>,
}

impl EarlierCommand {
    /// Reads the bytes of a command.
    ///
    /// # Errors
    /// If they are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, CommandError> {
        let mut fields = Fields::new(bytes)?;
        let mut object = ObjectParam {
            name: Name::parse_value(fields.require(types::NAME, KNOWN)?)?.to_buf(),
            forwarding_hint: fields.take(repo::FORWARDING_HINT, KNOWN)?.map_or(Ok(Vec::new()), nested_names)?,
            start: number(fields.take(repo::START_BLOCK_ID, KNOWN)?)?,
            end: number(fields.take(repo::END_BLOCK_ID, KNOWN)?)?,
            register_prefix: None,
        };
        let process_id = process_id(fields.require(repo::REQUEST_NO, KNOWN)?)?;
        let prefix = fields.take(repo::REGISTER_PREFIX, KNOWN)?.filter(|value| !value.is_empty());
        object.register_prefix = prefix.map(nested_name).transpose()?;
        fields.take(repo::CHECK_PREFIX, KNOWN)?;
        fields.end(KNOWN)?;
        Ok(EarlierCommand { object, process_id })
    }
}

fn process_id(value: &[u8]) -> Result<Vec<u8>, CommandError> {
    if value.is_empty() || value.len() > PROCESS_ID_BYTES_MAX {
        return Err(CommandError::BadValue(repo::REQUEST_NO));
    }
    Ok(value.to_vec())
}

/// Reads the last component of a question for a status: the process id.
///
/// # Errors
/// If there is none.
pub fn decode_query(component: &[u8]) -> Result<Vec<u8>, CommandError> {
    let mut fields = Fields::new(component)?;
    let id = process_id(fields.require(repo::REQUEST_NO, KNOWN)?)?;
    fields.end(KNOWN)?;
    Ok(id)
}

/// The number under which the status of a process is kept. It is nobody's RequestNo: no command has these bytes.
pub fn request_no(process_id: &[u8]) -> RequestNo {
    let mut question = Vec::new();
    tlv::write_tlv(&mut question, repo::REQUEST_NO, process_id);
    sha256(&[&question])
}

/// The answer to a question for the status of a process, or of none.
pub fn encode_answer(process_id: Option<&[u8]>, result: &CommandResult) -> Vec<u8> {
    let mut out = Vec::new();
    process_id.into_iter().for_each(|id| tlv::write_tlv(&mut out, repo::REQUEST_NO, id));
    tlv::write_nni(&mut out, repo::STATUS_CODE, result.code);
    if let Some(object) = result.objects.first() {
        object.inserted.into_iter().for_each(|count| tlv::write_nni(&mut out, repo::INSERT_NUM, count));
        object.deleted.into_iter().for_each(|count| tlv::write_nni(&mut out, repo::DELETE_NUM, count));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, ObjectResult, status};

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    /// What putfile and delfile of 0.3 send for /files/f1, with an empty hint and an empty prefix.
    #[test]
    fn commands_of_its_clients() {
        let insert =
            hex("070B080566696C657308026631D300CC0100CD0102CE0401020304D4090707080566696C6573D50707050803636C69");
        let command = EarlierCommand::decode(&insert).unwrap();
        assert_eq!(
            (command.object.name.to_string(), command.object.start, command.object.end),
            ("/files/f1".into(), Some(0), Some(2))
        );
        assert_eq!(command.object.register_prefix.map(|prefix| prefix.to_string()), Some("/files".into()));
        assert_eq!(command.process_id, [1, 2, 3, 4]);
        let delete =
            EarlierCommand::decode(&hex("070B080566696C657308026631CE0401020304D400D50707050803636C69")).unwrap();
        assert_eq!((delete.object.start, delete.object.register_prefix), (None, None));
        // Neither kind is taken for the other.
        assert!(Command::decode(&insert).is_err());
        assert!(EarlierCommand::decode(&hex("FD012D0D070B080566696C657308026631")).is_err());
        for bad in ["070B080566696C657308026631", "070B080566696C657308026631CE00", "CE0401020304"] {
            assert!(EarlierCommand::decode(&hex(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn questions_and_answers() {
        assert_eq!(decode_query(&hex("CE0401020304")).unwrap(), [1, 2, 3, 4]);
        assert!(decode_query(&hex("CE00")).is_err() && decode_query(&hex("")).is_err());
        let object = ObjectResult { inserted: Some(3), ..ObjectResult::default() };
        let result = CommandResult { code: status::DONE, objects: vec![object], groups: Vec::new() };
        assert_eq!(encode_answer(Some(&[1, 2, 3, 4]), &result), hex("CE0401020304D001C8D10103"));
        assert_eq!(encode_answer(None, &CommandResult::of_code(status::UNKNOWN)), hex("D0020194"));
        assert_eq!(request_no(&[1, 2, 3, 4]), sha256(&[&hex("CE0401020304")]));
    }
}
