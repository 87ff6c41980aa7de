//! What is worked out of a machine file, for any number of modules.
//!
//! Templates, the units that [`ciphermill_recognise`] looks for, encodings and
//! forms in memory depend on the machine alone. For a machine of two thousand
//! instructions making them takes longer than compiling a small function, so
//! whoever compiles many modules makes them once.

use crate::encodings::Encodings;
use ciphermill_vcode::Facts;
use ciphermill_patterns::matcher::Matcher;
use ciphermill_recognise::Recogniser;
use crate::spills;
use ciphermill_vcode::CompileError;
use ciphermill_machine::Machine;
use std::sync::Arc;

/// One machine, as the code generator wants to know it.
pub struct Tables {
    pub machine: Arc<Machine>,
    pub matcher: Matcher,
    pub(crate) recogniser: Recogniser,
    pub(crate) facts: Facts,
    pub(crate) encodings: Encodings,
    /// For checking schedules.
    pub(crate) rules: ciphermill_verify::Rules,
    /// None where no instruction overwrites a source.
    pub(crate) memory_forms: Option<spills::Memory>,
}

impl Tables {
    /// # Errors
    /// When the machine is one that no code can be made for.
    pub fn new(machine: Arc<Machine>) -> Result<Tables, CompileError> {
        crate::supported(&machine)?;
        let (recogniser, recognised) = Recogniser::new(&machine);
        Ok(Tables {
            matcher: Matcher::with(&machine, recognised),
            recogniser,
            facts: Facts::new(&machine),
            encodings: Encodings::new(&machine),
            rules: ciphermill_verify::Rules::new(machine.clone()),
            memory_forms: spills::two_address(&machine).then(|| spills::Memory::new(&machine)),
            machine,
        })
    }

    /// [`crate::scales_index`] of the machine.
    pub fn scales_index(&self) -> bool {
        crate::scales(&self.matcher.templates)
    }

    /// [`crate::divides`] of the machine.
    pub fn divides(&self) -> bool {
        crate::divide(&self.matcher.templates)
    }
}
