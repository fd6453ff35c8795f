//! FIB designs and cache policies behind the router's own interfaces: those of the literature, and any others.
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
//! ([`Split`](namewire_tables::fib::Split)). A policy is a
//! [`BoxedPolicy`](namewire_tables::content_store::policy::BoxedPolicy).
//!
//! Trivial designs and policies, and new ones, belong here too. The header of each catalogue lists every place that a
//! new one needs.
#![forbid(unsafe_code)]

pub mod city_hash;
pub mod fib;
pub mod policies;
