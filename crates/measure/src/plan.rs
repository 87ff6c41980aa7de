//! What to call, with which buffers, for one request.
//!
//! A plan is a list of calls of the module's exports (the C interface of
//! `ciphers/ciphermill.h`) and the bytes that stand in memory before. It is
//! made once and carried out twice, on the simulated machine and on the
//! reference interpreter, so that whatever differs afterwards is the machine
//! code's doing.
//!
//! The buffers of a [`Shape`] lie behind `__heap_base`, the end of all that the C
//! compiler placed, each on a boundary of 64 bytes, in the order of the shape.
//! No two overlap, as the interface promises.

use crate::error::MeasureError;
use crate::interface::Interface;
use crate::request::{Blocks, Direction};
use crate::shape::{Buffer, Call, Count, Name, Shape, Sizes};
use std::ops::Range;

/// Longest message, in bytes.
pub const MAX_MESSAGE: u32 = 4_000_000_000;

/// Messages longer than this are processed in pieces of [`PIECE`] bytes, or a
/// little less for whole blocks: one call after the other on the same two
/// buffers, as a program does that reads a file. Memory bounds the buffers.
const PIECES_FROM: u32 = 1 << 26;
const PIECE: u32 = 1 << 24;

const ALIGN: u64 = 64;

/// What is run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// What it is a plan of, and the sizes of its buffers.
    pub shape: Shape,
    pub sizes: Sizes,
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
    pub buffers: Vec<(Name, Range<u32>)>,
    /// Where RAM begins.
    pub memory_start: u32,
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
    /// What the measured function is told of the message.
    pub count: Count,
    pub key_bytes: u32,
    pub iv_bytes: u32,
    /// See [`RunPlan::limit`]; None: what [`limit`] says.
    pub limit: Option<u64>,
}

/// Addresses handed out one after the other.
struct Space {
    next: u64,
    /// The next buffer begins just there.
    exact: bool,
    /// No buffer goes beyond.
    limit: u64,
    buffers: Vec<(Name, Range<u32>)>,
}

impl Space {
    fn new(module: &Interface) -> Space {
        let limit = module.memory_end.map_or(MEMORY_LIMIT, u64::from);
        Space { next: u64::from(module.heap_base), exact: false, limit, buffers: Vec::new() }
    }

    /// Go on to the next address of a residue modulo a power of two.
    fn skip(&mut self, modulus: u32, residue: u32) {
        let (modulus, residue) = (u64::from(modulus), u64::from(residue));
        self.next += (residue + modulus - self.next % modulus) % modulus;
        self.exact = true;
    }

    fn take(&mut self, name: &Name, bytes: u64) -> Result<u32, MeasureError> {
        let start = if std::mem::take(&mut self.exact) { self.next } else { self.next.next_multiple_of(ALIGN) };
        let end = start.saturating_add(bytes);
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
        self.buffers.push((name.clone(), start as u32..end as u32));
        Ok(start as u32)
    }

    fn end(&self) -> u64 {
        self.next
    }
}

/// Where every plan puts the context of a module of which [`Interface::context_at`] says nothing.
pub fn context(module: &Interface) -> u32 {
    (u64::from(module.heap_base).next_multiple_of(ALIGN)).min(MEMORY_LIMIT) as u32
}

/// In a small memory a message comes in as many blocks at a time as fit, in one at least.
fn fitting(module: &Interface, shape: &Shape, sizes: Sizes, piece: u32) -> u32 {
    let Some(end) = module.memory_end else { return piece };
    let skipped = module.context_at.map_or(0, |(modulus, _)| u64::from(modulus));
    let room = u64::from(end).saturating_sub(u64::from(context(module)) + skipped);
    let fits = |message: u32| {
        let sizes = Sizes { message, ..sizes };
        shape.buffers.iter().map(|b| sizes.of(b.bytes).next_multiple_of(ALIGN)).sum::<u64>() <= room
    };
    let block = module.block_bytes.max(1);
    if fits(piece) {
        return piece;
    }
    let (mut least, mut most) = (1, (piece / block).max(1));
    while least < most {
        let middle = least + (most - least).div_ceil(2);
        if fits(middle * block) {
            least = middle;
        } else {
            most = middle - 1;
        }
    }
    least * block
}

/// Linear memory ends below the addresses where code and system area stand.
const MEMORY_LIMIT: u64 = 0x8000_0000;

impl RunPlan {
    /// The plan for a message of `bytes` bytes (where there are only [`Count::Calls`]: for that many
    /// blocks' or keys' bytes, a whole number of them).
    pub fn new(module: &Interface, work: Work, bytes: u32) -> Result<RunPlan, MeasureError> {
        RunPlan::of_secrets(module, work, bytes, 0)
    }

    /// The same with other keys and messages, by a number.
    pub fn of_secrets(module: &Interface, work: Work, bytes: u32, secrets: u32) -> Result<RunPlan, MeasureError> {
        let shape = module.shape(work.direction, work.blocks)?;
        let piece = match work.count {
            Count::Calls => bytes,
            _ if bytes > PIECES_FROM => PIECE / module.block_bytes * module.block_bytes,
            _ => bytes,
        };
        let piece = if work.count == Count::Calls { piece } else { fitting(module, &shape, module.sizes(work), piece) };
        let sizes = Sizes { message: piece, ..module.sizes(work) };
        let limit = work.limit.unwrap_or_else(|| limit(bytes as usize));
        let mut plan = RunPlan::laid_out(module, shape, sizes, limit, |b, len| b.content(len, secrets))?;
        let addresses = plan.addresses();
        let prepare: Vec<Call> = plan.shape.prepare.iter().map(|f| f.call(&addresses, &sizes)).collect();
        plan.setup.extend(prepare);
        plan.bytes = bytes;
        let unit = if work.count == Count::Calls { work.unit(module) } else { piece };
        plan.measured = (0..bytes.div_ceil(unit)).map(|n| plan.call(unit.min(bytes - n * unit))).collect();
        Ok(plan)
    }

    /// Memory for a shape, with what `content` gives for each buffer in it, the calls of the set-up,
    /// and one of the measured function.
    pub fn laid_out(
        module: &Interface,
        shape: Shape,
        sizes: Sizes,
        limit: u64,
        mut content: impl FnMut(&Buffer, usize) -> Option<Vec<u8>>,
    ) -> Result<RunPlan, MeasureError> {
        let mut space = Space::new(module);
        if let Some((modulus, residue)) = module.context_at {
            space.skip(modulus, residue);
        }
        let mut writes = Vec::new();
        for buffer in &shape.buffers {
            let at = space.take(&buffer.name, sizes.of(buffer.bytes))?;
            writes.extend(content(buffer, sizes.of(buffer.bytes) as usize).map(|bytes| (at, bytes)));
        }
        let mut plan = RunPlan {
            sizes,
            writes,
            setup: Vec::new(),
            measured: Vec::new(),
            first_bytes: sizes.message,
            passes: Vec::new(),
            bytes: sizes.message,
            memory_start: module.memory_start,
            memory_bytes: space.end(),
            limit,
            buffers: space.buffers,
            shape,
        };
        let addresses = plan.addresses();
        plan.setup = plan.shape.setup.iter().map(|f| f.call(&addresses, &sizes)).collect();
        plan.measured = vec![plan.call(sizes.message)];
        Ok(plan)
    }

    /// The measured call for a message of so many bytes, in the buffers that there are.
    pub fn call(&self, bytes: u32) -> Call {
        self.shape.measured.call(&self.addresses(), &Sizes { message: bytes, ..self.sizes })
    }

    fn addresses(&self) -> Vec<u32> {
        self.buffers.iter().map(|b| b.1.start).collect()
    }

    /// Where some of the shape's buffers stand, by their numbers.
    pub fn places(&self, buffers: &[usize]) -> Vec<Range<u32>> {
        buffers.iter().map(|&n| self.buffers[n].1.clone()).collect()
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

impl Work {
    /// Bytes of what is counted: a block, or a key.
    pub fn unit(&self, module: &Interface) -> u32 {
        if self.direction == Direction::Keysetup { self.key_bytes } else { module.block_bytes }
    }
}

impl Interface {
    /// The sizes of buffers, for a message of a block.
    pub fn sizes(&self, work: Work) -> Sizes {
        Sizes {
            context: self.ctx_bytes,
            key: work.key_bytes,
            nonce: work.iv_bytes,
            associated: 0,
            tag: self.tag_bytes,
            block: self.block_bytes,
            message: self.block_bytes,
        }
    }
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
    use crate::kinds::Kind;

    fn names<'a>(names: impl IntoIterator<Item = &'a Name>) -> Vec<&'a str> {
        names.into_iter().map(|name| &**name).collect()
    }

    fn module(kind: Kind) -> Interface {
        Interface {
            kind,
            ctx_bytes: 240,
            block_bytes: 16,
            tag_bytes: 16,
            nonce_bytes: 12,
            kernel: None,
            heap_base: 0x11003,
            context_at: None,
            memory_start: 0,
            constants_end: 0x8000,
            memory_end: None,
            exports: ["cm_ivsetup".to_owned()].into(),
        }
    }

    fn work(direction: Direction, blocks: Blocks) -> Work {
        let count = match direction {
            Direction::Encrypt | Direction::Decrypt => Count::Blocks,
            Direction::Keysetup => Count::Calls,
            _ => Count::Bytes,
        };
        Work { direction, blocks, count, key_bytes: 16, iv_bytes: 8, limit: None }
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
        assert_eq!(names(plan.buffers.iter().map(|b| &b.0)), ["context", "key", "input", "output"]);
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
        assert_eq!(&*plan.setup[0].export, "cm_keysetup_decrypt");
        assert_eq!((&*plan.measured[0].export, plan.measured[0].args[3]), ("cm_decrypt_feedback", 65536));
    }

    #[test]
    fn a_stream_counts_bytes_and_takes_an_iv() {
        let plan = RunPlan::new(&module(Kind::Stream), work(Direction::Keystream, Blocks::Multi), 100).unwrap();
        assert_eq!(names(plan.setup.iter().map(|c| &c.export)), ["cm_keysetup", "cm_ivsetup"]);
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
    fn what_is_opened_has_been_sealed() {
        let sealed = Work { count: Count::Bytes, ..work(Direction::Decrypt, Blocks::Single) };
        let plan = RunPlan::new(&module(Kind::Aead), sealed, 100).unwrap();
        assert_eq!(names(plan.setup.iter().map(|c| &c.export)), ["cm_keysetup", "cm_aead_encrypt"]);
        let size = |name: &str| plan.buffers.iter().find(|b| &*b.0 == name).map(|b| b.1.len());
        assert_eq!([size("input"), size("output"), size("message")], [Some(116), Some(100), Some(100)]);
        // What sealing writes is what opening reads.
        assert_eq!(plan.setup[1].args[2], plan.measured[0].args[1]);
        assert_eq!(plan.call(7).args[5..], [7, 0]);
    }

    #[test]
    fn a_key_set_up_is_called_again_for_every_key() {
        let plan = RunPlan::new(&module(Kind::Block), work(Direction::Keysetup, Blocks::Multi), 48).unwrap();
        assert_eq!((plan.measured.len(), plan.measured[2].args[2]), (3, 16));
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
