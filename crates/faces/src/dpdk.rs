//! NDN over Ethernet by DPDK: the router drives a network card, or a virtual device, itself, and the kernel sees none
//! of its frames.
//!
//! A device is an interface like those of the kernel: it has a name (`dev://net_memif0`), an address and an MTU, and
//! its stations and groups have Ethernet faces ([`crate::ethernet`]). All frames of the device come to the router;
//! those that are not NDN are counted (`link.foreign-frame`) and dropped.
//!
//! A device does not wake its worker. So the worker polls it all the time, and uses a whole processor.
//!
//! Limit: one receive and one transmit queue per device, of one worker.

use std::io;
use std::sync::Arc;

use namewire_dpdk::{Eal, Port, PortOptions};
use namewire_packet::nfd::MacAddress;

use crate::datagram_port::DatagramPort;
use crate::ethernet::{LinkSocket, PortLimits};
use crate::frame_port::FramePort;

/// The DPDK runtime of this process, which has at most one.
pub struct Runtime(Arc<Eal>);

/// A device, with its address.
pub struct Device {
    /// The port of the device.
    pub link: LinkSocket,
    /// Its Ethernet address.
    pub address: MacAddress,
}

impl Runtime {
    /// Starts DPDK with options of its Environment Abstraction Layer.
    ///
    /// # Errors
    /// `Unsupported` in a build without DPDK, `AlreadyExists` for a second runtime, otherwise what DPDK says.
    pub fn start(options: &[String]) -> io::Result<Self> {
        Eal::init(options).map(Runtime)
    }

    /// Opens a device: a PCI address, or a virtual device with its arguments. From now on it is the interface of this
    /// number.
    ///
    /// # Errors
    /// There is no such device, or it has no memory.
    pub fn open(&self, device: &str, interface: u32) -> io::Result<Device> {
        let port = Port::open(&self.0, device, &PortOptions::default())?;
        let (name, mtu, address) = (port.name().to_owned(), port.mtu(), MacAddress(port.address()));
        let how = format!("DPDK, driver {}", port.driver());
        let ports = vec![DatagramPort::Frames(Box::new(FramePort::of_device(port, interface)))];
        let limits = PortLimits { address: None, mtu_max: usize::MAX };
        Ok(Device { link: LinkSocket { ports, interface, name, mtu, how, limits }, address })
    }
}
