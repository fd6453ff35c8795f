//! The four calls of bpf(2) that put the XDP program on an interface.
//!
//! Source: bpf(2), `union bpf_attr` in linux/bpf.h, and the XDP flags in linux/if_link.h. This file needs `unsafe`,
//! because neither rustix nor libc has this system call. Each function fills the part of the union that its command
//! reads, and turns the answer into a descriptor. If our union is shorter than the kernel's, the kernel takes the
//! missing bytes as zeroes.
//!
//! ```text
//!   BPF_MAP_CREATE  │ type │ key │ value │ places │ flags │ inner │ node │ name 16 │                 44 bytes
//!   BPF_PROG_LOAD   │ type │ count │ instructions 8 │ licence 8 │ log 4+4+8 │ version │ flags │ name 16 │  64
//!   BPF_LINK_CREATE │ program │ interface │ attach type │ flags │                                     16
//!   BPF_MAP_UPDATE  │ map │ 4 unused │ key 8 │ value 8 │ flags 8 │                                    32
//! ```
//!
//! Cost: one system call each. Limits: names have at most 15 bytes, and the rest is cut off. Loading asks for no log of
//! the verifier, because the program is always the same one. The kernel gives up loading when a signal arrives. Then we
//! try again, as libbpf does, up to [`LOAD_TRIES`] times in all; the last answer is the result.
#![allow(unsafe_code, reason = "leaf: neither rustix nor libc has bpf(2)")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Of `enum bpf_cmd`.
const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_LINK_CREATE: libc::c_int = 28;

/// Of `enum bpf_map_type`, `enum bpf_prog_type` and `enum bpf_attach_type`.
pub(crate) const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;

/// In the kernel, with any driver (linux/if_link.h).
pub(crate) const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
/// In the driver.
pub(crate) const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// `BPF_OBJ_NAME_LEN`: bytes of a name, with the zero at its end.
const NAME_BYTES: usize = 16;

/// See the module.
const LOAD_TRIES: u32 = 5;

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; NAME_BYTES],
}

#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; NAME_BYTES],
}

#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
struct MapUpdate {
    map_fd: u32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

// As drawn above: no fill that would hold bytes of nobody.
const _: () = assert!(
    size_of::<MapCreate>() == 44
        && size_of::<ProgLoad>() == 64
        && size_of::<LinkCreate>() == 16
        && size_of::<MapUpdate>() == 32
);

/// A map with places for this many AF_XDP sockets.
pub(crate) fn create_socket_map(name: &str, places: u32) -> io::Result<OwnedFd> {
    let attributes = MapCreate {
        map_type: BPF_MAP_TYPE_XSKMAP,
        key_size: size_of::<u32>() as u32,
        value_size: size_of::<u32>() as u32,
        max_entries: places,
        map_flags: 0,
        inner_map_fd: 0,
        numa_node: 0,
        map_name: short(name),
    };
    // SAFETY:
    // - MapCreate is what the command reads, and has no addresses;
    // - the command returns a new descriptor.
    unsafe { new_descriptor(BPF_MAP_CREATE, &attributes) }
}

/// Loads an XDP program. The kernel checks that it reads nothing outside a frame.
pub(crate) fn load_xdp(name: &str, instructions: &[u64], licence: &CStr) -> io::Result<OwnedFd> {
    let attributes = ProgLoad {
        prog_type: BPF_PROG_TYPE_XDP,
        insn_cnt: u32::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        insns: instructions.as_ptr().expose_provenance() as u64,
        license: licence.as_ptr().expose_provenance() as u64,
        log_level: 0,
        log_size: 0,
        log_buf: 0,
        kern_version: 0,
        prog_flags: 0,
        prog_name: short(name),
    };
    let mut tries = 1;
    loop {
        // SAFETY:
        // - ProgLoad is what the command reads;
        // - `insns` is the address of `insn_cnt` instructions of 8 bytes, and `license` that of a string with a zero at
        //   its end; both are borrowed until the function ends; a log of size 0 has no address;
        // - the command returns a new descriptor.
        let loaded = unsafe { new_descriptor(BPF_PROG_LOAD, &attributes) };
        match loaded {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries < LOAD_TRIES => tries += 1,
            loaded => return loaded,
        }
    }
}

/// Holds a program on an interface, as long as the descriptor is open. `mode` is one of the XDP flags above.
pub(crate) fn link_xdp(program: BorrowedFd<'_>, interface: u32, mode: u32) -> io::Result<OwnedFd> {
    let attributes =
        LinkCreate { prog_fd: number(program), target_ifindex: interface, attach_type: BPF_XDP, flags: mode };
    // SAFETY:
    // - LinkCreate is what the command reads for an XDP program, and has no addresses;
    // - the command returns a new descriptor.
    unsafe { new_descriptor(BPF_LINK_CREATE, &attributes) }
}

/// Puts a socket into a map.
pub(crate) fn set_socket(map: BorrowedFd<'_>, place: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = number(socket);
    let attributes = MapUpdate {
        map_fd: number(map),
        unused: 0,
        key: (&raw const place).expose_provenance() as u64,
        value: (&raw const value).expose_provenance() as u64,
        flags: 0,
    };
    // SAFETY:
    // - MapUpdate is what the command reads;
    // - `key` and `value` are addresses of four bytes each, which are alive until the function ends. A map of sockets
    //   has keys and values of this size; of another map, the kernel may read further, but writes nothing.
    unsafe { bpf(BPF_MAP_UPDATE_ELEM, &attributes) }.map(drop)
}

/// The descriptor that a command returns.
///
/// # Safety
///
/// As for [`bpf`], and the command returns a new descriptor.
unsafe fn new_descriptor<T>(command: libc::c_int, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the caller vouches for the attributes.
    let descriptor = unsafe { bpf(command, attributes) }?;
    // SAFETY: the caller says that it is a new descriptor, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// The system call.
///
/// # Safety
///
/// - `T` is a part of `union bpf_attr` from its start, and that which the command reads;
/// - each address in it is that of memory which is alive and as long as the command reads.
///
/// The kernel writes nothing: it would write the length of a log, but that field is behind those of `T`.
unsafe fn bpf<T>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_int> {
    // SAFETY:
    // - `attributes` is alive, as long as the size says, and only read;
    // - the caller vouches for what is in it.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size_of::<T>()) };
    libc::c_int::try_from(result).ok().filter(|result| *result >= 0).ok_or_else(io::Error::last_os_error)
}

fn number(descriptor: BorrowedFd<'_>) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}

fn short(name: &str) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    for (place, byte) in bytes.iter_mut().zip(name.bytes()).take(NAME_BYTES - 1) {
        *place = byte;
    }
    bytes
}
