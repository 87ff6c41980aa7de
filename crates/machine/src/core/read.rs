//! `[core]` of a file, checked, as a [`Core`].

use super::*;
use crate::builder::{Builder, int, nodes, text};
use crate::error::{FileError, did_you_mean, list, near_instruction};
use crate::model::WritePolicy;
use crate::tree::{Node, Table as Tree};

/// The core of a machine that has one.
pub(crate) fn core(b: &Builder<'_>) -> Result<Option<Core>, FileError> {
    let Some(node) = b.top.get("core") else { return Ok(None) };
    let empty = Tree::default();
    let t = node.as_table().unwrap_or(&empty);
    let part = |key: &str| t.table(key).unwrap_or(&empty);
    let memory = b.top.table("memory").unwrap_or(&empty);
    let Some(dram) = memory.table("dram") else {
        let error = node.place.error("a machine with `[core]` needs the latency of its memory");
        return Err(error.mend("add `[memory.dram]` with `latency`"));
    };
    let (fetch, decode, rename, retire, load) =
        (part("fetch"), part("decode"), part("rename"), part("retire"), part("load"));
    Ok(Some(Core {
        in_order: text(t, "kind") == Some("in_order"),
        reorder_buffer: number(t, "reorder_buffer", 1),
        reservation_stations: number(t, "reservation_stations", 1),
        fetch: Fetch {
            bytes: power(fetch, "bytes", 16)?,
            predecode: number(fetch, "predecode", 0),
            entry: number(fetch, "entry", 0),
            entries: number(fetch, "entries", 0),
            entry_ways: number(fetch, "entry_ways", 16),
            entry_breaks: flag(fetch, "entry_breaks"),
            missed_bytes: power(fetch, "missed_bytes", 16)?,
            missed_instructions: number(fetch, "missed_instructions", 0),
            stages: number(fetch, "stages", 0),
            queue: number(fetch, "queue", 1),
            taken_cycles: number(fetch, "taken_cycles", 0),
            redirect_cycles: number(fetch, "redirect_cycles", 0),
            loop_instructions: number(fetch, "loop_instructions", 0),
            loop_blocks: number(fetch, "loop_blocks", 0),
            length_changing: all_named(b, fetch, "length_changing")?,
            length_change_cycles: number(fetch, "length_change_cycles", 0),
        },
        decode: Decode {
            pattern: pattern(decode, node)?,
            stages: number(decode, "stages", 0),
            queue: number(decode, "queue", 1),
            micro_fusion: flag(decode, "micro_fusion"),
            macro_fusion: fusion(b, decode)?,
        },
        rename: Rename {
            width: number(rename, "width", 1),
            stages: number(rename, "stages", 1),
            written_reads: number(rename, "written_reads", 0),
            zero_idioms: idiom(rename, "zero_idioms"),
            moves: idiom(rename, "moves"),
            partial_reads: match text(rename, "partial_reads") {
                Some("late") => PartialReads::Late,
                Some("stall") => PartialReads::Stall,
                _ => PartialReads::Free,
            },
            partial_cycles: number(rename, "partial_cycles", 0),
            low_move_bits: number(rename, "low_move_bits", 0),
            stack_engine: flag(rename, "stack_engine"),
            binds_port: flag(rename, "binds_port"),
            queue_choice: match text(rename, "queue_choice") {
                Some("in_turn") => QueueChoice::InTurn,
                Some("scattered") => QueueChoice::Scattered,
                Some("delayed") => QueueChoice::Delayed,
                _ => QueueChoice::Fewest,
            },
            queue_slack: number(rename, "queue_slack", 0),
            deals_few: flag(rename, "deals_few"),
            queue_delay: number(rename, "queue_delay", 1) as u8,
            queue_step: number(rename, "queue_step", 1) as u16,
            queue_spare: number(rename, "queue_spare", 0) as u16,
        },
        result_bus: flag(t, "result_bus"),
        result_patience: number(t, "result_patience", 0) as u8,
        queues: queues(b, t)?,
        retire: Retire { width: number(retire, "width", 1), recovers: text(retire, "recovery") == Some("retirement") },
        load: Load {
            units: units(b, load)?,
            latency: number(load, "latency", 1),
            buffers: number(load, "buffers", 1),
            fill_buffers: number(load, "fill_buffers", 8),
            forward_latency: number(load, "forward_latency", 1),
            failed_forward_cycles: number(load, "failed_forward_cycles", 0),
            scaled_cycles: number(load, "scaled_cycles", 0),
            three_term_cycles: number(load, "three_term_cycles", 0),
            renaming: match text(load, "renaming") {
                Some("form") => Renaming::Form,
                Some("distance") => Renaming::Distance,
                _ => Renaming::No,
            },
            renamed_cycles: number(load, "renamed_cycles", 0),
            renaming_distance: number(load, "renaming_distance", 15),
            renaming_bytes: number(load, "renaming_bytes", 1),
            renaming_moves: flag(load, "renaming_moves"),
            split_cycles: number(load, "split_cycles", 0),
            alias_bytes: if load.get("alias_bytes").is_some() { power(load, "alias_bytes", 0)? } else { 0 },
            disambiguation: match text(load, "disambiguation") {
                Some("perfect") => Disambiguation::Perfect,
                Some("predict") => Disambiguation::Predict { entries: power(load, "disambiguation_entries", 256)? },
                _ => Disambiguation::Wait,
            },
            violation_cycles: number(load, "violation_cycles", 0),
            misnamed: load.table("misnamed").map(misnamed).transpose()?,
        },
        store: Store {
            address_units: units(b, part("store_address"))?,
            data_units: units(b, part("store_data"))?,
            data_through: units_of(b, part("store_data"), "through")?,
            buffers: number(part("store_data"), "buffers", 1),
            commits: number(part("store_data"), "commits", 1),
            one_line: flag(part("store_data"), "one_line"),
        },
        predictor: predictor(part("predictor"))?,
        prefetch: {
            let p = part("prefetch");
            Prefetch {
                next_line: flag(p, "next_line"),
                code_lines: number(p, "code_lines", 0),
                stride_entries: number(p, "stride_entries", 0),
                adjacent_line: flag(p, "adjacent_line"),
                streams: number(p, "streams", 0),
                stream_lines: number(p, "stream_lines", 2),
                page_bytes: if int::<u32>(p, "page_bytes") == Some(0) { 0 } else { power(p, "page_bytes", 0)? },
            }
        },
        l2: memory.get("l2").map_or(Ok(None), |n| l2(n, b.top))?,
        l3: memory.get("l3").map_or(Ok(None), |n| l3(n, b.top))?,
        dram: Dram { latency: number(dram, "latency", 1), interval: number(dram, "interval", 1) },
        dtlb: memory.get("dtlb").map_or(Ok(None), dtlb)?,
        events: part("events")
            .iter()
            .filter_map(|e| e.node.as_str().and_then(Event::named).map(|event| (e.key.clone(), event)))
            .collect(),
    }))
}

fn number(t: &Tree, key: &str, otherwise: u32) -> u32 {
    int(t, key).unwrap_or(otherwise)
}

fn flag(t: &Tree, key: &str) -> bool {
    t.get(key).and_then(Node::as_bool).unwrap_or(false)
}

/// A number that must be a power of two.
fn power(t: &Tree, key: &str, otherwise: u32) -> Result<u32, FileError> {
    let n: u32 = int(t, key).unwrap_or(otherwise);
    match (n.is_power_of_two(), t.get(key)) {
        (false, Some(node)) => {
            let error = node.place.error(format!("`{key}` must be a power of two"));
            Err(error.mend(format!("{} or {} would do", n.next_power_of_two() / 2, n.next_power_of_two())))
        }
        _ => Ok(n),
    }
}

fn misnamed(t: &Tree) -> Result<Misnamed, FileError> {
    let ways = number(t, "ways", 1);
    let entries = number(t, "entries", 1);
    let sets = entries / ways.max(1);
    if let Some(node) = t.get("entries").filter(|_| !entries.is_multiple_of(ways.max(1)) || !sets.is_power_of_two()) {
        let error = node.place.error("`entries` must be `ways` times a power of two");
        return Err(error.mend(format!("{} would do", ways * sets.max(1).next_power_of_two())));
    }
    Ok(Misnamed {
        word_bytes: power(t, "word_bytes", 4)?,
        alias_bytes: if t.get("alias_bytes").is_some() { power(t, "alias_bytes", 0)? } else { 0 },
        distance: number(t, "distance", 0),
        entries,
        ways,
        cycles: number(t, "cycles", 0),
        shadow: number(t, "shadow", 0),
    })
}

/// The schedulers. No unit is in two of them, and no port is chosen without them.
fn queues(b: &Builder<'_>, t: &Tree) -> Result<Vec<Queue>, FileError> {
    let mut list: Vec<Queue> = Vec::new();
    for entry in t.table("queues").into_iter().flat_map(Tree::iter) {
        let Some(q) = entry.node.as_table() else { continue };
        let all = units(b, q)?;
        for (unit, node) in all.iter().zip(nodes(q, "units")) {
            if let Some(other) = list.iter().find(|o| o.units.contains(unit)) {
                let name = node.as_str().unwrap_or_default();
                let error = node.place.error(format!("the unit `{name}` is in the queue `{}` already", other.name));
                return Err(error.mend("a unit starts what waits in one queue; leave it out of one of them"));
            }
        }
        // An heir whose queue has entries of its own says so by an empty name.
        let shares = match q.get("shares").filter(|n| n.as_str() != Some("")) {
            None => None,
            Some(node) if q.get("entries").is_some() => {
                let error = node.place.error(format!("the queue `{}` has entries and shares another's", entry.key));
                return Err(error.mend("leave one of the two out"));
            }
            Some(node) => {
                let owner = node.as_str().unwrap_or_default();
                let known = list.iter().position(|o| o.name == owner && o.shares.is_none());
                let Some(known) = known.and_then(|n| u8::try_from(n).ok()) else {
                    let error =
                        node.place.error(format!("no queue `{owner}` with entries stands before `{}`", entry.key));
                    return Err(error.mend("name one that stands before it and has `entries` of its own"));
                };
                Some(known)
            }
        };
        if shares.is_none() && q.get("entries").is_none() {
            let error = entry.node.place.error(format!("the queue `{}` has no entries", entry.key));
            return Err(error.mend("say `entries`, or `shares` with the name of another queue"));
        }
        let (entries, kept_cycles) = (number(q, "entries", 1), number(q, "kept_cycles", 0));
        list.push(Queue { name: entry.key.clone(), units: all, entries, shares, kept_cycles });
    }
    let binds = t.table("rename").and_then(|r| r.get("binds_port")).filter(|n| n.as_bool() == Some(true));
    match binds {
        Some(node) if !list.is_empty() => {
            let error = node.place.error("`binds_port` makes every port a queue, and `[core.queues]` names others");
            Err(error.mend("say `binds_port = false`, or leave the queues out"))
        }
        _ => Ok(list),
    }
}

fn idiom(t: &Tree, key: &str) -> Idiom {
    match text(t, key) {
        Some("independent") => Idiom::Independent,
        Some("eliminated") => Idiom::Eliminated,
        _ => Idiom::Plain,
    }
}

fn pattern(t: &Tree, core: &Node) -> Result<Vec<u32>, FileError> {
    let node = t.get("pattern").unwrap_or(core);
    let list: Vec<u32> =
        nodes(t, "pattern").iter().filter_map(|n| n.as_int()).filter_map(|n| u32::try_from(n).ok()).collect();
    if list.is_empty()
        || list.len() > 64
        || list.len() != nodes(t, "pattern").len()
        || list.iter().any(|&n| n == 0 || n > 64)
    {
        let error = node.place.error("`pattern` says how many micro-operations each decoder makes");
        return Err(error.mend("give a list of numbers from 1 to 64: [4, 1, 1, 1]"));
    }
    Ok(list)
}

fn units(b: &Builder<'_>, t: &Tree) -> Result<Vec<UnitId>, FileError> {
    units_of(b, t, "units")
}

fn units_of(b: &Builder<'_>, t: &Tree, key: &str) -> Result<Vec<UnitId>, FileError> {
    nodes(t, key).iter().map(|n| b.unit_named(n)).collect()
}

/// The instructions of a name, which may end in `*`.
fn named(b: &Builder<'_>, n: &Node) -> Result<Vec<InstrId>, FileError> {
    let name = n.as_str().unwrap_or_default();
    let stem = name.strip_suffix('*').unwrap_or(name);
    let fits = |other: &str| other == name || stem != name && other.starts_with(stem);
    let found: Vec<InstrId> = b.instr_names.iter().filter(|(other, _)| fits(other)).map(|(_, &id)| id).collect();
    // What was taken out of the machine, itself or one of its forms, is nothing.
    let taken_out = |r: &String| fits(r) || stem.strip_prefix(r.as_str()).is_some_and(|form| form.starts_with('_'));
    if found.is_empty() && !b.merged.removed.keys().any(taken_out) {
        let error = n.place.error(format!("no instruction is called `{name}`"));
        return Err(error.mend_opt(near_instruction(stem, b.instr_names.keys().map(String::as_str))));
    }
    Ok(found)
}

/// All instructions that a list names.
fn all_named(b: &Builder<'_>, t: &Tree, key: &str) -> Result<Vec<InstrId>, FileError> {
    let lists = nodes(t, key).iter().map(|n| named(b, n)).collect::<Result<Vec<_>, _>>()?;
    Ok(lists.concat())
}

fn fusion(b: &Builder<'_>, t: &Tree) -> Result<Vec<MacroFusion>, FileError> {
    let one = |n: &Node| {
        let t = n.as_table()?;
        Some(all_named(b, t, "first").and_then(|first| Ok(MacroFusion { first, second: all_named(b, t, "second")? })))
    };
    nodes(t, "macro_fusion").iter().filter_map(one).collect()
}

fn predictor(t: &Tree) -> Result<Predictor, FileError> {
    let names: Vec<&str> = t.table("parts").into_iter().flat_map(Tree::keys).collect();
    let find = |node: &Node, before: usize| -> Result<usize, FileError> {
        let name = node.as_str().unwrap_or_default();
        let Some(at) = names.iter().position(|&n| n == name) else {
            let error = node.place.error(format!(
                "no part of the predictor is called `{name}`; there are {}",
                list(names.iter().copied())
            ));
            return Err(error.mend_opt(did_you_mean(name, names.iter().copied())));
        };
        if at >= before {
            let error = node.place.error(format!("the part `{name}` stands behind the one that asks it"));
            return Err(error.mend("write the parts that are asked first"));
        }
        Ok(at)
    };
    let mut parts = Vec::new();
    for (at, entry) in t.table("parts").into_iter().flat_map(Tree::iter).enumerate() {
        let Some(p) = entry.node.as_table() else { continue };
        let (entries, bits) = (power(p, "entries", 1024)?, int(p, "bits").unwrap_or(2));
        let history = int(p, "history").unwrap_or(8);
        let missing = |key: &str| entry.place.error(format!("the part `{}` lacks `{key}`", entry.key));
        let kind = match text(p, "kind") {
            Some("taken") => PartKind::Taken(true),
            Some("not_taken") => PartKind::Taken(false),
            Some("backward_taken") => PartKind::Backward,
            Some("global") => PartKind::Global { entries, bits, history },
            Some("gshare") => PartKind::Gshare { entries, bits, history },
            Some("local") => PartKind::Local { entries, bits, history: history.min(12) },
            Some("loop") => PartKind::Loop {
                entries,
                trips: int(p, "trips").unwrap_or(64),
                sure: int(p, "sure").unwrap_or(2),
                otherwise: find(p.get("otherwise").ok_or_else(|| missing("otherwise"))?, at)?,
            },
            Some("chooser") => match nodes(p, "parts") {
                [a, b] => PartKind::Chooser { entries, bits, parts: [find(a, at)?, find(b, at)?] },
                _ => return Err(missing("parts").mend("name the two parts that it chooses from")),
            },
            _ => PartKind::Bimodal { entries, bits },
        };
        parts.push(Part { name: entry.key.clone(), kind });
    }
    let direction = t.get("direction").map_or(Ok(0), |n| find(n, usize::MAX))?;
    Ok(Predictor {
        direction,
        parts,
        btb_entries: match int(t, "btb_entries").unwrap_or(0) {
            0 => 0,
            _ => power(t, "btb_entries", 0)?,
        },
        btb_ways: power(t, "btb_ways", 4)?,
        return_stack: int(t, "return_stack").unwrap_or(0),
        indirect_entries: match int(t, "indirect_entries").unwrap_or(0) {
            0 => 0,
            _ => power(t, "indirect_entries", 0)?,
        },
        indirect_history: int(t, "indirect_history").unwrap_or(0),
    })
}

fn l2(node: &Node, top: &Tree) -> Result<Option<L2>, FileError> {
    let Some(t) = node.as_table() else { return Ok(None) };
    let mut cache = crate::system::geometry(node, t)?;
    cache.write = WritePolicy::Back;
    let first = |key: &str| top.table("memory").and_then(|m| m.table(key)).and_then(|c| int::<u32>(c, "line_bytes"));
    if let Some(other) = [first("icache"), first("dcache")].into_iter().flatten().find(|&l| l != cache.line_bytes) {
        let place = t.get("line_bytes").map_or(&node.place, |n| &n.place);
        let error =
            place.error(format!("lines of {} bytes behind a first cache with lines of {other}", cache.line_bytes));
        return Err(error.mend("all caches of a machine have lines of one size here"));
    }
    let l2 = L2 { cache, latency: int(t, "latency").unwrap_or(1), interval: int(t, "interval").unwrap_or(1) };
    Ok(flag(t, "enabled").then_some(l2))
}

fn l3(node: &Node, top: &Tree) -> Result<Option<L2>, FileError> {
    let found = l2(node, top)?;
    let second = top.table("memory").and_then(|m| m.table("l2"));
    if found.is_some() && !second.is_some_and(|t| flag(t, "enabled")) {
        let error = node.place.error("a third cache, and no second one whose lines it could be given".to_owned());
        return Err(error.mend("call it `l2`, or enable `[memory.l2]`"));
    }
    Ok(found)
}

fn dtlb(node: &Node) -> Result<Option<Dtlb>, FileError> {
    let Some(t) = node.as_table() else { return Ok(None) };
    let number = |key: &str, otherwise: u32| int(t, key).unwrap_or(otherwise);
    let (entries, ways) = (number("entries", 1), number("ways", 1));
    let (l2_entries, l2_ways) = (number("l2_entries", 0), number("l2_ways", 4));
    for (key, entries, ways) in [("entries", entries, ways), ("l2_entries", l2_entries, l2_ways)] {
        let sets = entries / ways.max(1);
        if entries != 0 && (entries % ways != 0 || !sets.is_power_of_two()) {
            let place = t.get(key).map_or(&node.place, |n| &n.place);
            return Err(place.error("entries / ways, the number of sets, must be a power of two"));
        }
    }
    Ok(Some(Dtlb {
        page_bytes: power(t, "page_bytes", 4096)?,
        entries,
        ways,
        l2_entries,
        l2_ways,
        l2_cycles: number("l2_cycles", 0),
        walk_cycles: number("walk_cycles", 0),
    }))
}
