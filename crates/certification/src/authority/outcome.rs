//! What comes of an Interest: an answer, work for the operator's command, and what must be kept.

use namewire_ndncert::{RequestId, fields::Parameters};
use namewire_packet::NameBuf;
use namewire_security::Certificate;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Signed Data.
    Data(Vec<u8>),
    /// Too many requests: a Nack (Congestion).
    Busy,
    /// Nothing: the Interest is not for the authority, or malformed.
    Nothing,
}

/// What comes of an Interest.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This.
    Reply(Reply),
    /// The operator's command decides; [`super::Authority::finish`] takes what it said.
    Errand(Errand),
    /// The operator's command is at work for this Interest, which came again: its answer goes to this one.
    Repeated,
}

/// What the operator's command is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errand {
    /// The request.
    pub request: RequestId,
    /// The name of the Interest that waits.
    pub interest: NameBuf,
    /// What to do.
    pub task: Task,
    /// Whose certificate it is about.
    pub identity: NameBuf,
    /// For which key.
    pub key_name: NameBuf,
}

/// The work of the operator's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Send this code to this address.
    Mail {
        /// The address.
        address: String,
        /// The code.
        code: String,
    },
    /// Decide, by what the requester says.
    Judge {
        /// The challenge.
        challenge: String,
        /// What the requester says.
        parameters: Parameters,
    },
}

/// What the command said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandSaid {
    /// Done, or: certify.
    Yes,
    /// Refused, with a reason.
    No(String),
    /// It asks the requester, in these words.
    Ask(String),
}

/// What happened, for the operator's log and for the disk.
#[derive(Clone, Debug)]
pub enum Change {
    /// A request must be kept.
    Keep(RequestId),
    /// A request is over.
    Forget(RequestId),
    /// A request waits for this code, which the operator gives to the requester.
    Code {
        /// Whose certificate it is about.
        identity: NameBuf,
        /// For which key.
        key_name: NameBuf,
        /// The code.
        code: String,
    },
    /// A code of the operator was used.
    PinUsed(String),
    /// A certificate was issued.
    Issued(Box<Certificate>),
    /// A request was refused.
    Refused {
        /// Who asked: an identity, or what the Interest was about.
        who: NameBuf,
        /// Why.
        why: String,
    },
}
