//! What a direction calls: functions over described buffers.
//!
//! Every kind of primitive comes down to this. A [`Shape`] has a list of buffers, calls that set
//! up, and the one function that is measured, each of whose arguments is a buffer's address, a length
//! or a number. From that alone follow the layout of memory ([`crate::plan`]), what counts as a block
//! ([`Count`]), where results stand, and which fields a vector has. The kinds that come along are in
//! [`crate::kinds`]; a manifest describes a [`Kernel`], which becomes a shape as well.

use crate::inputs;
use serde::Deserialize;
use std::sync::Arc;

/// A name of an export or a buffer.
pub type Name = Arc<str>;

/// The size of a buffer, or a length that is handed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bytes {
    Context,
    Key,
    Nonce,
    /// Associated data where these are not the message.
    Associated,
    Tag,
    Block,
    Message,
    /// The message and a tag behind it.
    Sealed,
    /// So many for each block of the message.
    Each(u32),
    Fixed(u32),
}

/// A call of an exported function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    pub export: Name,
    pub args: Vec<u64>,
}

/// What the sizes are in one plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    pub context: u32,
    pub key: u32,
    pub nonce: u32,
    pub associated: u32,
    pub tag: u32,
    pub block: u32,
    pub message: u32,
}

impl Sizes {
    pub fn of(&self, bytes: Bytes) -> u64 {
        match bytes {
            Bytes::Context => self.context.into(),
            Bytes::Key => self.key.into(),
            Bytes::Nonce => self.nonce.into(),
            Bytes::Associated => self.associated.into(),
            Bytes::Tag => self.tag.into(),
            Bytes::Block => self.block.into(),
            Bytes::Message => self.message.into(),
            Bytes::Sealed => u64::from(self.message) + u64::from(self.tag),
            Bytes::Each(each) => u64::from(self.blocks()) * u64::from(each),
            Bytes::Fixed(bytes) => bytes.into(),
        }
    }

    fn blocks(&self) -> u32 {
        self.message / self.block.max(1)
    }
}

/// Words of a buffer that are below a limit, as coefficients modulo a prime are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Below {
    pub word_bytes: u32,
    pub limit: u64,
}

/// A buffer of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// For messages and for the fields of vectors.
    pub name: Name,
    pub bytes: Bytes,
    /// Names the pseudo-random bytes that stand in it before the first call; None: zeros.
    pub seed: Option<Name>,
    pub below: Option<Below>,
}

impl Buffer {
    pub fn empty(name: &str, bytes: Bytes) -> Buffer {
        Buffer { name: name.into(), bytes, seed: None, below: None }
    }

    pub fn filled(name: &str, bytes: Bytes, seed: &str) -> Buffer {
        Buffer { seed: Some(seed.into()), ..Buffer::empty(name, bytes) }
    }

    /// What stands in it, if anything does; `secrets` numbers other bytes than the usual ones.
    pub fn content(&self, len: usize, secrets: u32) -> Option<Vec<u8>> {
        let seed = self.seed.as_ref()?;
        let mut bytes = match secrets {
            0 => inputs::bytes(seed, len),
            _ => inputs::bytes(&format!("{} {secrets}", self.name), len),
        };
        if let Some(Below { word_bytes, limit }) = self.below {
            inputs::reduce(&mut bytes, word_bytes as usize, limit);
        }
        Some(bytes)
    }
}

/// An argument of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// Where a buffer stands, by its number.
    Address(usize),
    Length(Bytes),
    /// Blocks of the message.
    Blocks,
    Value(u32),
}

/// An exported function and what it is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    pub export: Name,
    pub args: Vec<Arg>,
}

impl Function {
    pub fn new(export: &str, args: &[Arg]) -> Function {
        Function { export: export.into(), args: args.to_vec() }
    }

    /// The call, with the buffers at these addresses.
    pub fn call(&self, addresses: &[u32], sizes: &Sizes) -> Call {
        let value = |arg: &Arg| match *arg {
            Arg::Address(buffer) => addresses[buffer].into(),
            Arg::Length(bytes) => sizes.of(bytes),
            Arg::Blocks => sizes.blocks().into(),
            Arg::Value(value) => value.into(),
        };
        Call { export: self.export.clone(), args: self.args.iter().map(value).collect() }
    }

    /// Numbers of the parameters that are given buffers.
    pub fn pointers(&self) -> Vec<usize> {
        let is = |n: &usize| matches!(self.args[*n], Arg::Address(_));
        (0..self.args.len()).filter(is).collect()
    }
}

/// What the measured function is told of the message's length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// Whole blocks, so many.
    Blocks,
    /// Bytes, any number.
    Bytes,
    /// Nothing: a call is one block, and is made again and again.
    Calls,
}

/// What a direction calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    pub buffers: Vec<Buffer>,
    pub setup: Vec<Function>,
    /// Calls behind the set-up that make the input of the measured one.
    pub prepare: Vec<Function>,
    pub measured: Function,
    /// Numbers of the buffers that the measured function transforms, and into which.
    pub from: Vec<usize>,
    pub to: Vec<usize>,
}

impl Shape {
    pub fn count(&self) -> Count {
        let args = &self.measured.args;
        if args.contains(&Arg::Blocks) {
            Count::Blocks
        } else if args.contains(&Arg::Length(Bytes::Message)) {
            Count::Bytes
        } else {
            Count::Calls
        }
    }

    /// Every export that it calls, the measured one last.
    pub fn exports(&self) -> Vec<Name> {
        let all = self.setup.iter().chain(&self.prepare).chain([&self.measured]);
        all.map(|f| f.export.clone()).collect()
    }

    /// Number of a buffer.
    pub fn buffer(&self, name: &str) -> Option<usize> {
        self.buffers.iter().position(|b| &*b.name == name)
    }
}

/// What a kernel does with a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    Read,
    Write,
    /// Reads and writes: each call takes what the one before left.
    Update,
}

impl Access {
    pub fn reads(self) -> bool {
        self != Access::Write
    }

    pub fn writes(self) -> bool {
        self != Access::Read
    }
}

/// A parameter of a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Parameter {
    /// A pointer to a buffer of `bytes` bytes (for one block, unless it is `shared` by all of them) on a
    /// boundary of `align`; as input, its words of `word_bytes` are below `below`.
    Buffer { buffer: String, access: Access, bytes: u32, shared: bool, align: u32, word_bytes: u32, below: Option<u64> },
    /// Always the same number.
    Value { value: u32 },
    /// How many blocks there are.
    Count { count: Counted },
}

/// What a kernel's parameter may count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counted {
    Blocks,
}

/// A function as a manifest describes it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    pub function: String,
    /// Bytes that a call, or each of the blocks that it is told of, counts as.
    pub block_bytes: u32,
    pub parameters: Vec<Parameter>,
}

impl Kernel {
    pub fn shape(&self) -> Shape {
        let mut shape = Shape {
            buffers: Vec::new(),
            setup: Vec::new(),
            prepare: Vec::new(),
            measured: Function { export: self.function.as_str().into(), args: Vec::new() },
            from: Vec::new(),
            to: Vec::new(),
        };
        let counted = self.counted();
        for parameter in &self.parameters {
            let arg = match parameter {
                Parameter::Value { value } => Arg::Value(*value),
                Parameter::Count { .. } => Arg::Blocks,
                Parameter::Buffer { buffer, access, bytes, shared, word_bytes, below, .. } => {
                    let n = shape.buffers.len();
                    let size = if counted && !shared { Bytes::Each(*bytes) } else { Bytes::Fixed(*bytes) };
                    shape.buffers.push(Buffer {
                        name: buffer.as_str().into(),
                        bytes: size,
                        seed: access.reads().then(|| buffer.as_str().into()),
                        below: below.map(|limit| Below { word_bytes: *word_bytes, limit }),
                    });
                    shape.from.extend(access.reads().then_some(n));
                    shape.to.extend(access.writes().then_some(n));
                    Arg::Address(n)
                }
            };
            shape.measured.args.push(arg);
        }
        shape
    }

    pub fn counted(&self) -> bool {
        self.parameters.iter().any(|p| matches!(p, Parameter::Count { .. }))
    }

    /// The alignment of each pointer parameter, by its number.
    pub fn alignments(&self) -> Vec<(usize, u32)> {
        let of = |(n, p): (usize, &Parameter)| match p {
            Parameter::Buffer { align, .. } => Some((n, *align)),
            _ => None,
        };
        self.parameters.iter().enumerate().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { context: 8, key: 16, nonce: 12, associated: 5, tag: 4, block: 16, message: 64 };

    fn kernel(text: &str) -> Kernel {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_kernel_is_a_shape_of_its_parameters() {
        let described = kernel(
            r#"{"function": "mac", "block_bytes": 16, "parameters": [
                {"buffer": "out", "access": "update", "bytes": 4, "shared": false, "align": 4, "word_bytes": 1, "below": null},
                {"value": 7},
                {"count": "blocks"},
                {"buffer": "table", "access": "read", "bytes": 32, "shared": true, "align": 2, "word_bytes": 2, "below": 9}]}"#,
        );
        let shape = described.shape();
        assert_eq!(shape.count(), Count::Blocks);
        assert_eq!((&shape.from[..], &shape.to[..]), (&[0, 1][..], &[0][..]));
        assert_eq!(shape.measured.pointers(), [0, 3]);
        let call = shape.measured.call(&[64, 128], &SIZES);
        assert_eq!((&*call.export, &call.args[..]), ("mac", &[64, 7, 4, 128][..]));
        assert_eq!(shape.buffers.iter().map(|b| SIZES.of(b.bytes)).collect::<Vec<_>>(), [16, 32]);
        assert!(shape.buffers[1].content(32, 0).unwrap().chunks(2).all(|w| w[0] < 9 && w[1] == 0));
        assert_eq!(described.alignments(), [(0, 4), (3, 2)]);
    }

    #[test]
    fn what_is_not_counted_is_called_again() {
        let plain = kernel(r#"{"function": "f", "block_bytes": 1, "parameters": [{"value": 1}]}"#);
        assert_eq!(plain.shape().count(), Count::Calls);
    }

    #[test]
    fn a_sealed_message_has_its_tag_behind() {
        assert_eq!((SIZES.of(Bytes::Sealed), SIZES.of(Bytes::Message), SIZES.of(Bytes::Each(3))), (68, 64, 12));
    }
}
