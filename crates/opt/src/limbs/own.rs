//! Where the system area says its own address.

use ciphermill_ir::{Module, Op, SYSTEM_BASE, Space};

/// Bytes of the word that holds the system area's own address.
const ADDRESS_BYTES: usize = 4;

/// The address of a word that holds the system area's own address, if some function computes addresses in that area.
///
/// The printed program's linker fills it in. What is computed with here is the lower half of an address, and that of
/// [`SYSTEM_BASE`] is zero, as the word is.
pub(super) fn own_address(module: &mut Module) -> Option<u32> {
    module.funcs.values().find(|func| {
        let mut insts = func.layout.iter().flat_map(|&b| &func.blocks[b].insts).map(|&i| &func.insts[i]);
        insts.any(|data| match data.op {
            Op::Load(m) | Op::Store(m) => m.space == Space::System && func.as_const(data.args[0]).is_none(),
            _ => false,
        })
    })?;
    let system = &mut module.system;
    let at = system.bytes.len().next_multiple_of(ADDRESS_BYTES);
    system.bytes.resize(at + ADDRESS_BYTES, 0);
    system.own_address = Some(at as u32);
    Some(SYSTEM_BASE + at as u32)
}
