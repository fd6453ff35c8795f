//! Commands that the router is working on, by ticket.

use crate::{effect::Ticket, replies::ReplyTo};
use hashbrown::HashMap;
use namewire_packet::{FaceId, Name, NameBuf, nfd::FaceUri};

/// A face command that the router is working on.
#[derive(Debug)]
pub(crate) enum FaceCommand {
    /// `faces/create`; `others` are later requests for the same face.
    Create { remote: FaceUri, local: Option<FaceUri>, reply_to: ReplyTo, others: Vec<ReplyTo> },
    /// `faces/update`.
    Update { reply_to: ReplyTo },
    /// `faces/destroy`.
    Destroy { face: FaceId, reply_to: ReplyTo },
}

impl FaceCommand {
    /// True if the answer to this command will have this name.
    pub(crate) fn will_answer(&self, name: Name<'_>) -> bool {
        match self {
            FaceCommand::Create { reply_to, others, .. } => {
                others.iter().chain([reply_to]).any(|reply_to| reply_to.name.as_name() == name)
            }
            FaceCommand::Update { reply_to } | FaceCommand::Destroy { reply_to, .. } => reply_to.name.as_name() == name,
        }
    }
}

/// An erasure that the workers are doing.
#[derive(Debug)]
pub(crate) struct CsErasure {
    pub(crate) prefix: NameBuf,
    pub(crate) count: u64,
    pub(crate) reply_to: ReplyTo,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct PendingCommands {
    pub(crate) of_faces: HashMap<Ticket, FaceCommand>,
    pub(crate) erasures: HashMap<Ticket, CsErasure>,
    /// Looks at one name.
    pub(crate) looks: HashMap<Ticket, ReplyTo>,
    last_ticket: u64,
}

impl PendingCommands {
    /// A ticket for a command that is answered later.
    pub(crate) const fn next_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// True if the answer of a face command in progress will have this name.
    pub(crate) fn will_answer(&self, name: Name<'_>) -> bool {
        self.of_faces.values().any(|command| command.will_answer(name))
    }
}
