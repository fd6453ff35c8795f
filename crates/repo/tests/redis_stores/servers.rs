//! Real Redis servers in temporary folders.

use redis::{Client, Connection, FromRedisValue};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Waits of [`PAUSE`] until a test gives up.
const PAUSES_MAX: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(20);

/// A server that ends with the test.
pub(super) struct RedisServer {
    process: Child,
    arguments: Vec<String>,
    pub(super) url: String,
}

impl RedisServer {
    /// Starts a server on a socket in this folder.
    pub(super) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let socket = folder.join("socket").display().to_string();
        let own = ["--port", "0", "--unixsocket", &socket, "--dir", folder.to_str().expect("UTF-8"), "--save", ""];
        Self::run(&[&own[..], arguments].concat(), format!("unix://{socket}"))
    }

    fn run(arguments: &[&str], url: String) -> Self {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let server = RedisServer { process: spawn(&arguments), arguments, url };
        server.wait_for("the server answers", |connection| redis::cmd("PING").query(connection), |_: &String| true);
        server
    }

    /// Ends it with SIGKILL.
    pub(super) fn kill(&mut self) {
        self.process.kill().expect("a process of ours");
        self.process.wait().expect("a process of ours");
    }

    pub(super) fn start_again(&mut self) {
        self.process = spawn(&self.arguments);
    }

    pub(super) fn connection(&self) -> redis::RedisResult<Connection> {
        Client::open(&self.url[..])?.get_connection()
    }

    /// Asks until the answer is right.
    pub(super) fn wait_for<T: FromRedisValue>(
        &self,
        what: &str,
        ask: impl Fn(&mut Connection) -> redis::RedisResult<T>,
        is_right: impl Fn(&T) -> bool,
    ) -> T {
        let attempt = || self.connection().and_then(|mut connection| ask(&mut connection)).ok();
        wait_for(what, || attempt().filter(&is_right))
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Three masters of a cluster; each has a third of the slots.
pub(super) fn start_cluster(folder: &Path) -> Vec<RedisServer> {
    let servers: Vec<RedisServer> = (0..3).map(|number| start_member(&folder.join(number.to_string()))).collect();
    let command = |server: &RedisServer, words: &[&str]| {
        let mut connection = server.connection().unwrap();
        redis::cmd("CLUSTER").arg(words).exec(&mut connection).unwrap();
    };
    let argument = |server: &RedisServer, option: &str| {
        let place = server.arguments.iter().position(|argument| argument == option).expect("an option");
        server.arguments[place + 1].clone()
    };
    for (server, slots) in servers.iter().zip([["0", "5460"], ["5461", "10922"], ["10923", "16383"]]) {
        command(server, &["ADDSLOTSRANGE", slots[0], slots[1]]);
        let (port, bus) = (argument(server, "--port"), argument(server, "--cluster-port"));
        command(&servers[0], &["MEET", "127.0.0.1", &port, &bus]);
    }
    servers.iter().for_each(wait_for_cluster);
    servers
}

/// Waits until a member knows the others and all slots.
pub(super) fn wait_for_cluster(server: &RedisServer) {
    let ask = |connection: &mut Connection| redis::cmd("CLUSTER").arg("INFO").query(connection);
    let is_right = |info: &String| {
        ["cluster_state:ok", "cluster_known_nodes:3", "cluster_slots_ok:16384"].iter().all(|line| info.contains(line))
    };
    server.wait_for("the cluster is complete", ask, is_right);
}

fn start_member(folder: &Path) -> RedisServer {
    std::fs::create_dir(folder).unwrap();
    let held = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [port, bus] = held.map(|listener| listener.local_addr().unwrap().port().to_string());
    let own = ["--bind", "127.0.0.1", "--port", &port, "--cluster-port", &bus, "--cluster-enabled", "yes"];
    let ways = ["--cluster-node-timeout", "500", "--cluster-require-full-coverage", "no"];
    let files = ["--dir", folder.to_str().expect("UTF-8"), "--save", "", "--appendonly", "yes"];
    RedisServer::run(
        &[&own[..], &ways, &files, &["--appendfsync", "always"]].concat(),
        format!("redis://127.0.0.1:{port}"),
    )
}

/// Tries until there is an answer.
pub(super) fn wait_for<T>(what: &str, attempt: impl Fn() -> Option<T>) -> T {
    for _ in 0..PAUSES_MAX {
        if let Some(answer) = attempt() {
            return answer;
        }
        sleep(PAUSE);
    }
    panic!("waited for nothing: {what}");
}

fn spawn(arguments: &[String]) -> Child {
    let started = Command::new("redis-server").args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    started.unwrap_or_else(|error| panic!("redis-server does not run ({error}). Install it: tools/setup.sh redis"))
}
