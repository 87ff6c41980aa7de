//! The rules file: identities between expressions.
//!
//! `from` binds variables; `to` may use them, and the temporaries of `let`;
//! `when` may use the constants among them. Each rule is parsed for the word
//! size of the machine, so `W` and the width of every operator are known, and
//! is tried on random values: a rule that is not an identity is an error here,
//! not a wrong ciphertext later.

use crate::error::{FileError, NamedText, Place};
use crate::eval::{Env, eval};
use crate::fold::mask;
use crate::keys;
use crate::lex::SemError;
use crate::model::{Rule, RuleVar, Table as ConstTable};
use crate::parse::{Scope, over_vars, pattern};
use crate::random::Random;
use crate::sem::Expr;
use crate::shape::check;
use crate::tree::{self, Node, Table, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Random trials of each rule.
const TRIALS: usize = 64;

/// Read the rules that apply to words of `word` bits.
///
/// # Errors
/// Bad TOML, unknown keys, bad expressions, two sides that differ.
pub fn parse(text: &NamedText, word: u8) -> Result<Vec<Rule>, FileError> {
    let file = Arc::new(text.clone());
    let node = Node { value: Value::Table(tree::parse(&file)?), place: Place { file, span: 0..0 } };
    let Some(table) = node.as_table() else { return Ok(Vec::new()) };
    check(table, keys::RULES, "", true, &node)?;
    let mut rules: Vec<Rule> = Vec::new();
    for entry in table.get("rule").and_then(Node::as_list).unwrap_or_default() {
        let Some(t) = entry.as_table() else { continue };
        if t.get("bits").and_then(Node::as_int).is_some_and(|b| b != i64::from(word)) {
            continue;
        }
        let rule = one(t, entry, word)?;
        if rules.iter().any(|r| r.name == rule.name) {
            return Err(entry.place.error(format!("two rules are called `{}`", rule.name)));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn one(t: &Table, entry: &Node, word: u8) -> Result<Rule, FileError> {
    let (regs, no_tables): (BTreeMap<_, _>, &[ConstTable]) = (BTreeMap::new(), &[]);
    let scope = Scope {
        word,
        operands: &[],
        regs: &regs,
        reg_infos: &[],
        files: &[],
        tables: no_tables,
        matrices: &[],
        bound: &[],
    };
    let text = |key: &str| {
        let node = t.get(key).unwrap_or(entry);
        (node, node.as_str().unwrap_or_default())
    };
    let point = |node: &Node, e: SemError| node.error_within(e.span, e.message).mend_opt(e.mend);

    let (node, from) = text("from");
    let (from, vars) = pattern(from, &scope).map_err(|e| point(node, e))?;
    if matches!(from, Expr::Operand(_) | Expr::Imm(_) | Expr::Const(_)) {
        return Err(node.place.error("a rule must replace an operation, not a bare value"));
    }
    let (mut names, mut lets) = (Vec::new(), Vec::new());
    for node in t.get("let").and_then(Node::as_list).unwrap_or_default() {
        let line = node.as_str().unwrap_or_default();
        let Some((name, value)) = line.split_once('=') else {
            return Err(node.place.error("expected `name = expression`"));
        };
        let at = name.len() + 1;
        let name = name.trim();
        let good = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !good || name == "W" || names.iter().any(|n| n == name) || vars.iter().any(|v| v.name == name) {
            return Err(node
                .place
                .error(format!("`{name}` cannot be the name of a new value"))
                .mend("choose another name"));
        }
        let shift = |e: SemError| SemError { span: e.span.start + at..e.span.end + at, ..e };
        lets.push(over_vars(value, &scope, &vars, &names).map_err(|e| point(node, shift(e)))?);
        names.push(name.to_owned());
    }
    let (node, to) = text("to");
    let to = over_vars(to, &scope, &vars, &names).map_err(|e| point(node, e))?;
    let when = match t.get("when") {
        None => None,
        Some(node) => {
            let when = over_vars(node.as_str().unwrap_or_default(), &scope, &vars, &[]).map_err(|e| point(node, e))?;
            if !when.is_constant_of_immediates() {
                return Err(node.place.error("`when` may only use constants (`#n` in `from`)"));
            }
            Some(when)
        }
    };
    let name = text("name").1.to_owned();
    let throughput = t.get("throughput").and_then(Node::as_bool).unwrap_or(false);
    let rule = Rule { name, vars, from, to, lets, when, throughput };
    if let Some(message) = counterexample(&rule, word) {
        return Err(text("to").0.place.error(message).mend("the two sides must always be equal"));
    }
    Ok(rule)
}

/// Values bound to the variables of a rule.
pub struct Bindings<'a> {
    pub values: &'a [u64],
    pub temps: Vec<u64>,
}

impl Env for Bindings<'_> {
    fn operand(&self, index: usize) -> Option<u64> {
        self.values.get(index).copied()
    }
    fn imm(&self, index: usize) -> Option<i64> {
        self.values.get(index).map(|&v| v as i64)
    }
    fn temp(&self, index: usize) -> Option<u64> {
        self.temps.get(index).copied()
    }
}

/// Does the rule's condition hold for these values of its variables (only the
/// constants are looked at)?
pub fn applies(rule: &Rule, values: &[u64], word: u8) -> bool {
    let env = Bindings { values, temps: Vec::new() };
    rule.when.as_ref().is_none_or(|w| eval(w, word, &env).is_some_and(|v| v != 0))
}

/// Values for which the two sides differ, as a message.
fn counterexample(rule: &Rule, word: u8) -> Option<String> {
    let mut random = Random::new(0x72756c65);
    for trial in 0..TRIALS {
        let values: Vec<u64> = rule.vars.iter().map(|v| sample(v, trial, &mut random, word)).collect();
        if !applies(rule, &values, word) {
            continue;
        }
        let mut env = Bindings { values: &values, temps: Vec::new() };
        let Some(from) = eval(&rule.from, word, &env) else { continue };
        for value in &rule.lets {
            let value = eval(value, word, &env).unwrap_or(0);
            env.temps.push(value);
        }
        let to = eval(&rule.to, word, &env);
        if to != Some(from) {
            let bound: Vec<String> =
                rule.vars.iter().zip(&values).map(|(v, x)| format!("{} = {x:#x}", v.name)).collect();
            let to = to.map_or("no value".to_owned(), |t| format!("{t:#x}"));
            let name = &rule.name;
            return Some(format!("rule `{name}` is wrong for {}: `from` is {from:#x}, `to` is {to}", bound.join(", ")));
        }
    }
    None
}

/// Constants are often shift amounts, so every small number gets its turn.
fn sample(var: &RuleVar, trial: usize, random: &mut Random, word: u8) -> u64 {
    if var.constant && trial.is_multiple_of(2) {
        (trial as u64 / 2) % u64::from(word)
    } else {
        random.word() & mask(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Rule>, FileError> {
        parse(&NamedText::new("rules.toml", text), 32)
    }

    const GOOD: &str = r#"
[[rule]]
name = "rotate-by-constant"
from = "rotl(x, #n)"
to = "(x << n) | (x >>u (W - n))"
when = "n != 0"
[[rule]]
name = "rotate"
from = "rotl(x, n)"
let = ["m = W - n"]
to = "(x << n) | (x >>u m)"
[[rule]]
name = "power-of-two"
from = "x * #c"
to = "x << ctz(c)"
when = "popcnt(c) == 1"
[[rule]]
name = "only-64"
bits = 64
from = "zext32(x)"
to = "(x << 32) >>u 32"
"#;

    #[test]
    fn reads_rules() {
        let rules = read(GOOD).unwrap();
        assert_eq!(
            rules.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(),
            ["rotate-by-constant", "rotate", "power-of-two"]
        );
        assert!(rules[0].vars[1].constant && !rules[1].vars[1].constant);
        assert_eq!(rules[1].lets.len(), 1);
        assert!(applies(&rules[0], &[0, 3], 32) && !applies(&rules[0], &[7, 0], 32));
        assert_eq!(parse(&NamedText::new("r", GOOD), 64).unwrap().len(), 4);
    }

    #[test]
    fn a_false_rule_is_an_error() {
        let e = read("[[rule]]\nname = \"bad\"\nfrom = \"x - y\"\nto = \"x + y\"\n").unwrap_err();
        assert_eq!(e.line, 4);
        assert!(e.message.starts_with("rule `bad` is wrong for x = 0x"), "{}", e.message);
    }

    #[test]
    fn errors_point_into_the_expression() {
        let e = read("[[rule]]\nname = \"bad\"\nfrom = \"x - y\"\nto = \"x + z\"\n").unwrap_err();
        assert_eq!((e.line, e.column), (4, 11));
        let e =
            read("[[rule]]\nname = \"bad\"\nfrom = \"x - y\"\nlet = [\"t = x + z\"]\nto = \"x + t\"\n").unwrap_err();
        assert_eq!((e.line, e.column), (4, 17));
        let e = read("[[rule]]\nname = \"bad\"\nfrom = \"x - y\"\nto = \"x\"\nwhen = \"x != 0\"\n").unwrap_err();
        assert_eq!(e.line, 5);
    }
}
