//! ndn-python-repo behind the same router, if it is installed: by `tools/setup.sh interop`, or where
//! [`PROGRAM_VARIABLE`] says.
//!
//! It gets its Data by bulk insertion, which it ends by closing the connection, and keeps them in SQLite. It may answer
//! with Data in its memory that it has not yet written; this is to its advantage.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};

use super::clients::{insert_in_bulk, read_all};
use super::packets::{COMMON_PREFIX, ObjectPackets};
use super::stack::{free_tcp_address, router_without_store};
use crate::process::BoundProcess;
use crate::router_process::RouterProcess;

/// Environment variable with the path of ndn-python-repo.
const PROGRAM_VARIABLE: &str = "NDN_PYTHON_REPO";
/// Where `tools/setup.sh interop` installs it.
const PROGRAM: &str = "interop/.venv/bin/ndn-python-repo";
/// How long it may take to listen.
const START_LIMIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The program, if it is installed.
pub(super) fn find() -> Option<PathBuf> {
    let program = std::env::var_os(PROGRAM_VARIABLE).map_or_else(|| PathBuf::from(PROGRAM), PathBuf::from);
    program.is_file().then_some(program)
}

/// How long bulk insertion of an object and then its reads took.
pub(super) struct PythonTimes {
    pub(super) bulk: Duration,
    pub(super) reads: Duration,
}

/// Inserts and reads an object.
///
/// # Errors
/// If the repository does not start, or a Data is not what was inserted.
pub(super) fn measure(
    namewire: &Path,
    python_repo: &Path,
    object: &ObjectPackets,
    seed: u64,
) -> anyhow::Result<PythonTimes> {
    let router = router_without_store(RouterProcess::start(namewire, 1, None)?)?;
    let folder = tempfile::Builder::new().prefix("namewire-lab-python-").tempdir()?;
    let address = free_tcp_address()?;
    let file = folder.path().join("repo.conf");
    std::fs::write(&file, configuration(folder.path(), &address.port().to_string()))?;
    // It does not start without a key chain.
    let made = Command::new(namewire).args(["key", "make", "/lab"]).env("HOME", folder.path()).output()?;
    ensure!(made.status.success(), "no key for ndn-python-repo: {}", String::from_utf8_lossy(&made.stderr));
    let mut command = Command::new(python_repo);
    command.arg("-c").arg(&file).env("HOME", folder.path());
    command.env("NDN_CLIENT_TRANSPORT", format!("unix://{}", router.socket().display()));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(folder.path().join("stderr"))?);
    let mut process = BoundProcess::start(&mut command, None)?;
    let started = Instant::now();
    while std::net::TcpStream::connect(address).is_err() {
        if let Some(status) = process.ended()? {
            let text = std::fs::read_to_string(folder.path().join("stderr")).unwrap_or_default();
            bail!("ndn-python-repo ended ({status}): {}", text.trim());
        }
        ensure!(started.elapsed() < START_LIMIT, "ndn-python-repo did not listen within {START_LIMIT:?}");
        std::thread::sleep(POLL_INTERVAL);
    }
    let bulk = insert_in_bulk(address, object)?;
    let reading = Instant::now();
    read_all(router.socket(), object, seed)?;
    Ok(PythonTimes { bulk, reads: reading.elapsed() })
}

fn configuration(folder: &Path, port: &str) -> String {
    let database = folder.join("repo.db");
    format!(
        "repo_config:\n  repo_name: 'testrepo'\n  register_root: True\n\
         db_config:\n  db_type: 'sqlite3'\n  sqlite3:\n    'path': '{}'\n\
         tcp_bulk_insert:\n  addr: '127.0.0.1'\n  port: '{port}'\n  register_prefix: True\n  prefixes:\n  - '{COMMON_PREFIX}'\n\
         logging_config:\n  level: 'CRITICAL'\n",
        database.display()
    )
}
