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

/// The size of a test by an environment variable, for a longer run than that of every day.
fn from_environment(variable: &str, otherwise: u64) -> u64 {
    let number = std::env::var(variable).ok();
    number.map_or(otherwise, |number| number.parse().unwrap_or_else(|_| panic!("{variable} is not a number")))
}
