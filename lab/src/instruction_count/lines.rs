//! Counts the cache lines that stepped code touches, without hardware counters.
//!
//! Question answered: how many lines would this code fetch from memory, and how many does it leave to be written back?
//! Before each instruction the parent decodes it (the crate iced-x86) and computes the addresses of its operands from
//! the copy's registers.
//!
//! *Fetched* is a line that no stepped instruction touched before. *Written* is a line that none wrote before. So the
//! first batch of packets marks what all batches touch (stack, counters, code's constants), which stays in the caches;
//! what a second batch touches for the first time lies in tables that are far larger than the caches. That is a
//! simulation of a cache that holds all stepped lines and nothing else: it knows no eviction, and no line that the
//! processor fetches ahead on its own.
//!
//! A prefetch touches its line, even if nothing else does. Limits: operands of gathers are not followed beyond their
//! first element; this program has none.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};

/// Bytes of a line.
pub const LINE_BYTES: u64 = 64;
/// Bytes of the longest instruction.
const INSTRUCTION_BYTES_MAX: usize = 15;

/// The lines that were touched so far.
pub struct Lines {
    /// The memory of the copy.
    memory: File,
    decoded: HashMap<u64, Instruction>,
    factory: InstructionInfoFactory,
    touched: HashSet<u64>,
    written: HashSet<u64>,
}

impl Lines {
    /// # Errors
    /// If the system does not let us read the copy's memory.
    pub fn of(process: libc::pid_t) -> io::Result<Self> {
        Ok(Self {
            memory: File::open(format!("/proc/{process}/mem"))?,
            decoded: HashMap::new(),
            factory: InstructionInfoFactory::new(),
            touched: HashSet::new(),
            written: HashSet::new(),
        })
    }

    /// Notes the operands of the instruction that will be executed next.
    ///
    /// # Errors
    /// If the instruction cannot be read.
    pub fn note(&mut self, registers: &libc::user_regs_struct) -> io::Result<()> {
        let instruction = match self.decoded.get(&registers.rip) {
            Some(instruction) => *instruction,
            None => {
                let instruction = self.decode(registers.rip)?;
                self.decoded.insert(registers.rip, instruction);
                instruction
            }
        };
        let value = |register: Register, _: usize, _: usize| Some(value_of(register, registers));
        if is_prefetch(instruction.mnemonic()) {
            if let Some(address) = instruction.virtual_address(0, 0, value) {
                self.touched.insert(address / LINE_BYTES);
            }
            return Ok(());
        }
        for operand in self.factory.info(&instruction).used_memory() {
            let Some(address) = operand.virtual_address(0, value) else { continue };
            let bytes = operand.memory_size().size().max(1) as u64;
            let writes = !matches!(operand.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
            for line in address / LINE_BYTES..=address.saturating_add(bytes - 1) / LINE_BYTES {
                self.touched.insert(line);
                if writes {
                    self.written.insert(line);
                }
            }
        }
        Ok(())
    }

    /// Lines touched and lines written.
    pub fn counts(&self) -> [u64; 2] {
        [self.touched.len() as u64, self.written.len() as u64]
    }

    fn decode(&self, address: u64) -> io::Result<Instruction> {
        let mut bytes = [0; INSTRUCTION_BYTES_MAX];
        let read = self.memory.read_at(&mut bytes, address)?;
        Ok(Decoder::with_ip(64, &bytes[..read], address, DecoderOptions::NONE).decode())
    }
}

fn is_prefetch(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{Prefetchnta, Prefetcht0, Prefetcht1, Prefetcht2, Prefetchw};
    matches!(mnemonic, Prefetchnta | Prefetcht0 | Prefetcht1 | Prefetcht2 | Prefetchw)
}

/// The value of a general register or the base of a segment; 0 for others, whose bases are 0.
fn value_of(register: Register, registers: &libc::user_regs_struct) -> u64 {
    let whole = match register.full_register() {
        Register::RAX => registers.rax,
        Register::RBX => registers.rbx,
        Register::RCX => registers.rcx,
        Register::RDX => registers.rdx,
        Register::RSI => registers.rsi,
        Register::RDI => registers.rdi,
        Register::RBP => registers.rbp,
        Register::RSP => registers.rsp,
        Register::R8 => registers.r8,
        Register::R9 => registers.r9,
        Register::R10 => registers.r10,
        Register::R11 => registers.r11,
        Register::R12 => registers.r12,
        Register::R13 => registers.r13,
        Register::R14 => registers.r14,
        Register::R15 => registers.r15,
        Register::RIP => registers.rip,
        Register::FS => registers.fs_base,
        Register::GS => registers.gs_base,
        _ => 0,
    };
    // The 32-bit registers are used for addresses in 32-bit mode only, or as an index whose upper half is 0.
    if register.size() == 4 { whole & u64::from(u32::MAX) } else { whole }
}
