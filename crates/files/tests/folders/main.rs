//! Folders served and fetched through a router with real sockets.

mod changes;
mod hostile;
mod network;
mod resumed;
mod signed;
mod trees;
