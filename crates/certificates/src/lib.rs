//! Certificates where consumers look for them: a producer that answers Interests for certificates.
//!
//! | question | file |
//! | --- | --- |
//! | which certificate answers an Interest, and which are kept? | `store.rs` |
//! | where do certificates come from, and when are they read again? | `sources.rs` |
//! | which prefixes are registered, and what does an Interest get? | `server.rs` |
//!
//! Only certificates are read and served. The crate opens no file of a private key.

mod server;
mod sources;
mod store;

pub use server::{CertificateServer, Counters, FETCHED_COST, LOOK_EVERY, ServerEvent};
pub use sources::{CERTIFICATE_FILE_BYTES_MAX, FILES_MAX, KeyChainPart, Sources};
pub use store::{AddError, CertificateStore, Limits, Source};
