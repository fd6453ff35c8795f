//! WebSocket faces of real routers, with peers that follow the protocol and peers that do not.

mod goodbyes;
mod half_open;
mod peer;
mod places;
mod routers;
mod server;
