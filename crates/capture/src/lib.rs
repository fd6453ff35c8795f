//! Captured frames as `namewire capture` and `ndndump` show and keep them. No router, no connection, no command line.
//!
//! | question | module |
//! | --- | --- |
//! | what does a frame carry, in words? | [`frame`] |
//! | which frames are about a name? | [`filter`] |
//! | how do Wireshark and ndndump read them? | [`pcapng`] |
//! | what is in a file of tcpdump, Wireshark or `namewire capture`? | [`pcap_file`] |
//! | which frames pass an interface of this host? | [`live`] |
//! | which of them does a filter like tcpdump's take? | [`pcap_filter`] |
//! | what does a frame of this kind of link carry? | [`link_type`] |

pub mod filter;
pub mod frame;
pub mod link_type;
pub mod live;
pub mod pcap_file;
pub mod pcap_filter;
pub mod pcapng;
