//! Who waits for a look at a name.
//!
//! Limit: management begins a bounded number of looks (its module `name_looks`), and the observer one for each of its
//! connections.

use crate::probe_desk::ProbeAsker;
use namewire_management::Ticket;
use namewire_node_model::explanation::Explanation;
use namewire_packet::NameBuf;
use tokio::sync::oneshot;

/// Who waits for a look.
pub(crate) enum Asker {
    /// Whoever pings the router, or traces a route.
    Probe(Box<ProbeAsker>),
    /// A client of management.
    Client(Ticket),
    /// The observer, which wants to know more about the name.
    Observer { name: NameBuf, reply: oneshot::Sender<Explanation> },
}
