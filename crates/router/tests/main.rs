//! Whole routers with real sockets. One program of tests, because each would be linked with the whole router.

mod application;
mod drops;
mod exchange;
#[path = "links/main.rs"]
mod links;
mod memory;
mod new_face;
#[path = "node/main.rs"]
mod node;
mod observe;
#[path = "websocket/main.rs"]
mod websocket;
