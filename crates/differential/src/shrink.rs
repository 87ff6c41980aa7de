//! Making a failing module small.
//!
//! Works on any module, whoever made it: ranges of operators are cut out of
//! function bodies, or replaced by a constant, a `drop` or an `unreachable`,
//! and exports, data and element segments are taken away; whatever still fails
//! is kept. Most cuts are invalid WebAssembly, which validation finds quickly,
//! and a delta-debugging order (large cuts first; Zeller and Hildebrandt,
//! "Simplifying and Isolating Failure-Inducing Input", 2002) makes the rest
//! few.

use std::ops::Range;
use std::time::{Duration, Instant};
use wasm_encoder::{CodeSection, Encode, ExportKind, ExportSection, Module, RawSection};
use wasmparser::{ExternalKind, FunctionBody, Parser, Payload, Validator};

/// The smallest module found, within the time, for which `fails` holds; it
/// holds for the given one.
pub fn shrink(wasm: &[u8], limit: Duration, fails: &mut dyn FnMut(&[u8]) -> bool) -> Vec<u8> {
    let deadline = Instant::now() + limit;
    let mut best = wasm.to_vec();
    let mut try_one = |candidate: Vec<u8>, best: &mut Vec<u8>| {
        let good = Validator::new().validate_all(&candidate).is_ok() && fails(&candidate);
        if good {
            *best = candidate;
        }
        good
    };
    loop {
        let before = best.clone();
        for section in [Part::Exports, Part::Data, Part::Elements] {
            let mut i = 0;
            while let Some(candidate) = without(&best, section, i) {
                if !try_one(candidate, &mut best) {
                    i += 1;
                }
            }
        }
        let mut func = 0;
        while let Some(mut ops) = operators(&best, func) {
            let mut length = ops.len();
            while length > 0 && Instant::now() < deadline {
                let mut at = 0;
                while at + length <= ops.len() {
                    let range = ops[at].start..ops[at + length - 1].end;
                    let cut = REPLACEMENTS.iter().any(|new| {
                        new.len() < range.len()
                            && replace(&best, func, &range, new).is_some_and(|c| try_one(c, &mut best))
                    });
                    if cut {
                        ops = operators(&best, func).unwrap_or_default();
                    } else {
                        at += 1;
                    }
                }
                length = if length > 16 { length / 2 } else { length - 1 };
                length = length.min(ops.len());
            }
            let mut at = 0;
            while let Some(frame) = frames(&best, func).get(at).cloned() {
                if !FRAME_STARTS
                    .iter()
                    .any(|new| unwrap(&best, func, &frame, new).is_some_and(|c| try_one(c, &mut best)))
                {
                    at += 1;
                }
            }
            func += 1;
        }
        if best == before || Instant::now() >= deadline {
            return best;
        }
    }
}

/// What a range of operators may be replaced by: nothing, `drop`,
/// `unreachable`, a zero of either type.
const REPLACEMENTS: [&[u8]; 5] = [&[], &[0x1A], &[0x00], &[0x41, 0x00], &[0x42, 0x00]];

/// What the start of a control frame may become when the frame goes and its
/// content stays: nothing, or a `drop` of an `if`'s condition.
const FRAME_STARTS: [&[u8]; 2] = [&[], &[0x1A]];

/// The first operator and the `end` of each control frame of a function.
fn frames(wasm: &[u8], func: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let (mut open, mut frames) = (Vec::new(), Vec::new());
    for op in operators(wasm, func).unwrap_or_default() {
        match wasm[op.start] {
            0x02..=0x04 => open.push(op),
            0x0B => frames.extend(open.pop().map(|start| (start, op))),
            _ => {}
        }
    }
    frames
}

/// The module with a control frame's start replaced and its `end` cut out.
fn unwrap(wasm: &[u8], func: usize, frame: &(Range<usize>, Range<usize>), start: &[u8]) -> Option<Vec<u8>> {
    let kept = [start, &wasm[frame.0.end..frame.1.start]].concat();
    replace(wasm, func, &(frame.0.start..frame.1.end), &kept)
}

/// Where the operators of a function stand in the module, the last `end` not
/// among them. None when there is no such function.
fn operators(wasm: &[u8], func: usize) -> Option<Vec<Range<usize>>> {
    let body = bodies(wasm).into_iter().nth(func)?;
    let mut reader = body.get_operators_reader().ok()?;
    let mut starts = Vec::new();
    while !reader.eof() {
        starts.push(reader.original_position() as usize);
        reader.read().ok()?;
    }
    Some(starts.windows(2).map(|w| w[0]..w[1]).collect())
}

fn bodies(wasm: &[u8]) -> Vec<FunctionBody<'_>> {
    let mut bodies = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        if let Ok(Payload::CodeSectionEntry(body)) = payload {
            bodies.push(body);
        }
    }
    bodies
}

/// The module with some bytes of a function's body replaced.
fn replace(wasm: &[u8], func: usize, range: &Range<usize>, new: &[u8]) -> Option<Vec<u8>> {
    let mut code = CodeSection::new();
    for (i, body) in bodies(wasm).into_iter().enumerate() {
        let (start, end) = (body.range().start as usize, body.range().end as usize);
        if i == func {
            code.raw(&[&wasm[start..range.start], new, &wasm[range.end..end]].concat());
        } else {
            code.raw(&wasm[start..end]);
        }
    }
    rebuild(wasm, 10, &mut |module| {
        module.section(&code);
    })
}

#[derive(Clone, Copy)]
enum Part {
    Exports,
    Data,
    Elements,
}

/// The module without the n-th item of a section; None when there is none.
fn without(wasm: &[u8], part: Part, n: usize) -> Option<Vec<u8>> {
    for payload in Parser::new(0).parse_all(wasm) {
        match (part, payload.ok()?) {
            (Part::Exports, Payload::ExportSection(reader)) => {
                let mut section = ExportSection::new();
                let mut seen = 0;
                for (i, export) in reader.into_iter().enumerate() {
                    let export = export.ok()?;
                    seen = i + 1;
                    let kind = match export.kind {
                        ExternalKind::Func => ExportKind::Func,
                        ExternalKind::Table => ExportKind::Table,
                        ExternalKind::Memory => ExportKind::Memory,
                        _ => ExportKind::Global,
                    };
                    if i != n {
                        section.export(export.name, kind, export.index);
                    }
                }
                return (n < seen).then(|| {
                    rebuild(wasm, 7, &mut |module| {
                        module.section(&section);
                    })
                })?;
            }
            (Part::Data, Payload::DataSection(reader)) => {
                let items = reader.into_iter().map(|d| d.map(|d| d.range)).collect::<Result<Vec<_>, _>>().ok()?;
                return without_item(wasm, 11, items, n);
            }
            (Part::Elements, Payload::ElementSection(reader)) => {
                let items = reader.into_iter().map(|e| e.map(|e| e.range)).collect::<Result<Vec<_>, _>>().ok()?;
                return without_item(wasm, 9, items, n);
            }
            _ => {}
        }
    }
    None
}

fn without_item(wasm: &[u8], id: u8, mut items: Vec<Range<u64>>, n: usize) -> Option<Vec<u8>> {
    if n >= items.len() {
        return None;
    }
    items.remove(n);
    let mut data = Vec::new();
    items.len().encode(&mut data);
    for item in items {
        data.extend(&wasm[item.start as usize..item.end as usize]);
    }
    rebuild(wasm, id, &mut |module| {
        module.section(&RawSection { id, data: &data });
    })
}

/// The module with the section of that number written anew.
fn rebuild(wasm: &[u8], id: u8, write: &mut dyn FnMut(&mut Module)) -> Option<Vec<u8>> {
    let mut module = Module::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let Some((section, range)) = payload.ok()?.as_section() else { continue };
        if section == id {
            write(&mut module);
        } else if section != 0 {
            module.section(&RawSection { id: section, data: &wasm[range.start as usize..range.end as usize] });
        }
    }
    Some(module.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_it_fail_is_what_is_left() {
        let wasm = wat::parse_str(
            r#"(module (memory 1) (data (i32.const 0) "abc")
                 (func (export "f") (param i32) (result i32)
                   (local i32)
                   (local.set 1 (i32.add (local.get 0) (i32.const 1)))
                   (if (local.get 1) (then (local.set 1 (i32.rotl (local.get 1) (i32.const 3)))))
                   (local.get 1))
                 (func (export "g") (result i64) (i64.mul (i64.const 2) (i64.const 3))))"#,
        )
        .expect("the text is valid");
        let mut rotates = |wasm: &[u8]| {
            bodies(wasm).into_iter().any(|body| {
                let reader = body.get_operators_reader().expect("valid");
                reader.into_iter().any(|op| matches!(op, Ok(wasmparser::Operator::I32Rotl)))
            })
        };
        let small = shrink(&wasm, Duration::from_secs(10), &mut rotates);
        assert!(rotates(&small));
        let left: usize = (0..2).filter_map(|f| operators(&small, f)).map(|ops| ops.len()).sum();
        assert!(left <= 3, "{left} operators are left");
    }
}
