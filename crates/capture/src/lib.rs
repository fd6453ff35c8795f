//! Captured frames as `namewire capture` shows and keeps them. No router, no connection, no command line.
//!
//! | question | module |
//! | --- | --- |
//! | what does a frame carry, in words? | [`frame`] |
//! | which frames are about a name? | [`filter`] |
//! | how do Wireshark and ndndump read them? | [`pcapng`] |

pub mod filter;
pub mod frame;
pub mod pcapng;
