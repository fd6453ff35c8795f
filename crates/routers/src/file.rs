//! The file of named routers: `$XDG_CONFIG_HOME/namewire/routers.toml`, or `~/.config/namewire/routers.toml`.
//!
//! ```toml
//! default = "lab"
//!
//! [routers.lab]
//! transport = "unix:///run/nfd/nfd.sock"
//! identity = "/alice"
//! observer = "http://127.0.0.1:9695"
//! ```
//!
//! `NAMEWIRE_ROUTERS` names another file. A user may edit the file; commands that change it write all of it, so they
//! keep no comments. A change is a new file that takes the place of the old one, so a reader never sees half of it. Two
//! commands that change it at once do so one after the other: each locks the folder.
//!
//! Limits: [`FILE_BYTES_MAX`], [`ROUTERS_MAX`] routers.

use namewire_client::TransportUri;
use namewire_configuration::{SettingsError, changed_file, input_file, likeness::nearest, parse_toml};
use namewire_node_model::observer_address::{ObserverAddress, check_router_name};
use namewire_packet::NameBuf;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{
    collections::BTreeMap,
    env, io,
    path::{Path, PathBuf},
};

/// The variable that names another file.
pub const FILE_VARIABLE: &str = "NAMEWIRE_ROUTERS";
/// The largest file.
pub const FILE_BYTES_MAX: u64 = 64 << 10;
/// The most routers in it.
pub const ROUTERS_MAX: usize = 64;

const HEAD: &str =
    "# Routers for `namewire --router NAME`. `namewire router add` writes this file anew and keeps no comments.\n\n";

/// A router with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedRouter {
    /// Where commands connect.
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    pub transport: TransportUri,
    /// The identity that signs commands and Data, unless the command line names another.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "name")]
    pub identity: Option<NameBuf>,
    /// Where the router shows itself by HTTP, for views of several routers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer: Option<ObserverAddress>,
}

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Routers {
    /// The router of commands that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// By name.
    pub routers: BTreeMap<String, NamedRouter>,
}

/// The file of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutersFile {
    path: PathBuf,
}

/// What is wrong with the file, or with a name.
#[derive(Debug, thiserror::Error)]
pub enum RoutersError {
    /// No environment variable says where it is.
    #[error("there is no place for the file of named routers: neither HOME nor XDG_CONFIG_HOME is set")]
    NoPlace,
    /// It cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Its path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It says what it must not.
    #[error("{path}: {error}")]
    Content {
        /// Its path.
        path: PathBuf,
        /// The line, and what is wrong.
        error: SettingsError,
    },
    /// There is no such router.
    #[error("no router is named \"{name}\"{meant}\n{known}")]
    Unknown {
        /// The name.
        name: String,
        /// `; did you mean "lab"?`, or nothing.
        meant: String,
        /// Those that there are, in a sentence.
        known: String,
    },
    /// A limit, or a name that cannot be one.
    #[error("{0}")]
    Refused(String),
}

impl RoutersFile {
    /// The file of this user, whether or not it exists.
    ///
    /// # Errors
    /// [`RoutersError::NoPlace`].
    pub fn of_user() -> Result<Self, RoutersError> {
        let path = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let in_folder = |folder: PathBuf| folder.join("namewire").join("routers.toml");
        // The XDG specification: a relative path there counts as none.
        let configured = path("XDG_CONFIG_HOME").filter(|folder| folder.is_absolute());
        let home = || path("HOME").map(|home| home.join(".config"));
        let found = path(FILE_VARIABLE).or_else(|| configured.or_else(home).map(in_folder));
        found.map(RoutersFile::at).ok_or(RoutersError::NoPlace)
    }

    /// The file at this path.
    pub fn at(path: PathBuf) -> Self {
        RoutersFile { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says. A file that does not exist says nothing.
    ///
    /// # Errors
    /// It cannot be read, is too large, or says what it must not.
    pub fn read(&self) -> Result<Routers, RoutersError> {
        let failed = |error| RoutersError::File { path: self.path.clone(), error };
        let bytes = match input_file::read(&self.path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Routers::default()),
            // For example HOME=/dev/null: there is no such folder, so there is no file.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Routers::default()),
            Err(error) => return Err(failed(error)),
        };
        let text = String::from_utf8(bytes).map_err(|_| failed(io::Error::other("it is not UTF-8")))?;
        Routers::parse(&text).map_err(|error| RoutersError::Content { path: self.path.clone(), error })
    }

    /// Changes it. `change` gets what it says at present, and nothing is written if it refuses.
    ///
    /// # Errors
    /// It cannot be read or written, or `change` refuses.
    pub fn change(
        &self,
        change: impl FnOnce(&mut Routers) -> Result<(), RoutersError>,
    ) -> Result<Routers, RoutersError> {
        let failed = |error| RoutersError::File { path: self.path.clone(), error };
        let mut routers = Routers::default();
        changed_file::change(&self.path, failed, || {
            routers = self.read()?;
            change(&mut routers)?;
            if let Err((_, message)) = routers.check() {
                return Err(RoutersError::Refused(message));
            }
            let text = toml::to_string(&routers).map_err(|error| failed(io::Error::other(error)))?;
            let text = format!("{HEAD}{text}");
            if text.len() as u64 > FILE_BYTES_MAX {
                return Err(RoutersError::Refused(format!("the file would have more than {FILE_BYTES_MAX} bytes")));
            }
            Ok(text)
        })?;
        Ok(routers)
    }
}

impl Routers {
    /// What the text of a file says.
    ///
    /// # Errors
    /// The first error, with its line.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let routers: Routers = parse_toml(text)?;
        let wrong = |(word, message): (String, String)| SettingsError { line: line_with(text, &word), message };
        routers.check().map_err(wrong)?;
        Ok(routers)
    }

    /// The router of this name.
    ///
    /// # Errors
    /// [`RoutersError::Unknown`], with the name that was most likely meant.
    pub fn find(&self, name: &str) -> Result<&NamedRouter, RoutersError> {
        self.routers.get(name).ok_or_else(|| {
            let meant = nearest(name, self.routers.keys().map(String::as_str));
            let names: Vec<&str> = self.routers.keys().map(String::as_str).collect();
            RoutersError::Unknown {
                name: name.escape_debug().to_string(),
                meant: meant.map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default(),
                known: match &names[..] {
                    [] => "There are none yet: namewire router add NAME TRANSPORT".to_owned(),
                    names => format!("There are: {}", names.join(", ")),
                },
            }
        })
    }

    /// What the types cannot refuse: the word of the file that is to blame, and why.
    fn check(&self) -> Result<(), (String, String)> {
        if self.routers.len() > ROUTERS_MAX {
            let count = self.routers.len();
            return Err((String::new(), format!("{count} routers; there may be at most {ROUTERS_MAX}")));
        }
        for name in self.routers.keys() {
            check_router_name(name).map_err(|why| (name.clone(), why))?;
        }
        match &self.default {
            Some(default) if !self.routers.contains_key(default) => {
                let why = format!("the default \"{}\" is not among the routers", default.escape_debug());
                Err(("default".to_owned(), why))
            }
            _ => Ok(()),
        }
    }
}

/// The first line with this word, from 1.
fn line_with(text: &str, word: &str) -> Option<usize> {
    (!word.is_empty()).then(|| text.lines().position(|line| line.contains(word)))?.map(|line| line + 1)
}

fn as_text<S: Serializer>(value: &TransportUri, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn from_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TransportUri, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NameBuf>, D::Error> {
    let text = String::deserialize(deserializer)?;
    namewire_configuration::text::parse_name(&text).map(Some).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn router(transport: &str) -> NamedRouter {
        NamedRouter { transport: transport.parse().unwrap(), identity: None, observer: None }
    }

    fn file() -> (tempfile::TempDir, RoutersFile) {
        let folder = tempfile::tempdir().unwrap();
        let file = RoutersFile::at(folder.path().join("namewire").join("routers.toml"));
        (folder, file)
    }

    fn add(file: &RoutersFile, name: &str) {
        let add = |routers: &mut Routers| {
            routers.routers.insert(name.to_owned(), router("udp://h"));
            Ok(())
        };
        file.change(add).unwrap();
    }

    fn refusal(text: &str) -> String {
        let (_folder, file) = file();
        fs::create_dir_all(file.path().parent().unwrap()).unwrap();
        fs::write(file.path(), text).unwrap();
        let refused = file.read().unwrap_err().to_string();
        refused.strip_prefix(&format!("{}: ", file.path().display())).expect("it names the file").to_owned()
    }

    #[test]
    fn what_is_written_is_read() {
        let (_folder, file) = file();
        assert_eq!(file.read().unwrap(), Routers::default(), "no file says nothing");
        let lab = NamedRouter {
            identity: Some("/alice/a%20b".parse().unwrap()),
            observer: Some("http://[::1]:9695".parse().unwrap()),
            ..router("unix:///run/nfd/nfd.sock")
        };
        let written = file.change(|routers| {
            routers.routers.insert("lab".to_owned(), lab.clone());
            routers.routers.insert("far.1".to_owned(), router("tcp://h"));
            routers.default = Some("lab".to_owned());
            Ok(())
        });
        assert_eq!(file.read().unwrap(), written.unwrap());
        assert_eq!(file.read().unwrap().find("lab").unwrap(), &lab);
        let left: Vec<_> = fs::read_dir(file.path().parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn a_change_that_is_refused_leaves_the_file_as_it_was() {
        let (_folder, file) = file();
        add(&file, "a");
        let before = fs::read(file.path()).unwrap();
        let refused = file.change(|routers| {
            routers.routers.clear();
            Err(RoutersError::Refused("no".to_owned()))
        });
        assert_eq!(refused.unwrap_err().to_string(), "no");
        let with_default = file.change(|routers| {
            routers.default = Some("b".to_owned());
            Ok(())
        });
        assert!(with_default.unwrap_err().to_string().contains("the default \"b\""));
        let full = file.change(|routers| {
            (0..ROUTERS_MAX).for_each(|i| drop(routers.routers.insert(format!("r{i}"), router("udp://h"))));
            Ok(())
        });
        assert!(full.unwrap_err().to_string().contains("at most 64"));
        assert_eq!(fs::read(file.path()).unwrap(), before);
    }

    #[test]
    fn changes_at_once_are_all_kept() {
        let (_folder, file) = file();
        std::thread::scope(|scope| {
            for index in 0..16 {
                let file = &file;
                let add = move |routers: &mut Routers| {
                    routers.routers.insert(format!("r{index}"), router("udp://h"));
                    Ok(())
                };
                scope.spawn(move || file.change(add).unwrap());
            }
        });
        assert_eq!(file.read().unwrap().routers.len(), 16);
    }

    #[test]
    fn a_link_to_the_file_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let real = RoutersFile::at(folder.path().join("dotfiles").join("routers.toml"));
        add(&real, "a");
        let link = RoutersFile::at(folder.path().join("routers.toml"));
        std::os::unix::fs::symlink(real.path(), link.path()).unwrap();
        add(&link, "b");
        assert!(fs::symlink_metadata(link.path()).unwrap().is_symlink());
        assert_eq!(real.read().unwrap().routers.len(), 2);
    }

    #[test]
    fn an_error_has_its_line() {
        let lab = "[routers.lab]\ntransport = \"udp://h\"\n";
        assert_eq!(refusal("default = \"lap\"\n"), "line 1: the default \"lap\" is not among the routers");
        assert!(refusal(&format!("{lab}transports = 1\n")).starts_with("line 3: "), "an unknown key");
        assert!(refusal(&format!("{lab}observer = \"router2\"\n")).starts_with("line 3: routers.lab.observer"));
        assert!(refusal(&format!("{lab}identity = \"alice\"\n")).starts_with("line 3: routers.lab.identity"));
        assert!(refusal("[routers.lab]\n").contains("transport"));
        assert!(refusal("[routers.lab]\ntransport = \"h\"\n").starts_with("line 2: routers.lab.transport"));
        assert!(refusal("[routers.\"a b\"]\ntransport = \"udp://h\"\n").starts_with("line 1: "), "a name");
        assert!(refusal("[routers\n").starts_with("line 1: "));
        assert!(refusal(&"#".repeat(FILE_BYTES_MAX as usize + 1)).contains("larger than"));
        let many: String = (0..65).map(|i| format!("[routers.r{i}]\ntransport = \"udp://h\"\n")).collect();
        assert!(refusal(&many).contains("at most 64"));
    }

    #[test]
    fn a_mistyped_name_is_recognized() {
        let routers = Routers {
            default: None,
            routers: ["lab", "campus"].map(|name| (name.to_owned(), router("udp://h"))).into(),
        };
        let unknown = routers.find("cmapus").unwrap_err().to_string();
        assert_eq!(unknown, "no router is named \"cmapus\"; did you mean \"campus\"?\nThere are: campus, lab");
        assert!(!routers.find("zzz").unwrap_err().to_string().contains("did you mean"));
        assert!(Routers::default().find("a").unwrap_err().to_string().contains("namewire router add"));
    }
}
