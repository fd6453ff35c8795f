//! A Redis server that the experiment starts, and `redis-benchmark`.
//!
//! The server listens on a Unix socket, in a folder that is removed with it, and on a TCP port of this machine if it is
//! asked to. It writes nothing to the disk, as in Yuan15 §6.2: acknowledged Data are in its memory.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::process::BoundProcess;

/// How long a server may take to answer.
const START_LIMIT: Duration = Duration::from_secs(10);
/// How long `redis-benchmark` may take.
const BENCHMARK_LIMIT: Duration = Duration::from_secs(600);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Bytes of a value, as in the paper.
const VALUE_BYTES: usize = 100;

/// The programs of Redis, if both are installed.
pub(super) struct RedisPrograms {
    server: PathBuf,
    benchmark: PathBuf,
}

/// What `redis-benchmark` did in a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct BenchmarkRate {
    pub(super) sets_per_s: f64,
    pub(super) gets_per_s: f64,
}

/// How `redis-benchmark` is to ask.
#[derive(Clone, Copy, Debug)]
pub(super) struct BenchmarkPlan {
    pub(super) keys: usize,
    /// Keys are random: with 4, nearly all gets find a value.
    pub(super) requests_per_key: usize,
    pub(super) connections: usize,
    pub(super) sets_together: usize,
    pub(super) gets_together: usize,
}

impl RedisPrograms {
    pub(super) fn find() -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let find =
            |name: &str| std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
        Some(Self { server: find("redis-server")?, benchmark: find("redis-benchmark")? })
    }

    /// Starts a server on a Unix socket.
    ///
    /// # Errors
    /// If it does not answer.
    pub(super) fn start(&self) -> anyhow::Result<RedisServer> {
        self.start_with(None)
    }

    /// Starts a server that `redis-benchmark` reaches over TCP.
    ///
    /// # Errors
    /// If no port is free, or it does not answer.
    pub(super) fn start_on_tcp(&self) -> anyhow::Result<RedisServer> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        self.start_with(Some(port))
    }

    fn start_with(&self, port: Option<u16>) -> anyhow::Result<RedisServer> {
        let folder = tempfile::Builder::new().prefix("namewire-lab-").tempdir()?;
        let socket = folder.path().join("redis.sock");
        let mut command = Command::new(&self.server);
        // Port 0 is none.
        command.args(["--bind", &Ipv4Addr::LOCALHOST.to_string(), "--port", &port.unwrap_or(0).to_string()]);
        command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(folder.path());
        command.arg("--unixsocket").arg(&socket);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server =
            RedisServer { process: BoundProcess::start(&mut command, None)?, socket, port, _folder: folder };
        server.wait_for_answer()?;
        Ok(server)
    }

    /// Lets `redis-benchmark` set and then get values in a server.
    ///
    /// # Errors
    /// If it fails or prints something else than rates.
    pub(super) fn benchmark(&self, server: &RedisServer, plan: BenchmarkPlan) -> anyhow::Result<BenchmarkRate> {
        let rate = |test: &str, together: usize| -> anyhow::Result<f64> {
            let mut command = Command::new(&self.benchmark);
            match server.port {
                Some(port) => command.args(["-h", &Ipv4Addr::LOCALHOST.to_string(), "-p", &port.to_string()]),
                None => command.arg("-s").arg(&server.socket),
            };
            command.args(["-t", test, "--csv"]);
            let numbers = [
                ("-n", plan.keys * plan.requests_per_key),
                ("-r", plan.keys),
                ("-c", plan.connections),
                ("-P", together),
                ("-d", VALUE_BYTES),
            ];
            for (option, value) in numbers {
                command.arg(option).arg(value.to_string());
            }
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            let output = BoundProcess::start(&mut command, None)?.output(BENCHMARK_LIMIT)?;
            ensure!(output.status.success(), "redis-benchmark failed");
            read_rate(&String::from_utf8_lossy(&output.stdout), test)
        };
        Ok(BenchmarkRate { sets_per_s: rate("set", plan.sets_together)?, gets_per_s: rate("get", plan.gets_together)? })
    }
}

/// The rate in a line such as `"SET","282000.00",…`.
fn read_rate(text: &str, test: &str) -> anyhow::Result<f64> {
    let wanted = format!("\"{}\"", test.to_uppercase());
    let line = text.lines().find_map(|line| line.strip_prefix(&*wanted)).context("redis-benchmark printed no rate")?;
    let rate = line.split('"').nth(1).context("redis-benchmark printed no rate")?;
    Ok(rate.parse()?)
}

/// A server that ends with this value.
pub(super) struct RedisServer {
    process: BoundProcess,
    socket: PathBuf,
    /// Of TCP, if it has one.
    port: Option<u16>,
    _folder: tempfile::TempDir,
}

impl RedisServer {
    pub(super) fn url(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    fn wait_for_answer(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        while ping(&self.socket).is_err() {
            if let Some(status) = self.process.ended()? {
                bail!("redis-server ended ({status})");
            }
            ensure!(started.elapsed() < START_LIMIT, "redis-server did not answer within {START_LIMIT:?}");
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

fn ping(socket: &Path) -> std::io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(START_LIMIT))?;
    stream.write_all(b"PING\r\n")?;
    let mut answer = [0; 5];
    stream.read_exact(&mut answer)?;
    if &answer == b"+PONG" { Ok(()) } else { Err(std::io::ErrorKind::NotConnected.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read_from_the_line_of_its_test() {
        let text = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"282485.88\",\"0.214\"\n";
        assert_eq!(read_rate(text, "set").ok(), Some(282_485.88));
        assert!(read_rate(text, "get").is_err());
    }
}
