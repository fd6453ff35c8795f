//! Routers on links: UDP multicast and Ethernet, in network namespaces that the tests make.
//!
//! Each namespace is one host. Its router runs in this process, on threads that live in the namespace. Applications
//! reach it over Unix sockets, which namespaces do not separate. Namespaces need root (CAP_SYS_ADMIN and
//! CAP_NET_ADMIN). Without root, a test prints this and passes.

mod af_xdp;
mod ethernet;
mod hosts;
mod link_state;
mod self_learning;
mod udp_multicast;
