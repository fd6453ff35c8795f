//! A minimal forwarder: it sends every frame of one device to the other. The lab compares the router with it.
//!
//! ```text
//! forward --device net_memif0,role=client,id=0,socket=/run/a.sock,socket-abstract=no \
//!         --device net_memif1,role=client,id=0,socket=/run/b.sock,socket-abstract=no \
//!         [--swap] -- --no-huge -m 512 --no-pci
//! ```
//!
//! `--swap` exchanges the two MAC addresses of each frame. Arguments after `--` are options of DPDK. The program prints
//! `ready` when both devices have started, and runs until it is killed. Frames that a full device does not take are
//! dropped.

use std::io::{self, Write};

use namewire_dpdk::{BURST_FRAMES_MAX, Eal, Port, PortOptions};

/// Bytes of the two MAC addresses at the start of a frame, each of 6 bytes.
const ADDRESSES_BYTES: usize = 12;

fn main() -> io::Result<()> {
    let arguments = Arguments::read(std::env::args().skip(1))?;
    let eal = Eal::init(&arguments.eal)?;
    let options = PortOptions::default();
    let mut a = Port::open(&eal, &arguments.devices[0], &options)?;
    let mut b = Port::open(&eal, &arguments.devices[1], &options)?;
    println!("ready");
    io::stdout().flush()?;
    loop {
        forward(&mut a, &mut b, arguments.swaps);
        forward(&mut b, &mut a, arguments.swaps);
    }
}

/// One burst, unless frames of the last one still wait.
fn forward(from: &mut Port, to: &mut Port, swaps: bool) {
    if to.waiting() > 0 {
        to.flush();
        if to.waiting() > 0 {
            return;
        }
    }
    from.receive(BURST_FRAMES_MAX, |frame| {
        let _is_sent = match frame.split_at_checked(ADDRESSES_BYTES) {
            Some((addresses, rest)) if swaps => to.send(&[&addresses[6..], &addresses[..6], rest]),
            _ => to.send(&[frame]),
        };
    });
    to.flush();
}

struct Arguments {
    devices: [String; 2],
    swaps: bool,
    eal: Vec<String>,
}

impl Arguments {
    fn read(mut arguments: impl Iterator<Item = String>) -> io::Result<Arguments> {
        let usage = || {
            let text = "usage: forward --device A --device B [--swap] [-- options of DPDK]";
            io::Error::new(io::ErrorKind::InvalidInput, text)
        };
        let (mut devices, mut swaps) = (Vec::new(), false);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--device" => devices.push(arguments.next().ok_or_else(usage)?),
                "--swap" => swaps = true,
                "--" => break,
                _ => return Err(usage()),
            }
        }
        let devices = devices.try_into().map_err(|_| usage())?;
        Ok(Arguments { devices, swaps, eal: arguments.collect() })
    }
}
