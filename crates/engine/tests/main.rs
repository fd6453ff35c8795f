//! The engine from outside: packets in, verdicts, packets out.
//!
//! All tests are one program, because linking one for each file would take longer than the tests.

mod content_store;
mod core_role;
mod data_from_asked;
mod dispatch;
mod face_share;
mod incoming_data;
mod incoming_interest;
mod incoming_nack;
mod interest_loop;
mod lost_upstreams;
mod measuring_strategies;
mod name_state;
mod pit_limits;
mod pit_shares;
mod prefix_lookup;
mod probes;
mod random_packets;
mod silent_next_hops;
mod stage_costs;
mod strategies;
mod timers;
