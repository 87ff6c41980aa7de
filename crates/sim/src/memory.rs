//! The memories of a simulated machine: linear, system, stack.
//!
//! Each is a plain array of bytes at its place in the address space. An access
//! says which one it means, and an address outside it is an error of the kind
//! that fits: outside the linear memory a WebAssembly trap, below the stack a
//! stack overflow, anything else a fault of the compiler's.
//!
//! # Byte order
//!
//! The arrays hold bytes in WebAssembly's (little-endian) order whatever the
//! machine. Memory of a big-endian machine is *word-invariant*: an aligned word
//! has the same value in both, so the machine's byte `a` is the array's byte
//! `a ^ 3` and its halfword `a` the one at `a ^ 2`; the code generator addresses
//! memory accordingly.
//!
//! The size of the linear memory stands in the first word of the system area;
//! a store there changes it at once.

use ciphermill_ir::{PAGE_BYTES, SYSTEM_BASE, Space};
use ciphermill_machine::{Endian, Machine};
use ciphermill_program::Program;
use ciphermill_program::layout::{Layout, STACK_BYTES, STACK_TOP};
use std::ops::Range;

/// Lowest address of the stack.
pub(crate) const STACK_BASE: u32 = STACK_TOP - STACK_BYTES;

/// Where the stack of frames grows down from. A stack of return addresses of its own has the bytes above.
pub(crate) fn stack_from(machine: &Machine) -> u32 {
    STACK_TOP - if machine.abi.return_stack.is_some() { STACK_BYTES / 2 } else { 0 }
}

/// Why an access or operation could not be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    OutOfBounds,
    /// Division; true for overflow, false for a zero divisor.
    Divide(bool),
    Trap,
    StackLimit,
    /// A store into a range that the module promised never to write.
    ReadOnly(u64),
    Misaligned(u64),
    /// A load of RAM where flash is, or of flash where it is not.
    OtherMemory(u64),
    /// Not in the space that the access named.
    BadSystem(u64),
    BadStack(u64),
    /// A new memory size beyond the maximum.
    BadPages(u64),
    /// `restore` without `save`.
    NoWindow,
}

/// All memory of one simulated machine.
pub struct Memory {
    pub linear: Vec<u8>,
    pub system: Vec<u8>,
    pub stack: Vec<u8>,
    pub max_pages: u32,
    /// Ranges never to be written, in order, and what they span.
    readonly: Vec<Range<u32>>,
    span: Range<u64>,
    /// Addresses that loads of flash read, and no others.
    flash: Range<u64>,
    /// All ones, or the low half when addresses wrap at 32 bits.
    pub address_mask: u64,
    /// Those bits of a place in the system area that addresses have.
    system_mask: u64,
    /// Address bits that must be zero (of those below an access's size).
    pub align_mask: u64,
    /// Lowest stack address touched.
    pub lowest_stack: u64,
}

impl Memory {
    /// Memory as a program starts with it.
    pub fn new(
        program: &Program,
        layout: &Layout,
        strict_addresses: bool,
        check_alignment: bool,
    ) -> Result<Memory, String> {
        // Word-invariance is about aligned accesses.
        let big = program.machine.endian == Endian::Big;
        let size = u64::from(program.min_pages) * PAGE_BYTES;
        let mut linear = vec![0; size as usize];
        for segment in &program.data {
            let at = segment.addr as usize;
            let to = linear
                .get_mut(at..at + segment.bytes.len())
                .ok_or_else(|| format!("data segment at {at:#x} does not fit the initial memory of {size:#x} bytes"))?;
            to.copy_from_slice(&segment.bytes);
        }
        let mut system = program.system.clone();
        system.resize(system.len().max(8).next_multiple_of(8), 0);
        put(&mut system, 0, 4, u64::from(program.min_pages));
        put(&mut system, 4, 4, u64::from(program.max_pages));
        for r in &program.system_func_refs {
            let f = r.func.as_u32();
            if r.offset as usize + 4 > system.len() || f as usize >= program.funcs.len() {
                return Err(format!("function reference at system offset {} is out of range", r.offset));
            }
            put(&mut system, r.offset as usize, 4, u64::from(layout.func(f) / program.machine.abi.code_unit.max(1)));
        }
        let mut readonly = program.readonly.clone();
        readonly.sort_by_key(|r| r.start);
        let span = match (readonly.first(), readonly.iter().map(|r| r.end).max()) {
            (Some(first), Some(end)) => u64::from(first.start)..u64::from(end),
            _ => 0..0,
        };
        Ok(Memory {
            linear,
            system,
            stack: vec![0; STACK_BYTES as usize],
            max_pages: program.max_pages,
            readonly,
            span,
            flash: program
                .flash
                .as_ref()
                .filter(|_| program.machine.reads_flash())
                .map_or(0..0, |at| u64::from(at.start)..u64::from(at.end)),
            address_mask: match program.machine.value_bits() {
                _ if strict_addresses => u64::MAX,
                // Words of fewer bits make addresses of two bytes.
                bits if bits < 32 => 0xffff,
                _ => 0xffff_ffff,
            },
            system_mask: if program.machine.value_bits() < 32 { 0xffff } else { 0xffff_ffff },
            align_mask: if big || (check_alignment && !program.machine.memory.unaligned) { 7 } else { 0 },
            lowest_stack: u64::from(STACK_TOP),
        })
    }

    /// Load `N` bytes of linear memory; `N` is 1, 2, 4 or 8.
    #[inline(always)]
    pub(crate) fn load_linear<const N: usize, const BE: bool>(&self, addr: u64) -> Result<u64, Fault> {
        if addr & self.address_mask & self.align_mask & (N as u64 - 1) != 0 {
            return Err(Fault::Misaligned(addr & self.address_mask));
        }
        self.load_anywhere::<N, BE>(addr)
    }

    /// The same at an address that need not be aligned (but is on a big-endian
    /// machine, whose memory is kept by words).
    #[inline(always)]
    pub(crate) fn load_anywhere<const N: usize, const BE: bool>(&self, addr: u64) -> Result<u64, Fault> {
        let addr = addr & self.address_mask;
        match slice::<N, BE>(&self.linear, addr) {
            Some(bytes) => Ok(get::<N, BE>(bytes)),
            None => Err(Fault::OutOfBounds),
        }
    }

    /// Load `N` bytes from RAM, on a machine whose flash has addresses of its own.
    #[inline(never)]
    pub(crate) fn load_ram<const N: usize, const BE: bool>(&self, addr: u64) -> Result<u64, Fault> {
        match self.flash.contains(&(addr & self.address_mask)) {
            true => Err(Fault::OtherMemory(addr & self.address_mask)),
            false => self.load_linear::<N, BE>(addr),
        }
    }

    /// Load `N` bytes from flash.
    #[inline(never)]
    pub(crate) fn load_flash<const N: usize, const BE: bool>(&self, addr: u64) -> Result<u64, Fault> {
        match self.flash.contains(&(addr & self.address_mask)) {
            true => self.load_linear::<N, BE>(addr),
            false => Err(Fault::OtherMemory(addr & self.address_mask)),
        }
    }

    /// Store the low `N` bytes of `value` in linear memory.
    #[inline(always)]
    pub(crate) fn store_linear<const N: usize, const BE: bool>(&mut self, addr: u64, value: u64) -> Result<(), Fault> {
        if addr & self.address_mask & self.align_mask & (N as u64 - 1) != 0 {
            return Err(Fault::Misaligned(addr & self.address_mask));
        }
        self.store_anywhere::<N, BE>(addr, value)
    }

    /// The same at an address that need not be aligned.
    #[inline(always)]
    pub(crate) fn store_anywhere<const N: usize, const BE: bool>(
        &mut self,
        addr: u64,
        value: u64,
    ) -> Result<(), Fault> {
        let addr = addr & self.address_mask;
        let at = turned::<N, BE>(addr) as u64;
        if at < self.span.end && at.wrapping_add(N as u64) > self.span.start && self.promised(at, N as u64) {
            return Err(Fault::ReadOnly(addr));
        }
        match slice_mut::<N, BE>(&mut self.linear, addr) {
            Some(bytes) => {
                set::<N, BE>(bytes, value);
                Ok(())
            }
            None => Err(Fault::OutOfBounds),
        }
    }

    #[inline(always)]
    pub(crate) fn load_stack<const N: usize, const BE: bool>(&mut self, addr: u64) -> Result<u64, Fault> {
        let at = self.stack_offset::<N>(addr)?;
        match slice::<N, BE>(&self.stack, at) {
            Some(bytes) => Ok(get::<N, BE>(bytes)),
            None => Err(Fault::BadStack(addr)),
        }
    }

    #[inline(always)]
    pub(crate) fn store_stack<const N: usize, const BE: bool>(&mut self, addr: u64, value: u64) -> Result<(), Fault> {
        let at = self.stack_offset::<N>(addr)?;
        match slice_mut::<N, BE>(&mut self.stack, at) {
            Some(bytes) => {
                set::<N, BE>(bytes, value);
                Ok(())
            }
            None => Err(Fault::BadStack(addr)),
        }
    }

    #[inline(always)]
    fn stack_offset<const N: usize>(&mut self, addr: u64) -> Result<u64, Fault> {
        let addr = addr & 0xffff_ffff;
        if addr & self.align_mask & (N as u64 - 1) != 0 {
            return Err(Fault::Misaligned(addr));
        }
        if addr < self.lowest_stack {
            // A frame far below the stack is an overflow; an address nowhere
            // near it is a fault of the compiler's.
            if addr < u64::from(STACK_BASE) {
                return Err(if addr >= u64::from(SYSTEM_BASE) { Fault::StackLimit } else { Fault::BadStack(addr) });
            }
            self.lowest_stack = addr;
        }
        Ok(addr - u64::from(STACK_BASE))
    }

    /// Where in the system area an address is; what is none of it gets a place beyond it.
    #[inline(always)]
    fn in_system(&self, addr: u64) -> u64 {
        (addr & 0xffff_ffff).wrapping_sub(u64::from(SYSTEM_BASE)) & self.system_mask
    }

    #[inline(always)]
    pub(crate) fn load_system<const N: usize, const BE: bool>(&self, addr: u64) -> Result<u64, Fault> {
        let at = self.in_system(addr);
        match slice::<N, BE>(&self.system, at) {
            Some(bytes) => Ok(get::<N, BE>(bytes)),
            None => Err(Fault::BadSystem(addr)),
        }
    }

    #[inline(never)]
    pub(crate) fn store_system<const N: usize, const BE: bool>(&mut self, addr: u64, value: u64) -> Result<(), Fault> {
        let at = self.in_system(addr);
        match slice_mut::<N, BE>(&mut self.system, at) {
            Some(bytes) => set::<N, BE>(bytes, value),
            None => return Err(Fault::BadSystem(addr)),
        }
        if at < 4 { self.resize() } else { Ok(()) }
    }

    fn resize(&mut self) -> Result<(), Fault> {
        let pages = fetch(&self.system, 0, 4);
        if pages > u64::from(self.max_pages) || pages > 65536 {
            return Err(Fault::BadPages(pages));
        }
        self.linear.resize((pages * PAGE_BYTES) as usize, 0);
        Ok(())
    }

    #[cold]
    fn promised(&self, addr: u64, bytes: u64) -> bool {
        self.readonly.iter().any(|r| addr < u64::from(r.end) && addr + bytes > u64::from(r.start))
    }

    /// The address by which [`Memory::peek`] finds what an access of that memory means: words of less than 32 bits make
    /// the lower half of an address in the system area.
    pub fn whole(&self, addr: u32, space: Space) -> u32 {
        match space {
            Space::System => SYSTEM_BASE.wrapping_add(self.in_system(addr.into()) as u32),
            _ => addr,
        }
    }

    /// The bytes that a load of `bytes` (1, 2, 4 or 8) at `addr` would find, wherever the
    /// address is; `None` outside memory. Nothing is counted.
    pub fn peek(&self, addr: u32, bytes: u8, big: bool) -> Option<u64> {
        let (array, base) = match addr {
            a if a >= STACK_BASE => (&self.stack, STACK_BASE),
            a if a >= SYSTEM_BASE => (&self.system, SYSTEM_BASE),
            _ => (&self.linear, 0),
        };
        let at = u64::from(addr - base);
        match (bytes, big) {
            (1, false) => slice::<1, false>(array, at).map(get::<1, false>),
            (2, false) => slice::<2, false>(array, at).map(get::<2, false>),
            (4, false) => slice::<4, false>(array, at).map(get::<4, false>),
            (8, false) => slice::<8, false>(array, at).map(get::<8, false>),
            (1, true) => slice::<1, true>(array, at).map(get::<1, true>),
            (2, true) => slice::<2, true>(array, at).map(get::<2, true>),
            (4, true) => slice::<4, true>(array, at).map(get::<4, true>),
            (8, true) => slice::<8, true>(array, at).map(get::<8, true>),
            _ => None,
        }
    }

    /// Word of the system area, or `None` outside it.
    pub fn system_word(&self, offset: usize, bytes: usize) -> Option<u64> {
        (offset + bytes <= self.system.len()).then(|| fetch(&self.system, offset, bytes))
    }

    /// Write a word of the stack at its address, for a caller from outside.
    pub(crate) fn set_stack_word(&mut self, addr: u32, bytes: usize, value: u64) {
        let at = (addr - STACK_BASE) as usize;
        put(&mut self.stack, at, bytes, value);
    }

    /// Write a word of the system area; false outside it.
    pub(crate) fn set_system_word(&mut self, offset: usize, bytes: usize, value: u64) -> bool {
        let inside = offset + bytes <= self.system.len();
        if inside {
            put(&mut self.system, offset, bytes, value);
        }
        inside
    }
}

#[inline(always)]
fn slice<const N: usize, const BE: bool>(bytes: &[u8], at: u64) -> Option<&[u8; N]> {
    let at = turned::<N, BE>(at);
    if at > bytes.len().wrapping_sub(N) || bytes.len() < N {
        return None;
    }
    // SAFETY: `N <= len` and `at <= len - N`, so `at .. at + N` is inside.
    Some(unsafe { &*bytes.as_ptr().add(at).cast::<[u8; N]>() })
}

#[inline(always)]
fn slice_mut<const N: usize, const BE: bool>(bytes: &mut [u8], at: u64) -> Option<&mut [u8; N]> {
    let at = turned::<N, BE>(at);
    if at > bytes.len().wrapping_sub(N) || bytes.len() < N {
        return None;
    }
    // SAFETY: `N <= len` and `at <= len - N`, so `at .. at + N` is inside.
    Some(unsafe { &mut *bytes.as_mut_ptr().add(at).cast::<[u8; N]>() })
}

/// Where in the array the machine's `N` bytes at `at` stand.
#[inline(always)]
fn turned<const N: usize, const BE: bool>(at: u64) -> usize {
    if BE && N < 4 { at as usize ^ (4 - N) } else { at as usize }
}

/// On a big-endian machine the word at the lower address is the upper half.
#[inline(always)]
fn halves<const N: usize, const BE: bool>(v: u64) -> u64 {
    if BE && N == 8 { v.rotate_left(32) } else { v }
}

#[inline(always)]
fn get<const N: usize, const BE: bool>(bytes: &[u8; N]) -> u64 {
    halves::<N, BE>(fetch(bytes, 0, N))
}

#[inline(always)]
fn set<const N: usize, const BE: bool>(bytes: &mut [u8; N], value: u64) {
    put(bytes, 0, N, halves::<N, BE>(value));
}

#[inline(always)]
fn fetch(bytes: &[u8], at: usize, n: usize) -> u64 {
    let mut w = [0u8; 8];
    w[..n].copy_from_slice(&bytes[at..at + n]);
    u64::from_le_bytes(w)
}

#[inline(always)]
fn put(bytes: &mut [u8], at: usize, n: usize, value: u64) {
    bytes[at..at + n].copy_from_slice(&value.to_le_bytes()[..n]);
}
