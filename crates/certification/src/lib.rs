//! Certificates over the network.
pub mod authority;
