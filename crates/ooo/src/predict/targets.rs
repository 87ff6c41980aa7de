//! Where branches lead: the branch target buffer, computed jumps, returns.

/// The branch target buffer: whose target is known at fetch. Least recently
/// used entries give way. Loads known to be misnamed are in another such table.
pub struct Btb {
    tags: Vec<u32>,
    ways: usize,
    sets: usize,
}

impl Btb {
    /// No entries: everything is known.
    pub fn new(entries: u32, ways: u32) -> Btb {
        let ways = (ways.min(entries.max(1))) as usize;
        Btb { tags: vec![u32::MAX; entries as usize], ways, sets: entries as usize / ways }
    }

    /// Is a taken branch's target known? It is from now on.
    #[inline(always)]
    pub fn knows(&mut self, addr: u32) -> bool {
        if self.tags.is_empty() {
            return true;
        }
        // Instructions are not all aligned: the low bits count.
        let first = (addr as usize & (self.sets - 1)) * self.ways;
        if self.tags[first] == addr {
            return true;
        }
        let set = &mut self.tags[first..first + self.ways];
        let at = set.iter().position(|&t| t == addr);
        set[..=at.unwrap_or(self.ways - 1)].rotate_right(1);
        set[0] = addr;
        at.is_some()
    }
}

/// Targets of computed jumps, by address and history.
pub struct Indirect {
    targets: Vec<u32>,
    history: u32,
}

impl Indirect {
    /// Without `entries`, 1024 that remember the last target.
    pub fn new(entries: u32, history: u32) -> Indirect {
        let (entries, history) = if entries == 0 { (1024, 0) } else { (entries, history) };
        Indirect { targets: vec![u32::MAX; entries as usize], history }
    }

    /// The guess, and what it really was.
    pub fn guess_and_learn(&mut self, addr: u32, history: u32, target: u32) -> u32 {
        let bits = if self.history >= 32 { history } else { history & ((1 << self.history) - 1) };
        let at = (addr ^ bits) as usize & (self.targets.len() - 1);
        std::mem::replace(&mut self.targets[at], target)
    }
}

/// Return addresses; when it is full the oldest is lost.
pub struct ReturnStack {
    addrs: Vec<u32>,
    top: usize,
    full: usize,
}

impl ReturnStack {
    pub fn new(entries: u32) -> ReturnStack {
        ReturnStack { addrs: vec![0; entries as usize], top: 0, full: 0 }
    }

    pub fn push(&mut self, addr: u32) {
        if self.addrs.is_empty() {
            return;
        }
        self.addrs[self.top] = addr;
        self.top = (self.top + 1) % self.addrs.len();
        self.full = (self.full + 1).min(self.addrs.len());
    }

    pub fn pop(&mut self) -> Option<u32> {
        if self.full == 0 {
            return None;
        }
        self.full -= 1;
        self.top = (self.top + self.addrs.len() - 1) % self.addrs.len();
        Some(self.addrs[self.top])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_forgets_the_least_recent() {
        let mut b = Btb::new(4, 2);
        // Addresses 0, 2, 4 share the first of two sets.
        assert!(!b.knows(0) && !b.knows(2) && b.knows(0));
        assert!(!b.knows(4));
        assert!(b.knows(0) && !b.knows(2));
        assert!(Btb::new(0, 1).knows(9));
    }

    #[test]
    fn computed_jumps_repeat() {
        let mut i = Indirect::new(16, 4);
        i.guess_and_learn(3, 0, 10);
        i.guess_and_learn(3, 1, 20);
        assert_eq!((i.guess_and_learn(3, 0, 10), i.guess_and_learn(3, 1, 20)), (10, 20));
        let mut last = Indirect::new(0, 0);
        last.guess_and_learn(3, 0, 10);
        assert_eq!(last.guess_and_learn(3, 1, 20), 10);
    }

    #[test]
    fn returns_nest_as_deep_as_there_is_room() {
        let mut r = ReturnStack::new(2);
        (1..=3).for_each(|a| r.push(a));
        assert_eq!((r.pop(), r.pop(), r.pop()), (Some(3), Some(2), None));
    }
}
