//! `faces.ethernet.io`: the driver of Ethernet links.

use serde::{Deserialize, Serialize};

namewire_packet::names! {
    /// How frames of an interface get to the router.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum EthernetIo {
        /// By a packet socket.
        #[default]
        Socket = "socket",
        /// By AF_XDP, or not at all.
        Xdp = "xdp",
        /// By AF_XDP where it works, otherwise by a packet socket.
        Auto = "auto",
    }
}
