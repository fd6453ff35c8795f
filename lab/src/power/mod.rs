//! The power of users' own machines: [`rapl`] measures a processor by the kernel's powercap, and [`command`] fits the
//! model of [`namewire_power`] to measurements and asks it.

pub mod command;
pub mod rapl;
