//! What to call, with which buffers, for one request.
//!
//! A plan is a list of calls of the module's exports (the C interface of
//! `ciphers/ciphermill.h`) and the bytes that stand in memory before. It is
//! made once and carried out twice, on the simulated machine and on the
//! reference interpreter, so that whatever differs afterwards is the machine
//! code's doing.
//!
//! The buffers lie behind `__heap_base`, the end of all that the C compiler
//! placed, each on a boundary of 64 bytes: context, key, IV, input, output.
//! No two overlap, as the interface promises.

use crate::error::MeasureError;
use crate::inputs;
use crate::interface::{Interface, Kind};
use crate::request::{Blocks, Direction};
use std::ops::Range;

/// Longest message, in bytes.
pub const MAX_MESSAGE: u32 = 4_000_000_000;

/// Messages longer than this are processed in pieces of [`PIECE`] bytes, or a
/// little less for whole blocks: one call after the other on the same two
/// buffers, as a program does that reads a file. Memory bounds the buffers.
const PIECES_FROM: u32 = 1 << 26;
const PIECE: u32 = 1 << 24;

const ALIGN: u64 = 64;

/// A call of an exported function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    pub export: &'static str,
    pub args: Vec<u64>,
}

/// What is run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// Bytes written to memory first, by address.
    pub writes: Vec<(u32, Vec<u8>)>,
    /// Calls whose cycles do not count.
    pub setup: Vec<Call>,
    /// Calls whose cycles do, and the bytes of the message that the first of them processes.
    pub measured: Vec<Call>,
    pub first_bytes: u32,
    /// Calls behind them, each counted by itself; see [`crate::steady`].
    pub passes: Vec<Call>,
    /// The whole message's.
    pub bytes: u32,
    /// The buffers by name, for messages.
    pub buffers: Vec<(&'static str, Range<u32>)>,
    /// Memory that has to exist, in bytes.
    pub memory_bytes: u64,
    /// Steps of the reference interpreter after which all of it together is given up.
    pub limit: u64,
}

/// The key and IV sizes and the direction that a plan is for.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub direction: Direction,
    pub blocks: Blocks,
    pub key_bytes: u32,
    pub iv_bytes: u32,
    /// See [`RunPlan::limit`]; None: what [`limit`] says.
    pub limit: Option<u64>,
}

/// Addresses handed out one after the other.
pub(crate) struct Space {
    next: u64,
    /// The next buffer begins just there.
    exact: bool,
    /// No buffer goes beyond.
    limit: u64,
    buffers: Vec<(&'static str, Range<u32>)>,
}

impl Space {
    pub(crate) fn new(module: &Interface) -> Space {
        let limit = module.memory_end.map_or(MEMORY_LIMIT, u64::from);
        Space { next: u64::from(module.heap_base), exact: false, limit, buffers: Vec::new() }
    }

    /// Go on to the next address of a residue modulo a power of two.
    fn skip(&mut self, modulus: u32, residue: u32) {
        let (modulus, residue) = (u64::from(modulus), u64::from(residue));
        self.next += (residue + modulus - self.next % modulus) % modulus;
        self.exact = true;
    }

    pub(crate) fn take(&mut self, name: &'static str, bytes: u32) -> Result<u32, MeasureError> {
        let start = if std::mem::take(&mut self.exact) { self.next } else { self.next.next_multiple_of(ALIGN) };
        let end = start + u64::from(bytes);
        if self.limit < MEMORY_LIMIT && end > self.limit {
            return Err(MeasureError::input(format!(
                "the {name} buffer of {bytes} bytes would end at address {end}, and memory for programs ends at {} on this \
                 machine, the rest is for stacks; take a machine with more memory, or a variant with smaller tables",
                self.limit
            )));
        }
        if start >= MEMORY_LIMIT {
            return Err(MeasureError::input(format!(
                "__heap_base is so high that no {name} buffer fits behind it (address {start:#x}, and memory ends at \
                 {MEMORY_LIMIT:#x}); export the end of the module's own data"
            )));
        }
        if end > MEMORY_LIMIT {
            return Err(MeasureError::input(format!(
                "the {name} buffer of {bytes} bytes does not fit into memory behind __heap_base; use a shorter message"
            )));
        }
        self.next = end;
        self.buffers.push((name, start as u32..end as u32));
        Ok(start as u32)
    }

    pub(crate) fn end(&self) -> u64 {
        self.next
    }
}

/// Where every plan puts the context of a module of which [`Interface::context_at`] says nothing.
pub fn context(module: &Interface) -> u32 {
    (u64::from(module.heap_base).next_multiple_of(ALIGN)).min(MEMORY_LIMIT) as u32
}

/// Linear memory ends below the addresses where code and system area stand.
const MEMORY_LIMIT: u64 = 0x8000_0000;

impl RunPlan {
    /// The plan for a message of `bytes` bytes (for [`Direction::Keysetup`]:
    /// for that many keys' bytes, a whole number of them).
    pub fn new(module: &Interface, work: Work, bytes: u32) -> Result<RunPlan, MeasureError> {
        let mut space = Space::new(module);
        if let Some((modulus, residue)) = module.context_at {
            space.skip(modulus, residue);
        }
        let ctx = space.take("context", module.ctx_bytes)?;
        let key = space.take("key", work.key_bytes)?;
        let mut writes = vec![(key, inputs::bytes("key", work.key_bytes as usize))];
        let keysetup = |export| Call { export, args: vec![ctx.into(), key.into(), work.key_bytes.into()] };
        let piece = if bytes > PIECES_FROM { PIECE / module.block_bytes * module.block_bytes } else { bytes };
        // In a small memory a message comes in as many blocks at a time as fit twice.
        let piece = match module.memory_end {
            Some(end) if work.direction != Direction::Keysetup => {
                let iv = if work.direction == Direction::Keystream { work.iv_bytes } else { 0 };
                let behind = space.end() + u64::from(iv) + 3 * ALIGN;
                let room = (u64::from(end).saturating_sub(behind) / 2) as u32;
                piece.min((room / module.block_bytes).max(1) * module.block_bytes)
            }
            _ => piece,
        };
        let message = match (work.direction, work.blocks) {
            (Direction::Keysetup, _) => 0,
            (_, Blocks::Single) => module.block_bytes,
            (_, Blocks::Multi) => piece,
        };
        let mut setup = Vec::new();
        let mut measured = Vec::new();
        match work.direction {
            Direction::Keysetup => {
                measured = vec![keysetup("cm_keysetup"); (bytes / work.key_bytes) as usize];
            }
            Direction::Keystream => {
                setup.push(keysetup("cm_keysetup"));
                if module.has("cm_ivsetup") {
                    let iv = space.take("IV", work.iv_bytes)?;
                    writes.push((iv, inputs::bytes("iv", work.iv_bytes as usize)));
                    setup.push(Call { export: "cm_ivsetup", args: vec![ctx.into(), iv.into(), work.iv_bytes.into()] });
                }
            }
            Direction::Encrypt => setup.push(keysetup("cm_keysetup")),
            Direction::Decrypt => setup.push(keysetup("cm_keysetup_decrypt")),
        }
        if message > 0 {
            let input = space.take("input", message)?;
            let output = space.take("output", message)?;
            writes.push((input, inputs::bytes("message", message as usize)));
            let export = driver(work.direction, work.blocks);
            let mut left = bytes;
            while left > 0 {
                let now = left.min(piece);
                let count = if module.kind == Kind::Stream { now } else { now / module.block_bytes };
                measured.push(Call { export, args: vec![ctx.into(), input.into(), output.into(), count.into()] });
                left -= now;
            }
        }
        Ok(RunPlan {
            writes,
            setup,
            measured,
            first_bytes: piece,
            passes: Vec::new(),
            bytes,
            memory_bytes: space.end(),
            limit: work.limit.unwrap_or_else(|| limit(bytes as usize)),
            buffers: space.buffers,
        })
    }

    /// Names a byte of memory, for messages.
    pub fn place(&self, addr: u32) -> String {
        match self.buffers.iter().find(|(_, range)| range.contains(&addr)) {
            Some((name, range)) => format!("byte {} of the {name}", addr - range.start),
            None => format!("the module's own data at address {addr:#x}"),
        }
    }
}

/// Steps of the reference interpreter that a key set-up and a message of so many
/// bytes may take if nobody says otherwise: some seconds.
///
/// Steps, and not instructions of a machine: a program that ends has ended on every
/// machine or on none.
pub fn limit(bytes: usize) -> u64 {
    1_000_000_000 + 100_000 * bytes as u64
}

/// Instructions that a machine may take for what took so many steps. It is there for
/// errors of ours alone: a step is at most the division of two words in software, or
/// the copy of 64 bytes, each some hundreds of instructions.
pub fn backstop(steps: u64) -> u64 {
    steps.saturating_mul(10_000).saturating_add(100_000_000).min(u64::MAX / 2)
}

/// A number with its thousands apart, for messages.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The export that processes a message (or expands a key): what is measured.
pub fn driver(direction: Direction, blocks: Blocks) -> &'static str {
    match (direction, blocks) {
        (Direction::Encrypt, Blocks::Multi) => "cm_encrypt_blocks",
        (Direction::Encrypt, Blocks::Single) => "cm_encrypt_feedback",
        (Direction::Decrypt, Blocks::Multi) => "cm_decrypt_blocks",
        (Direction::Decrypt, Blocks::Single) => "cm_decrypt_feedback",
        (Direction::Keystream, _) => "cm_keystream",
        (Direction::Keysetup, _) => "cm_keysetup",
    }
}

/// The exports a request needs, the measured one last.
pub fn needed(direction: Direction, blocks: Blocks) -> Vec<&'static str> {
    let setup = if direction == Direction::Decrypt { "cm_keysetup_decrypt" } else { "cm_keysetup" };
    let mut names = vec!["cm_ctx_bytes", "cm_block_bytes", setup];
    if direction != Direction::Keysetup {
        names.push(driver(direction, blocks));
    }
    names
}

/// The message length of a request, in bytes.
pub fn length(unit: u32, bytes: Option<u32>, ragged: bool) -> Result<u32, MeasureError> {
    let bytes = match bytes {
        Some(bytes) => bytes,
        None => 4096u32.next_multiple_of(unit),
    };
    if bytes == 0 || bytes > MAX_MESSAGE {
        return Err(MeasureError::input(format!(
            "--bytes {bytes}: a message has 1 to {MAX_MESSAGE} bytes here; longer ones repeat the same steady state"
        )));
    }
    if !ragged && !bytes.is_multiple_of(unit) {
        let near = bytes.next_multiple_of(unit);
        return Err(MeasureError::input(format!(
            "--bytes {bytes}: a message is a whole number of blocks of {unit} bytes; use --bytes {near}"
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(kind: Kind) -> Interface {
        Interface {
            kind,
            ctx_bytes: 240,
            block_bytes: 16,
            heap_base: 0x11003,
            context_at: None,
            memory_end: None,
            exports: ["cm_ivsetup".to_owned()].into(),
        }
    }

    fn work(direction: Direction, blocks: Blocks) -> Work {
        Work { direction, blocks, key_bytes: 16, iv_bytes: 8, limit: None }
    }

    #[test]
    fn buffers_are_aligned_and_apart() {
        let plan = RunPlan::new(&module(Kind::Block), work(Direction::Encrypt, Blocks::Multi), 4096).unwrap();
        let mut end = 0x11003;
        for (_, range) in &plan.buffers {
            assert_eq!(range.start % 64, 0);
            assert!(range.start >= end);
            end = range.end;
        }
        assert_eq!(plan.memory_bytes, u64::from(end));
        assert_eq!(plan.buffers.iter().map(|b| b.0).collect::<Vec<_>>(), ["context", "key", "input", "output"]);
        assert_eq!(plan.measured[0].args[3], 256);
    }

    #[test]
    fn the_context_stands_where_it_is_said_to_stand() {
        let module = module(Kind::Block);
        let plan = RunPlan::new(&module, work(Direction::Encrypt, Blocks::Multi), 4096).unwrap();
        assert_eq!(plan.buffers[0].1.start, context(&module));
    }

    #[test]
    fn feedback_needs_one_block_of_memory() {
        let plan = RunPlan::new(&module(Kind::Block), work(Direction::Decrypt, Blocks::Single), 1 << 20).unwrap();
        assert_eq!(plan.buffers[2].1.len(), 16);
        assert_eq!(plan.setup[0].export, "cm_keysetup_decrypt");
        assert_eq!((plan.measured[0].export, plan.measured[0].args[3]), ("cm_decrypt_feedback", 65536));
    }

    #[test]
    fn a_stream_counts_bytes_and_takes_an_iv() {
        let plan = RunPlan::new(&module(Kind::Stream), work(Direction::Keystream, Blocks::Multi), 100).unwrap();
        assert_eq!(plan.setup.iter().map(|c| c.export).collect::<Vec<_>>(), ["cm_keysetup", "cm_ivsetup"]);
        assert_eq!(plan.measured[0].args[3], 100);
    }

    #[test]
    fn a_long_message_comes_in_pieces() {
        let plan =
            |bytes| RunPlan::new(&module(Kind::Stream), work(Direction::Keystream, Blocks::Multi), bytes).unwrap();
        assert_eq!(plan(1 << 26).measured.len(), 1);
        let long = plan(2_400_000_001);
        let counts: Vec<u64> = long.measured.iter().map(|c| c.args[3]).collect();
        assert_eq!(counts.iter().sum::<u64>(), 2_400_000_001);
        assert!(counts[..counts.len() - 1].iter().all(|&n| n == 1 << 24) && long.memory_bytes < 1 << 26);
        assert_eq!(long.first_bytes, 1 << 24);
    }

    #[test]
    fn lengths_are_whole_blocks() {
        assert_eq!(length(16, None, false).unwrap(), 4096);
        assert_eq!(length(24, None, false).unwrap(), 4104);
        assert_eq!(length(16, Some(16), false).unwrap(), 16);
        assert_eq!(length(64, Some(100), true).unwrap(), 100);
        assert!(length(16, Some(20), false).unwrap_err().to_string().contains("--bytes 32"));
        assert!(length(16, Some(0), false).is_err());
    }
}
