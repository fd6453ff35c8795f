//! A failure of a command: a message and an exit code.

use namewire_client::{
    ConnectError, ControlError, DatasetError, ExpressError, FetchError, PublishError, RespondError, ServeError,
};
use namewire_files::{folder_fetch::FolderError, metadata::MetadataError};
use namewire_packet::NameBuf;
use namewire_repo::RemoteError;
use namewire_routers::RoutersError;
use std::{fmt, io};

/// The exit codes of `namewire`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// The command did not succeed.
    Failed = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// No such face, route, strategy choice, key or named router.
    NotFound = 3,
    /// There is no forwarder to talk to.
    NoForwarder = 4,
    /// No answer in time.
    Timeout = 5,
    /// A Nack came back.
    Nack = 6,
    /// The producer answered that it has no such Data (an application Nack: Data of ContentType 3).
    ApplicationNack = 7,
    /// `namewire doctor` found warnings, and no errors.
    Warnings = 8,
    /// `namewire doctor` found errors.
    Errors = 9,
    /// Ctrl-C came before the work was done: 128 and the number of the signal, as shells count.
    Interrupted = 130,
}

/// A failed command.
#[derive(Debug)]
pub struct Failure {
    code: ExitCode,
    message: String,
    /// The name that was asked for.
    about: Option<NameBuf>,
    /// Who refused it, or did not answer.
    culprit: Option<String>,
    /// Management left a command, or the request for a dataset, without an answer.
    is_unanswered_by_management: bool,
    /// The commands of [`HELPING`] as the user must type them.
    commands: Box<[String; 2]>,
}

/// The commands that say more about a name.
const HELPING: [&str; 2] = ["namewire explain", "namewire traceroute"];

impl Failure {
    /// A failure with this exit code and message.
    pub fn new(code: ExitCode, message: impl Into<String>) -> Self {
        Failure {
            code,
            message: message.into(),
            about: None,
            culprit: None,
            is_unanswered_by_management: false,
            commands: Box::new(HELPING.map(str::to_owned)),
        }
    }

    /// A failure that the output has told already.
    pub fn of_code(code: ExitCode) -> Self {
        Failure::new(code, "")
    }

    /// The same, of an Interest for this name.
    pub(crate) fn about(self, name: NameBuf) -> Self {
        Failure { about: Some(name), ..self }
    }

    /// The same, with who refused the Interest or did not answer.
    pub(crate) fn by(self, culprit: String) -> Self {
        Failure { culprit: Some(culprit), ..self }
    }

    /// The same, with one more line.
    pub(crate) fn with_line(mut self, line: String) -> Self {
        self.message += "\n";
        self.message += &line;
        self
    }

    /// The same, from a command that reached the forwarder over `transport`. A forwarder ignores what other machines
    /// ask its management, and says nothing, so the message says it.
    pub(crate) fn over(mut self, transport: Option<&Transport>) -> Self {
        if let Some(Transport { uri, is_local: false }) = transport.filter(|_| self.is_unanswered_by_management) {
            self.message += &format!(
                "\n{uri} is a connection from another machine for the forwarder, which takes such commands on its own \
                 machine only. Type the command there, or use unix:///PATH of its socket or tcp://127.0.0.1."
            );
        }
        self
    }

    /// The same, with the commands that help as this user must type them.
    pub(crate) fn typed(self, typed: impl Fn(&str) -> String) -> Self {
        Failure { commands: Box::new(HELPING.map(typed)), ..self }
    }

    fn unanswered_by_management(self) -> Self {
        Failure { is_unanswered_by_management: matches!(self.code, ExitCode::Timeout | ExitCode::Nack), ..self }
    }

    /// There is no such thing, for this reason.
    pub fn not_found(message: impl Into<String>) -> Self {
        Failure::new(ExitCode::NotFound, message)
    }

    pub(crate) fn interrupted() -> Self {
        Failure::new(ExitCode::Interrupted, "interrupted")
    }

    /// The command line makes no sense, for this reason.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure::new(ExitCode::Usage, message)
    }

    /// Prints the message on standard error and gives the exit code.
    pub fn report(&self) -> std::process::ExitCode {
        if !self.message.is_empty() {
            eprintln!("namewire: {}", self.message);
        }
        self.culprit.iter().for_each(|culprit| eprintln!("{culprit}"));
        if let (Some(name), ExitCode::Nack | ExitCode::Timeout) = (&self.about, self.code) {
            let [explain, traceroute] = &*self.commands;
            eprintln!("`{explain} {name}` says where an Interest goes, and why");
            eprintln!("`{traceroute} {name}` says which router ends the way");
        }
        std::process::ExitCode::from(self.code as u8)
    }

    /// The message without what to do about it.
    pub fn first_line(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// The exit code.
    pub fn code(&self) -> ExitCode {
        self.code
    }
}

/// How a command reached the forwarder.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    /// For example `udp://host:6363`.
    pub(crate) uri: String,
    /// Whether the forwarder takes the command's face for one of this machine.
    pub(crate) is_local: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<RoutersError> for Failure {
    fn from(error: RoutersError) -> Self {
        let code = match &error {
            RoutersError::Unknown { .. } => ExitCode::NotFound,
            RoutersError::Refused(_) => ExitCode::Usage,
            _ => ExitCode::Failed,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match &error {
            ConnectError::Discovery(_) => Failure::new(ExitCode::NoForwarder, error.to_string()),
            ConnectError::NoForwarder { source_of_choice, tried } => {
                let mut message = format!("no forwarder answers; tried ({source_of_choice})");
                for (uri, error) in tried {
                    message += &format!("\n  {uri}  {error}");
                }
                message += "\nStart one with `namewire run`, or name one with --transport or NDN_CLIENT_TRANSPORT.";
                Failure::new(ExitCode::NoForwarder, message)
            }
        }
    }
}

fn code_of(error: &ExpressError) -> ExitCode {
    match error {
        ExpressError::Timeout(_) => ExitCode::Timeout,
        ExpressError::Nack(_) => ExitCode::Nack,
        ExpressError::Closed(_) => ExitCode::NoForwarder,
        ExpressError::Malformed(_) | ExpressError::TooLarge(_) => ExitCode::Failed,
    }
}

impl From<ExpressError> for Failure {
    fn from(error: ExpressError) -> Self {
        Failure::new(code_of(&error), error.to_string())
    }
}

/// The exit code for an object that is not fetched.
pub(crate) fn code_of_fetch(error: &FetchError) -> ExitCode {
    match error {
        FetchError::NotFound { cause, .. } | FetchError::Connection(cause) => code_of(cause),
        FetchError::SegmentTimeout { .. } => ExitCode::Timeout,
        FetchError::SegmentNack { .. } => ExitCode::Nack,
        FetchError::ApplicationNack(_) => ExitCode::ApplicationNack,
        FetchError::Link(_)
        | FetchError::BadDigest(_)
        | FetchError::NotTrusted { .. }
        | FetchError::NotInManifest(_)
        | FetchError::BadMetadata(_)
        | FetchError::NoEnd
        | FetchError::TooLarge(_)
        | FetchError::Output(_) => ExitCode::Failed,
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        Failure::new(code_of_fetch(&error), error.to_string())
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::Fetch(error) => error.into(),
            FolderError::NotAFolder | FolderError::Metadata(MetadataError::Missing(_)) => {
                Failure::new(ExitCode::Failed, format!("{error}\n`namewire get` without -r fetches single objects."))
            }
            error => Failure::new(ExitCode::Failed, error.to_string()),
        }
    }
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Register(error) => error.into(),
            RemoteError::Serve(error) => error.into(),
            RemoteError::NoAnswer(cause) => {
                let hint = "If none runs, `namewire repo run --folder PATH` starts one beside the router, and `namewire run \
                    --repo PATH` one inside it. If it has another name, give it with --repo.";
                Failure::new(code_of(&cause), format!("the repository does not answer: {cause}\n{hint}"))
            }
            error => Failure::new(ExitCode::Failed, error.to_string()),
        }
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        match &error {
            ControlError::Express(cause) => {
                Failure::new(code_of(cause), format!("command not answered: {cause}")).unanswered_by_management()
            }
            // 410 is about faces; 404 also means an unknown strategy.
            ControlError::Refused(response) if response.code == 410 => Failure::not_found(response.text.clone()),
            ControlError::Refused(response) => {
                Failure::new(ExitCode::Failed, format!("the forwarder refused: {} ({})", response.text, response.code))
            }
            ControlError::Malformed(_) | ControlError::Sign(_) => Failure::new(ExitCode::Failed, error.to_string()),
        }
    }
}

impl From<DatasetError> for Failure {
    fn from(error: DatasetError) -> Self {
        match error {
            DatasetError::Fetch(error) => Failure::from(error).unanswered_by_management(),
            DatasetError::Malformed(_) => Failure::new(ExitCode::Failed, error.to_string()),
        }
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::NotRegistered(error) => error.into(),
            ServeError::Closed(_) => Failure::new(ExitCode::NoForwarder, error.to_string()),
            ServeError::PrefixInUse(_) | ServeError::BadAnswer(_) => Failure::new(ExitCode::Failed, error.to_string()),
        }
    }
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        Failure::new(ExitCode::Failed, error.to_string())
    }
}

impl From<RespondError> for Failure {
    fn from(error: RespondError) -> Self {
        let code = match error {
            RespondError::Closed(_) => ExitCode::NoForwarder,
            _ => ExitCode::Failed,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::new(ExitCode::Failed, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{NackReason, NameBuf, nfd::ControlResponse};

    #[test]
    fn codes_as_documented() {
        let code = |failure: Failure| failure.code() as u8;
        let refused = |code| ControlError::Refused(Box::new(ControlResponse::new(code, "why")));
        assert_eq!(code(ExpressError::Timeout(1).into()), 5);
        assert_eq!(code(ExpressError::Nack(NackReason::NoRoute).into()), 6);
        assert_eq!(code(FetchError::SegmentTimeout { segment: 0, attempts: 1 }.into()), 5);
        assert_eq!(code(FetchError::ApplicationNack(NameBuf::new()).into()), 7);
        assert_eq!(code(FetchError::Link(NameBuf::new()).into()), 1);
        assert_eq!(code(refused(410).into()), 3);
        assert_eq!(code(refused(403).into()), 1);
    }

    /// `--transport udp://… face list` was only "no answer".
    #[test]
    fn a_command_of_another_machine_says_that_it_is_not_taken() {
        let over = |is_local, failure: Failure| {
            let transport = Transport { uri: "udp://192.0.2.1:6363".to_owned(), is_local };
            failure.over(Some(&transport)).to_string()
        };
        let timeout = || Failure::from(ControlError::Express(ExpressError::Timeout(1)));
        let message = over(false, timeout());
        assert!(message.contains("\nudp://192.0.2.1:6363 is a connection from another machine"), "{message}");
        assert!(message.contains("on its own machine only"), "{message}");
        assert!(!over(true, timeout()).contains('\n'));
        assert!(!over(false, ExpressError::Timeout(1).into()).contains('\n'), "no command of management");
        let refused = ControlError::Refused(Box::new(ControlResponse::new(403, "why")));
        assert!(!over(false, refused.into()).contains('\n'), "it was answered");
    }

    #[test]
    fn a_repository_that_does_not_answer_may_have_to_be_started() {
        let message = Failure::from(RemoteError::NoAnswer(ExpressError::Timeout(1))).to_string();
        assert!(message.contains("namewire repo run --folder") && message.contains("namewire run --repo"), "{message}");
    }

    #[test]
    fn no_forwarder_says_what_was_tried_and_what_to_do() {
        let error = ConnectError::NoForwarder {
            source_of_choice: namewire_client::discovery::TransportSource::Default,
            tried: vec![("unix:///a".parse().unwrap(), io::ErrorKind::NotFound.into())],
        };
        let failure = Failure::from(error);
        assert_eq!(failure.code(), ExitCode::NoForwarder);
        let message = failure.to_string();
        assert!(message.contains("unix:///a  ") && message.contains("namewire run"), "{message}");
    }
}
