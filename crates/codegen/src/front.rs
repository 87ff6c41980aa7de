//! From an optimised module to functions that selection can cover: what the
//! machine's own instructions compute is recognised, accesses are expanded, and
//! operations that the machine lacks are rewritten.

use crate::buffers;
use crate::options::Options;
use crate::tables::Tables;
use ciphermill_ir::low_bits::{self, Low, LowBits};
use ciphermill_ir::{Func, FuncId, GlobalId, Module, Type, bits};
use ciphermill_machine::{Endian, Machine, Reg, Selection};
use ciphermill_opt::limbs;
use ciphermill_opt::words::words;
use ciphermill_patterns::matcher::Matcher;
use ciphermill_recognise::configure;
use ciphermill_select::{
    addressing, aligned, banks, behind, branches, carries, chains, expand, flash, halves, legalise, masks, shape,
    turned,
};
use ciphermill_vcode::CompileError;
use std::collections::HashMap;
use std::ops::Range;

/// A module on its way to a machine.
pub struct Front<'a> {
    machine: &'a Machine,
    options: &'a Options,
    pub module: Module,
    /// Globals pinned to registers, and those that only special instructions write.
    pub pinned: Vec<(GlobalId, Reg)>,
    /// Of those, the program's own.
    pub in_registers: Vec<(GlobalId, Reg)>,
    /// Room in the system area for arguments beyond the registers.
    pub overflow: u32,
    /// What selection may use, the first that will do.
    matchers: Vec<&'a Matcher>,
    byte_copies: Vec<(u32, u32, u32)>,
    /// The addresses of flash, if the module's tables are there.
    pub flash: Option<Range<u32>>,
    /// How many of a function's first parameters are buffers apart from each other. Not said of values that were split.
    pub buffers: HashMap<FuncId, usize>,
    /// What the caller promised of parameters.
    pub promised: HashMap<FuncId, Vec<Low>>,
    proved: HashMap<FuncId, Vec<Low>>,
}

impl<'a> Front<'a> {
    /// # Errors
    /// When the machine has words of less than 32 bits, and the module what they are too narrow for.
    pub fn new(module: &Module, tables: &'a Tables, options: &'a Options) -> Result<Front<'a>, CompileError> {
        let (machine, recogniser) = (&*tables.machine, &tables.recogniser);
        let mut module = module.clone();
        words(&mut module, machine.computes_narrow(), machine.word_bits);
        let mut pinned = pin_globals(&module, machine);
        let in_registers = pinned.clone();
        let mut rows: Vec<GlobalId> = Vec::new();
        // Strict traps are for programs whose every load counts.
        if !options.strict_traps {
            let configured = configure::configure(&mut module, machine, recogniser);
            for (id, func) in &mut module.funcs {
                recogniser.run(func, &module.data, configured.matrices.get(&id));
            }
            rows.extend(configured.rows.iter().map(|r| r.0));
            pinned.extend(configured.rows);
        }
        // Values are split where everything has been found that whole values show.
        let narrow = tables.narrow();
        let flash = machine.memory.flash().filter(|at| narrow.is_some() && flash::holds_tables(&module, at));
        if let Some(at) = flash.as_ref().filter(|_| machine.reads_flash()) {
            flash::mark(&mut module, at);
        }
        let mut buffers = buffers::promised(&module, options);
        if let Some(narrow) = narrow {
            let pointers = behind::pointers(machine, &tables.matcher.templates);
            for (id, apart) in buffers.drain().filter(|b| b.1 > pointers && !options.strict_traps) {
                behind::stores_behind_loads(&mut module.funcs[id], apart);
            }
            let known = limbs::Known { whole: &tables.whole, registers: &rows };
            limbs::lower(&mut module, narrow, known).map_err(|e| CompileError::Unsupported(e.to_string()))?;
        }
        let overflow = reserve_overflow(&mut module, machine.value_bits());
        let big = machine.endian == Endian::Big && !options.strict_traps;
        let byte_copies = if big { copy_bytes(&mut module) } else { vec![] };
        if let (Some(banks), Some(id), false, Endian::Little) = (
            banks::described(machine),
            options.focus.as_ref().and_then(|name| module.export(name)),
            options.strict_traps,
            machine.endian,
        ) {
            banks::copy_tables(&mut module, id, banks);
        }
        if aligned::joins(&tables.matcher.templates) && machine.endian == Endian::Little && !options.strict_traps {
            aligned::copy_tables(&mut module);
            for (name, index, modulus, residue) in &options.placed_params {
                if let (0, Some(id), true) = (index, module.export(name), modulus.is_power_of_two()) {
                    aligned::join_context(&mut module.funcs[id], *modulus, *residue);
                }
            }
        }
        // Promises count parameters of whole values.
        let promises = if narrow.is_some() { HashMap::new() } else { promises(&module, options) };
        let promised = low_bits::param_facts(&module, &promises);
        let proved = low_bits::param_facts(&module, &HashMap::new());
        Ok(Front {
            machine,
            options,
            module,
            pinned,
            in_registers,
            overflow,
            matchers: tables.steady.iter().filter(|_| options.constant_time).chain([&tables.matcher]).collect(),
            byte_copies,
            flash,
            buffers,
            promised,
            proved,
        })
    }

    /// A function as selection takes it, and the instructions to select from. Its blocks keep their numbers; new
    /// ones come behind them.
    ///
    /// # Errors
    /// When machine and rules lack an operation.
    pub fn func(&self, id: FuncId) -> Result<(Func, &'a Matcher), CompileError> {
        let mut tried = self.matchers.iter().map(|&matcher| Ok((self.func_with(id, matcher)?, matcher)));
        let lacks = |made: &Result<_, _>| matches!(made, Err(CompileError::NoInstruction { .. }));
        let done = tried.by_ref().take(self.matchers.len() - 1).find(|made| !lacks(made));
        done.or_else(|| tried.next()).unwrap_or_else(|| Err(CompileError::Internal("nothing to select from".into())))
    }

    fn func_with(&self, id: FuncId, matcher: &Matcher) -> Result<Func, CompileError> {
        let (m, options) = (self.machine, self.options);
        let mut func = self.module.funcs[id].clone();
        if m.value_bits() < m.word_bits {
            shape::pass_in_memory(&mut func, self.convention());
            shape::split_critical_edges(&mut func);
            return Ok(func);
        }
        let only: Vec<GlobalId> = self.pinned.iter().map(|p| p.0).collect();
        let cx = expand::Context {
            module: &self.module,
            machine: m,
            matcher,
            strict_traps: options.strict_traps,
            word_buffers: options.word_buffers,
            pinned: &only,
            byte_copies: &self.byte_copies,
        };
        let address_facts = expand::AddressFacts {
            promised: LowBits::new(&func, &self.promised[&id]),
            proved: LowBits::new(&func, &self.proved[&id]),
            masks: (!self.byte_copies.is_empty()).then(|| bits::Masks::new(&func)),
        };
        expand::expand(&mut func, &cx, &address_facts);
        shape::pass_in_memory(&mut func, self.convention());
        if m.codegen.select == Selection::Branch && !options.constant_time {
            branches::lower(&mut func);
        }
        func = self.legal(func, matcher)?;
        // Masks are paired in one width only.
        if !m.computes_narrow() {
            masks::pair(&mut func, matcher, u32::from(m.word_bits));
        }
        if turned::of_use(m, matcher) {
            turned::turn(&mut func);
        }
        if !options.strict_traps && addressing::three_terms(matcher) {
            addressing::spread(&mut func);
        }
        carries::join(&mut func, m);
        shape::split_critical_edges(&mut func);
        Ok(func)
    }

    fn convention(&self) -> shape::Convention {
        let m = self.machine;
        shape::Convention {
            arg_regs: m.abi.args.len().min(m.abi.callee_args.len()),
            word: Type::of_word(u32::from(m.word_bits)),
            slot_bytes: u32::from(m.value_bits() / 8),
            narrow: m.computes_narrow(),
            result_regs: m.abi.results.len().min(m.abi.callee_results.len()),
            overflow: self.overflow,
        }
    }

    /// A function of operations that the machine has. Of loops that circuits hold there are several
    /// forms, and the one with the shortest circuits is taken.
    fn legal(&self, func: Func, matcher: &Matcher) -> Result<Func, CompileError> {
        let (m, options) = (self.machine, self.options);
        let made = |mut func: Func| {
            legalise::legalise(&mut func, m, matcher, options.throughput)?;
            if m.issue.explicit && halves::shifts_are_few(m, matcher) {
                halves::spread(&mut func, m, matcher);
                halves::scale(&mut func, matcher);
            }
            Ok(func)
        };
        // Only where loops are pipelined is a circuit what costs.
        if !m.issue.explicit || options.level < 2 || options.plain_loops {
            return made(func);
        }
        let mut turned = func.clone();
        let mut plain = made(func)?;
        if !chains::price(&plain, m, matcher).1 {
            return Ok(plain);
        }
        chains::shorten(&mut plain, m, matcher);
        if !chains::turns::turn(&mut turned) {
            return Ok(plain);
        }
        let mut turned = made(turned)?;
        chains::shorten(&mut turned, m, matcher);
        let price = |func: &Func| chains::price(func, m, matcher).0;
        Ok(if chains::is_worth(price(&turned), price(&plain)) { turned } else { plain })
    }
}

/// Globals that a register holds: the C stack pointer first, then the others
/// that change, in their order.
fn pin_globals(module: &Module, machine: &Machine) -> Vec<(GlobalId, Reg)> {
    let mut list: Vec<GlobalId> =
        module.globals.iter().filter(|(_, g)| g.mutable && g.ty == Type::I32).map(|(id, _)| id).collect();
    list.sort_by_key(|&g| (module.globals[g].name.as_deref() != Some("__stack_pointer"), g));
    list.into_iter().zip(machine.abi.globals.iter().copied()).collect()
}

/// Room in the system area for arguments and results beyond the registers.
fn reserve_overflow(module: &mut Module, word_bits: u8) -> u32 {
    let words = |n: usize| n as u32;
    let most = module
        .funcs
        .values()
        .map(|f| words(f.sig.params.len().max(f.sig.results.len())))
        .chain(module.sigs.values().map(|s| 2 * words(s.params.len().max(s.results.len()))))
        .max()
        .unwrap_or(0);
    let at = module.system.bytes.len().next_multiple_of(8);
    module.system.bytes.resize(at + usize::from(word_bits / 8) * most as usize, 0);
    at as u32
}

/// Copies of the read-only segments in big-endian byte order.
fn copy_bytes(module: &mut Module) -> Vec<(u32, u32, u32)> {
    let mut out = Vec::new();
    for segment in module.data.iter().filter(|d| d.readonly) {
        let at = module.system.bytes.len().next_multiple_of(8);
        let len = segment.bytes.len().next_multiple_of(4);
        module.system.bytes.resize(at + len, 0);
        for (i, &b) in segment.bytes.iter().enumerate() {
            module.system.bytes[at + (i ^ 3)] = b;
        }
        out.push((segment.addr, segment.bytes.len() as u32, at as u32));
    }
    out
}

fn promises(module: &Module, options: &Options) -> HashMap<(FuncId, usize), u32> {
    let find = |(name, index, align): &(String, usize, u32)| Some(((module.export(name)?, *index), *align));
    options.aligned_params.iter().filter(|p| p.2.is_power_of_two()).filter_map(find).collect()
}
