//! Finding where a program means what a machine's table or matrix instruction
//! does.
//!
//! Such instructions have no pattern that a compiler could look for: MixColumns
//! is written with shifts and masks, with multiplications, or as tables, and
//! never as the matrix it is. So the program's values are compared by what they
//! compute. There is one form for that, a word as a sum over GF(2) of functions of
//! bytes, for instructions and programs, tables and matrices, words of 32 and 64 bits:
//!
//! * [`sum`]: the form, and [`operations`]: what operations make of it;
//! * [`semantics`]: an instruction's semantics in this form;
//! * [`units`]: the machine's instructions, and [`matrices`]: their matrices turned and undone,
//!   together [`targets`];
//! * [`fields`]: multiplication of bytes by constants in a field;
//! * [`facts`]: what is known of a function beforehand;
//! * [`values`]: a program's values that are sums of tables;
//! * [`sums`]: exclusive-ors of a program and their terms;
//! * [`linear`]: values that are a matrix times another value, and [`walk`]: what is on the way;
//! * [`words`]: values that are sums of matrices times several others;
//! * [`cover`]: instructions that together make a sum, and [`nibbles`]: tables of bytes that
//!   are sums of tables of nibbles;
//! * [`pairs`]: matrices of two words behind tables;
//! * [`products`]: products over GF(2) of two words, such as carry-less ones, and [`quadratic`]: the form
//!   in which they are compared;
//! * [`modular`]: arithmetic modulo a number, and [`residue`]: the form in which it is compared, with
//!   [`arithmetic`] and [`wanted`], the bits that count;
//! * [`form`]: how semantics and programs are written in any of these forms;
//! * [`rewrite`]: which of the matches are taken, and [`replacement`]: what for;
//! * [`agree`]: instructions of which only parts are wanted made the same;
//! * [`emit`]: the new code;
//! * [`configure`]: which matrix a multiplier that can be loaded should hold;
//! * [`layers`]: linear layers of several words as wholes;
//! * [`report`]: what was found and what was just missed, for people, and [`describe`]: how it
//!   is named.
//!
//! A match becomes an [`ciphermill_ir::Op::Apply`], which one template computes.
//! On a machine without such instructions nothing is done. Where the program
//! needs an operation that is no match, nothing is lost either: what a match
//! does not replace stays as it was.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod agree;
mod arithmetic;
pub mod configure;
pub mod congruence;
mod cover;
mod describe;
mod emit;
pub mod facts;
mod fields;
pub mod finding;
pub mod form;
mod layers;
pub mod linear;
pub mod matrices;
pub mod modular;
pub mod nibbles;
mod operations;
mod pairs;
pub mod products;
pub mod quadratic;
pub mod ranges;
mod recogniser;
mod replacement;
pub mod report;
pub mod residue;
mod rewrite;
mod semantics;
pub mod sum;
pub mod sums;
mod targets;
mod units;
pub mod values;
pub mod walk;
pub mod wanted;
pub mod words;
pub mod written;

pub use recogniser::Recogniser;
