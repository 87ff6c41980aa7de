//! Names: of functions, globals and data segments.
//!
//! They come from the custom section `name`, which follows the code, so it is
//! read in a pass of its own before anything else; error messages may then use
//! it. The section is advice: where it is damaged, what could be read of it
//! stands and the rest of the module is none the worse for it.

use std::collections::{BTreeMap, HashSet};
use wasmparser::{KnownCustom, Name, NameMap, Parser, Payload};

#[derive(Default)]
pub(crate) struct Names {
    pub funcs: BTreeMap<u32, String>,
    pub globals: BTreeMap<u32, String>,
    pub data: BTreeMap<u32, String>,
}

/// The names a module states for its items.
pub(crate) fn read(wasm: &[u8]) -> Names {
    let mut names = Names::default();
    for payload in Parser::new(0).parse_all(wasm) {
        let Ok(payload) = payload else { break };
        let Payload::CustomSection(section) = payload else { continue };
        let KnownCustom::Name(reader) = section.as_known() else { continue };
        for subsection in reader {
            let Ok(subsection) = subsection else { break };
            match subsection {
                Name::Function(map) => fill(&mut names.funcs, map),
                Name::Global(map) => fill(&mut names.globals, map),
                Name::Data(map) => fill(&mut names.data, map),
                _ => {}
            }
        }
    }
    names
}

fn fill(into: &mut BTreeMap<u32, String>, map: NameMap<'_>) {
    for naming in map {
        let Ok(naming) = naming else { break };
        into.insert(naming.index, naming.name.to_string());
    }
}

/// Gives out every name once: a name asked for again gets a number behind it.
#[derive(Default)]
pub(crate) struct Unique {
    taken: HashSet<String>,
}

impl Unique {
    pub fn give(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_string();
        let mut n = 1;
        while !self.taken.insert(name.clone()) {
            n += 1;
            name = format!("{wanted}.{n}");
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once() {
        let mut unique = Unique::default();
        assert_eq!(unique.give("f"), "f");
        assert_eq!(unique.give("f"), "f.2");
        assert_eq!(unique.give("f"), "f.3");
        assert_eq!(unique.give("f.2"), "f.2.2");
    }
}
