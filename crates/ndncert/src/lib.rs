//! NDNCERT 0.3: how does a key get a certificate of an authority (CA) over the network?
//!
//! Source: NDN Certificate Management Protocol v0.3 and its extensions for challenges and PROBE (wiki of
//! named-data/ndncert), where NDNts and the C++ programs agree.
//!
//! ```text
//!   requester                                      authority of /site
//!      │ /site/CA/INFO                    ──►  │   who are you?  profile: certificate, longest validity
//!      │ /site/CA/PROBE  e-mail …         ──►  │   which names may I have?                 (optional)
//!      │ /site/CA/NEW  ECDH, request      ──►  │   ECDH, salt, id of the request, challenges
//!      │ /site/CA/CHALLENGE/<id>  "pin"   ──►  │   what to prove                           (encrypted)
//!      │ /site/CA/CHALLENGE/<id>  code    ──►  │   name of the certificate                 (encrypted)
//!      │ the certificate                  ──►  │
//! ```
//!
//! | question | file |
//! | --- | --- |
//! | what does each message hold? | [`messages`], and [`profile`] for the authority's |
//! | how are the messages of a challenge encrypted? | [`session`] |
//! | what does a requester send next? | [`requester`] |
//! | which challenges are there, and what does each ask for? | [`challenge`] |
//!
//! The authority is in the crate `namewire-certification`.
//!
//! Limits: a message is one packet. At most [`fields::PARAMETERS_MAX`] parameters in a message, and
//! [`messages::CHALLENGES_MAX`] challenges in an answer.

pub mod challenge;
pub mod fields;
pub mod messages;
pub mod profile;
pub mod requester;
pub mod session;

pub use fields::{FieldError, Parameters};
pub use messages::{ErrorCode, Status};
pub use profile::CaProfile;
pub use requester::{Requester, RequesterError, Step};
pub use session::{EcdhKey, RequestId, SessionError, SessionKey};

use namewire_packet::{Name, NameBuf};

/// The name of a service of the authority: `/<prefix>/CA/<verb>`.
pub fn service_name(ca_prefix: Name<'_>, verb: &str) -> NameBuf {
    let mut name = ca_prefix.to_buf();
    name.push_generic(b"CA").push_generic(verb.as_bytes());
    name
}

/// The names of the services.
pub mod verbs {
    /// The authority's profile.
    pub const INFO: &str = "INFO";
    /// Names that a requester may have.
    pub const PROBE: &str = "PROBE";
    /// Begins a request.
    pub const NEW: &str = "NEW";
    /// Goes on with it.
    pub const CHALLENGE: &str = "CHALLENGE";
}
