//! From an instruction's semantics to its micro-operations.
//!
//! Every load in the semantics is a micro-operation, and every store two (one
//! where the machine brings a store's data with its address). What is left of the semantics, when a load
//! stands for its value, is the computation: none when all that is left is to
//! hand a loaded word on, or to store a register. Registers in an address are
//! sources of the load or store, all others of the computation or the store's
//! data. Extension of a loaded word to a register is part of the load.

use crate::lots::lot;
use crate::parts::{Wholes, dest_of, register, writes_part};
use crate::queues::Queue;
use crate::uop::{FIRST, Kind, Lists, Result, Uop};
use ciphermill_ir::{BinOp, UnOp};
use ciphermill_machine::core::{Core, Idiom};
use ciphermill_machine::sem::{Dest, Expr, Stmt};
use ciphermill_machine::{Instr, Machine, Reg, UnitId, for_each_expr};
use ciphermill_program::{Inst, Operand};

type Res<T> = std::result::Result<T, String>;

/// Ports: every unit of every family has a number.
#[derive(Clone, Debug)]
pub struct Ports {
    first: Vec<u32>,
    count: Vec<u32>,
    /// Names, by port.
    pub names: Vec<String>,
    /// The sets that occur, by class.
    pub classes: Vec<u32>,
}

impl Ports {
    /// Number the units of a machine.
    pub fn new(machine: &Machine) -> Res<Ports> {
        let mut ports = Ports { first: vec![], count: vec![], names: vec![], classes: vec![] };
        for unit in &machine.units {
            ports.first.push(ports.names.len() as u32);
            ports.count.push(u32::from(unit.count));
            for i in 0..unit.count {
                ports.names.push(if unit.count == 1 { unit.name.clone() } else { format!("{}{i}", unit.name) });
            }
        }
        if ports.names.len() > 32 {
            return Err(format!("{} units; a core has at most 32 ports", ports.names.len()));
        }
        Ok(ports)
    }

    pub(crate) fn mask(&self, units: &[UnitId]) -> u32 {
        units
            .iter()
            .map(|&u| ((1u64 << self.count[u]) - 1) as u32 * (1u64 << self.first[u]) as u32)
            .fold(0, |a, b| a | b)
    }

    /// The core's queues as sets of ports; the units of no queue are one without an end. Without queues none, or,
    /// where ports are chosen at rename, one for each.
    pub(crate) fn queues(&self, core: &Core) -> Vec<Queue> {
        let open = |ports| Queue { ports, entries: u32::MAX, kept: 0, shares: None };
        if core.rename.binds_port {
            return (0..self.names.len()).map(|port| open(1 << port)).collect();
        }
        let mut queues: Vec<Queue> = core
            .queues
            .iter()
            .map(|q| Queue { ports: self.mask(&q.units), entries: q.entries, kept: q.kept_cycles, shares: q.shares })
            .collect();
        let named = queues.iter().fold(0, |all, q| all | q.ports);
        let rest = ((1u64 << self.names.len()) - 1) as u32 & !named;
        if !queues.is_empty() && rest != 0 {
            queues.push(open(rest));
        }
        queues
    }

    fn class(&mut self, mask: u32) -> Res<u8> {
        let at = self.classes.iter().position(|&m| m == mask).unwrap_or(self.classes.len());
        if at == self.classes.len() {
            self.classes.push(mask);
        }
        u8::try_from(at).map_err(|_| "more than 255 different sets of ports".into())
    }
}

/// Makes micro-operations.
pub struct Decomposer<'a> {
    pub machine: &'a Machine,
    pub core: &'a Core,
    pub ports: Ports,
    pub lists: Lists,
    pub uops: Vec<Uop>,
    /// Registers that are written in part somewhere.
    pub wholes: Wholes,
}

/// An instruction's part of [`Decomposer::uops`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Parts {
    pub first: u32,
    pub count: u8,
    /// Counted with fused pairs as one.
    pub slots: u8,
    pub loads: u8,
    pub stores: u8,
}

/// Values of one instruction while it is taken apart.
struct Work<'i> {
    inst: &'i Inst,
    instr: &'i Instr,
    /// For each `let`: what reading it means.
    lets: Vec<Reads>,
    /// Next temporary register.
    temp: u16,
    /// Registers in the address, what its form takes more, and the temporary.
    loads: Vec<(Vec<u16>, u32, u16)>,
}

/// What a value is made from.
#[derive(Clone, Default, Debug)]
struct Reads {
    regs: Vec<u16>,
    /// Something has to be computed.
    work: bool,
}

impl Reads {
    fn join(&mut self, other: &Reads) {
        for &r in &other.regs {
            if !self.regs.contains(&r) {
                self.regs.push(r);
            }
        }
        self.work |= other.work;
    }
}

impl<'a> Decomposer<'a> {
    /// First register that is not the machine's.
    fn temps(&self) -> u16 {
        self.wholes.end
    }

    fn writable(&self, r: Reg) -> bool {
        self.machine.regs.get(usize::from(r.0)).is_some_and(|info| !info.zero)
    }

    /// Take an instruction apart.
    pub fn instruction(&mut self, inst: &Inst) -> Res<Parts> {
        let instr = &self.machine.instrs[usize::from(inst.instr.0)];
        let mut w = Work { inst, instr, lets: vec![Reads::default(); instr.temps], temp: self.temps(), loads: vec![] };
        let mut sources = Reads::default();
        let mut results: Vec<Result> = Vec::new();
        let mut stores: Vec<(Vec<u16>, Reads)> = Vec::new();
        let mut copies: Vec<(u16, u16)> = Vec::new();
        let mut jumps = false;
        let zero = self.core.rename.zero_idioms != Idiom::Plain && is_zero(instr, inst);
        for stmt in &instr.semantics {
            match stmt {
                Stmt::Let { temp, value } => {
                    let read = self.reads(&mut w, value);
                    *w.lets.get_mut(*temp).ok_or("a `let` is out of range")? = read;
                }
                Stmt::Assign { dest, value } => {
                    let Some(reg) = dest_of(inst, dest).filter(|&r| self.writable(r)) else {
                        // Written to nowhere, it is computed all the same.
                        let read = self.reads(&mut w, value);
                        sources.join(&read);
                        sources.work = true;
                        continue;
                    };
                    let mut read = self.reads(&mut w, value);
                    let part = writes_part(inst, reg, value);
                    if let (true, Some(whole)) = (part, self.wholes.second(reg.0)) {
                        // What is kept is not read to be kept.
                        read.regs.iter_mut().filter(|r| **r == whole).for_each(|r| *r = reg.0);
                    }
                    let loaded = !read.work && read.regs.len() == 1 && read.regs[0] >= self.temps();
                    if loaded {
                        copies.push((read.regs[0], reg.0));
                        continue;
                    }
                    if self.stack_engine(instr, inst, reg, value) {
                        continue;
                    }
                    let latency = latency(instr, dest);
                    results.extend(self.both(reg.0, latency, part));
                    sources.join(&read);
                    sources.work = true;
                }
                Stmt::Store { addr, value, bytes } => {
                    let address = self.reads(&mut w, addr).regs;
                    // The low part of a register is stored as it is.
                    let whole = match value {
                        Expr::Slice { a, lo: 0, .. } if register(inst, a).is_some() => a,
                        _ => value,
                    };
                    let data = match register(inst, whole).filter(|&r| *bytes == 1 && self.writable(r)) {
                        Some(byte) => Reads { regs: vec![byte.0], work: false },
                        None => self.reads(&mut w, whole),
                    };
                    stores.push((address, data));
                }
                Stmt::Goto { cond, target } => {
                    jumps = true;
                    for e in cond.iter().chain([target]) {
                        let read = self.reads(&mut w, e);
                        sources.join(&read);
                    }
                }
                Stmt::Trap => jumps = true,
                Stmt::Rotate => {
                    return Err(format!("`{}` rotates registers, which a core that renames does not do", instr.name));
                }
                Stmt::WindowSave | Stmt::WindowRestore => {
                    return Err(format!(
                        "`{}` turns a register window, which a core that renames does not have",
                        instr.name
                    ));
                }
            }
        }
        if zero {
            sources.regs.clear();
        }
        self.emit(w, sources, results, stores, copies, jumps, zero)
    }

    /// Put the micro-operations found into the lists.
    #[expect(clippy::too_many_arguments, reason = "what is decided so far, each once")]
    fn emit(
        &mut self,
        mut w: Work<'_>,
        mut sources: Reads,
        mut results: Vec<Result>,
        stores: Vec<(Vec<u16>, Reads)>,
        copies: Vec<(u16, u16)>,
        jumps: bool,
        zero: bool,
    ) -> Res<Parts> {
        let first = self.uops.len();
        let mut parts =
            Parts { first: first as u32, loads: w.loads.len() as u8, stores: stores.len() as u8, ..Parts::default() };
        for (address, more, temp) in &w.loads {
            let latency = (self.core.load.latency + more) as u16;
            let copied = copies.iter().filter(|c| c.0 == *temp).map(|c| c.1);
            let regs: Vec<Result> =
                [*temp].into_iter().chain(copied).flat_map(|reg| self.both(reg, latency, false)).collect();
            self.push(Kind::Load, &self.core.load.units.clone(), 1, address, &regs, latency)?;
        }
        // What a store stores: a register as it is, or something computed first.
        let mut data: Vec<Vec<u16>> = Vec::new();
        let split = !self.core.store.data_units.is_empty();
        let tail = u16::try_from(w.instr.latency).unwrap_or(u16::MAX);
        for (_, read) in &stores {
            if !read.work {
                data.push(read.regs.clone());
                continue;
            }
            sources.join(read);
            sources.work = true;
            results.push(Result { reg: w.temp, latency: tail, part: false });
            data.push(vec![w.temp]);
            w.temp += 1;
        }
        let computes = jumps || !results.is_empty() || sources.work;
        let moved = is_copy(self.machine, self.core, w.inst, w.instr) && self.core.rename.moves == Idiom::Eliminated;
        if (zero && self.core.rename.zero_idioms == Idiom::Eliminated) || (moved && !results.is_empty()) {
            let free: Vec<Result> = results.iter().map(|r| Result { latency: 0, ..*r }).collect();
            self.push(Kind::Nothing, &[], 1, &sources.regs, &free, 0)?;
        } else if computes {
            if let Some(load) = self.uops[first..].last_mut().filter(|_| self.core.decode.micro_fusion) {
                load.fused = true;
            }
            let busy = u16::try_from(w.instr.unit_cycles.max(1)).unwrap_or(u16::MAX);
            let units = w.instr.units.clone();
            let kind = if units.is_empty() { Kind::Nothing } else { Kind::Compute };
            let first = early(&w, &sources.regs)?;
            // All but the last have no result of their own, but the first one of what is needed before the rest.
            for k in 1..w.instr.uops {
                match &first {
                    Some((regs, cycles)) if k == 1 => {
                        let part = Result { reg: w.temp, latency: *cycles, part: false };
                        self.push(kind, &units, busy, regs, &[part], *cycles)?;
                        sources.regs.retain(|r| !regs.contains(r));
                        sources.regs.push(w.temp);
                    }
                    _ => self.push(kind, &units, busy, &sources.regs, &[], tail)?,
                }
            }
            for &unit in &w.instr.uop_units {
                self.push(Kind::Compute, &[unit], 1, &sources.regs, &[], 1)?;
            }
            self.push(kind, &units, busy, &sources.regs, &results, tail)?;
        } else if w.loads.is_empty() && stores.is_empty() {
            self.push(Kind::Nothing, &[], 1, &[], &[], 0)?;
        }
        for ((address, _), data) in stores.iter().zip(&data) {
            let units = self.core.store.address_units.clone();
            let mut address = address.clone();
            if !split {
                address.extend(data);
            }
            self.push(Kind::StoreAddress, &units, 1, &address, &[], 1)?;
            if split {
                if let Some(last) = self.uops.last_mut() {
                    last.fused = self.core.decode.micro_fusion;
                }
                self.push(Kind::StoreData, &self.core.store.data_units.clone(), 1, data, &[], 1)?;
            }
        }
        // A pair is two: the second of one cannot be the first of another.
        for i in first + 1..self.uops.len() {
            if self.uops[i - 1].fused {
                self.uops[i].fused = false;
            }
        }
        for i in first..self.uops.len().saturating_sub(1) {
            if self.uops[i].fused {
                self.uops[i].stations += self.uops[i + 1].stations;
            }
        }
        let pairs = self.uops[first..].iter().filter(|u| u.fused).count();
        let count = self.uops.len() - first;
        parts.count = u8::try_from(count).map_err(|_| format!("`{}` is {count} micro-operations", w.instr.name))?;
        parts.slots = parts.count - pairs as u8;
        Ok(parts)
    }

    /// A compare and a branch as one micro-operation with the branch's timing.
    pub fn macro_fused(&mut self, first: Parts, second: Parts) -> Res<Parts> {
        let (a, b) = (&self.uops[first.first as usize..][..usize::from(first.count)], second.first as usize);
        let branch = self.uops[b + usize::from(second.count) - 1];
        let compare = *a.last().ok_or("an instruction without micro-operations cannot fuse")?;
        let start = self.uops.len();
        let loads: Vec<Uop> = a[..a.len() - 1].to_vec();
        self.uops.extend(loads);
        let written: Vec<u16> = self.lists.results(&compare).iter().map(|r| r.reg).collect();
        let mut sources = self.lists.sources(&compare).to_vec();
        sources.extend(self.lists.sources(&branch).iter().filter(|r| !written.contains(r)));
        let mut results = self.lists.results(&compare).to_vec();
        results.extend(self.lists.results(&branch));
        let fused = Uop {
            sources: self.list_sources(&sources),
            results: self.list_results(&results),
            fused: false,
            stations: 1,
            ..branch
        };
        self.uops.push(fused);
        let slots = first.slots;
        Ok(Parts { first: start as u32, count: first.count, slots, loads: first.loads, stores: 0 })
    }

    fn list_sources(&mut self, regs: &[u16]) -> (u32, u8) {
        let at = self.lists.sources.len() as u32;
        self.lists.sources.extend(regs);
        (at, regs.len().min(255) as u8)
    }

    fn list_results(&mut self, results: &[Result]) -> (u32, u8) {
        let at = self.lists.results.len() as u32;
        self.lists.results.extend(results);
        (at, results.len().min(255) as u8)
    }

    fn push(
        &mut self,
        kind: Kind,
        units: &[UnitId],
        busy: u16,
        regs: &[u16],
        results: &[Result],
        latency: u16,
    ) -> Res<()> {
        let mask = self.ports.mask(units);
        if mask == 0 && kind != Kind::Nothing {
            return Err("a micro-operation has no unit to start on: its timing, or `[core.load]` or `[core.store_address]`, names none".into());
        }
        let class = self.ports.class(mask)?;
        let regs: Vec<u16> = regs
            .iter()
            .copied()
            .filter(|&r| usize::from(r) >= self.machine.regs.len() || self.writable(Reg(r)))
            .collect();
        let sources = self.list_sources(&regs);
        let results = self.list_results(results);
        self.uops.push(Uop {
            kind,
            lot: lot(self.uops.len()),
            own: mask,
            first: [0; FIRST],
            fused: false,
            misnamed: false,
            unnamed: false,
            stations: u8::from(kind != Kind::Nothing),
            ports: mask,
            class,
            busy,
            latency,
            sources,
            results,
        });
        Ok(())
    }

    /// What writing a register makes: it, and where it has one its whole.
    fn both(&self, reg: u16, latency: u16, part: bool) -> impl Iterator<Item = Result> + use<> {
        let late = latency + self.wholes.late(part);
        let whole = self.wholes.second(reg).map(|reg| Result { reg, latency: late, part });
        [Result { reg, latency, part: false }].into_iter().chain(whole)
    }

    /// What a load takes more for the form of its address, of so many registers.
    fn form_cycles(&self, addr: &Expr, registers: usize) -> u32 {
        let (mut scaled, mut constant) = (false, false);
        addr.walk(&mut |e| {
            scaled |= matches!(e, Expr::Bin { op: BinOp::Shl, .. });
            constant |= matches!(e, Expr::Imm(_) | Expr::Const(_));
        });
        match (scaled, constant && registers > 1) {
            (true, _) => self.core.load.scaled_cycles,
            (false, true) => self.core.load.three_term_cycles,
            (false, false) => 0,
        }
    }

    /// Is it a constant added to the stack pointer, beside an access to memory?
    fn stack_engine(&self, instr: &Instr, inst: &Inst, reg: Reg, value: &Expr) -> bool {
        let mut accesses = instr.semantics.iter().any(|s| matches!(s, Stmt::Store { .. }));
        for_each_expr(&instr.semantics, &mut |e| accesses |= matches!(e, Expr::Load { .. }));
        let constant = |e: &Expr| matches!(e, Expr::Imm(_) | Expr::Const(_));
        self.core.rename.stack_engine
            && reg == self.machine.abi.stack_pointer
            && accesses
            && matches!(value, Expr::Bin { op: BinOp::Add | BinOp::Sub, a, b, .. }
                if register(inst, a) == Some(reg) && constant(b))
    }

    /// What a value is made from; its loads become micro-operations.
    fn reads(&self, w: &mut Work<'_>, e: &Expr) -> Reads {
        let mut out = Reads::default();
        match e {
            Expr::Operand(_) | Expr::Fixed(_) => {
                if let Some(r) = register(w.inst, e).filter(|&r| self.writable(r)) {
                    out.regs.push(self.wholes.of(r));
                }
            }
            Expr::Temp(t) => out = w.lets.get(*t).cloned().unwrap_or_default(),
            Expr::Imm(_) | Expr::Const(_) | Expr::Pc => {}
            Expr::Load { addr, .. } => {
                let address = self.reads(w, addr).regs;
                let temp = w.temp;
                w.temp += 1;
                let more = self.form_cycles(addr, address.len());
                w.loads.push((address, more, temp));
                out.regs.push(temp);
            }
            Expr::Un { op: UnOp::SExt8 | UnOp::SExt16 | UnOp::SExt32, a, .. }
            | Expr::Slice { a, lo: 0, width: 8 | 16 | 32 } => {
                let low = matches!(e, Expr::Un { op: UnOp::SExt8, .. } | Expr::Slice { width: 8, .. });
                match register(w.inst, a).filter(|&r| low && self.writable(r)) {
                    Some(byte) => out.regs.push(byte.0),
                    None => out = self.reads(w, a),
                }
                // An extension of a loaded word is part of the load.
                out.work |= !matches!(**a, Expr::Load { .. });
            }
            Expr::Un { a, .. }
            | Expr::Slice { a, .. }
            | Expr::Linear { a, .. }
            | Expr::FlagsLogic { a, .. }
            | Expr::Table { index: a, .. }
            | Expr::FlagsTest { flags: a, .. } => {
                out = self.reads(w, a);
                out.work = true;
            }
            Expr::Bin { a, b, .. }
            | Expr::Cmp { a, b, .. }
            | Expr::FlagsSub { a, b, .. }
            | Expr::FlagsAdd { a, b, .. } => {
                for e in [a, b] {
                    let read = self.reads(w, e);
                    out.join(&read);
                }
                out.work = true;
            }
            Expr::Select { cond, then, els } => {
                for e in [cond, then, els] {
                    let read = self.reads(w, e);
                    out.join(&read);
                }
                out.work = true;
            }
            Expr::MatVec { matrix, a } => {
                out = self.reads(w, a);
                out.regs.extend(matrix.registers().map(|r| r.0));
                out.work = true;
            }
        }
        out
    }
}

/// The registers that an instruction of several micro-operations needs before the others (`early`), and how much
/// before: its first one makes something of them that the last one waits for.
fn early(w: &Work<'_>, sources: &[u16]) -> Res<Option<(Vec<u16>, u16)>> {
    let regs: Vec<(u16, u32)> = w
        .instr
        .early
        .iter()
        .filter_map(|&(operand, cycles)| match w.inst.operands.get(operand) {
            Some(Operand::Reg(r)) if cycles > 0 && sources.contains(&r.0) => Some((r.0, cycles)),
            _ => None,
        })
        .collect();
    let Some(&(_, cycles)) = regs.first() else { return Ok(None) };
    if w.instr.uops < 2 || regs.iter().any(|&(_, other)| other != cycles) {
        return Err(format!(
            "`{}` needs operands `early`: on a core that schedules at run time the first of its micro-operations \
             takes them, so its timing says `uops = 2` or more, and as many cycles for each operand",
            w.instr.name
        ));
    }
    Ok(Some((regs.into_iter().map(|(r, _)| r).collect(), cycles as u16)))
}

fn latency(instr: &Instr, dest: &Dest) -> u16 {
    let cycles = instr.dest_latency.iter().find(|(d, _)| d == dest).map_or(instr.latency, |&(_, l)| l);
    u16::try_from(cycles).unwrap_or(u16::MAX)
}

/// Does it only copy a register?
fn is_copy(machine: &Machine, core: &Core, inst: &Inst, instr: &Instr) -> bool {
    let [Stmt::Assign { dest: dest @ Dest::Operand(_), value }] = &instr.semantics[..] else { return false };
    let value = match value {
        Expr::Slice { a, lo: 0, width } if u32::from(*width) == core.rename.low_move_bits => a,
        _ => value,
    };
    if !matches!(value, Expr::Operand(_)) {
        return false;
    }
    // Registers of another file are renamed by themselves: nothing can stand for one of them.
    let file = |reg: Option<Reg>| machine.regs.get(usize::from(reg?.0)).map(|r| r.file);
    file(dest_of(inst, dest)) == file(register(inst, value))
}

/// Is its result nothing, whatever its operands: a register less, or
/// exclusive-or, itself?
fn is_zero(instr: &Instr, inst: &Inst) -> bool {
    instr.semantics.iter().any(|s| match s {
        Stmt::Assign { dest: Dest::Operand(_), value } | Stmt::Let { value, .. } => {
            matches!(value, Expr::Bin { op: BinOp::Xor | BinOp::Sub, a, b, .. }
                if register(inst, a).is_some() && register(inst, a) == register(inst, b))
        }
        _ => false,
    })
}
