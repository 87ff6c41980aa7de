//! Micro-operations: what the core renames, starts and retires.
//!
//! A micro-operation names registers by number; behind the machine's registers
//! come a few temporary ones that carry values between the micro-operations of
//! one instruction. Sources and results of all of them stand in two lists.

/// What a micro-operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Computes, compares, jumps.
    Compute,
    Load,
    /// Brings a store's address; without a [`Kind::StoreData`], its data too.
    StoreAddress,
    StoreData,
    /// Takes no port and no time: an eliminated copy, an empty instruction.
    Nothing,
}

impl Kind {
    /// As reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Compute => "compute",
            Kind::Load => "load",
            Kind::StoreAddress => "store_address",
            Kind::StoreData => "store_data",
            Kind::Nothing => "nothing",
        }
    }
}

/// Registers that most micro-operations read at most.
pub const FIRST: usize = 3;

/// A result: a register, and cycles from start to the start of a user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Result {
    pub reg: u16,
    pub latency: u16,
    /// Only a part of it is new: see [`crate::parts`].
    pub part: bool,
}

/// One micro-operation of one instruction of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Uop {
    pub kind: Kind,
    /// For the choice of a queue: `queue_choice = "scattered"`.
    pub lot: u8,
    /// Its ports in the queue that the lot falls on.
    pub own: u32,
    /// The first registers it reads; where there are fewer, one that is always there.
    pub first: [u16; FIRST],
    /// It and the next one are one until they start.
    pub fused: bool,
    /// A load that is taken to read a store that begins elsewhere, until the core knows better.
    pub misnamed: bool,
    /// A load that memory renaming passes by.
    pub unnamed: bool,
    /// Reservation stations that it needs, with the other one of its pair.
    pub stations: u8,
    /// Ports it may start on.
    pub ports: u32,
    /// Number of that set of ports among those that occur.
    pub class: u8,
    /// Cycles its port takes nothing else.
    pub busy: u16,
    /// Cycles from start to end.
    pub latency: u16,
    /// Range in [`Lists::sources`].
    pub sources: (u32, u8),
    /// Range in [`Lists::results`].
    pub results: (u32, u8),
}

impl Uop {
    /// Cycles until its unit hands on a result; 0: a load or a store, whose unit has none.
    #[inline(always)]
    pub fn ends(&self) -> u16 {
        if self.kind == Kind::Compute { self.latency } else { 0 }
    }
}

/// Sources and results of all micro-operations.
#[derive(Clone, Default, Debug)]
pub struct Lists {
    pub sources: Vec<u16>,
    pub results: Vec<Result>,
}

impl Lists {
    /// The registers a micro-operation reads.
    #[inline(always)]
    pub fn sources(&self, uop: &Uop) -> &[u16] {
        &self.sources[uop.sources.0 as usize..][..usize::from(uop.sources.1)]
    }

    /// The registers it writes.
    #[inline(always)]
    pub fn results(&self, uop: &Uop) -> &[Result] {
        &self.results[uop.results.0 as usize..][..usize::from(uop.results.1)]
    }
}
