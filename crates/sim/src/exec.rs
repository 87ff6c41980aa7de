//! The interpreter of xops: one loop, one match.
//!
//! It runs a stretch of xops from its first to the `End…` xop that leaves it.
//! It knows nothing of time: whoever calls it adds up cycles. A [`Hook`] sees
//! every access to memory (a data cache, a recorder); the one that does
//! nothing costs nothing. Byte order and hook are type parameters, so the loop
//! is compiled once for each combination in use.
//!
//! # Why the unchecked slot accesses are sound
//!
//! Every slot number in an xop was handed out by [`crate::slots::SlotPool`] as
//! an index into its values, which never shrink, and the flattener is the only
//! maker of xops. Every stretch of xops ends with an `End…` or `Trap` xop, and
//! skips stay within one instruction's xops, so the instruction pointer stays
//! inside the code.

use crate::cache::Cache;
use crate::memory::{Fault, Memory};
use crate::slots::SlotPool;
use crate::windows::Windows;
use crate::xop::{BIN_OPS, CMP_OPS, Op, Slot, UN_OPS, Xop};

/// Sees every access to memory.
pub trait Hook {
    fn load(&mut self, addr: u64, bytes: u64);
    fn store(&mut self, addr: u64, bytes: u64);
    /// The accesses that follow are those of this instruction of the bundle.
    #[inline(always)]
    fn mark(&mut self, _instruction: u16) {}
}

/// Ideal memory.
pub struct NoHook;

impl Hook for NoHook {
    #[inline(always)]
    fn load(&mut self, _: u64, _: u64) {}
    #[inline(always)]
    fn store(&mut self, _: u64, _: u64) {}
}

impl Hook for Cache {
    #[inline(always)]
    fn load(&mut self, addr: u64, bytes: u64) {
        Cache::load(self, addr & 0xffff_ffff, bytes);
    }
    #[inline(always)]
    fn store(&mut self, addr: u64, bytes: u64) {
        Cache::store(self, addr & 0xffff_ffff, bytes);
    }
}

/// How a stretch of xops was left.
#[derive(Clone, Copy, Debug)]
pub enum Exit {
    /// By exit 0 (taken, or the only way) or 1 (not taken).
    By(usize),
    /// To a code address, by exit 0.
    To(u64),
    /// By a fault of the xop of this index.
    Fault(Fault, usize),
}

/// What the interpreter works on.
pub struct State {
    pub pool: SlotPool,
    pub memory: Memory,
    pub windows: Windows,
    pub tables: Vec<Vec<u64>>,
    /// Matrices over GF(2), as a table for each byte of what they multiply.
    pub matrices: Vec<Vec<[u64; 256]>>,
}

fn flags(r: u64, bits: u32, v: bool, c: bool) -> u64 {
    let n = r >> (bits - 1) & 1;
    let z = r << (64 - bits) == 0;
    n << 3 | u64::from(z) << 2 | u64::from(v) << 1 | u64::from(c)
}

#[cold]
fn divide_fault(b: u64, bits: u32) -> Fault {
    Fault::Divide(b & ciphermill_ir::ops::mask(bits) != 0)
}

/// Run the xops from `start` on.
#[inline(always)]
pub fn run<const BE: bool, H: Hook>(code: &[Xop], start: usize, state: &mut State, hook: &mut H) -> Exit {
    let mut ip = start;
    let mem = &mut state.memory;
    let slots: &mut [u64] = &mut state.pool.values;
    // SAFETY (both macros): see the module's comment.
    macro_rules! get {
        ($s:expr) => {
            unsafe { *slots.get_unchecked(usize::from($s)) }
        };
    }
    macro_rules! set {
        ($s:expr, $v:expr) => {{
            let value: u64 = $v;
            unsafe { *slots.get_unchecked_mut(usize::from($s)) = value }
        }};
    }
    macro_rules! op32 {
        ($x:ident, |$a:ident, $b:ident| $e:expr) => {{
            let ($a, $b) = (get!($x.a) as u32, get!($x.b) as u32);
            set!($x.d, u64::from($e));
        }};
    }
    macro_rules! op64 {
        ($x:ident, |$a:ident, $b:ident| $e:expr) => {{
            let ($a, $b) = (get!($x.a), get!($x.b));
            set!($x.d, $e);
        }};
    }
    macro_rules! load {
        ($x:ident, $n:literal, $f:ident) => {{
            let addr = get!($x.a).wrapping_add(get!($x.b));
            match mem.$f::<$n, BE>(addr) {
                Ok(v) => {
                    hook.load(addr, $n);
                    v
                }
                Err(fault) => return Exit::Fault(fault, ip - 1),
            }
        }};
    }
    macro_rules! store {
        ($x:ident, $n:literal, $f:ident) => {{
            let addr = get!($x.a).wrapping_add(get!($x.b));
            match mem.$f::<$n, BE>(addr, get!($x.d)) {
                Ok(()) => hook.store(addr, $n),
                Err(fault) => return Exit::Fault(fault, ip - 1),
            }
        }};
    }
    macro_rules! end_if {
        ($x:ident, |$a:ident, $b:ident| $e:expr) => {{
            let ($a, $b) = (get!($x.a) as u32, get!($x.b) as u32);
            return Exit::By(usize::from(!($e)));
        }};
    }
    loop {
        // SAFETY: see the module's comment.
        let x = unsafe { *code.get_unchecked(ip) };
        ip += 1;
        match x.op {
            Op::Mov => set!(x.d, get!(x.a)),
            Op::Add32 => op32!(x, |a, b| a.wrapping_add(b)),
            Op::Sub32 => op32!(x, |a, b| a.wrapping_sub(b)),
            Op::Mul32 => op32!(x, |a, b| a.wrapping_mul(b)),
            Op::And32 => op32!(x, |a, b| a & b),
            Op::Or32 => op32!(x, |a, b| a | b),
            Op::Xor32 => op32!(x, |a, b| a ^ b),
            Op::Shl32 => op32!(x, |a, b| a.wrapping_shl(b)),
            Op::ShrU32 => op32!(x, |a, b| a.wrapping_shr(b)),
            Op::ShrS32 => op32!(x, |a, b| (a as i32).wrapping_shr(b) as u32),
            Op::RotL32 => op32!(x, |a, b| a.rotate_left(b & 31)),
            Op::RotR32 => op32!(x, |a, b| a.rotate_right(b & 31)),
            Op::MulHiU32 => op32!(x, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
            Op::MulHiS32 => op32!(x, |a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32),
            Op::Add64 => op64!(x, |a, b| a.wrapping_add(b)),
            Op::Sub64 => op64!(x, |a, b| a.wrapping_sub(b)),
            Op::Mul64 => op64!(x, |a, b| a.wrapping_mul(b)),
            Op::And64 => op64!(x, |a, b| a & b),
            Op::Or64 => op64!(x, |a, b| a | b),
            Op::Xor64 => op64!(x, |a, b| a ^ b),
            Op::Shl64 => op64!(x, |a, b| a.wrapping_shl(b as u32)),
            Op::ShrU64 => op64!(x, |a, b| a.wrapping_shr(b as u32)),
            Op::ShrS64 => op64!(x, |a, b| (a as i64).wrapping_shr(b as u32) as u64),
            Op::RotL64 => op64!(x, |a, b| a.rotate_left(b as u32 & 63)),
            Op::RotR64 => op64!(x, |a, b| a.rotate_right(b as u32 & 63)),
            Op::Eq32 => op32!(x, |a, b| a == b),
            Op::Ne32 => op32!(x, |a, b| a != b),
            Op::LtU32 => op32!(x, |a, b| a < b),
            Op::LtS32 => op32!(x, |a, b| (a as i32) < b as i32),
            Op::LeU32 => op32!(x, |a, b| a <= b),
            Op::LeS32 => op32!(x, |a, b| a as i32 <= b as i32),
            Op::Eq64 => op64!(x, |a, b| u64::from(a == b)),
            Op::Ne64 => op64!(x, |a, b| u64::from(a != b)),
            Op::LtU64 => op64!(x, |a, b| u64::from(a < b)),
            Op::LtS64 => op64!(x, |a, b| u64::from((a as i64) < b as i64)),
            Op::LeU64 => op64!(x, |a, b| u64::from(a <= b)),
            Op::LeS64 => op64!(x, |a, b| u64::from(a as i64 <= b as i64)),
            Op::SExt8In32 => set!(x.d, u64::from(get!(x.a) as i8 as u32)),
            Op::SExt16In32 => set!(x.d, u64::from(get!(x.a) as i16 as u32)),
            Op::Bswap32 => set!(x.d, u64::from((get!(x.a) as u32).swap_bytes())),
            Op::Bin => {
                // SAFETY: a Data xop always follows.
                let data = unsafe { *code.get_unchecked(ip) };
                ip += 1;
                let (b, bits) = (get!(x.b), u32::from(data.a));
                match BIN_OPS[usize::from(data.d)].eval(get!(x.a), b, bits) {
                    Some(v) => set!(x.d, v),
                    None => return Exit::Fault(divide_fault(b, bits), ip - 2),
                }
            }
            Op::Cmp => {
                // SAFETY: a Data xop always follows.
                let data = unsafe { *code.get_unchecked(ip) };
                ip += 1;
                let holds = CMP_OPS[usize::from(data.d)].eval(get!(x.a), get!(x.b), u32::from(data.a));
                set!(x.d, u64::from(holds));
            }
            Op::Un => set!(x.d, UN_OPS[usize::from(x.b & 255)].eval(get!(x.a), u32::from(x.b >> 8))),
            Op::Select => {
                // SAFETY: a Data xop always follows.
                let data = unsafe { *code.get_unchecked(ip) };
                ip += 1;
                let (t, e) = (get!(x.b), get!(data.a));
                set!(x.d, if get!(x.a) != 0 { t } else { e });
            }
            Op::SkipIfZero => {
                if get!(x.a) == 0 {
                    ip += usize::from(x.b);
                }
            }
            Op::Skip => ip += usize::from(x.b),
            Op::Slice => {
                let width = u32::from(x.b >> 8);
                set!(x.d, (get!(x.a) >> (x.b & 63)) & (u64::MAX >> (64 - width)));
            }
            Op::Table => {
                let table = &state.tables[usize::from(x.b)];
                set!(x.d, table[(get!(x.a) % table.len() as u64) as usize]);
            }
            Op::Linear => {
                let mut value = get!(x.a);
                let mut sum = 0;
                for table in &state.matrices[usize::from(x.b)] {
                    sum ^= table[(value & 255) as usize];
                    value >>= 8;
                }
                set!(x.d, sum);
            }
            Op::MatVec => {
                // SAFETY: a Data xop always follows.
                let data = unsafe { *code.get_unchecked(ip) };
                ip += 1;
                let value = get!(x.a);
                let word = |i: u16, w: u16| get!(x.b + i * data.d + w) << (w * data.b);
                let row = |i: u16| (0..data.d).fold(0, |row, w| row | word(i, w));
                let bit = |i: u16| u64::from((row(i) & value).count_ones() & 1) << i;
                let sum = (0..data.a).map(bit).fold(0, |sum, bit| sum | bit);
                set!(x.d, sum);
            }
            Op::FlagsSub32 => op32!(x, |a, b| {
                let r = a.wrapping_sub(b);
                flags(u64::from(r), 32, ((a ^ b) & (a ^ r)) >> 31 != 0, a < b)
            }),
            Op::FlagsSub64 => op64!(x, |a, b| {
                let r = a.wrapping_sub(b);
                flags(r, 64, ((a ^ b) & (a ^ r)) >> 63 != 0, a < b)
            }),
            Op::FlagsAdd32 => op32!(x, |a, b| {
                let r = a.wrapping_add(b);
                flags(u64::from(r), 32, (!(a ^ b) & (a ^ r)) >> 31 != 0, r < a)
            }),
            Op::FlagsAdd64 => op64!(x, |a, b| {
                let r = a.wrapping_add(b);
                flags(r, 64, (!(a ^ b) & (a ^ r)) >> 63 != 0, r < a)
            }),
            Op::FlagsLogic32 => set!(x.d, flags(get!(x.a) & 0xffff_ffff, 32, false, false)),
            Op::FlagsLogic64 => set!(x.d, flags(get!(x.a), 64, false, false)),
            Op::FlagsTest => set!(x.d, u64::from(x.b) >> (get!(x.a) & 15) & 1),
            Op::LdL8 => set!(x.d, load!(x, 1, load_linear)),
            Op::LdL16 => set!(x.d, load!(x, 2, load_linear)),
            Op::LdL32 => set!(x.d, load!(x, 4, load_linear)),
            Op::LdU32 => set!(x.d, load!(x, 4, load_anywhere)),
            Op::LdL64 => set!(x.d, load!(x, 8, load_linear)),
            Op::LdL8S => set!(x.d, u64::from(load!(x, 1, load_linear) as i8 as u32)),
            Op::LdL16S => set!(x.d, u64::from(load!(x, 2, load_linear) as i16 as u32)),
            Op::LdF8 => set!(x.d, load!(x, 1, load_flash)),
            Op::LdF16 => set!(x.d, load!(x, 2, load_flash)),
            Op::LdR8 => set!(x.d, load!(x, 1, load_ram)),
            Op::LdR16 => set!(x.d, load!(x, 2, load_ram)),
            Op::LdK8 => set!(x.d, load!(x, 1, load_stack)),
            Op::LdK16 => set!(x.d, load!(x, 2, load_stack)),
            Op::LdK32 => set!(x.d, load!(x, 4, load_stack)),
            Op::LdK64 => set!(x.d, load!(x, 8, load_stack)),
            Op::LdY8 => set!(x.d, load!(x, 1, load_system)),
            Op::LdY16 => set!(x.d, load!(x, 2, load_system)),
            Op::LdY32 => set!(x.d, load!(x, 4, load_system)),
            Op::LdY64 => set!(x.d, load!(x, 8, load_system)),
            Op::StL8 => store!(x, 1, store_linear),
            Op::StL16 => store!(x, 2, store_linear),
            Op::StL32 => store!(x, 4, store_linear),
            Op::StU32 => store!(x, 4, store_anywhere),
            Op::StL64 => store!(x, 8, store_linear),
            Op::StK8 => store!(x, 1, store_stack),
            Op::StK16 => store!(x, 2, store_stack),
            Op::StK32 => store!(x, 4, store_stack),
            Op::StK64 => store!(x, 8, store_stack),
            Op::StY8 => store!(x, 1, store_system),
            Op::StY16 => store!(x, 2, store_system),
            Op::StY32 => store!(x, 4, store_system),
            Op::StY64 => store!(x, 8, store_system),
            Op::Rotate => slots[usize::from(x.a)..usize::from(x.a) + usize::from(x.b)].rotate_right(1),
            Op::WindowSave => {
                if let Err(fault) = state.windows.save(slots) {
                    return Exit::Fault(fault, ip - 1);
                }
            }
            Op::WindowRestore => {
                if let Err(fault) = state.windows.restore(slots) {
                    return Exit::Fault(fault, ip - 1);
                }
            }
            Op::Mark => hook.mark(x.a),
            Op::Trap => return Exit::Fault(Fault::Trap, ip - 1),
            Op::End => return Exit::By(0),
            Op::EndIf => return Exit::By(usize::from(get!(x.a) == 0)),
            Op::EndUnless => {
                if get!(x.a) == 0 {
                    return Exit::By(1);
                }
            }
            Op::EndEq32 => end_if!(x, |a, b| a == b),
            Op::EndNe32 => end_if!(x, |a, b| a != b),
            Op::EndLtU32 => end_if!(x, |a, b| a < b),
            Op::EndLtS32 => end_if!(x, |a, b| (a as i32) < b as i32),
            Op::EndLeU32 => end_if!(x, |a, b| a <= b),
            Op::EndLeS32 => end_if!(x, |a, b| a as i32 <= b as i32),
            Op::EndTo => return Exit::To(get!(x.a)),
            Op::EndToIf => {
                let to: Slot = x.b;
                return if get!(x.a) != 0 { Exit::To(get!(to)) } else { Exit::By(1) };
            }
            // Never executed: whoever needs one steps over it.
            Op::Data => {}
        }
    }
}
