//! Memories so large that most of their pages are never touched.
//!
//! `wasmi` writes zeros into a memory that it makes, and so touches every page: a module with
//! 1 GiB of memory takes 1 GiB, although a cipher uses some kilobytes of it. Such a memory is
//! made here, before the module, in steps; after each the pages, which hold zeros, are given
//! back to the system, which has a page of zeros for whoever reads one of them. The module then
//! imports it: its memory section becomes an import, nothing else of its bytes changes.
//!
//! Where pages cannot be given back (elsewhere than on Linux) the memory is the same and takes
//! what it takes.

use crate::stop::{MAX_MEMORY_BYTES, Stop, stop};
use wasmi::{Memory, MemoryType, Store, StoreLimits};

/// Memories of fewer bytes are left to `wasmi`.
const LARGE: usize = 64 << 20;
/// Bytes of a step.
const STEP: usize = 16 << 20;
const PAGE: usize = 65536;

/// The name under which the module imports its memory.
pub const NAME: &str = "memory";

const IMPORT: u8 = 2;
const MEMORY: u8 = 5;

/// A module that imports the memory it had.
pub struct Imported {
    pub wasm: Vec<u8>,
    ty: MemoryType,
}

/// The module with its memory as an import, where that is a large one. `wasm` is valid and
/// imports nothing.
pub fn imported(wasm: &[u8]) -> Option<Imported> {
    let (header, mut rest) = wasm.split_at_checked(8)?;
    let (mut before, mut behind, mut memory) = (header.to_vec(), Vec::new(), None);
    while let Some((&id, after)) = rest.split_first() {
        let (bytes, payload) = number(after)?;
        let (payload, next) = payload.split_at_checked(bytes as usize)?;
        let section = &rest[..rest.len() - next.len()];
        rest = next;
        match id {
            IMPORT => {}
            MEMORY => memory = Some(payload),
            // Sections stand in the order of their numbers up to here.
            0 | 1 if behind.is_empty() => before.extend(section),
            _ => behind.extend(section),
        }
    }
    let (1, limits) = number(memory?)? else { return None };
    let (&flags, pages) = limits.split_first()?;
    let (min, most) = number(pages)?;
    let max = match flags {
        0 => None,
        1 => Some(number(most)?.0),
        _ => return None,
    };
    if !(LARGE..=MAX_MEMORY_BYTES).contains(&(min as usize).saturating_mul(PAGE)) {
        return None;
    }
    // One import: a module without a name, the memory's name, its kind and its limits.
    let mut import = vec![1, 0, NAME.len() as u8];
    import.extend(NAME.bytes());
    import.push(2);
    import.extend(limits);
    let wasm = [before, vec![IMPORT, import.len() as u8], import, behind].concat();
    Some(Imported { wasm, ty: MemoryType::new(min, max) })
}

/// A number of 32 bits (LEB128), and what stands behind it.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let end = bytes.iter().take(5).position(|b| b & 0x80 == 0)?;
    let value = bytes[..=end].iter().rev().fold(0u64, |n, b| n << 7 | u64::from(b & 0x7f));
    Some((u32::try_from(value).ok()?, &bytes[end + 1..]))
}

impl Imported {
    /// The memory, all zeros.
    ///
    /// # Errors
    /// When there is not so much.
    pub fn memory(&self, store: &mut Store<StoreLimits>) -> Result<Memory, Stop> {
        let pages = self.ty.minimum() as usize;
        let max = self.ty.maximum().and_then(|m| u32::try_from(m).ok());
        let none = |e: wasmi::Error| stop(&e);
        let memory = Memory::new(&mut *store, MemoryType::new(0, max)).map_err(none)?;
        let mut have = 0;
        while have < pages {
            let more = (pages - have).min(STEP / PAGE);
            memory.grow(&mut *store, more as u64).map_err(|e| Stop::Other(e.to_string()))?;
            have += more;
            give_back(memory.data_mut(&mut *store));
        }
        Ok(memory)
    }
}

/// Give the pages of some zeros back to the system.
#[cfg(target_os = "linux")]
fn give_back(zeros: &mut [u8]) {
    // SAFETY: it only says how large a page is.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(PAGE);
    let skip = zeros.as_ptr().align_offset(page);
    let Some(whole) = zeros.get_mut(skip..) else { return };
    let bytes = whole.len() / page * page;
    // SAFETY: the pages lie within the slice, which nobody else has. They come from the
    // allocator as memory of this process alone, which reads as zeros afterwards, as it did.
    unsafe { libc::madvise(whole.as_mut_ptr().cast(), bytes, libc::MADV_DONTNEED) };
}

#[cfg(not(target_os = "linux"))]
fn give_back(_: &mut [u8]) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(memory: &str) -> Vec<u8> {
        wat::parse_str(format!("(module {memory} (func (export \"f\") (drop (i32.load (i32.const 0)))))"))
            .expect("valid")
    }

    #[test]
    fn only_large_memories_are_imported() {
        for small in ["(memory 1)", "(memory 1023 4096)", "(memory 16385)", ""] {
            let wasm = if small.is_empty() { wat::parse_str("(module)").expect("valid") } else { text(small) };
            assert!(imported(&wasm).is_none(), "{small}");
        }
        for large in ["(memory 1024)", "(memory 16384 16384)"] {
            let wasm = imported(&text(large)).expect("it is large").wasm;
            let text = wasmprinter::print_bytes(wasm).expect("it can be read");
            assert!(text.contains("(import \"\" \"memory\" (memory"), "{text}");
        }
    }
}
