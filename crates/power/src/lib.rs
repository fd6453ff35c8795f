//! How much power does an NDN router take at a given load?
//!
//! Source: Takemasa19 ch. 6, Eqs. 6.1-6.15. Power is the sum of four parts:
//!
//! ```text
//! router [W] = chassis + cpu(cycles/s) + joules per byte · bytes/s + joules per packet · packets/s      (6.1)
//! ```
//!
//! * [`cpu`]: processors with C-states and P-states, Eqs. 6.2-6.8.
//! * [`flows`]: cycles, bytes and packets of a router, from its blocks, hit ratio and insertion rate, Eqs. 6.11-6.15.
//! * [`fit`]: the parameters of a computer from measurements, by least squares.
//! * [`measurements`]: measurements as a CSV file.
//! * [`case_study`]: the thesis' comparison of two routers.
//!
//! The model knows loads, not programs: a computer whose cores spin in a poll loop takes more power than the model
//! predicts (Takemasa19 assumes cores that sleep when there are no packets). Cycles are those of the computer's own
//! clock.
#![allow(missing_docs, reason = "fields are the symbols of the thesis and have their units in their names")]

pub mod case_study;
pub mod cpu;
pub mod fit;
pub mod flows;
pub mod measurements;

use serde::{Deserialize, Serialize};

use cpu::Processors;

/// The parameters of a computer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    pub name: String,
    /// Φ_chassis: all devices, idle.
    pub chassis_w: f64,
    pub processors: Processors,
    /// Ψ_mem: what a byte read from or written to memory costs.
    pub joules_per_byte: f64,
    /// Ψ_nic: what a packet received and sent costs.
    pub joules_per_packet: f64,
}

/// What a router asks of its computer in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// c_ndn.
    pub cycles_per_s: f64,
    /// r_mem.
    pub memory_bytes_per_s: f64,
    /// λ_ip: packets that are received and sent.
    pub packets_per_s: f64,
}

/// Power by device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Power {
    pub chassis_w: f64,
    pub cpu_w: f64,
    pub memory_w: f64,
    pub nic_w: f64,
}

impl Power {
    pub fn total_w(&self) -> f64 {
        self.chassis_w + self.cpu_w + self.memory_w + self.nic_w
    }
}

impl Server {
    /// Eqs. 6.1, 6.9 and 6.10. `None` if the processors cannot do the work.
    pub fn power(&self, load: Load) -> Option<Power> {
        Some(Power {
            chassis_w: self.chassis_w,
            cpu_w: self.processors.watts(load.cycles_per_s)?,
            memory_w: self.joules_per_byte * load.memory_bytes_per_s,
            nic_w: self.joules_per_packet * load.packets_per_s,
        })
    }
}
