//! A whole router with four workers, seen from its sockets.

mod congestion_marks;
mod connection_storm;
mod content_store;
mod core_role;
mod cs_erase;
mod drop_in;
mod face_commands;
mod face_life;
mod fib_designs;
mod floods;
mod forgeries;
mod lanes;
mod links;
mod lossy_fib;
mod lossy_links;
mod malformed_data;
mod prefix_lookup;
mod readvertise;
mod routing_daemon;
mod self_learning;
mod shares;
mod streams;
mod tagnet;
mod trust;
mod worker_totals;
