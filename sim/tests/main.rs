//! Whole simulated networks.
//!
//! All tests are one program, because linking one for each file would take longer than its tests.

mod audit;
mod changes;
mod core_and_edge;
mod determinism;
mod diamond;
mod failover;
mod fib_forwarding;
mod hostile;
mod line;
mod mixed_cores;
mod pit_network;
mod random_networks;
mod ring;
mod storm;
mod strategies;
mod tagnet;
mod workers;
