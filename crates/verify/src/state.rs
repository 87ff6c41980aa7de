//! What a symbolic run has at one moment.

use crate::code::Storage;
use crate::eval::Known;
use crate::stored::Stored;
use crate::terms::{Kind, Map, Term, Terms};

/// A result under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub due: u64,
    pub register: Storage,
    pub value: Term,
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Physical registers.
    pub registers: Vec<Term>,
    /// Virtual registers that have been written.
    pub named: Map<Storage, Term>,
    /// Words of the frame, by their offsets from the stack pointer.
    pub words: Map<i64, Term>,
    pub pending: Vec<Pending>,
    pub now: u64,
    pub stored: Stored,
    /// Accesses of the program that something has stood for, by number, a bit each.
    taken: Vec<u64>,
    /// Stores, fences and what may stop the program, in order.
    pub effects: Vec<Term>,
    pub known: Known,
}

impl State {
    /// Nothing has happened.
    pub fn new(terms: &mut Terms, registers: usize) -> State {
        State {
            registers: (0..registers as u32).map(|r| terms.initial(r)).collect(),
            named: Map::default(),
            words: Map::default(),
            pending: Vec::new(),
            now: 0,
            stored: Stored::default(),
            taken: Vec::new(),
            effects: Vec::new(),
            known: Known { followed: 0, over: false },
        }
    }

    pub fn read(&self, terms: &mut Terms, r: Storage) -> Term {
        match self.registers.get(r as usize) {
            Some(&t) => t,
            None => self.named.get(&r).copied().unwrap_or_else(|| terms.initial(r)),
        }
    }

    pub fn write(&mut self, r: Storage, value: Term) {
        match self.registers.get_mut(r as usize) {
            Some(place) => *place = value,
            None => {
                self.named.insert(r, value);
            }
        }
    }

    /// Has something stood for this access of the program?
    pub fn is_taken(&self, number: usize) -> bool {
        self.taken.get(number / 64).is_some_and(|w| w >> (number % 64) & 1 == 1)
    }

    /// Something stands for this access of the program.
    pub fn take(&mut self, number: usize) {
        if self.taken.len() <= number / 64 {
            self.taken.resize(number / 64 + 1, 0);
        }
        self.taken[number / 64] |= 1 << (number % 64);
    }

    pub fn word(&self, terms: &mut Terms, offset: i64) -> Term {
        let key = [Kind::Word as u32, offset as u32, (offset >> 32) as u32];
        self.words.get(&offset).copied().unwrap_or_else(|| terms.of(&key))
    }
}
