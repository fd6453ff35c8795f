//! Why a face closed.

/// Why a face carries no more packets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// This side closed it.
    #[error("closed by this application")]
    Local,
    /// The forwarder ended the connection.
    #[error("the forwarder closed the connection")]
    Remote,
    /// Reading or writing failed.
    #[error("{0}")]
    Io(String),
    /// The stream cannot be cut into packets.
    #[error("the forwarder sent bytes that are no TLV stream")]
    NotTlv,
}
