//! What comes of a machine's file, its ancestors', the extensions and the settings: one tree.

use crate::error::{FileError, NamedText, Place};
use crate::sources::Sources;
use crate::tree::Node;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything the builder needs, merged.
pub(crate) struct Merged {
    pub tree: Node,
    pub sources: Sources,
    /// Extensions in effect, in order.
    pub extensions: Vec<String>,
    /// Instruction to the extensions that brought it.
    pub brought: BTreeMap<String, Vec<String>>,
    /// Instructions left out on purpose, and where that is said: compounds that need them go too.
    pub removed: BTreeMap<String, Place>,
    /// The same for units.
    pub removed_units: BTreeMap<String, Place>,
    /// The first name that nothing refers to. Told last: a name that is missing elsewhere says more.
    pub unused: Option<FileError>,
    /// Files and settings from the first to the last that can state something.
    pub layers: Vec<Arc<NamedText>>,
}
