//! Reading: what an observer answers, by HTTP.
//!
//! Contract: a reader asks only the addresses that it is given, only by GET, and only the paths of [`Wanted`]. It
//! follows no redirection, sends nothing but the path, the host and what it accepts, and opens one connection for each
//! question, which ends with the answer. There is no TLS.
//!
//! Limits: an answer of [`ANSWER_BYTES_MAX`], a head of [`HEAD_BYTES_MAX`], and the time that the caller allows. What
//! breaks a limit is a [`Problem`] with a name.

use crate::{fate::Explained, summary::Summary};
use hyper::{
    Request, StatusCode,
    body::{Body, Bytes, Incoming},
    client::conn::http1,
    header,
};
use hyper_util::rt::TokioIo;
use namewire_node_model::observer_address::ObserverAddress;
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt, future::poll_fn, io, pin::Pin, time::Duration};
use tokio::{net::TcpStream, time::timeout};

/// The largest answer.
pub const ANSWER_BYTES_MAX: usize = 2 << 20;
/// The largest head of an answer: the least that hyper takes.
const HEAD_BYTES_MAX: usize = 8192;
/// How much of the text of a refusal is shown.
const REFUSAL_BYTES_MAX: usize = 300;

/// What can be asked of an observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// `/summary.json`.
    Summary,
    /// `/explain` of a name, as a URI.
    Explanation(&'a str),
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The name of the host has no address, or there is no such place.
    NoSuchHost,
    /// Nothing accepts connections there.
    Unreachable,
    /// It did not answer in time.
    Slow,
    /// It answered with another status than 200.
    Refused,
    /// The answer is larger than the limit.
    TooLarge,
    /// The answer is not HTTP, or not what was asked for.
    NotUnderstood,
}

/// Why there is no answer, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// In a word.
    pub reason: Reason,
    /// In a sentence.
    pub text: String,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 6] = [
        Reason::NoSuchHost,
        Reason::Unreachable,
        Reason::Slow,
        Reason::Refused,
        Reason::TooLarge,
        Reason::NotUnderstood,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Reason::NoSuchHost => "no-such-host",
            Reason::Unreachable => "unreachable",
            Reason::Slow => "slow",
            Reason::Refused => "refused",
            Reason::TooLarge => "too-large",
            Reason::NotUnderstood => "not-understood",
        }
    }
}

impl Problem {
    /// A problem with what people read of it.
    pub fn new(reason: Reason, text: impl Into<String>) -> Self {
        Problem { reason, text: text.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Wanted<'_> {
    fn target(self) -> String {
        match self {
            Wanted::Summary => "/summary.json".to_owned(),
            // All but the plainest bytes are encoded, so that no name changes the query or the head.
            Wanted::Explanation(name) => {
                let mut target = "/explain?name=".to_owned();
                for byte in name.bytes() {
                    match byte {
                        b'/' | b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                            target.push(char::from(byte));
                        }
                        byte => target += &format!("%{byte:02X}"),
                    }
                }
                target
            }
        }
    }
}

/// The summary of the router whose observer is there.
///
/// # Errors
/// It does not answer within `patience`, or not as it should.
pub async fn summary(address: &ObserverAddress, patience: Duration) -> Result<Summary, Problem> {
    let summary: Summary = json(address, Wanted::Summary, patience).await?;
    Ok(summary.bounded())
}

/// What the router whose observer is there would do with an Interest for `name`, a URI.
///
/// # Errors
/// As for [`summary`]; also if the name is none.
pub async fn explanation(address: &ObserverAddress, name: &str, patience: Duration) -> Result<Explained, Problem> {
    let explained: Explained = json(address, Wanted::Explanation(name), patience).await?;
    Ok(explained.bounded())
}

async fn json<T: DeserializeOwned>(
    address: &ObserverAddress,
    wanted: Wanted<'_>,
    patience: Duration,
) -> Result<T, Problem> {
    let slow = |_| Problem::new(Reason::Slow, format!("{address} did not answer within {} ms", patience.as_millis()));
    let bytes = timeout(patience, ask(address, wanted)).await.map_err(slow)??;
    let wrong = |error| {
        Problem::new(Reason::NotUnderstood, format!("{address} answered what is no state of a router: {error}"))
    };
    serde_json::from_slice(&bytes).map_err(wrong)
}

async fn ask(address: &ObserverAddress, wanted: Wanted<'_>) -> Result<Vec<u8>, Problem> {
    let socket = TcpStream::connect((address.host(), address.port())).await;
    let socket = socket.map_err(|error| not_connected(address, &error))?;
    let broken = |error: hyper::Error| {
        Problem::new(Reason::NotUnderstood, format!("{address} broke the connection, or does not speak HTTP: {error}"))
    };
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES_MAX);
    let (mut sender, connection) = builder.handshake::<_, NoBody>(TokioIo::new(socket)).await.map_err(broken)?;
    let request = Request::get(wanted.target())
        .header(header::HOST, address.authority())
        .header(header::ACCEPT, "application/json")
        .header(header::CONNECTION, "close")
        .body(NoBody)
        .map_err(|error| Problem::new(Reason::NotUnderstood, format!("{address}: {error}")))?;
    let exchange = async {
        let answer = sender.send_request(request).await.map_err(broken)?;
        let status = answer.status();
        let body = whole(address, answer.into_body()).await?;
        if status == StatusCode::OK { Ok(body) } else { Err(refused(address, status, &body)) }
    };
    // The connection does the exchange's work, and ends after it.
    tokio::pin!(connection, exchange);
    tokio::select! {
        biased;
        answer = &mut exchange => return answer,
        ended = &mut connection => ended.map_err(broken)?,
    }
    exchange.await
}

fn not_connected(address: &ObserverAddress, error: &io::Error) -> Problem {
    // The resolver has no kind of its own: its errors are not of the system's.
    let reason = match error.raw_os_error() {
        Some(_) => Reason::Unreachable,
        None => Reason::NoSuchHost,
    };
    Problem::new(reason, format!("{address} cannot be reached: {error}"))
}

fn refused(address: &ObserverAddress, status: StatusCode, body: &[u8]) -> Problem {
    let text = String::from_utf8_lossy(&body[..body.len().min(REFUSAL_BYTES_MAX)]);
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    let hint = match status {
        StatusCode::NOT_FOUND => " (an observer of an older version?)",
        _ => "",
    };
    Problem::new(Reason::Refused, format!("{address} answers {status}{hint}: {text}"))
}

async fn whole(address: &ObserverAddress, mut body: Incoming) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| {
            Problem::new(Reason::NotUnderstood, format!("{address} broke off in its answer: {error}"))
        })?;
        let data = frame.into_data().unwrap_or_default();
        if bytes.len() + data.len() > ANSWER_BYTES_MAX {
            let most = ANSWER_BYTES_MAX >> 20;
            return Err(Problem::new(Reason::TooLarge, format!("{address} answered more than {most} MiB")));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// Requests have no body.
struct NoBody;

impl Body for NoBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{Read, Write},
        net::TcpListener,
        thread,
    };

    const PATIENCE: Duration = Duration::from_secs(100);

    /// A server that answers one request with these bytes, and what it was asked.
    fn server(answer: Vec<u8>) -> (ObserverAddress, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let asked = thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let (mut asked, mut bytes) = (Vec::new(), [0; 1024]);
            while !asked.ends_with(b"\r\n\r\n") {
                let count = socket.read(&mut bytes).unwrap();
                asked.extend_from_slice(&bytes[..count]);
            }
            let _ = socket.write_all(&answer);
            String::from_utf8(asked).unwrap()
        });
        (address, asked)
    }

    fn answer(status: &str, body: &str) -> Vec<u8> {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    async fn problem(answer: Vec<u8>) -> Problem {
        let (address, _server) = server(answer);
        summary(&address, PATIENCE).await.unwrap_err()
    }

    #[tokio::test]
    async fn asks_the_path_and_nothing_more() {
        let (address, asked) = server(answer("200 OK", r#"{"host": "far", "faces": [{"id": 9}]}"#));
        let found = summary(&address, PATIENCE).await.unwrap();
        assert_eq!((&*found.host, found.face_count), ("far", 1));
        let expected = format!(
            "GET /summary.json HTTP/1.1\r\nhost: {}\r\naccept: application/json\r\nconnection: close\r\n\r\n",
            address.authority()
        );
        assert_eq!(asked.join().unwrap(), expected);
    }

    #[tokio::test]
    async fn a_name_cannot_change_the_request() {
        let (address, asked) = server(answer("200 OK", r#"{"name": "/a", "outcome": "it goes"}"#));
        explanation(&address, "/a b&c=d#%41\r\nX: y/é", PATIENCE).await.unwrap();
        let asked = asked.join().unwrap();
        assert!(
            asked.starts_with("GET /explain?name=/a%20b%26c%3Dd%23%2541%0D%0AX%3A%20y/%C3%A9 HTTP/1.1\r\n"),
            "{asked}"
        );
    }

    #[tokio::test]
    async fn each_refusal_has_a_name() {
        assert_eq!(problem(answer("503 Service Unavailable", "busy")).await.reason, Reason::Refused);
        let moved = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
        let moved = problem(moved.to_vec()).await;
        assert_eq!(moved.reason, Reason::Refused, "no redirection is followed");
        assert!(moved.text.contains("answers 302 Found"), "{moved}");
        assert_eq!(problem(answer("200 OK", "<html>")).await.reason, Reason::NotUnderstood);
        assert_eq!(problem(b"SSH-2.0-OpenSSH\r\n".to_vec()).await.reason, Reason::NotUnderstood);
        assert_eq!(problem(Vec::new()).await.reason, Reason::NotUnderstood);
        let short = b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{";
        assert_eq!(problem(short.to_vec()).await.reason, Reason::NotUnderstood);
        let head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
        assert_eq!(problem(head.into_bytes()).await.reason, Reason::NotUnderstood);
        let huge = answer("200 OK", &format!("\"{}\"", "x".repeat(ANSWER_BYTES_MAX)));
        assert_eq!(problem(huge).await.reason, Reason::TooLarge);
        let controls = problem(answer("404 Not Found", "a\u{1b}[2Jb")).await;
        assert!(controls.text.contains("a[2Jb") && controls.text.contains("older version"), "{controls}");
    }

    #[tokio::test]
    async fn a_router_that_is_away_is_said_to_be() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address: ObserverAddress = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let slow = summary(&address, Duration::from_millis(20)).await.unwrap_err();
        assert_eq!(slow.reason, Reason::Slow, "it accepts and says nothing");
        drop(listener);
        assert_eq!(summary(&address, PATIENCE).await.unwrap_err().reason, Reason::Unreachable);
        let nowhere = "http://nowhere.invalid:1".parse().unwrap();
        assert_eq!(summary(&nowhere, PATIENCE).await.unwrap_err().reason, Reason::NoSuchHost);
    }
}
