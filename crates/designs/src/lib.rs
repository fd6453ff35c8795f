//! FIB designs and cache policies of the literature, behind the router's own interfaces.
//!
//! `namewire_tables` has what every router runs: one FIB, and four policies of the Content Store. This
//! crate has the others, each selected by its name in the configuration. A router that names none of them
//! runs no line of this crate for a packet.
//!
//! | question | module |
//! | --- | --- |
//! | which FIB designs are there, and how is each made? | [`fib::catalogue`] |
//! | which policies are there, and how is each made? | [`policies::catalogue`] |
//!
//! A FIB design is a [`PrefixTable`](namewire_tables::fib::PrefixTable), or a route controller and its tables
//! ([`Split`](namewire_tables::fib::Split)); a policy is a [`BoxedPolicy`](namewire_tables::cs_policy::BoxedPolicy).
#![forbid(unsafe_code)]

pub mod city_hash;
pub mod fib;
pub mod policies;
