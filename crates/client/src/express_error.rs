//! Why an Interest got no Data.

use crate::close_reason::CloseReason;
use namewire_packet::{NackReason, PacketError};

/// Why an Interest got no Data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressError {
    /// Nothing came within the InterestLifetime.
    #[error("no answer within {0} ms")]
    Timeout(u64),
    /// The forwarder says that it cannot answer.
    #[error("Nack: {0}")]
    Nack(NackReason),
    /// The connection has ended.
    #[error("connection lost: {0}")]
    Closed(CloseReason),
    /// The bytes to send are no Interest (a mistake of this program).
    #[error("not an Interest: {0}")]
    Malformed(PacketError),
    /// The packet exceeds the limit of every NDN forwarder (a mistake of this program).
    #[error("the packet has {0} bytes, more than 8800")]
    TooLarge(usize),
}
