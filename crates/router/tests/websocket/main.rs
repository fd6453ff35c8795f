//! WebSocket faces of real routers, from peers that speak the protocol and from such as do not.

#[path = "../application/mod.rs"]
mod application;
mod half_open;
mod peer;
mod routers;
mod server;
