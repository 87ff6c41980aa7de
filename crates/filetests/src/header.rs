//! What a file's head asks for.

use std::ops::RangeInclusive;

/// One expectation of the code for a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// An instruction, and how often it occurs.
    Count(String, usize),
    /// Stages of the pipelined loop that has most, at least.
    Stages(u32),
    /// The initiation interval of every pipelined loop; there is one.
    Interval(RangeInclusive<u32>),
    /// Loads from copies of constants in the system area.
    Copies(usize),
    /// The code stands below the module.
    Listing,
}

/// Code for one machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The machine with its extensions, as in `rv32+zba+zbb`.
    pub machine: String,
    /// Of optimisation, 0 to 2.
    pub level: u8,
    pub wanted: Vec<Wanted>,
}

impl Target {
    /// As the header names it, and a listing's title.
    pub fn title(&self) -> String {
        let level = if self.level == 2 { String::new() } else { format!(" level {}", self.level) };
        format!("{}{level}", self.machine.replace('+', " +"))
    }
}

/// A call of `f` and what it gives back, where that is said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    pub args: Vec<u64>,
    pub results: Option<Vec<u64>>,
}

/// All that a file's head says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    pub targets: Vec<Target>,
    /// Parameters of `f` that are multiples of 16, from 0 on.
    pub aligned: Vec<usize>,
    /// Every function is called with all edges as arguments.
    pub edges: bool,
    pub calls: Vec<Expected>,
}

/// The header of a file's text.
///
/// # Errors
/// `line N: …` where a line says nothing that is known, or no machine is named.
pub fn header(text: &str) -> Result<Header, String> {
    let mut header = Header::default();
    for (number, line) in text.lines().enumerate() {
        let Some(line) = line.strip_prefix(";;") else { break };
        let at = |e: String| format!("line {}: {e}", number + 1);
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("on ") {
            header.targets.push(target(rest).map_err(at)?);
        } else if let Some(rest) = line.strip_prefix("aligned ") {
            let all = rest.split_whitespace().map(|n| n.parse().map_err(|_| at(format!("`{n}` is no parameter"))));
            header.aligned = all.collect::<Result<_, _>>()?;
        } else if line == "edges" {
            header.edges = true;
        } else if let Some(rest) = line.strip_prefix("f(") {
            header.calls.push(call(rest).map_err(at)?);
        } else if !(header.targets.is_empty() || line.is_empty()) {
            return Err(at(format!("`{line}`: expected `on`, `aligned`, `edges` or `f(...) = ...`")));
        }
    }
    if header.targets.is_empty() {
        return Err("no machine: a line `;; on MACHINE` says for which the code is made".into());
    }
    Ok(header)
}

fn target(text: &str) -> Result<Target, String> {
    let (place, wanted) = text.split_once(':').unwrap_or((text, ""));
    let mut machine = String::new();
    let mut level = 2;
    let mut words = place.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "level" => {
                let given = words.next().and_then(|n| n.parse().ok()).filter(|n| *n <= 2);
                level = given.ok_or("behind `level` stands 0, 1 or 2")?;
            }
            _ if machine.is_empty() || word.starts_with('+') => machine += word,
            _ => return Err(format!("`{word}`: an extension begins with a plus sign")),
        }
    }
    let items = wanted.split(',').map(str::trim).filter(|i| !i.is_empty());
    Ok(Target { machine, level, wanted: items.map(expectation).collect::<Result<_, _>>()? })
}

fn expectation(item: &str) -> Result<Wanted, String> {
    if item == "listing" {
        return Ok(Wanted::Listing);
    }
    let wrong = || format!("`{item}`: expected an instruction and how often, `ii`, `stages`, `copies` or `listing`");
    let (name, number) = item.rsplit_once(' ').ok_or_else(wrong)?;
    if name == "ii" {
        let (low, high) = number.split_once("..").unwrap_or((number, number));
        let bounds = low.parse().ok().zip(high.parse().ok());
        return bounds.map(|(low, high)| Wanted::Interval(low..=high)).ok_or_else(wrong);
    }
    let n: u32 = number.parse().map_err(|_| wrong())?;
    Ok(match name {
        "stages" => Wanted::Stages(n),
        "copies" => Wanted::Copies(n as usize),
        _ => Wanted::Count(name.to_owned(), n as usize),
    })
}

fn call(text: &str) -> Result<Expected, String> {
    let (args, results) = text.split_once(')').ok_or("a call is written as `f(1, 2)` or `f(1, 2) = 3`")?;
    let results = match results.trim().strip_prefix('=') {
        Some(list) => Some(numbers(list)?),
        None if results.trim().is_empty() => None,
        None => return Err("behind a call stands nothing, or `= ` and its result".into()),
    };
    Ok(Expected { args: numbers(args)?, results })
}

fn numbers(list: &str) -> Result<Vec<u64>, String> {
    let items = list.split(',').map(str::trim).filter(|i| !i.is_empty());
    let number = |item: &str| {
        let found = match item.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => item.parse().ok().or_else(|| item.parse::<i64>().ok().map(|n| n as u64)),
        };
        found.ok_or_else(|| format!("`{item}` is no number"))
    };
    items.map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read() {
        let text = ";; A sentence.\n;; on rv32 +zbb level 1: rori 1, ii 3..4, listing\n;; aligned 0 2\n;; f(1, -1) = 0x10\n(module)";
        let found = header(text).expect("it is well formed");
        let wanted = vec![Wanted::Count("rori".into(), 1), Wanted::Interval(3..=4), Wanted::Listing];
        assert_eq!(found.targets, [Target { machine: "rv32+zbb".into(), level: 1, wanted }]);
        assert_eq!(found.targets[0].title(), "rv32 +zbb level 1");
        assert_eq!(found.aligned, [0, 2]);
        assert_eq!(found.calls, [Expected { args: vec![1, u64::MAX], results: Some(vec![16]) }]);
    }

    #[test]
    fn what_is_not_known_is_told_with_its_line() {
        for (line, why) in [
            (";; alinged 0", "line 2: `alinged 0`"),
            (";; on leon2 sbox", "`sbox`: an extension begins"),
            (";; on leon2 level 3", "behind `level`"),
            (";; on leon2: sbox", "`sbox`: expected an instruction"),
            (";; f(1) 2", "behind a call"),
            (";; f(1", "a call is written"),
            (";; f(one) = 2", "`one` is no number"),
        ] {
            let found = header(&format!(";; on rv32\n{line}\n(module)")).expect_err(line);
            assert!(found.contains(why), "{found}");
        }
        assert!(header("(module)").expect_err("none").contains("no machine"));
    }
}
