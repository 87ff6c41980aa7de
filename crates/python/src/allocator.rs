//! Where the core's memory comes from.
//!
//! Compiling is many small allocations, for which mimalloc takes less time than a C library does. A simulated machine's
//! memory is one large allocation of zeros, of which a program touches little: such pages are the system's to map.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout, System};

/// From so many bytes on the system is asked: glibc's own limit for mapping (mallopt(3), M_MMAP_THRESHOLD).
const MAPPED: usize = 128 * 1024;

/// Small allocations by mimalloc, large ones by the system.
struct BySize;

#[global_allocator]
static ALLOCATOR: BySize = BySize;

// SAFETY: a layout's size says which allocator its memory came from, and each gets back its own.
unsafe impl GlobalAlloc for BySize {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's word, handed on.
        unsafe { if layout.size() < MAPPED { MiMalloc.alloc(layout) } else { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's word, handed on.
        unsafe { if layout.size() < MAPPED { MiMalloc.alloc_zeroed(layout) } else { System.alloc_zeroed(layout) } }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's word, handed on.
        unsafe {
            if layout.size() < MAPPED { MiMalloc.dealloc(pointer, layout) } else { System.dealloc(pointer, layout) }
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match (layout.size() < MAPPED, size < MAPPED) {
            // SAFETY: the caller's word, handed on to the allocator of both sizes.
            (true, true) => unsafe { MiMalloc.realloc(pointer, layout, size) },
            // SAFETY: as above.
            (false, false) => unsafe { System.realloc(pointer, layout, size) },
            // SAFETY: `size` is above 0 and one for this alignment, as the caller says; the two places are apart.
            _ => unsafe {
                let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                if !new.is_null() {
                    std::ptr::copy_nonoverlapping(pointer, new, layout.size().min(size));
                    self.dealloc(pointer, layout);
                }
                new
            },
        }
    }
}
