//! The kinds of primitives, and what each of their directions calls.
//!
//! The C functions are those of `ciphers/ciphermill.h`. A kind is told by what a module exports; a
//! kernel is what its manifest says. Here are shapes and nothing else: whatever lays out memory, runs,
//! compares or bounds knows [`Shape`]s, not kinds.

use crate::request::{Blocks, Direction};
use crate::shape::{Arg, Buffer, Bytes, Function, Kernel, Shape};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What sort of primitive a module is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Block,
    Stream,
    Permutation,
    Hash,
    Mac,
    Aead,
    Kernel,
}

/// The export that tells a kind, the kind, and what a message calls it. The last is what a module is
/// taken for that has none of them.
const KINDS: [(&str, Kind, &str); 6] = [
    ("cm_keystream", Kind::Stream, "a stream cipher"),
    ("cm_permute_blocks", Kind::Permutation, "a permutation"),
    ("cm_hash", Kind::Hash, "a hash function"),
    ("cm_mac", Kind::Mac, "a message authentication code"),
    ("cm_aead_encrypt", Kind::Aead, "an authenticated cipher"),
    ("cm_encrypt_blocks", Kind::Block, "a block cipher"),
];

/// A function of the C interface: how many pointers it takes first, and how many numbers then.
pub struct Declared {
    pub export: &'static str,
    pub pointers: usize,
    pub numbers: usize,
    /// The first pointer is to the context.
    pub context: bool,
}

const fn sized(export: &'static str) -> Declared {
    Declared { export, pointers: 0, numbers: 0, context: false }
}

const fn with(export: &'static str, pointers: usize, numbers: usize) -> Declared {
    Declared { export, pointers, numbers, context: true }
}

const fn without(export: &'static str, pointers: usize, numbers: usize) -> Declared {
    Declared { export, pointers, numbers, context: false }
}

/// Every function that is called with buffers of a plan, or by one that is. Not among them are
/// `cm_init`, `cm_absorb` and `cm_final`: they are called with parts of the context as well.
pub const INTERFACE: [Declared; 21] = [
    sized("cm_ctx_bytes"),
    sized("cm_block_bytes"),
    sized("cm_tag_bytes"),
    sized("cm_nonce_bytes"),
    with("cm_keysetup", 2, 1),
    with("cm_keysetup_decrypt", 2, 1),
    with("cm_ivsetup", 2, 1),
    with("cm_encrypt", 3, 0),
    with("cm_decrypt", 3, 0),
    with("cm_encrypt_blocks", 3, 1),
    with("cm_decrypt_blocks", 3, 1),
    with("cm_encrypt_feedback", 3, 1),
    with("cm_decrypt_feedback", 3, 1),
    with("cm_keystream", 3, 1),
    without("cm_permute", 2, 0),
    without("cm_permute_blocks", 2, 1),
    without("cm_permute_feedback", 2, 1),
    with("cm_hash", 3, 2),
    with("cm_mac", 3, 1),
    with("cm_aead_encrypt", 5, 2),
    with("cm_aead_decrypt", 5, 2),
];

impl Kind {
    /// By what a module exports.
    pub fn of(exports: &BTreeSet<String>, kernel: Option<&Kernel>) -> Kind {
        match kernel {
            Some(_) => Kind::Kernel,
            None => KINDS.iter().find(|k| exports.contains(k.0)).map_or(Kind::Block, |k| k.1),
        }
    }

    /// As a message says it.
    pub fn words(self) -> &'static str {
        KINDS.iter().find(|k| k.1 == self).map_or("a kernel", |k| k.2)
    }

    /// As a manifest says it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Block => "block",
            Kind::Stream => "stream",
            Kind::Permutation => "permutation",
            Kind::Hash => "hash",
            Kind::Mac => "mac",
            Kind::Aead => "aead",
            Kind::Kernel => "kernel",
        }
    }

    /// Its directions besides the key set-up, the usual one first.
    pub fn directions(self) -> &'static [Direction] {
        match self {
            Kind::Block => &[Direction::Encrypt, Direction::Decrypt],
            Kind::Stream => &[Direction::Keystream],
            Kind::Permutation => &[Direction::Permute],
            Kind::Hash => &[Direction::Hash],
            Kind::Mac => &[Direction::Mac],
            Kind::Aead => &[Direction::Encrypt, Direction::Decrypt, Direction::Authenticate],
            Kind::Kernel => &[Direction::Run],
        }
    }

    pub fn has_context(self) -> bool {
        !matches!(self, Kind::Permutation | Kind::Kernel)
    }

    pub fn has_key(self) -> bool {
        matches!(self, Kind::Block | Kind::Stream | Kind::Mac | Kind::Aead)
    }

    /// Makes a digest or a tag.
    pub fn has_tag(self) -> bool {
        matches!(self, Kind::Hash | Kind::Mac | Kind::Aead)
    }

    /// How the blocks of a direction may depend on each other, the usual way first; else why not otherwise.
    pub fn blocks(self, direction: Direction, kernel: Option<&Kernel>) -> (&'static [Blocks], &'static str) {
        match (self, direction) {
            (_, Direction::Keysetup) => {
                (&[Blocks::Multi], "a key set-up has no blocks that could depend on each other")
            }
            (Kind::Block | Kind::Permutation, _) => (&[Blocks::Multi, Blocks::Single], ""),
            (Kind::Stream, _) => (&[Blocks::Multi], "a stream cipher has no feedback mode"),
            (Kind::Hash | Kind::Mac | Kind::Aead, _) => {
                (&[Blocks::Single], "the blocks of one message are no independent messages")
            }
            (Kind::Kernel, _) if kernel.is_some_and(Kernel::counted) => {
                (&[Blocks::Multi], "a kernel that is told how many blocks there are takes independent ones")
            }
            (Kind::Kernel, _) => {
                (&[Blocks::Single], "a kernel that is not told how many blocks there are takes one a call")
            }
        }
    }
}

const CONTEXT: usize = 0;
const KEY: usize = 1;

/// What a direction of a module calls; None where its kind has no such direction.
pub fn shape(
    (kind, kernel): (Kind, Option<&Kernel>),
    exports: &BTreeSet<String>,
    direction: Direction,
    blocks: Blocks,
) -> Option<Shape> {
    if let (Kind::Kernel, Direction::Run, Some(kernel)) = (kind, direction, kernel) {
        return Some(kernel.shape());
    }
    let context = Buffer::empty("context", Bytes::Context);
    let key = Buffer::filled("key", Bytes::Key, "key");
    let at = Arg::Address;
    let keysetup = |export| Function::new(export, &[at(CONTEXT), at(KEY), Arg::Length(Bytes::Key)]);
    let message = |bytes| Buffer::filled("input", bytes, "message");
    let output = |bytes| Buffer::empty("output", bytes);
    let block = if blocks == Blocks::Single { Bytes::Block } else { Bytes::Message };
    // The shape of a function that goes from the last buffer but one to the last.
    let plain = |buffers: Vec<Buffer>, setup: Vec<Function>, export: &str, more: &[Arg]| {
        let last = buffers.len() - 1;
        let mut args: Vec<Arg> = if kind.has_context() { vec![at(CONTEXT)] } else { Vec::new() };
        args.extend([at(last - 1), at(last)]);
        args.extend(more);
        Shape {
            buffers,
            setup,
            prepare: Vec::new(),
            measured: Function::new(export, &args),
            from: vec![last - 1],
            to: vec![last],
        }
    };
    let bytes = Arg::Length(Bytes::Message);
    let multi = blocks == Blocks::Multi;
    Some(match (kind, direction) {
        (_, Direction::Keysetup) if kind.has_key() => Shape {
            buffers: vec![context, key],
            setup: Vec::new(),
            prepare: Vec::new(),
            measured: keysetup("cm_keysetup"),
            from: vec![KEY],
            to: vec![CONTEXT],
        },
        (Kind::Block, Direction::Encrypt | Direction::Decrypt) => {
            let (setup, export) = match (direction, multi) {
                (Direction::Encrypt, true) => ("cm_keysetup", "cm_encrypt_blocks"),
                (Direction::Encrypt, false) => ("cm_keysetup", "cm_encrypt_feedback"),
                (_, true) => ("cm_keysetup_decrypt", "cm_decrypt_blocks"),
                (_, false) => ("cm_keysetup_decrypt", "cm_decrypt_feedback"),
            };
            plain(vec![context, key, message(block), output(block)], vec![keysetup(setup)], export, &[Arg::Blocks])
        }
        (Kind::Stream, Direction::Keystream) => {
            let mut buffers = vec![context, key];
            let mut setup = vec![keysetup("cm_keysetup")];
            if exports.contains("cm_ivsetup") {
                buffers.push(Buffer::filled("IV", Bytes::Nonce, "iv"));
                setup.push(Function::new("cm_ivsetup", &[at(CONTEXT), at(2), Arg::Length(Bytes::Nonce)]));
            }
            buffers.extend([message(Bytes::Message), output(Bytes::Message)]);
            let last = buffers.len() - 1;
            // The state goes into keystream and into the next state.
            Shape { from: vec![CONTEXT], to: vec![CONTEXT, last], ..plain(buffers, setup, "cm_keystream", &[bytes]) }
        }
        (Kind::Permutation, Direction::Permute) => {
            let export = if multi { "cm_permute_blocks" } else { "cm_permute_feedback" };
            plain(vec![message(block), output(block)], Vec::new(), export, &[Arg::Blocks])
        }
        (Kind::Hash, Direction::Hash) => {
            let buffers = vec![context, message(Bytes::Message), output(Bytes::Tag)];
            plain(buffers, Vec::new(), "cm_hash", &[bytes, Arg::Length(Bytes::Tag)])
        }
        (Kind::Mac, Direction::Mac) => {
            let buffers = vec![context, key, message(Bytes::Message), output(Bytes::Tag)];
            plain(buffers, vec![keysetup("cm_keysetup")], "cm_mac", &[bytes])
        }
        (Kind::Aead, _) if kind.directions().contains(&direction) => {
            aead(direction, context, key, keysetup("cm_keysetup"))
        }
        _ => return None,
    })
}

/// Context, key, nonce, associated data, input, output, and for decryption what the input is made of.
fn aead(direction: Direction, context: Buffer, key: Buffer, keysetup: Function) -> Shape {
    const NONCE: usize = 2;
    const ASSOCIATED: usize = 3;
    const INPUT: usize = 4;
    const OUTPUT: usize = 5;
    const PLAIN: usize = 6;
    let alone = direction == Direction::Authenticate;
    let opens = direction == Direction::Decrypt;
    let associated = if alone { Bytes::Message } else { Bytes::Associated };
    let length = if alone { Arg::Value(0) } else { Arg::Length(Bytes::Message) };
    let function = |export, from, to| {
        let pointers = [CONTEXT, from, to, NONCE, ASSOCIATED].map(Arg::Address);
        Function::new(export, &[&pointers[..], &[length, Arg::Length(associated)]].concat())
    };
    let plain = |name| Buffer::filled(name, if alone { Bytes::Fixed(0) } else { Bytes::Message }, "message");
    let mut buffers = vec![
        context,
        key,
        Buffer::filled("nonce", Bytes::Nonce, "iv"),
        Buffer::filled("associated data", associated, "associated data"),
        if opens { Buffer::empty("input", Bytes::Sealed) } else { plain("input") },
        Buffer::empty(
            "output",
            if opens {
                Bytes::Message
            } else if alone {
                Bytes::Tag
            } else {
                Bytes::Sealed
            },
        ),
    ];
    let mut prepare = Vec::new();
    if opens {
        buffers.push(plain("message"));
        prepare.push(function("cm_aead_encrypt", PLAIN, INPUT));
    }
    Shape {
        buffers,
        setup: vec![keysetup],
        prepare,
        measured: function(if opens { "cm_aead_decrypt" } else { "cm_aead_encrypt" }, INPUT, OUTPUT),
        from: vec![if alone { ASSOCIATED } else { INPUT }],
        to: vec![OUTPUT],
    }
}
