//! A cipher's functions in a shared library, and the buffers they work on.
//!
//! The interface is that of `ciphers/ciphermill.h`. All `unsafe` of this crate that
//! concerns foreign code is here.

use crate::job::{HostError, Job, Mode};
use libloading::Library;
use std::ffi::c_void;

type Setup = unsafe extern "C" fn(*mut c_void, *const u8, u32);
type Driver = unsafe extern "C" fn(*mut c_void, *const u8, *mut u8, u32);
type Size = unsafe extern "C" fn() -> u32;

/// The largest context a cipher may have, in bytes.
const MOST_CONTEXT: u32 = 1 << 24;

/// Memory on the boundary of a cache line, so that figures do not depend on where the
/// allocator happens to put a buffer.
struct Buffer {
    lines: Vec<Line>,
    length: usize,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "the code reads and writes it")] [u8; 64]);

impl Buffer {
    fn new(content: &[u8], length: usize) -> Self {
        // One line more, so that an empty buffer has an address as well.
        let mut lines = vec![Line([0; 64]); length.div_ceil(64) + 1];
        let bytes = lines.as_mut_ptr().cast::<u8>();
        // SAFETY: the lines hold at least `length` bytes, and the content is not longer.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), bytes, content.len().min(length)) };
        Buffer { lines, length }
    }

    fn address(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    fn bytes(&self) -> Vec<u8> {
        // SAFETY: `length` bytes of the lines are initialised.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast::<u8>(), self.length) }.to_vec()
    }
}

/// A loaded cipher with its buffers.
pub struct Native {
    setup: Setup,
    ivsetup: Option<Setup>,
    driver: Driver,
    mode: Mode,
    context: Buffer,
    key: Buffer,
    iv: Buffer,
    message: Buffer,
    output: Buffer,
    count: u32,
    /// Kept so that the functions stay where they are.
    _library: Library,
}

impl Native {
    pub fn load(job: &Job) -> Result<Self, HostError> {
        let (key, iv, message) = (unhex("key", &job.key)?, unhex("iv", &job.iv)?, unhex("message", &job.message)?);
        // SAFETY: loading runs the library's initialisers; it was compiled from a cipher,
        // which has none.
        let library = unsafe { Library::new(&job.library) }
            .map_err(|e| HostError::Library(format!("{}: cannot be loaded: {e}", job.library)))?;
        // SAFETY: the types are those of ciphermill.h.
        let size: Size = unsafe { symbol(&library, job, "cm_ctx_bytes")? };
        let block: Size = unsafe { symbol(&library, job, "cm_block_bytes")? };
        // SAFETY: both take nothing and return a constant.
        let (context, block) = unsafe { (size(), block()) };
        if context > MOST_CONTEXT {
            return Err(HostError::Library(format!(
                "cm_ctx_bytes says {context}; a context has at most {MOST_CONTEXT} bytes"
            )));
        }
        // What one call reads and writes: blocks of a message, one block, or bytes.
        let least = match () {
            () if job.mode == Mode::Keysetup => 0,
            () if job.ivsetup.is_some() => u64::from(job.count),
            () if job.driver.ends_with("_feedback") => u64::from(block),
            () => u64::from(block) * u64::from(job.count),
        };
        if (message.len() as u64) < least {
            return Err(HostError::Input(format!(
                "a message of {} bytes, and {} reads {least}; give it as many",
                message.len(),
                job.driver
            )));
        }
        Ok(Native {
            // SAFETY: the types are those of ciphermill.h.
            setup: unsafe { symbol(&library, job, &job.setup)? },
            ivsetup: match &job.ivsetup {
                Some(name) => Some(unsafe { symbol(&library, job, name)? }),
                None => None,
            },
            driver: unsafe { symbol(&library, job, &job.driver)? },
            mode: job.mode,
            context: Buffer::new(&[], context as usize),
            key: Buffer::new(&key, key.len()),
            iv: Buffer::new(&iv, iv.len()),
            message: Buffer::new(&message, message.len()),
            output: Buffer::new(&[], if job.mode == Mode::Keysetup { 0 } else { message.len() }),
            count: job.count,
            _library: library,
        })
    }

    /// Set up key and IV.
    pub fn prepare(&mut self) {
        // SAFETY: the context has the bytes that the cipher asked for, key and IV theirs.
        unsafe {
            (self.setup)(self.context.address().cast(), self.key.address(), self.key.length as u32);
            if let Some(ivsetup) = self.ivsetup {
                ivsetup(self.context.address().cast(), self.iv.address(), self.iv.length as u32);
            }
        }
    }

    /// Make the call that is measured, so many times.
    #[inline(never)]
    pub fn call(&mut self, times: u64) {
        let context: *mut c_void = self.context.address().cast();
        match self.mode {
            Mode::Keysetup => {
                let (key, length) = (self.key.address(), self.key.length as u32);
                for _ in 0..times {
                    // SAFETY: as in `prepare`.
                    unsafe { (self.setup)(context, key, length) };
                }
            }
            Mode::Message => {
                let (message, output) = (self.message.address(), self.output.address());
                for _ in 0..times {
                    // SAFETY: `load` made both buffers as long as the call reads and writes.
                    unsafe { (self.driver)(context, message, output, self.count) };
                }
            }
        }
    }

    pub fn output(&self) -> Vec<u8> {
        self.output.bytes()
    }
}

/// # Safety
/// `T` must be the function's type.
unsafe fn symbol<T: Copy>(library: &Library, job: &Job, name: &str) -> Result<T, HostError> {
    // SAFETY: promised by the caller.
    unsafe { library.get::<T>(name) }
        .map(|found| *found)
        .map_err(|_| HostError::Library(format!("{} has no function {name}", job.library)))
}

fn unhex(what: &str, text: &str) -> Result<Vec<u8>, HostError> {
    let wrong = || HostError::Input(format!("{what}: not pairs of hexadecimal digits"));
    if !text.bytes().all(|b| b.is_ascii_hexdigit()) || !text.len().is_multiple_of(2) {
        return Err(wrong());
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).map_err(|_| wrong())).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_there_and_back() {
        assert_eq!(unhex("key", "00ff7a").unwrap(), [0, 255, 122]);
        assert_eq!(hex(&[0, 255, 122]), "00ff7a");
        for wrong in ["0", "zz", "+1", "é"] {
            assert!(unhex("key", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn buffers_stand_on_cache_lines() {
        let mut buffer = Buffer::new(&[1, 2, 3], 100);
        assert_eq!(buffer.address() as usize % 64, 0);
        assert_eq!(buffer.bytes()[..4], [1, 2, 3, 0]);
        assert_eq!(buffer.bytes().len(), 100);
    }
}
