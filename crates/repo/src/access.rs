//! Access: may this command be carried out, and may this Data be stored?
//!
//! A command is a Data that the client signs. The rules are those of the router's management
//! (`namewire_security::trust`):
//!
//! | command from | needs |
//! | --- | --- |
//! | an application on this machine | a signature of any kind, unless [`CommandAccess::local`] is false |
//! | another machine | the rules for commands; without rules, it is denied |
//!
//! The rules see the command as an Interest named `/<repo>/<verb>/<object>`, once for each object and for each
//! RegisterPrefix. So rules may let different keys insert under different prefixes.
//!
//! The router marks each packet with the face from which it came (IncomingFaceId), and lists the local faces. A command
//! counts as local if its notification came from a local face, and the command itself from a local face or from the
//! Content Store. The router does not mark packets if the repository's own face is not local or may not change its
//! settings; then no command counts as local.
//!
//! Replay: the name of a command contains the nonce of its notification, and the repository accepts each nonce once
//! ([`crate::commands`]).
//!
//! Data has separate rules ([`AccessSettings::data`]). Without such rules, the repository checks only digests.
//!
//! Revoked certificates do not count: those in files of the operator ([`AccessSettings::revocations`]), and those that
//! the network says ([`Validator`]).
//!
//! Limits: those of [`Validator`]; [`FACES_MAX`] faces are remembered.

use crate::{
    command::Command,
    statistics::{Refusal, Statistics},
};
use namewire_client::{Client, Validator};
use namewire_packet::{
    Data, FaceId, Name, NameBuf,
    nfd::{ControlParameters, FaceQueryFilter, FaceScope, FaceStatus, decode_dataset, face_flags},
};
use namewire_security::trust::{AnchorCertificate, DataValidator, Denial, RevocationRecord, RulesOrAny};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::watch;

/// Most faces whose scope is remembered.
const FACES_MAX: usize = 1024;

/// Whose commands are carried out.
#[derive(Clone, Debug)]
pub struct CommandAccess {
    /// True: those of applications on this machine.
    pub local: bool,
    /// Those that these rules allow, from wherever they come; `None`: no others.
    pub rules: Option<RulesOrAny>,
}

impl Default for CommandAccess {
    fn default() -> Self {
        CommandAccess { local: true, rules: None }
    }
}

/// The rules of a repository.
#[derive(Clone, Debug, Default)]
pub struct AccessSettings {
    /// Whose commands are carried out.
    pub commands: CommandAccess,
    /// The rules for Data to be stored; `None`: no rules.
    pub data: Option<RulesOrAny>,
    /// The certificates in the files and directories that the rules name.
    pub anchors: Vec<(PathBuf, Vec<AnchorCertificate>)>,
    /// The revocation records in files and directories, as they are at each moment; `None`: there are no files.
    pub revocations: Option<watch::Receiver<RevocationsOfFiles>>,
}

/// The revocation records of each file or directory.
pub type RevocationsOfFiles = Vec<(PathBuf, Vec<RevocationRecord>)>;

/// Judges commands and Data.
pub(crate) struct Access {
    client: Client,
    repo: NameBuf,
    statistics: Arc<Statistics>,
    local_may: bool,
    /// The router says from which faces packets come.
    knows_faces: bool,
    commands: Option<Validator>,
    data: Option<Validator>,
    revocations: Option<Mutex<watch::Receiver<RevocationsOfFiles>>>,
    is_face_local: Mutex<HashMap<FaceId, bool>>,
}

impl Access {
    /// Asks the router to say from which faces packets come.
    pub(crate) async fn new(
        client: Client,
        repo: NameBuf,
        statistics: Arc<Statistics>,
        settings: AccessSettings,
    ) -> Self {
        let CommandAccess { local: local_may, rules } = settings.commands;
        let validator = |rules: RulesOrAny| {
            let mut validator = DataValidator::new(rules);
            for (path, anchors) in &settings.anchors {
                validator.set_anchors(path.clone(), anchors.clone());
            }
            Validator::from(validator)
        };
        let local_fields = ControlParameters {
            flags: Some(face_flags::LOCAL_FIELDS),
            mask: Some(face_flags::LOCAL_FIELDS),
            ..ControlParameters::default()
        };
        // Also where local applications may not command: places are shared among faces.
        let knows_faces = client.is_local() && client.control("faces", "update", &local_fields).await.is_ok();
        Access {
            client,
            repo,
            statistics,
            local_may,
            knows_faces,
            commands: rules.map(validator),
            data: settings.data.map(validator),
            revocations: settings.revocations.map(|mut files| {
                files.mark_changed();
                Mutex::new(files)
            }),
            is_face_local: Mutex::default(),
        }
    }

    /// Takes the revocation records that files have now.
    fn take_revocations(&self) {
        let Some(files) = &self.revocations else { return };
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.has_changed().unwrap_or(false) {
            let records = files.borrow_and_update();
            for validator in [&self.commands, &self.data].into_iter().flatten() {
                records.iter().for_each(|(path, records)| validator.set_revocations(path.clone(), records.clone()));
            }
        }
    }

    /// True if commands of applications on this machine are to be carried out, but cannot be recognized.
    pub(crate) fn is_blind(&self) -> bool {
        self.local_may && !self.knows_faces
    }

    /// Decides about a command: the faces of its notification and of its own packet, and the packet.
    pub(crate) async fn check_command(
        &self,
        verb: &str,
        command: &Command,
        notified_from: Option<FaceId>,
        came_from: Option<FaceId>,
        data: &Data<'_>,
    ) -> Result<(), Denial> {
        if self.local_may && self.is_local(notified_from, came_from).await {
            return Ok(());
        }
        self.take_revocations();
        let judged = match &self.commands {
            None if self.is_blind() => {
                Err(Denial::NotAllowed("the router does not tell from which face commands come".to_owned()))
            }
            None => Err(Denial::NotAllowed("only applications on this machine may command".to_owned())),
            Some(validator) => self.check_names(validator, verb, command, data).await,
        };
        judged.inspect_err(|denial| self.statistics.deny(denial))
    }

    async fn check_names(
        &self,
        validator: &Validator,
        verb: &str,
        command: &Command,
        data: &Data<'_>,
    ) -> Result<(), Denial> {
        for name in command.names() {
            let mut as_interest = self.repo.clone();
            push_verb(&mut as_interest, verb);
            as_interest.append(name.as_name());
            validator.check_command(&self.client, data, as_interest.as_name()).await?;
        }
        Ok(())
    }

    /// True if Data may be stored.
    pub(crate) async fn check_data(&self, data: &Data<'_>) -> bool {
        let Some(validator) = &self.data else { return true };
        self.take_revocations();
        let judged = validator.check(&self.client, data).await;
        if let Err(denial) = &judged {
            self.statistics.deny(denial);
            self.statistics.refuse(Refusal::DataNotTrusted);
        }
        judged.is_ok()
    }

    /// True if Data are judged at all.
    pub(crate) const fn checks_data(&self) -> bool {
        self.data.is_some()
    }

    async fn is_local(&self, notified_from: Option<FaceId>, came_from: Option<FaceId>) -> bool {
        let (true, Some(notified), Some(came)) = (self.knows_faces, notified_from, came_from) else { return false };
        self.is_local_face(notified).await && (came == FaceId::CONTENT_STORE || self.is_local_face(came).await)
    }

    /// True if these clients are on this machine, as far as the router tells.
    pub(crate) async fn is_local_holder(&self, holder: Option<FaceId>) -> bool {
        match holder {
            Some(face) if self.knows_faces => self.is_local_face(face).await,
            _ => false,
        }
    }

    async fn is_local_face(&self, face: FaceId) -> bool {
        let lock = || self.is_face_local.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&face) {
            return *known;
        }
        let Some(is_local) = self.ask_scope(face).await else { return false };
        let mut known = lock();
        if known.len() >= FACES_MAX {
            known.clear();
        }
        known.insert(face, is_local);
        is_local
    }

    /// Asks the router for the scope of a face; `None` if it does not answer or has no such face.
    async fn ask_scope(&self, face: FaceId) -> Option<bool> {
        let filter = FaceQueryFilter { face_id: Some(face), ..FaceQueryFilter::default() };
        let mut name: NameBuf = "/localhost/nfd/faces/query".parse().ok()?;
        name.push_generic(&filter.to_wire());
        let content = self.client.dataset(&name).await.ok()?;
        let faces: Vec<FaceStatus> = decode_dataset(&content).ok()?;
        Some(faces.first()?.face_scope == FaceScope::Local)
    }
}

/// True if the name is the repository's own, below it or above it.
pub(crate) fn overlaps(repo: Name<'_>, name: Name<'_>) -> bool {
    repo.is_prefix_of(&name) || name.is_prefix_of(&repo)
}

/// Appends the components of a verb to a name.
pub(crate) fn push_verb(name: &mut NameBuf, verb: &str) {
    for part in verb.split('/') {
        name.push_generic(part.as_bytes());
    }
}
