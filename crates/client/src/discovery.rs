//! Finds the forwarder of this machine.
//!
//! Order: the environment variable `NDN_CLIENT_TRANSPORT`; the key `transport` of the first `client.conf` that exists;
//! then the sockets that a forwarder makes by default, each tried in turn: `/run/nfd/nfd.sock`,
//! `$XDG_RUNTIME_DIR/nfd.sock`, and the temporary socket of [`temporary_socket_path`]. A choice by the environment or
//! by client.conf is final: if that forwarder does not answer, nothing else is tried, because a connection to another
//! forwarder would be worse than an error.
//!
//! The location of the key chain comes from the same environment and file (`Environment::key_chain_location`, feature
//! `key-chain`).
//!
//! Source: ndn-cxx `util/config-file.cpp` (search order of client.conf: `$HOME/.ndn`, the configured directory,
//! `/etc/ndn`; only the first that exists counts) and `face.cpp`.

use crate::transport_uri::{TransportUri, TransportUriError};
#[cfg(feature = "key-chain")]
use namewire_security::key_chain::{KeyChainLocation, LocatorError};
use std::{
    env, fmt, fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

/// Names the forwarder; overrides the configuration file.
pub const TRANSPORT_VARIABLE: &str = "NDN_CLIENT_TRANSPORT";

/// Names the public half of the key chain; overrides the configuration file.
pub const PIB_VARIABLE: &str = "NDN_CLIENT_PIB";
/// Names the private half of the key chain; overrides the configuration file.
pub const TPM_VARIABLE: &str = "NDN_CLIENT_TPM";

/// Largest client.conf that is read, in bytes.
const CLIENT_CONF_BYTES_MAX: u64 = 64 * 1024;

/// The place that named the transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportSource {
    /// The caller.
    Explicit,
    /// `NDN_CLIENT_TRANSPORT`.
    Environment,
    /// A client.conf.
    ClientConf(PathBuf),
    /// None: the default sockets.
    Default,
}

impl fmt::Display for TransportSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransportSource::Explicit => f.write_str("given explicitly"),
            TransportSource::Environment => f.write_str(TRANSPORT_VARIABLE),
            TransportSource::ClientConf(path) => write!(f, "{}", path.display()),
            TransportSource::Default => f.write_str("usual places"),
        }
    }
}

/// Transports to try, in order, and the place that named them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportChoice {
    /// The place that named them.
    pub source: TransportSource,
    /// Never empty.
    pub candidates: Vec<TransportUri>,
}

/// Why no transport can be chosen.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The text that names the transport is not a transport URI.
    #[error("{from}: {error}")]
    BadUri {
        /// Where it was written.
        from: TransportSource,
        /// What is wrong.
        error: TransportUriError,
    },
    /// A client.conf exists and cannot be read.
    #[error("{}: {error}", path.display())]
    ClientConf {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The key chain that environment or client.conf names cannot be used.
    #[cfg(feature = "key-chain")]
    #[error(transparent)]
    KeyChain(#[from] LocatorError),
}

/// The environment variables and directories used here, so that tests need not change those of the process.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `NDN_CLIENT_TRANSPORT`.
    pub transport: Option<String>,
    /// `NDN_CLIENT_PIB`.
    pub pib: Option<String>,
    /// `NDN_CLIENT_TPM`.
    pub tpm: Option<String>,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`.
    pub xdg_runtime_dir: Option<PathBuf>,
    /// Directories that may contain `client.conf`, after `$HOME/.ndn`.
    pub conf_dirs: Vec<PathBuf>,
}

impl Environment {
    /// Reads the environment of this process.
    pub fn of_process() -> Self {
        let path = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let text = |name| env::var(name).ok().filter(|value| !value.is_empty());
        Environment {
            transport: text(TRANSPORT_VARIABLE),
            pib: text(PIB_VARIABLE),
            tpm: text(TPM_VARIABLE),
            home: path("HOME"),
            xdg_runtime_dir: path("XDG_RUNTIME_DIR"),
            conf_dirs: ["/usr/local/etc/ndn", "/etc/ndn"].map(PathBuf::from).to_vec(),
        }
    }

    /// Chooses the transports to try, in order.
    ///
    /// # Errors
    /// [`DiscoveryError::BadUri`] if environment or client.conf names a malformed transport;
    /// [`DiscoveryError::ClientConf`] if a client.conf exists and cannot be read.
    pub fn choose_transport(&self) -> Result<TransportChoice, DiscoveryError> {
        let chosen = |text: &str, source: TransportSource| match text.parse() {
            Ok(uri) => Ok(TransportChoice { source, candidates: vec![uri] }),
            Err(error) => Err(DiscoveryError::BadUri { from: source, error }),
        };
        if let Some(text) = &self.transport {
            return chosen(text, TransportSource::Environment);
        }
        if let Some((path, text)) = self.client_conf()?
            && let Some(value) = value_in_client_conf(&text, "transport")
        {
            return chosen(value, TransportSource::ClientConf(path));
        }
        Ok(TransportChoice {
            source: TransportSource::Default,
            candidates: self.default_sockets().into_iter().map(TransportUri::Unix).collect(),
        })
    }

    /// Finds the key chain of this user, and the directory that counts as `$HOME`: the one of this process, or where it
    /// was started, as in ndn-cxx.
    ///
    /// # Errors
    /// [`DiscoveryError::ClientConf`] if a client.conf exists and cannot be read; [`DiscoveryError::KeyChain`] if the
    /// key chain that it, or the environment, names is not files.
    #[cfg(feature = "key-chain")]
    pub fn key_chain_location(&self) -> Result<(KeyChainLocation, PathBuf), DiscoveryError> {
        let conf = match (&self.pib, &self.tpm) {
            (Some(_), Some(_)) => String::new(),
            _ => self.client_conf()?.map_or(String::new(), |(_, text)| text),
        };
        let or_in_conf =
            |named: &Option<String>, key| named.clone().or_else(|| value_in_client_conf(&conf, key).map(str::to_owned));
        let (pib, tpm) = (or_in_conf(&self.pib, "pib"), or_in_conf(&self.tpm, "tpm"));
        let home = self.home.clone().unwrap_or_else(|| PathBuf::from("."));
        Ok((KeyChainLocation::new(pib.as_deref(), tpm.as_deref(), &home)?, home))
    }

    /// The first client.conf that exists, whatever it contains; the others do not count.
    fn client_conf(&self) -> Result<Option<(PathBuf, String)>, DiscoveryError> {
        let home_conf = self.home.iter().map(|home| home.join(".ndn"));
        for dir in home_conf.chain(self.conf_dirs.iter().cloned()) {
            let path = dir.join("client.conf");
            match read_client_conf(&path) {
                Ok(text) => return Ok(Some((path, text))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(DiscoveryError::ClientConf { path, error }),
            }
        }
        Ok(None)
    }

    /// The paths where a forwarder's socket may be, most public first.
    pub fn default_sockets(&self) -> Vec<PathBuf> {
        let mut sockets = self.sockets_to_make();
        // Any user can make a directory of that name; only this user's own can be trusted.
        sockets.retain(|path| *path != temporary_socket_path() || path.parent().is_some_and(is_owned_by_this_user));
        sockets
    }

    /// The paths where a forwarder tries to make its socket, most public first. The last one needs
    /// [`make_temporary_directory`].
    pub fn sockets_to_make(&self) -> Vec<PathBuf> {
        let system = [PathBuf::from(SYSTEM_SOCKET)].into_iter();
        let runtime = self.xdg_runtime_dir.iter().map(|dir| dir.join("nfd.sock"));
        system.chain(runtime).chain([temporary_socket_path()]).collect()
    }
}

/// Socket of a forwarder that runs for the whole machine.
#[cfg(target_os = "linux")]
pub const SYSTEM_SOCKET: &str = "/run/nfd/nfd.sock";
/// Socket of a forwarder that runs for the whole machine.
#[cfg(not(target_os = "linux"))]
pub const SYSTEM_SOCKET: &str = "/var/run/nfd/nfd.sock";

/// The socket of last resort: `<temporary directory>/nfd-<user id>/nfd.sock`.
pub fn temporary_socket_path() -> PathBuf {
    env::temp_dir().join(format!("nfd-{}", rustix::process::geteuid().as_raw())).join("nfd.sock")
}

/// Makes the directory of [`temporary_socket_path`], unless this user has made it already.
///
/// # Errors
/// `PermissionDenied` if it belongs to another user; otherwise if the directory cannot be made.
pub fn make_temporary_directory() -> io::Result<()> {
    let path = temporary_socket_path();
    let Some(dir) = path.parent() else { return Ok(()) };
    match fs::DirBuilder::new().mode(0o755).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ if is_owned_by_this_user(dir) => Ok(()),
        _ => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} belongs to somebody else", dir.display())))
        }
    }
}

fn is_owned_by_this_user(dir: &Path) -> bool {
    fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw())
}

fn read_client_conf(path: &Path) -> io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let file = fs::File::open(path)?;
    if file.take(CLIENT_CONF_BYTES_MAX + 1).read_to_string(&mut text)? as u64 > CLIENT_CONF_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "larger than 64 KiB"));
    }
    Ok(text)
}

/// Value of `wanted=` in INI text; `;` and `#` begin comments, sections are ignored.
fn value_in_client_conf<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with([';', '#', '[']))
        .filter_map(|line| line.split_once('='))
        .find(|(key, _)| key.trim() == wanted)
        .map(|(_, value)| value.split(" ;").next().unwrap_or("").trim())
        .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(home: &Path) -> Environment {
        Environment {
            home: Some(home.to_owned()),
            conf_dirs: vec![home.join("etc")],
            xdg_runtime_dir: Some(home.join("run")),
            ..Environment::default()
        }
    }

    #[test]
    fn environment_beats_file_beats_default() {
        let dir = tempfile::tempdir().unwrap();
        let mut env = environment(dir.path());
        let choice = env.choose_transport().unwrap();
        assert_eq!(choice.source, TransportSource::Default);
        assert_eq!(choice.candidates[0], TransportUri::Unix(SYSTEM_SOCKET.into()));
        assert_eq!(choice.candidates[1], TransportUri::Unix(dir.path().join("run/nfd.sock")));

        fs::create_dir(dir.path().join("etc")).unwrap();
        fs::write(dir.path().join("etc/client.conf"), "transport=tcp://etc\n").unwrap();
        assert_eq!(env.choose_transport().unwrap().candidates[0].to_string(), "tcp://etc:6363");

        fs::create_dir(dir.path().join(".ndn")).unwrap();
        let home_conf = dir.path().join(".ndn/client.conf");
        fs::write(&home_conf, "; transport=tcp://comment\npib=x\n transport = unix:///a/b \n").unwrap();
        let choice = env.choose_transport().unwrap();
        assert_eq!(choice.source, TransportSource::ClientConf(home_conf));
        assert_eq!(choice.candidates, [TransportUri::Unix("/a/b".into())]);

        env.transport = Some("udp://there".into());
        let choice = env.choose_transport().unwrap();
        assert_eq!(choice.source, TransportSource::Environment);
        assert_eq!(choice.candidates[0].to_string(), "udp://there:6363");
    }

    #[test]
    fn first_client_conf_hides_the_second_even_without_transport() {
        let dir = tempfile::tempdir().unwrap();
        for (sub, text) in [(".ndn", "pib=x\n"), ("etc", "transport=tcp://etc\n")] {
            fs::create_dir(dir.path().join(sub)).unwrap();
            fs::write(dir.path().join(sub).join("client.conf"), text).unwrap();
        }
        let choice = environment(dir.path()).choose_transport().unwrap();
        assert_eq!(choice.source, TransportSource::Default);
    }

    #[cfg(feature = "key-chain")]
    #[test]
    fn environment_or_file_locate_the_key_chain() {
        let dir = tempfile::tempdir().unwrap();
        let mut env = environment(dir.path());
        let places = |env: &Environment| {
            let (location, home) = env.key_chain_location().unwrap();
            assert_eq!(home, dir.path());
            [location.pib_directory, location.key_directory]
        };
        let ndn = dir.path().join(".ndn");
        assert_eq!(places(&env), [ndn.clone(), ndn.join("ndnsec-key-file")]);
        fs::create_dir(&ndn).unwrap();
        fs::write(ndn.join("client.conf"), "pib=pib-sqlite3:/p ; here\ntpm=tpm-file:/t\n").unwrap();
        assert_eq!(places(&env), ["/p", "/t/ndnsec-key-file"].map(PathBuf::from));
        env.tpm = Some("tpm-file:/other".into());
        assert_eq!(places(&env), ["/p", "/other/ndnsec-key-file"].map(PathBuf::from));
        env.pib = Some("pib-memory:".into());
        assert!(matches!(env.key_chain_location(), Err(DiscoveryError::KeyChain(_))));
    }

    #[test]
    fn an_invalid_setting_is_reported_with_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let mut env = environment(dir.path());
        env.transport = Some("nonsense".into());
        let error = env.choose_transport().unwrap_err().to_string();
        assert!(error.starts_with("NDN_CLIENT_TRANSPORT: "), "{error}");
    }
}
