//! Issue, branches, memory and assembler syntax: the small sections.

use crate::builder::{int, nodes, text};
use crate::error::FileError;
use crate::model::*;
use crate::tree::{Node, Table as Tree};

fn flag(table: Option<&Tree>, key: &str) -> bool {
    table.and_then(|t| t.get(key)).and_then(Node::as_bool).unwrap_or(false)
}

pub(crate) fn issue(top: &Tree) -> Issue {
    let t = top.table("issue");
    let width = t.and_then(|t| int(t, "width")).unwrap_or(1);
    let interlock = flag(t, "interlock");
    let explicit = t.and_then(|t| t.get("explicit")).and_then(Node::as_bool).unwrap_or(width > 1 || !interlock);
    Issue {
        width,
        interlock,
        explicit,
        packet_bytes: t.and_then(|t| int(t, "packet_bytes")).unwrap_or(0),
        cross_stall: t.and_then(|t| int(t, "cross_stall")).unwrap_or(0),
        register_reads: t.and_then(|t| int(t, "register_reads")).unwrap_or(0),
    }
}

pub(crate) fn codegen(top: &Tree) -> Codegen {
    let branches = top.table("codegen").and_then(|t| text(t, "select")) == Some("branch");
    Codegen { select: if branches { Selection::Branch } else { Selection::Straight } }
}

pub(crate) fn branch(top: &Tree) -> Result<BranchModel, FileError> {
    let empty = Tree::default();
    let t = top.table("branch").unwrap_or(&empty);
    let get = |key: &str, default: u32| int(t, key).unwrap_or(default);
    let learned = Learned {
        btb_entries: get("btb_entries", 16),
        bht_entries: get("bht_entries", 64),
        bht_bits: get("bht_bits", 2),
        return_stack: get("return_stack", 0),
    };
    if let (false, Some(n)) = (learned.bht_entries.is_power_of_two(), t.get("bht_entries")) {
        return Err(n.place.error("the number of counters must be a power of two"));
    }
    let predictor = match text(t, "predictor") {
        Some("backward_taken") => Predictor::BackwardTaken,
        Some("dynamic") => Predictor::Dynamic(learned),
        _ => Predictor::None,
    };
    if let (Predictor::Dynamic(_), false, Some(n)) = (predictor, issue(top).interlock, t.get("predictor")) {
        return Err(n.place.error("a pipeline without interlock has no predictor that learns"));
    }
    Ok(BranchModel {
        predictor,
        fetch_bytes: get("fetch_bytes", 4),
        split_target_cycles: get("split_target_cycles", 0),
    })
}

pub(crate) fn memory(top: &Tree) -> Result<MemorySystem, FileError> {
    let t = top.table("memory");
    let cache = |key: &str| t.and_then(|t| t.get(key)).map_or(Ok(None), cache);
    Ok(MemorySystem {
        icache: cache("icache")?,
        dcache: cache("dcache")?,
        unaligned: flag(t, "unaligned"),
        ram: t.and_then(|t| int(t, "ram_to").map(|to| (int(t, "ram_from").unwrap_or(0), to))),
        flash_from: t.and_then(|t| int(t, "flash_from")).unwrap_or(0),
        flash_bytes: t.and_then(|t| int(t, "flash_bytes")),
        tables_in_flash: t.and_then(|t| text(t, "tables")).map(|place| place == "flash"),
        banks: t.and_then(|t| t.get("banks")).map_or(Ok(None), banks)?,
    })
}

fn banks(node: &Node) -> Result<Option<Banks>, FileError> {
    let Some(t) = node.as_table() else { return Ok(None) };
    let get = |key: &str| int(t, key).unwrap_or(1u32);
    let banks = Banks {
        blocks: get("blocks"),
        block_bytes: get("block_bytes"),
        banks: get("banks"),
        bank_bytes: get("bank_bytes"),
    };
    if !banks.block_bytes.is_multiple_of(banks.banks * banks.bank_bytes) {
        let place = t.get("block_bytes").map_or(&node.place, |n| &n.place);
        return Err(place.error("a block must hold all its banks equally: a multiple of banks * bank_bytes"));
    }
    Ok(flag(Some(t), "enabled").then_some(banks))
}

/// A cache that is not enabled is checked all the same: `--set` may enable it.
fn cache(node: &Node) -> Result<Option<Cache>, FileError> {
    let Some(t) = node.as_table() else { return Ok(None) };
    let cache = geometry(node, t)?;
    Ok(flag(Some(t), "enabled").then_some(cache))
}

/// Sizes and policies of a cache, enabled or not.
pub(crate) fn geometry(node: &Node, t: &Tree) -> Result<Cache, FileError> {
    let cache = Cache {
        bytes: int(t, "bytes").unwrap_or(0),
        ways: int(t, "ways").unwrap_or(1),
        line_bytes: int(t, "line_bytes").unwrap_or(4),
        replacement: match text(t, "replacement") {
            Some("random") => Replacement::Random,
            Some("fifo") => Replacement::Fifo,
            _ => Replacement::Lru,
        },
        write: if text(t, "write") == Some("back") { WritePolicy::Back } else { WritePolicy::Through },
        miss_cycles: int(t, "miss_cycles").unwrap_or(0),
        writeback_cycles: int(t, "writeback_cycles").unwrap_or(0),
    };
    let place = |key: &str| t.get(key).map_or(&node.place, |n| &n.place);
    if !cache.line_bytes.is_power_of_two() {
        return Err(place("line_bytes").error("the size of a line must be a power of two"));
    }
    let way = cache.ways.saturating_mul(cache.line_bytes);
    if !cache.bytes.is_multiple_of(way) || !(cache.bytes / way.max(1)).is_power_of_two() {
        let error = place("bytes").error("bytes / (ways * line_bytes), the number of sets, must be a power of two");
        return Err(error
            .mend(format!("{} would do", way.saturating_mul((cache.bytes / way.max(1)).max(1).next_power_of_two()))));
    }
    Ok(cache)
}

pub(crate) fn asm(top: &Tree) -> Result<AsmSyntax, FileError> {
    let empty = Tree::default();
    let t = top.table("asm").unwrap_or(&empty);
    let lines = ["comment", "reg_prefix", "function_type", "code_pointer"];
    for node in nodes(t, "prologue").iter().chain(lines.iter().filter_map(|key| t.get(key))) {
        if node.as_str().is_some_and(|s| s.contains('\n')) {
            return Err(node.place.error("one line each, please"));
        }
    }
    Ok(AsmSyntax {
        reg_prefix: text(t, "reg_prefix").unwrap_or_default().to_owned(),
        guard: text(t, "guard").unwrap_or("({p}) ").to_owned(),
        function_type: text(t, "function_type").map(str::to_owned),
        code_pointer: text(t, "code_pointer").map(str::to_owned),
        comment: text(t, "comment").unwrap_or("#").to_owned(),
        prologue: nodes(t, "prologue").iter().filter_map(|n| n.as_str().map(str::to_owned)).collect(),
    })
}
