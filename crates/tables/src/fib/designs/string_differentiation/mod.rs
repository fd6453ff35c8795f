//! String differentiation (in the making).
pub mod differentiator;
pub mod exact_table;
pub mod fingerprint_hash_table;
pub mod rib;
pub mod wide_leads;
