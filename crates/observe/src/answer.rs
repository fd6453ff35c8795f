//! Answer: a response with the headers that every response has.
//!
//! The headers forbid caching, guessing the type from the bytes, framing by other pages, and reading by pages of
//! another origin. The content policy allows only the page's own script, by its hash, and requests to this server.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use sha2::{Digest, Sha256};

use crate::body::AnswerBody;
use crate::request::Refusal;

/// What a client gets.
pub(crate) type Answer = Response<AnswerBody>;

pub(crate) const JSON: &str = "application/json";
pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// An answer with all headers. `policy` is the content policy.
pub(crate) fn answer(status: StatusCode, content_type: &'static str, policy: &HeaderValue, body: AnswerBody) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CONTENT_SECURITY_POLICY, policy.clone());
    answer
}

/// A refusal as an answer, with the headers that its status asks for.
pub(crate) fn refused(refusal: &Refusal, policy: &HeaderValue) -> Answer {
    let mut answer = answer(refusal.status, TEXT, policy, AnswerBody::whole(format!("{}\n", refusal.text)));
    let extra = match refusal.status {
        StatusCode::METHOD_NOT_ALLOWED => Some((header::ALLOW, "GET, HEAD")),
        StatusCode::PAYLOAD_TOO_LARGE => Some((header::CONNECTION, "close")),
        StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "5")),
        _ => None,
    };
    if let Some((name, value)) = extra {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// The content policy for a page with one inline script.
pub(crate) fn content_policy(page: &str) -> HeaderValue {
    let script = page.split_once("<script>").and_then(|(_, rest)| rest.split_once("</script>"));
    let hash = BASE64_STANDARD.encode(Sha256::digest(script.map_or("", |(script, _)| script)));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{hash}'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("a policy is visible ASCII")
}
