//! A body whose values are never too many for the registers.
//!
//! A state of sixteen bytes, each in a register of its own, and what becomes of it do not fit
//! into thirty registers: such a body has no schedule at all. So its nodes are gone through in
//! order, and where one more value is alive than there is room for, the value that is wanted
//! last goes to a word of the frame, to come back before its next reader (Belady, 1966). A
//! value that follows from values outside the loop alone is made again instead.
//!
//! Where values from outside the loop leave hardly a register, those read in the fewest places are
//! in the frame from the beginning ([`spill::surplus`]); and where values that are carried round,
//! or wanted behind the loop, take more than half of those registers, so are some of these
//! ([`spill::held`]).
//!
//! No order holds its store before the operation that needs the register. In a body with hundreds of such stores these
//! orders tie one operation to the next in one chain through the whole iteration, and to the first store of the next
//! one in a circuit: a form of bitsliced AES in words had a circuit of 4,587 cycles for 858 rows of its units. That the
//! store stands in time is for the scheduler, which counts registers. A word is used again, where
//! loads and stores reach no more of them, once the value in it has been read for the last time,
//! in the next iteration at the latest. So are the first ones, where only these are within reach of
//! other clusters than the stack pointer's ([`super::based::Bases`]) and values of those want more.

use super::body::{Body, From, Node};
use super::framed::access;
use super::place::{At, Sides};
use ciphermill_machine::{InstrId, Machine};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A body, where its nodes are, and which of them each old one is.
pub type Parked = (Body, Vec<At>, Vec<usize>);

/// The body, whose nodes are divided between sides, with no more than `room` values at once in
/// the registers of each, in the order of its nodes and besides those that are carried round or
/// wanted behind the loop; how that is divided; and the new node of each. The first value goes to the word at `offset`
/// of the stack pointer, and so many words are for values of clusters that it is not on. None where neither the machine's
/// load and store nor its addition reach.
pub fn park(
    body: &Body,
    at: &[At],
    sides: &Sides<'_>,
    room: &[usize],
    (offset, reached): (i64, usize),
) -> Option<Parked> {
    let mut parking = Parking::of(body, at, sides, (offset, reached));
    for i in 0..body.nodes.len() {
        parking.step(i, room)?;
    }
    // Words that they do not come to are not left empty.
    let [came, others] = [0, 1].map(|k| parking.given[k]);
    if came < reached && others > 0 {
        return park(body, at, sides, room, (offset, came));
    }
    Some(parking.finish())
}

/// A value's time in the frame: the nodes of the new body that put it there and fetch it.
struct Stay {
    store: usize,
    loads: Vec<usize>,
}

struct Parking<'a> {
    body: &'a Body,
    machine: &'a Machine,
    /// Where the nodes are, of the old body and of the new.
    at: [Vec<At>; 2],
    /// The side of the stack pointer.
    frame: usize,
    offset: i64,
    /// Nodes that read each value, from the last to the first, without those gone through.
    readers: Vec<Vec<usize>>,
    /// Values that are never parked.
    held: Vec<bool>,
    /// Where each value is now: a node of the new body, unless it is in the frame.
    now: Vec<Option<usize>>,
    /// The words of values that have one.
    stored: BTreeMap<usize, usize>,
    /// What is in each word of the frame, one after the other.
    words: Vec<Vec<Stay>>,
    /// So many words are for values of other clusters than the frame's.
    reached: usize,
    /// How many of these have been given out, and of the others; and those that are free again, those first that have
    /// been so for longest.
    given: [usize; 2],
    free: [VecDeque<usize>; 2],
    /// Values in the registers of each side, but for those that are held.
    alive: Vec<BTreeSet<usize>>,
    out: Body,
    /// Nodes of the new body for those of the old one.
    index: Vec<usize>,
}

impl<'a> Parking<'a> {
    fn of(body: &'a Body, at: &[At], sides: &'a Sides<'_>, (offset, reached): (i64, usize)) -> Parking<'a> {
        let machine = sides.machine;
        let n = body.nodes.len();
        let sp = machine.abi.stack_pointer;
        let mut readers = vec![Vec::new(); n];
        for i in (0..n).rev() {
            for p in sources(&body.nodes[i]) {
                readers[p].push(i);
            }
        }
        let mut held = vec![false; n];
        body.initial.keys().for_each(|&i| held[i] = true);
        body.live_out.iter().for_each(|l| held[l.0] = true);
        Parking {
            body,
            machine,
            at: [at.to_vec(), Vec::new()],
            frame: sides.of_reg(sp).unwrap_or(0),
            offset,
            readers,
            held,
            now: vec![None; n],
            stored: BTreeMap::new(),
            words: Vec::new(),
            reached,
            given: [0; 2],
            free: Default::default(),
            alive: vec![BTreeSet::new(); sides.files.len()],
            out: Body { nodes: Vec::new(), memory: Vec::new(), parked: 0, ..body.clone() },
            index: Vec::with_capacity(n),
        }
    }

    fn step(&mut self, i: usize, room: &[usize]) -> Option<()> {
        let node = &self.body.nodes[i];
        let sources = sources(node);
        for &p in &sources {
            if self.now[p].is_none() {
                self.now[p] = Some(self.back(p)?);
                self.alive[self.at[0][p].result].insert(p);
            }
        }
        let own = self.at[0][i].result;
        let begins = !self.held[i] && !self.readers[i].is_empty();
        for (side, &room) in room.iter().enumerate() {
            let mut more = usize::from(begins && side == own);
            let ends = |&&p: &&usize| self.at[0][p].result == side && !self.held[p] && self.readers[p].len() == 1;
            more = more.saturating_sub(sources.iter().filter(ends).count());
            while self.alive[side].len() + more > room {
                let others = self.alive[side].iter().filter(|p| !sources.contains(p));
                let Some(&last) = others.max_by_key(|&&p| (self.readers[p].last(), p)) else { break };
                self.away(last)?;
            }
        }
        let new = self.out.nodes.len();
        let mut node = node.clone();
        for (_, from) in &mut node.reads {
            if let From::Node(p, 0) = *from {
                *from = From::Node(self.now[p]?, 0);
            }
        }
        self.push(node, self.at[0][i]);
        self.index.push(new);
        self.now[i] = Some(new);
        for p in sources {
            self.readers[p].pop();
            if self.readers[p].is_empty() {
                self.alive[self.at[0][p].result].remove(&p);
                let word = self.stored.get(&p).copied();
                word.into_iter().for_each(|word| self.free[usize::from(word >= self.reached)].push_back(word));
            }
        }
        if begins {
            self.alive[own].insert(i);
        }
        Some(())
    }

    /// Out of its register.
    fn away(&mut self, p: usize) -> Option<()> {
        self.alive[self.at[0][p].result].remove(&p);
        let from = self.now[p].take()?;
        if self.made_again(p) || self.stored.contains_key(&p) {
            return Some(());
        }
        let word = self.word(p)?;
        let nodes = self.access(self.machine.abi.ops.store, word, Some(From::Node(from, 0)))?;
        if self.words.len() <= word {
            self.words.resize_with(word + 1, Vec::new);
        }
        nodes.into_iter().for_each(|node| self.push(node, At { unit: self.frame, result: self.frame }));
        let store = self.out.nodes.len() - 1;
        self.words[word].push(Stay { store, loads: Vec::new() });
        self.stored.insert(p, word);
        Some(())
    }

    /// A word for a value: a new one, or else one that is free again.
    fn word(&mut self, p: usize) -> Option<usize> {
        let elsewhere = self.at[0][p].result != self.frame;
        if elsewhere {
            if self.given[0] < self.reached {
                self.given[0] += 1;
                return Some(self.given[0] - 1);
            }
            if let Some(word) = self.free[0].pop_front() {
                return Some(word);
            }
        }
        let new = self.reached + self.given[1];
        if self.access(self.machine.abi.ops.store, new, Some(From::Node(p, 0))).is_none() {
            return self.free[1].pop_front();
        }
        self.given[1] += 1;
        Some(new)
    }

    /// Back in a register: the node that it comes from.
    fn back(&mut self, p: usize) -> Option<usize> {
        if let Some(&word) = self.stored.get(&p) {
            let mut nodes = self.access(self.machine.abi.ops.load, word, None)?;
            let load = nodes.pop()?;
            nodes.into_iter().for_each(|node| self.push(node, At { unit: self.frame, result: self.frame }));
            self.words[word].last_mut()?.loads.push(self.out.nodes.len());
            self.push(load, At { unit: self.frame, result: self.at[0][p].result });
        } else {
            self.push(self.body.nodes[p].clone(), self.at[0][p]);
        }
        Some(self.out.nodes.len() - 1)
    }

    /// A load from a word of the frame, or a store to it, as the next nodes.
    fn access(&self, instr: InstrId, word: usize, value: Option<From>) -> Option<SmallVec<[Node; 2]>> {
        let offset = self.offset + word as i64 * i64::from(self.machine.word_bits / 8);
        access(self.machine, instr, offset, value, self.out.nodes.len())
    }

    fn push(&mut self, node: Node, at: At) {
        self.out.nodes.push(node);
        self.at[1].push(at);
    }

    /// Does a value follow from values outside the loop alone?
    fn made_again(&self, p: usize) -> bool {
        let node = &self.body.nodes[p];
        let outside = node.reads.iter().all(|r| matches!(r.1, From::Outside(_)));
        outside && !node.tied && node.mem.is_none_or(|m| m.constant)
    }

    fn finish(mut self) -> Parked {
        let (body, index) = (self.body, &self.index);
        for (_, from) in self.out.nodes.iter_mut().flat_map(|n| &mut n.reads) {
            if let From::Node(p, 1) = from {
                *p = index[*p];
            }
        }
        self.out.initial = body.initial.iter().map(|(&i, &v)| (index[i], v)).collect();
        self.out.live_out = body.live_out.iter().map(|&(i, v)| (index[i], v)).collect();
        self.out.parked = body.parked + self.words.len();
        for stays in &self.words {
            for (k, Stay { store, loads }) in stays.iter().enumerate() {
                let (next, distance) = stays.get(k + 1).map_or((&stays[0], 1), |next| (next, 0));
                self.out.memory.extend(loads.iter().map(|&load| (*store, load, 1, 0)));
                self.out.memory.extend(loads.iter().map(|&load| (load, next.store, 0, distance)));
            }
        }
        self.out.memory.extend(body.memory.iter().map(|&(a, b, c, d)| (index[a], index[b], c, d)));
        let [_, at] = self.at;
        (self.out, at, self.index)
    }
}

/// The values of this iteration that a node reads, each once.
fn sources(node: &Node) -> Vec<usize> {
    let mut all: Vec<usize> =
        node.reads.iter().filter_map(|r| if let From::Node(p, 0) = r.1 { Some(p) } else { None }).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::park;
    use crate::body::{Body, From, Node};
    use crate::place::{At, Sides};
    use ciphermill_ir::Space;
    use ciphermill_machine::{InstrId, Machine};
    use ciphermill_vcode::{MemRef, VInst, VKind, VOp, VReg};
    use std::path::Path;

    fn machine() -> Machine {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        ciphermill_machine::load_from_dir(&root, "c6201", &[], &[], &[]).unwrap()
    }

    /// So many times three values from memory, of which a sum takes the last two and another
    /// sum the first; and the branch.
    fn sums(m: &Machine, times: usize) -> Body {
        let named = |name: &str| InstrId(m.instrs.iter().position(|i| i.name == name).unwrap() as u16);
        let node = |name: &str, reads: &[From], writes: bool| {
            let inst = VInst::new(VKind::Normal, named(name), &[], 0);
            let reads = reads.iter().copied().enumerate().collect();
            Node { inst, reads, writes: writes.then_some((2, 1)), tied: false, mem: None }
        };
        let mut nodes = Vec::new();
        for first in (0..times).map(|k| 5 * k) {
            for _ in 0..3 {
                let mut load = node("ldw", &[From::Outside(VReg(0))], true);
                load.mem = Some(MemRef::own(Space::Linear, false, 0, 4));
                nodes.push(load);
            }
            nodes.push(node("add", &[From::Node(first + 2, 0), From::Node(first + 1, 0)], true));
            nodes.push(node("add", &[From::Node(first + 3, 0), From::Node(first, 0)], true));
        }
        nodes.push(node("b", &[], false));
        Body { memory: vec![(0, 1, 0, 1)], ..Body::of(nodes, named("b")) }
    }

    /// Names of the instructions, the orders, and the words.
    type Said = (String, Vec<(usize, usize, u32, u32)>, usize);

    fn parked(times: usize, room: usize, offset: i64) -> Option<Said> {
        let m = machine();
        let sides = Sides::new(&m, &m.abi.allocatable);
        let body = sums(&m, times);
        let at = vec![At { unit: 0, result: 0 }; body.nodes.len()];
        let (out, at, index) = park(&body, &at, &sides, &[room, 0], (offset, 0))?;
        assert_eq!(at.len(), out.nodes.len());
        assert_eq!(index.len(), body.nodes.len());
        let same = |(old, &new): (usize, &usize)| out.nodes[new].inst.instr == body.nodes[old].inst.instr;
        assert!(index.iter().enumerate().all(same));
        let names: Vec<&str> = out.nodes.iter().map(|n| m.instrs[usize::from(n.inst.instr.0)].name.as_str()).collect();
        Some((names.join(" "), out.memory, out.parked))
    }

    #[test]
    fn what_is_read_last_waits_in_the_frame() {
        let (names, orders, words) = parked(1, 3, 0).unwrap();
        assert_eq!((names.as_str(), orders, words), ("ldw ldw ldw add add b", vec![(0, 1, 0, 1)], 0));
        // The first goes before the third comes, and is back for the second sum.
        let (names, orders, words) = parked(1, 2, 0).unwrap();
        assert_eq!((names.as_str(), words), ("ldw ldw stw_far ldw add ldw_far add b", 1));
        assert_eq!(orders, [(2, 5, 1, 0), (5, 2, 0, 1), (0, 1, 0, 1)]);
    }

    /// The offsets of words that are stored to and loaded from, and the words, where so many are for the cluster of the values.
    fn offsets(times: usize, reached: usize) -> (Vec<i64>, usize) {
        let m = machine();
        let sides = Sides::new(&m, &m.abi.allocatable);
        let body = sums(&m, times);
        let at = vec![At { unit: 0, result: 0 }; body.nodes.len()];
        let (out, ..) = park(&body, &at, &sides, &[2, 0], (0, reached)).unwrap();
        let framed = out.nodes.iter().filter(|n| n.mem.is_some_and(|m| m.space == Space::Stack));
        let imm = |n: &Node| n.inst.ops.iter().find_map(|o| if let VOp::Imm(v) = o { Some(*v) } else { None });
        (framed.filter_map(imm).collect(), out.parked)
    }

    #[test]
    fn words_that_other_clusters_reach_are_used_again_sooner() {
        assert_eq!(offsets(3, 0), (vec![0, 0, 4, 4, 8, 8], 3));
        assert_eq!(offsets(3, 1), (vec![0, 0, 0, 0, 0, 0], 1));
        assert_eq!(offsets(3, 2), (vec![0, 0, 4, 4, 0, 0], 2));
    }

    #[test]
    fn a_word_is_used_again_where_no_other_is_in_reach() {
        assert_eq!(parked(2, 2, 131_064).unwrap().2, 2);
        let (names, orders, words) = parked(2, 2, 131_068).unwrap();
        assert_eq!(
            (names.as_str(), words),
            ("ldw ldw stw_far ldw add ldw_far add ldw ldw stw_far ldw add ldw_far add b", 1)
        );
        let stays = [(2, 5, 1, 0), (5, 9, 0, 0), (9, 12, 1, 0), (12, 2, 0, 1)];
        assert_eq!(orders, [&stays[..], &[(0, 1, 0, 1)]].concat());
        assert!(parked(2, 2, 131_072).is_none());
    }
}
