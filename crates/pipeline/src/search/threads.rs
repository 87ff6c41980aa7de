//! Work on as many threads as there are, whose result does not depend on how many that is.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What `run` makes of each, in their order. The threads are there for this alone: a pool for all
/// loops would not be there in a process that is forked from this one.
pub fn together<T: Send, R: Send>(all: Vec<T>, run: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(all.len());
    if threads < 2 {
        return all.into_iter().map(run).collect();
    }
    let done: Vec<Mutex<Option<R>>> = all.iter().map(|_| Mutex::new(None)).collect();
    let queue = Mutex::new(all.into_iter().enumerate());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = locked(&queue).next();
                    let Some((k, one)) = next else { break };
                    let made = run(one);
                    *locked(&done[k]) = Some(made);
                }
            });
        }
    });
    done.into_iter().filter_map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Nothing is left half-made behind these locks.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::together;

    #[test]
    fn each_stands_in_its_place() {
        let all: Vec<u64> = (0..100).collect();
        let made = together(all.clone(), |n| n * n);
        assert_eq!(made, all.iter().map(|n| n * n).collect::<Vec<u64>>());
    }
}
