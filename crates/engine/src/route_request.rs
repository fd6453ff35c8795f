//! What self-learning asks of the control side, which keeps the routes: [`crate::Output::route_requests`].

use crate::batch::{BATCH_PACKETS, PacketRef};
use namewire_packet::FaceId;

/// What a strategy asks of the control side, which keeps the routes.
#[derive(Clone, Copy, Debug)]
pub enum RouteRequest {
    /// A route to `face`, as the announcing Data says.
    Learn {
        /// Where Data came from that carried the announcement.
        face: FaceId,
        /// The announcing Data, as it came: unchecked.
        announcement: PacketRef,
    },
    /// No learned route to `face` any more that leads there for this name.
    Forget {
        /// Who has no route either.
        face: FaceId,
        /// Name TLV-VALUE of the Interest that was sent there.
        name: PacketRef,
    },
}

/// Most of them in one call.
pub(crate) const ROUTE_REQUESTS_MAX: usize = BATCH_PACKETS;
