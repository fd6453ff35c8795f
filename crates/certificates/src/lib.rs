//! Certificates for programs: got from an authority, kept alive, and served where consumers look for them.
//!
//! | question | file |
//! | --- | --- |
//! | how does a key get a certificate of an authority? | [`request`] |
//! | how is it renewed in time? | `keeper.rs` |
//! | which certificate answers an Interest, and which are kept? | `store.rs` |
//! | where do certificates come from, and when are they read again? | `sources.rs` |
//! | which prefixes are registered, and what does an Interest get? | `server.rs` |
//!
//! Only certificates are read and served: the server opens no file of a private key.

mod keeper;
pub mod request;
mod server;
mod sources;
mod store;

pub use keeper::{CertificateEvent, CertificateKeeper, keep_certificate};
pub use server::{CertificateServer, Counters, FETCHED_COST, LOOK_EVERY, ServerEvent};
pub use sources::{CERTIFICATE_FILE_BYTES_MAX, FILES_MAX, KeyChainPart, Sources};
pub use store::{AddError, CertificateStore, Limits, Source};
