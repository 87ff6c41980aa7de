//! Forms of a loop, and the records of each.
//!
//! Where parts of a loop do not depend on each other, as several blocks do not, what they all
//! read, such as a round key, is loaded once for all or once for each ([`partition::separate`]).
//! The first takes fewer units, the second fewer ways between the sides and no turns. A run
//! takes the form that the scheduler does better with; a search of minutes goes on with every form
//! whose units leave room for something shorter. In which order the nodes of a body stand decides
//! only what the scheduler comes to, but it is part of what a record is found by.

use super::based::{Bases, Frame};
use super::body::Body;
use super::park::Parked;
use super::place::{self, At, Sides};
use super::recorded::Finished;
use super::search::Form;
use super::spill::Spilled;
use super::{Kernel, color, framed, graph, order, park, partition, recorded, spill};
use ciphermill_machine::Machine;
use ciphermill_program::kept_schedules::KeptSchedule as Recorded;
use ciphermill_vcode::{CompileError, Registers};
use std::collections::BTreeSet;

/// A body as it is, and with common nodes for each part.
fn parted(body: &Body) -> impl Iterator<Item = Body> {
    std::iter::once(body.clone()).chain(partition::separate(body))
}

/// A form as it stands and in a frugal order.
fn ordered(form: Body, sides: &Sides<'_>) -> [Body; 2] {
    let part: Vec<usize> = partition::apart(&form, sides).iter().map(|a| a.result).collect();
    let frugal = order::frugal(&form, &part);
    [form, frugal]
}

/// The record of a kernel of one form of a body; it names the others.
pub(super) fn write(kernel: &Kernel, own: &Body, body: &Body, sides: &Sides<'_>) -> Option<Recorded> {
    let record = recorded::write(kernel, own, sides)?;
    let forms = parted(body).flat_map(|form| ordered(form, sides));
    let mut forms: Vec<String> = forms.map(|form| recorded::digest(&form, sides)).collect();
    forms.retain(|other| *other != record.digest);
    Some(Recorded { equivalent: forms, ..record })
}

/// Can one of the records be of a form of a body? Each form has its nodes, and may have more.
pub(super) fn fits(record: &Recorded, body: &Body) -> bool {
    record.time.len() >= body.nodes.len()
}

/// A body and its parts in the orders in which these are searched for.
pub(super) fn plain(body: &Body, sides: &Sides<'_>) -> Vec<Form> {
    parted(body).flat_map(|form| ordered(form, sides)).map(Form::of).collect()
}

/// The shortest schedule that there is a record of, of one of the forms of a loop, and that form.
pub(super) fn shortest_known(
    forms: impl IntoIterator<Item = Form>,
    sides: &Sides<'_>,
    registers: &Registers,
    records: &[Recorded],
) -> Option<(Finished, Form)> {
    let known = |form: Form| {
        let own = recorded::digest(&form.body, sides);
        let same = records.iter().filter(|r| r.digest == own);
        let read = |r| recorded::read(r, &form.body, sides, registers);
        let found = same.filter_map(read).min_by_key(|f| f.schedule.ii)?;
        Some((found, form))
    };
    forms.into_iter().filter_map(known).min_by_key(|f| f.0.schedule.ii)
}

/// Hundredths of a cluster's registers that values from outside may have where these are too many.
const OUTSIDE: usize = 50;
/// Values from outside that may keep their registers where others want these.
const FEW: [usize; 2] = [6, 4];
/// Hundredths of the registers that are left which values may take where some wait in the frame.
const ROOM: [usize; 2] = [90, 60];

/// The same, where copies between clusters have to fit, too: the first that they do with.
const FITTING: [usize; 6] = [100, 85, 70, 55, 40, 25];
/// Hundredths of that room which are tried before it, and by how many hundredths more operations they may take. In the
/// order in which one iteration runs by itself, registers are then free for operations ahead of their turn. Cycles of
/// ChaCha20-Poly1305 on the C64x without it, with 3 and with 8 hundredths: 1004, 730, 713; on the C6201: 1584, 1584, 1401;
/// of Keccak-f there: 5302, 5302, 6315; of SHA-512 on the C64x: 2759, 2755, 2899.
const SLACK: [usize; 4] = [50, 60, 70, 80];
const CHEAP: usize = 3;

/// Hundredths of its operations by which accesses to the frame may lengthen a loop. Where they do by more, values that are
/// carried round or wanted behind the loop wait there from the beginning, and those from outside beyond so many: they have
/// registers of one cluster, and what goes through the few that are left is stored and loaded for each operation. Cycles on
/// the C6201 without and with it: AES by powers 25261, 22817; a sponge 4726, 4025; SHA-512 3827, 3472; Poly1305 142, 108;
/// Ascon 240, 253; compact Twofish 1047, 1131.
const DEAR: usize = 10;
const BEYOND: [usize; 3] = [usize::MAX, FEW[0], FEW[1]];

/// Eighths of the registers that are left which values may take where iterations share them and
/// some values wait in the frame.
const SHARED: usize = 9;

/// The forms in which a loop may be scheduled, whose interval is at least `bound`; `words` of the frame
/// are taken. Where registers rotate, so many of them are for its values. What comes into the loop or leaves it is in
/// the registers that `registers` allows for that, and there are forms in which these suffice.
///
/// # Errors
/// When some operation has no variant.
pub(super) fn all(
    body: &Body,
    sides: &Sides<'_>,
    registers: &Registers,
    words: usize,
    bound: i64,
    ring: Option<i64>,
) -> Result<Vec<Form>, CompileError> {
    let machine = sides.machine;
    let offset = |word: usize| i64::from(machine.abi.frame_reserve) + i64::from(machine.word_bits / 8) * word as i64;
    let mut out: Vec<Form> = parted(body).map(Form::of).collect();
    // With less to choose from some schedules are found more easily.
    out.extend(body.in_order().map(|body| Form { spare: true, ..Form::of(body) }));
    let spread = |body: &Body| -> Vec<At> {
        partition::spread(body, sides, &partition::by_table(body, sides).unwrap_or_default())
    };
    let left = |body: &Body| -> Result<Vec<i64>, CompileError> {
        match ring {
            Some(ring) => Ok(vec![ring]),
            None => Ok(color::left(sides, &place::settle(body, sides, &spread(body))?)),
        }
    };
    let mut last = Form::of(body.clone());
    let frames =
        |taken: usize| frames(sides, body, words).map(|frame| frame.behind(taken, machine)).collect::<Vec<_>>();
    let some = |left: &[i64]| left.iter().zip(&sides.pool).any(|(l, pool)| 2 * l < pool.len() as i64);
    // Values from outside take none of those that rotate.
    if ring.is_none() && some(&left(body)?) {
        let most = sides.pool.iter().map(Vec::len).min().unwrap_or(0) * OUTSIDE / 100;
        let values = spill::surplus(body, most);
        if let Some((body, kept)) = spill::spill(body, machine, &values, offset(words)).filter(|_| !values.is_empty()) {
            last = Form { kept, ..Form::of(body) };
            out.push(last.clone());
        }
    }
    // Where each access to the frame takes an address as well, only what has to go there does.
    let near = framed::access(machine, machine.abi.ops.load, offset(words + 1), None, 0).is_some_and(|a| a.len() == 1);
    // Registers that seldom read values from outside have are worth more to others where iterations
    // overlap far.
    if ring.is_none() && last.kept.is_empty() && near {
        for most in FEW {
            let values = spill::surplus(body, most);
            let spilled = spill::spill(body, machine, &values, offset(words)).filter(|_| !values.is_empty());
            out.extend(spilled.map(|(body, kept)| Form { kept, ..Form::of(body) }));
        }
    }
    let free: i64 = left(&last.body)?.iter().sum();
    let outside = sides.pool.iter().map(Vec::len).sum::<usize>().saturating_sub(free.max(0) as usize);
    let through = registers.allocatable.len().saturating_sub(outside);
    let values = spill::held(&last.body, through.min(free.max(0) as usize / 2));
    let from = offset(words + last.kept.len() + last.body.parked);
    if let Some((body, kept)) = spill::spill(&last.body, machine, &values, from).filter(|_| !values.is_empty()) {
        last = Form { kept: [last.kept, kept].concat(), ..Form::of(body) };
        out.push(last.clone());
    }
    let mut fits = None;
    if ring.is_none() {
        let fitting = |of: &Form| -> Result<Option<Form>, CompileError> {
            let parked = fitting(&of.body, sides, &frames(of.kept.len() + of.body.parked), bound)?;
            Ok(parked.map(|(body, at, _)| Form { kept: of.kept.clone(), fits: Some(at), ..Form::of(body) }))
        };
        fits = fitting(&last)?;
        let shorter = |than: &Option<Form>, n: usize| than.as_ref().is_none_or(|form| n < form.body.nodes.len());
        let few = last.body.nodes.len() * (100 + DEAR) / 100;
        let whole = last.clone();
        for most in BEYOND.iter().filter(|_| near) {
            if shorter(&fits, few)
                && let Some(form) = waiting(&whole, machine, *most, |f| offset(words + f.kept.len() + f.body.parked))
                && let Some(other) = fitting(&form)?
                && shorter(&fits, other.body.nodes.len())
            {
                (last, fits) = (form, Some(other));
            }
        }
    }
    let part: Vec<usize> = spread(&last.body).iter().map(|a| a.result).collect();
    let ordered = order::frugal(&last.body, &part);
    if ring.is_some() {
        // Where several iterations' values are alive at once, few of each should be.
        out.push(Form { kept: last.kept.clone(), ..Form::of(ordered.clone()) });
    }
    let at = spread(&ordered);
    let mut free: Vec<usize> = left(&ordered)?.iter().map(|&l| l.max(0) as usize).collect();
    held(&ordered).iter().for_each(|&i| free[at[i].result] = free[at[i].result].saturating_sub(1));
    let taken = last.kept.len() + ordered.parked;
    // Where iterations overlap they share the registers; which cluster has what is settled later.
    let ops = place::settle(&ordered, sides, &at)?;
    let together = ((graph::Orders::of(&ops).chain(&ops) + bound / 2) / bound.max(1)) as usize;
    if together > 1 && near {
        let mut room = vec![0; free.len()];
        room[0] = free.iter().sum::<usize>() * SHARED / (8 * together);
        let anywhere = vec![At { unit: 0, result: 0 }; at.len()];
        if let Some((body, ..)) = park::park(&ordered, &anywhere, sides, &room, (offset(words + taken), 0))
            && body.nodes.len() > ordered.nodes.len()
        {
            out.push(Form { kept: last.kept.clone(), ..Form::of(body) });
        }
    }
    for part in ROOM.iter().filter(|_| near) {
        let room: Vec<usize> = free.iter().map(|f| f * part / 100).collect();
        let parked = best_framed(sides, &frames(taken), bound, |frame| {
            let parked = frame.parked(&ordered, &at, sides, &room);
            Ok(parked.filter(|p| p.0.nodes.len() > ordered.nodes.len()))
        })?;
        out.extend(parked.map(|(body, ..)| Form { kept: last.kept.clone(), ..Form::of(body) }));
    }
    if ring.is_none() {
        out.extend(fits.filter(|form| form.body.nodes.len() > last.body.nodes.len()));
        // No interval is long enough for more.
        if held(&last.body).len() <= through {
            out.retain(|form| held(&form.body).len() <= through);
        }
    }
    Ok(out)
}

/// A form with all values in the frame that are carried round or wanted behind the loop, but for counters and the like, and
/// those from outside beyond so many.
fn waiting(form: &Form, machine: &Machine, most: usize, next: impl Fn(&Form) -> i64) -> Option<Form> {
    let spilled = |form: Form, values: Vec<Spilled>| -> Option<Form> {
        let (body, kept) = spill::spill(&form.body, machine, &values, next(&form))?;
        Some(Form { kept: [form.kept, kept].concat(), ..Form::of(body) })
    };
    let outside = spill::surplus(&form.body, most);
    let form = spilled(form.clone(), outside)?;
    let held = spill::held(&form.body, 0);
    spilled(form, held)
}

/// The ways in which a loop may use the frame, of which `words` are taken: by the stack pointer alone; and where that would
/// be too many accesses for one cluster, with addresses in registers, too.
pub(super) fn frames(sides: &Sides<'_>, body: &Body, words: usize) -> impl Iterator<Item = Frame> {
    let machine = sides.machine;
    let next = i64::from(machine.abi.frame_reserve) + i64::from(machine.word_bits / 8) * words as i64;
    let based = (1..=body.bases.len()).filter_map(|count| Bases::of(sides, body, next, count));
    let based: Vec<Bases> = based.collect();
    std::iter::once(None).chain(based.into_iter().map(Some)).map(move |bases| Frame { next, bases })
}

/// Units leave a schedule enough room where ResMII is by no more than this part above the bound.
const AMPLE: i64 = 16;

/// What the frame's use in one of its ways makes of a loop: the first with ample units, divided as it is, or else the one
/// with the least ResMII. None where it makes nothing.
fn best_framed(
    sides: &Sides<'_>,
    frames: &[Frame],
    bound: i64,
    parked: impl Fn(&Frame) -> Result<Option<Parked>, CompileError>,
) -> Result<Option<Parked>, CompileError> {
    let mut best: Option<(i64, Parked)> = None;
    for frame in frames {
        let Some(parked) = parked(frame)? else { break };
        let res_mii = graph::res_mii(sides, &place::settle(&parked.0, sides, &parked.1)?);
        best = best.filter(|b| b.0 <= res_mii).or(Some((res_mii, parked)));
        if res_mii <= bound + bound / AMPLE {
            break;
        }
    }
    Ok(best.map(|b| b.1))
}

/// Nodes whose values are carried round or wanted behind the loop.
pub(super) fn held(body: &Body) -> BTreeSet<usize> {
    body.initial.keys().copied().chain(body.live_out.iter().map(|l| l.0)).collect()
}

/// The body, divided and in the order of its nodes, with so many values in the frame that the others have registers in that
/// order, of which they may take so many hundredths of those that are left. None where they do not.
///
/// # Errors
/// When some operation has no variant.
pub(super) fn fitted(
    body: &Body,
    sides: &Sides<'_>,
    at: &[At],
    part: usize,
    frame: &Frame,
) -> Result<Option<Parked>, CompileError> {
    let left = color::left(sides, &place::settle(body, sides, at)?);
    let mut free: Vec<usize> = left.iter().map(|&l| l.max(0) as usize).collect();
    held(body).iter().for_each(|&i| free[at[i].result] = free[at[i].result].saturating_sub(1));
    let room: Vec<usize> = free.iter().map(|f| f * part / 100).collect();
    let Some(parked) = frame.parked(body, at, sides, &room) else { return Ok(None) };
    let ops = place::settle(&parked.0, sides, &parked.1)?;
    Ok(order::fits(&ops, &color::left(sides, &ops)).then_some(parked))
}

/// The body in an order of its own, with as many values in the frame as it takes for the others to fit into the
/// registers, and some more where that is cheap; and with a division that is its own: it has a schedule in any case, one
/// iteration after the other. None where they never do.
fn fitting(body: &Body, sides: &Sides<'_>, frames: &[Frame], bound: i64) -> Result<Option<Parked>, CompileError> {
    let spread = |body: &Body| partition::spread(body, sides, &partition::by_table(body, sides).unwrap_or_default());
    let part: Vec<usize> = spread(body).iter().map(|a| a.result).collect();
    let body = order::alone(body, &part);
    let at = spread(&body);
    best_framed(sides, frames, bound, |frame| {
        let within = |part: usize| fitted(&body, sides, &at, part, frame);
        for part in FITTING {
            let Some(mut parked) = within(part)? else { continue };
            let most = parked.0.nodes.len() * (100 + CHEAP) / 100;
            for slack in SLACK {
                if let Some(looser) = within(part * slack / 100)?.filter(|looser| looser.0.nodes.len() <= most) {
                    parked = looser;
                    break;
                }
            }
            return Ok(Some(parked));
        }
        Ok(None)
    })
}
