//! The program as its users meet it. One program of tests, because each would be linked with all that it uses.

mod capture;
mod certificates;
mod completions;
#[path = "configuration/main.rs"]
mod configuration;
mod demo;
mod descriptors;
mod doctor;
mod downloads;
mod facts;
mod folders;
mod joining;
mod key;
#[path = "life_cycle/main.rs"]
mod life_cycle;
mod log;
mod many_routers;
mod memory;
mod memory_limit;
mod messages;
mod named_routers;
#[path = "ndn_tools/main.rs"]
mod ndn_tools;
mod ndnsec;
#[path = "nfdc/main.rs"]
mod nfdc;
#[path = "paths/main.rs"]
mod paths;
mod privileges;
mod put;
mod repo;
mod report;
mod revocation;
mod router_process;
mod run;
mod schema;
mod tag;
mod tag_network;
mod terminal;
mod tools;
mod top;
mod traceroute;
mod traffic;
mod transports_guide;
mod upgrade;
mod watching;
