//! One request that reached management, taken apart once.

use crate::{
    authorization::{Prefix, pending::Fetching},
    environment::Times,
    replies::ReplyTo,
};
use namewire_packet::{FaceId, Interest};

/// One request.
pub(crate) struct Request<'a> {
    pub(crate) now: Times,
    pub(crate) prefix: Prefix,
    pub(crate) interest: &'a Interest<'a>,
    /// Its face, name and token.
    pub(crate) reply_to: ReplyTo,
    /// The certificates that were fetched for it so far.
    pub(crate) fetching: &'a Fetching,
}

impl Request<'_> {
    /// The face that it came from.
    pub(crate) const fn incoming(&self) -> FaceId {
        self.reply_to.from
    }
}
