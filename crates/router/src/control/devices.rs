//! Devices that the router drives itself (DPDK), as interfaces in addition to those of the kernel.
//!
//! The router opens them at the start and keeps them open. Their numbers begin at [`FIRST_NUMBER`], above the numbers
//! that the kernel uses.

use super::interfaces::Interface;
use namewire_configuration::settings::DpdkSection;
use namewire_faces::{
    dpdk::{Device, Runtime},
    ethernet::LinkSocket,
};
use std::collections::BTreeMap;

/// Interface number of the first device. The kernel counts upwards from 1, in 31 bits.
const FIRST_NUMBER: u32 = 1 << 31;

/// See the module.
#[derive(Default)]
pub(crate) struct Devices {
    interfaces: Vec<Interface>,
    /// Ports that no worker has yet.
    links: BTreeMap<u32, LinkSocket>,
}

impl Devices {
    /// Opens the devices of the configuration. Returns, in words, those that cannot be opened.
    pub(super) fn open(&mut self, config: &DpdkSection) -> Vec<String> {
        if config.ports.is_empty() {
            return Vec::new();
        }
        let runtime = match Runtime::start(&config.eal) {
            Ok(runtime) => runtime,
            Err(error) => return vec![format!("cannot start DPDK: {error}")],
        };
        let mut problems = Vec::new();
        for (device, number) in config.ports.iter().zip(FIRST_NUMBER..) {
            match runtime.open(device, number) {
                Ok(Device { link, address }) => {
                    self.interfaces.push(Interface {
                        index: number,
                        name: link.name().to_owned(),
                        ethernet: Some(address),
                        mtu: link.mtu(),
                        is_up: true,
                        is_loopback: false,
                        can_multicast: true,
                        addresses: Vec::new(),
                    });
                    self.links.insert(number, link);
                }
                Err(error) => problems.push(format!("cannot open {device} with DPDK: {error}")),
            }
        }
        problems
    }

    /// The devices among the kernel's interfaces.
    pub(super) fn add_to(&self, interfaces: &mut BTreeMap<u32, Interface>) {
        interfaces.extend(self.interfaces.iter().map(|device| (device.index, device.clone())));
    }

    /// The port of a device, once.
    pub(super) fn take(&mut self, interface: u32) -> Option<LinkSocket> {
        self.links.remove(&interface)
    }

    /// Whether an interface is a device.
    pub(super) fn has(&self, interface: u32) -> bool {
        interface >= FIRST_NUMBER
    }
}
