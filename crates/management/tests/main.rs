//! Management from outside: commands, datasets, rules, and the RIB behind them.
//!
//! All tests are one program, because linking one for each file would take longer than the tests.

mod announcements;
mod authorization;
mod capture;
mod commands;
mod datasets;
mod fib_computation;
mod full_fib;
mod leaving_routes;
mod readvertise;
mod restoration;
mod revocation;
mod tags;
