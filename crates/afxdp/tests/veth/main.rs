//! AF_XDP sockets on one end of a veth pair, whose other end has packet sockets. Without root, each test prints this
//! and passes.
#![cfg(target_os = "linux")]

mod calls;
mod frames;
mod network;
mod speed;
mod steering;

use namewire_afxdp::Options;

/// From the shortest frame to the longest that an MTU of 1,500 allows.
const LENGTHS: [usize; 6] = [14, 15, 60, 61, 1_000, 1_514];

const COPY: Options = Options { frames: 4_096, frame_bytes: 4_096, zero_copy: false };
