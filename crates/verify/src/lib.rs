//! Translation validation of every schedule.
//!
//! Right before a schedule is used, in release builds too, it and the code that it was made of are
//! executed symbolically. The two must do the same. Nothing is shared with the schedulers but the
//! machine's description and their input: no dependence graph, no initiation interval, no stages, no
//! live ranges, no colouring.
//!
//! # Data structures
//!
//! * [`Inst`]: an instruction with registers, physical or virtual ([`Storage`]), before scheduling
//!   with what it touches in memory ([`Access`]). A [`Bundle`] is what issues in one cycle, a
//!   [`Block`] the bundles up to the next label, as they are printed and simulated.
//! * Terms (`terms`): what a register holds, hash-consed, so that equal terms have equal
//!   numbers. An instruction's term is made of its meaning (variants on other units mean the same),
//!   its immediates, the terms that it reads, and of what it follows in memory. A copy is its source.
//! * A state (`state`): terms of the registers, results under way with the cycle in which
//!   they land, words of the frame that stand for registers, stores so far, effects.
//! * Effects: the terms of stores, calls and what may stop the program.
//! * [`Rules`]: what each instruction of a machine reads, writes and means, worked out anew
//!   from its semantics, once for each machine.
//!
//! # Invariants
//!
//! * Equal terms are equal values. All that is assumed of an operation is that it is a function.
//! * An access's term holds the set of those stores before it that it conflicts with. So a load
//!   that changes places with such a store has another term, and so has all that follows from it;
//!   and so has a store.
//! * Which accesses conflict is asked of their addresses too (`sums`): those that are counted from the
//!   same sum conflict only where their bytes overlap, modulo 2^32, whichever iterations they are
//!   of. So the stores of an iteration that is under way may be passed by loads of a later
//!   one that read elsewhere, and by no others.
//! * Of what is checked an access is known by what it reads: the program must have one with
//!   the same operands, whose facts (which iteration, which bytes, which buffer) count for both.
//!
//! # Phases
//!
//! *Orders* ([`order`]): of a block before and after allocation, which instruction's result does
//! each read see, and what is left at the end?
//!
//! *Straight code* ([`straight()`]): the instructions are run one after the other, the bundles
//! cycle by cycle. Each result lands after its latency, the old value being read until then; on a
//! machine that waits by itself, before the next bundle. At the end every register has the same
//! term, the same jump is taken on the same values, effects are the same, nothing is under
//! way and the delay slots are just over. That finds: values read too early, too late or
//! from another register; results lost or overwritten; accesses in the wrong order; two
//! results in one cycle; code behind a jump or missing in its slots.
//!
//! *Pipelined loops* ([`pipelined`]): the source loop is executed iteration by iteration. It is the
//! block with virtual registers, before hoisting, spilling, copies and cluster assignment. The
//! pipelined loop is executed from its first bundle: code before it, prologue, kernel, epilogue, code
//! behind it, with rotation and predicates by their semantics. At each branch that decides whether
//! another iteration follows, both ways are taken. So every trip count with an exit of its own is
//! covered, and two more. At each exit the live-out values, the effects and the registers that are not
//! the loop's own are compared.
//!
//! *Each cycle* (`resources`): slots, a unit for each instruction (a matching), paths between
//! clusters, reads of one register, and which registers an operand can be, for each bundle of
//! all this.
//!
//! # Why a few iterations are enough
//!
//! With `S` iterations under way at once, those up to `S - 1` leave by branches of the prologue, or with
//! stages that never were full, each in code, or with predicates, of its own: all are run. From
//! `S` on the kernel is passed with every stage full. A pass does the same operations on what it
//! finds, whatever the iteration. What it finds it can hardly have from long ago: where registers
//! stand still, each pass writes the registers that the one before it wrote; where they rotate, a
//! value read too far back is missed in the first iterations, whose ring holds nothing, and one
//! that another overwrites is overwritten within the `S` passes that it lives. So `S`, `S + 1` and
//! `S + 2` iterations compare what the first full pass makes of a state that still holds initial values,
//! the second of one that holds none but those the loop never writes, and the third of one that
//! is the second's, one iteration on. Terms do not depend on values: where the step from one
//! pass to the next gives the program's terms for a state that stands for any, it gives them for
//! each that follows (the argument of Tristan and Leroy, whose validator compares the same
//! three pieces). What is said of addresses holds for any of them too: a pointer is what it was at first
//! plus its step times a number of iterations that stands for any (`inductions`), and two iterations
//! that can be under way at once are less than `S` apart, so such a pair is among those run. Where one branch leaves by the same code behind every iteration, as in a loop whose stages
//! have predicates, leaving behind the first and behind the last two is enough: an iteration's operations are
//! the same whether others follow or not, and they have been run with all that follow. `S` is read off the code that is checked: a branch before the kernel, or a
//! predicate in it, for each.
//!
//! # What it does not do
//!
//! * It is no proof of the code that was scheduled: selection, allocation, hoisting between blocks
//!   and the choice of encodings come before or after and have checks of their own, or none.
//! * Facts on memory (a buffer of its own, known addresses, what is never written) are the
//!   program's, and believed.
//! * Sets of stores are compared by sums of 128 random bits: two different ones are taken for equal
//!   once in 10^38.
//! * Time: that a schedule is as short as it says is the simulator's to count. So a clash in a bank
//!   of memory is looked for only where the scheduler promised that there is none.
//! * A register of which nobody knows whether it is read counts as read: it may refuse too
//!   much, never too little.
//!
//! # Literature
//!
//! Pnueli, Siegel and Singerman, *Translation validation*, TACAS 1998; Necula, *Translation
//! validation for an optimizing compiler*, PLDI 2000; Tristan and Leroy, *Formal verification of
//! translation validators: a case study on instruction scheduling optimizations*, POPL 2008, and
//! *A simple, verified validator for software pipelining*, POPL 2010.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod access;
mod bits;
mod code;
mod eval;
mod exec;
mod frame;
mod inductions;
mod known;
mod loops;
pub mod order;
mod resources;
mod rules;
mod run;
mod state;
mod stored;
mod straight;
mod sums;
mod terms;

pub use access::{Access, Object};
pub use code::{Arg, Block, Bundle, Fault, Inst, SourceLoop, Storage};
pub use loops::{Pipeline, pipelined};
pub use rules::Rules;
pub use straight::{Straight, straight};
