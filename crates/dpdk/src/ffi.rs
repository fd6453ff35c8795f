//! The functions of `shim.c` and a few of DPDK's, and safe wrappers for those that start, stop and query ports.
//!
//! This file needs `unsafe`, because Rust cannot check what C promises. Ports and pools are numbers and addresses here:
//! `port.rs` decides who may use them. The functions for bursts are in `burst.rs`.
#![allow(unsafe_code, reason = "leaf: calls to DPDK")]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io;
use std::ptr::NonNull;
use std::time::Duration;

unsafe extern "C" {
    fn nw_dpdk_take_log(to: *mut u8, room: usize) -> usize;
    fn nw_dpdk_init(argc: c_int, argv: *mut *mut c_char, show: c_int) -> c_int;
    fn nw_dpdk_end();
    fn rte_thread_register() -> c_int;
    fn rte_thread_unregister();
    fn nw_dpdk_probe(device: *const c_char) -> c_int;
    fn nw_dpdk_find(name: *const c_char, port: *mut u16) -> c_int;
    fn nw_dpdk_describe(port: u16, device: *mut Device) -> c_int;
    fn nw_dpdk_close(port: u16) -> c_int;
    fn nw_dpdk_pool_new(name: *const c_char, buffers: u32, cache: u32, room: u16, port: u16) -> *mut c_void;
    fn rte_mempool_avail_count(pool: *const c_void) -> c_uint;
    fn rte_mempool_free(pool: *mut c_void);
    fn nw_dpdk_start(port: u16, pool: *mut c_void, setup: *mut Setup) -> c_int;
    fn nw_dpdk_is_up(port: u16) -> c_int;
    fn nw_dpdk_hear_groups(port: u16, groups: *const u8, count: u32) -> c_int;
    fn nw_dpdk_counters(port: u16, counters: *mut Counters) -> c_int;
    fn rte_eal_alarm_set(wait_us: u64, callback: extern "C" fn(*mut c_void), argument: *mut c_void) -> c_int;
}

/// `struct nw_dpdk_device`: texts end with a zero.
#[repr(C)]
pub(crate) struct Device {
    name: [u8; 64],
    driver: [u8; 64],
    arguments: [u8; 1024],
    pub(crate) address: [u8; 6],
    is_virtual: u8,
}

impl Device {
    pub(crate) fn name(&self) -> String {
        text(&self.name)
    }

    pub(crate) fn driver(&self) -> String {
        text(&self.driver)
    }

    /// The name and the arguments, with commas between them, to attach the device again.
    pub(crate) fn arguments(&self) -> String {
        text(&self.arguments)
    }

    pub(crate) fn is_virtual(&self) -> bool {
        self.is_virtual != 0
    }
}

fn text(bytes: &[u8]) -> String {
    CStr::from_bytes_until_nul(bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// `struct nw_dpdk_setup`: what is wished, then what is.
#[repr(C)]
pub(crate) struct Setup {
    pub(crate) receive_descriptors: u16,
    pub(crate) transmit_descriptors: u16,
    pub(crate) mtu: u16,
    pub(crate) promiscuous: u8,
}

/// `struct nw_dpdk_counters`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) missed: u64,
    pub(crate) receive_errors: u64,
    pub(crate) no_buffer: u64,
    pub(crate) transmit_errors: u64,
}

/// Starts DPDK. Only for a thread that ends soon: its signals are blocked, and DPDK chooses its CPUs.
pub(crate) fn init(arguments: &[CString], shows_log: bool) -> Result<(), io::Error> {
    // DPDK may reorder the addresses, and writes into some texts. It keeps none of them.
    let mut owned: Vec<Vec<u8>> = arguments.iter().map(|argument| argument.as_bytes_with_nul().to_vec()).collect();
    let mut addresses: Vec<*mut c_char> = owned.iter_mut().map(|argument| argument.as_mut_ptr().cast()).collect();
    addresses.push(std::ptr::null_mut());
    let count = c_int::try_from(arguments.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY:
    // - `addresses` has `count` texts, each ending with a zero, and a null after them; all live during the call;
    // - one call at a time, and none after it succeeded: `Eal::init` sees to it.
    checked(unsafe { nw_dpdk_init(count, addresses.as_mut_ptr(), c_int::from(shows_log)) })
}

/// Ends DPDK. No port is open, and none will be: `Eal` sees to it.
pub(crate) fn end() {
    // SAFETY: called once, after `init`; every Port holds the Eal, so no port or pool is in use.
    unsafe { nw_dpdk_end() }
}

/// Gives the calling thread an lcore id, and so a mempool cache. False if none is free.
pub(crate) fn register_thread() -> bool {
    // SAFETY: it writes only DPDK's own variables, some of them of this thread.
    (unsafe { rte_thread_register() }) == 0
}

pub(crate) fn unregister_thread() {
    // SAFETY: as for `register_thread`.
    unsafe { rte_thread_unregister() }
}

/// Makes DPDK's host thread call a function once, after some time.
pub(crate) fn call_host_thread(wait: Duration, callback: extern "C" fn(*mut c_void)) -> io::Result<()> {
    let wait_us = u64::try_from(wait.as_micros()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the callback is a function that exists as long as the process, and is safe with any argument.
    checked(-unsafe { rte_eal_alarm_set(wait_us, callback, std::ptr::null_mut()) })
}

/// What DPDK logged since the last call: at most the newest 4 KB.
pub(crate) fn take_log() -> String {
    let mut bytes = vec![0; 4_096];
    // SAFETY: it writes at most that many bytes.
    let used = unsafe { nw_dpdk_take_log(bytes.as_mut_ptr(), bytes.len()) };
    bytes.truncate(used);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Attaches a device.
pub(crate) fn probe(device: &CStr) -> io::Result<()> {
    // SAFETY: the text ends with a zero; DPDK copies what it keeps. `Eal`'s lock is held: one caller at a time.
    checked(unsafe { nw_dpdk_probe(device.as_ptr()) })
}

/// The number of the port with this name.
pub(crate) fn find(name: &CStr) -> Option<u16> {
    let mut port = 0;
    // SAFETY: the text ends with a zero; `port` is written before it returns 0.
    (unsafe { nw_dpdk_find(name.as_ptr(), &raw mut port) } == 0).then_some(port)
}

pub(crate) fn describe(port: u16) -> io::Result<Device> {
    let mut device = Device { name: [0; 64], driver: [0; 64], arguments: [0; 1024], address: [0; 6], is_virtual: 0 };
    // SAFETY: the struct has the layout of the shim's. DPDK refuses a number that is no port.
    checked(unsafe { nw_dpdk_describe(port, &raw mut device) })?;
    Ok(device)
}

/// Closes a port and detaches its device.
///
/// # Safety
/// No thread uses the port's queues during the call or after it.
pub(crate) unsafe fn close(port: u16) -> io::Result<()> {
    // SAFETY: as the caller promises. DPDK refuses a number that is no port.
    checked(unsafe { nw_dpdk_close(port) })
}

/// Configures and starts a port with one queue each way.
///
/// # Safety
/// The pool lives until the port is closed. No thread uses the port's queues during the call.
pub(crate) unsafe fn start(port: u16, pool: &Pool, setup: &mut Setup) -> io::Result<()> {
    // SAFETY: as the caller promises; the struct has the layout of the shim's.
    checked(unsafe { nw_dpdk_start(port, pool.address(), setup) })
}

pub(crate) fn is_up(port: u16) -> bool {
    // SAFETY: DPDK refuses a number that is no port.
    (unsafe { nw_dpdk_is_up(port) }) != 0
}

/// Receives these groups or more.
pub(crate) fn hear_groups(port: u16, groups: &[[u8; 6]]) -> io::Result<()> {
    let count = u32::try_from(groups.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `count` groups of 6 bytes start there; DPDK copies them.
    checked(unsafe { nw_dpdk_hear_groups(port, groups.as_flattened().as_ptr(), count) })
}

pub(crate) fn counters(port: u16) -> io::Result<Counters> {
    let mut counters = Counters::default();
    // SAFETY: the struct has the layout of the shim's. DPDK refuses a number that is no port.
    checked(unsafe { nw_dpdk_counters(port, &raw mut counters) })?;
    Ok(counters)
}

fn checked(errno: c_int) -> io::Result<()> {
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

/// Memory for frames: a mempool with buffers. Dropping it does nothing: see [`Pool::free`].
#[derive(Debug)]
pub(crate) struct Pool(NonNull<c_void>);

// SAFETY: a pool is an address. Its functions may be called on any thread: it allows several producers and consumers.
unsafe impl Send for Pool {}

impl Pool {
    /// `port` decides on which NUMA node it is.
    pub(crate) fn new(name: &CStr, buffers: u32, cache: u32, room: u16, port: u16) -> Option<Pool> {
        // SAFETY: the text ends with a zero; DPDK copies it.
        NonNull::new(unsafe { nw_dpdk_pool_new(name.as_ptr(), buffers, cache, room, port) }).map(Pool)
    }

    /// How many of its buffers are not in use. Exact only while no thread uses it.
    pub(crate) fn available(&self) -> u32 {
        // SAFETY: the pool exists until `free`, which takes it.
        unsafe { rte_mempool_avail_count(self.0.as_ptr()) }
    }

    /// # Safety
    /// No device and no thread has or will use a buffer of it.
    pub(crate) unsafe fn free(self) {
        // SAFETY: as the caller promises; this call consumes `self`, so the pool is freed once.
        unsafe { rte_mempool_free(self.0.as_ptr()) }
    }

    pub(crate) fn address(&self) -> *mut c_void {
        self.0.as_ptr()
    }
}
