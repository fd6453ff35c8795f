//! Every design and policy against a naive twin, driven by lists of random operations.

#[path = "../../../tables/tests/oracles/adversarial_names.rs"]
mod adversarial_names;
mod cs_adaptive_window;
mod cs_admission;
mod cs_arc;
mod cs_content_table;
mod cs_lfu;
mod cs_policy;
mod cs_prefix_index;
mod cs_second_chances;
mod cs_w_tiny_lfu;
mod default_table;
mod design_options;
mod fib;
mod fib_designs;
mod fib_variants;
mod hash_tables;
mod level_pulling;
mod name_tree_hash_table;
mod name_trie;
mod nfd_store;
mod patricia_tries;
mod pit_cs;
mod router_fib;
mod string_differentiation;
mod trie_designs;
