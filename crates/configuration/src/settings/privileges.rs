//! `router.privileges`: what a router does with the privileges that it has at its start.

use serde::{Deserialize, Serialize};

namewire_packet::names! {
    /// What happens to privileges that the configuration gives no reason to keep.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Privileges {
        /// The router gives them up when it starts.
        #[default]
        Drop = "drop",
        /// They stay.
        Keep = "keep",
    }
}

super::choice::named! {
    Privileges: &Self::ALL;
}
