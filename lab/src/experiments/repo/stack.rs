//! A router and a repository, in separate processes or both in one.

use std::io::{BufRead as _, BufReader, PipeReader};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use namewire_packet::nfd::{ControlParameters, cs_flags};

use super::packets::COMMON_PREFIX;
use super::redis::RedisServer;
use super::stores::Subject;
use crate::process::BoundProcess;
use crate::router_process::RouterProcess;

/// A router whose Content Store is off, so that every Interest reaches the repository.
pub(super) struct Stack {
    pub(super) router: RouterProcess,
    repo: Option<RepoProcess>,
    _folder: tempfile::TempDir,
}

struct RepoProcess {
    _process: BoundProcess,
    /// The repository prints nothing more. But if it did, a closed pipe would end it.
    _lines: BufReader<PipeReader>,
    bulk: SocketAddr,
}

impl Stack {
    /// A repository with this store beside a router.
    ///
    /// # Errors
    /// If one of them does not start.
    pub(super) fn start(program: &Path, subject: Subject, redis: Option<&RedisServer>) -> anyhow::Result<Self> {
        let folder = store_folder()?;
        let router = router_without_store(RouterProcess::start(program, 1, None)?)?;
        let repo = RepoProcess::start(program, router.socket(), &subject.options(folder.path(), redis))?;
        Ok(Self { router, repo: Some(repo), _folder: folder })
    }

    /// A repository with the embedded store inside a router.
    ///
    /// # Errors
    /// If it does not start.
    pub(super) fn start_hosted(program: &Path) -> anyhow::Result<Self> {
        let folder = store_folder()?;
        let options = ["--repo".to_owned(), folder.path().display().to_string()];
        let router = router_without_store(RouterProcess::start_with(program, 1, None, &options)?)?;
        Ok(Self { router, repo: None, _folder: folder })
    }

    /// Where bulk insertion listens, if the repository is beside the router.
    pub(super) fn bulk(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.repo.as_ref().context("a repository inside a router offers no bulk insertion here")?.bulk)
    }
}

impl RepoProcess {
    fn start(program: &Path, socket: &Path, options: &[String]) -> anyhow::Result<Self> {
        let (reader, writer) = std::io::pipe()?;
        let mut command = Command::new(program);
        command.args(["repo", "run", "--prefix", COMMON_PREFIX, "--bulk-listen", "127.0.0.1:0"]).args(options);
        command.env("NDN_CLIENT_TRANSPORT", format!("unix://{}", socket.display()));
        command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::null());
        let process = BoundProcess::start(&mut command, None)?;
        drop(command); // it holds the pipe's writer, which must close if the repository ends
        let (mut lines, mut line) = (BufReader::new(reader), String::new());
        lines.read_line(&mut line)?;
        let address = line.trim_end().rsplit_once("bulk insertion at ").context("the repository did not start")?.1;
        let bulk = address.parse().with_context(|| format!("the repository says {line:?}"))?;
        Ok(Self { _process: process, _lines: lines, bulk })
    }
}

/// A folder for a store, where temporary files are.
pub(super) fn store_folder() -> anyhow::Result<tempfile::TempDir> {
    Ok(tempfile::Builder::new().prefix("namewire-lab-store-").tempdir()?)
}

/// Turns the Content Store off: it neither takes nor serves Data.
pub(super) fn router_without_store(router: RouterProcess) -> anyhow::Result<RouterProcess> {
    let (flags, mask) = (Some(0), Some(cs_flags::ADMIT | cs_flags::SERVE));
    let off = ControlParameters { flags, mask, ..ControlParameters::default() };
    let response = router.control()?.command("cs", "config", &off)?;
    ensure!(response.code == 200, "cs/config: {} {}", response.code, response.text);
    Ok(router)
}

/// A TCP port of the loopback address that nobody has now.
pub(super) fn free_tcp_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
