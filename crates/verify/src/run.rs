//! The run of a block's bundles, cycle by cycle, up to where control passes on.

use crate::code::{Block, Fault};
use crate::exec::{Exec, Jump};
use crate::resources;
use crate::state::State;
use crate::terms::Term;

/// How a block was left.
pub(crate) struct Left {
    pub state: State,
    /// None where control falls through.
    pub jump: Option<Jump>,
}

impl Exec<'_> {
    /// Can each of these bundles start in one cycle?
    pub fn fits(&self, block: &Block, what: &str) -> Result<(), Fault> {
        for (n, bundle) in block.bundles.iter().enumerate() {
            resources::fit(self.rules, bundle).map_err(|f| Fault(format!("{what}, bundle {n}: {f}")))?;
        }
        Ok(())
    }

    /// Run a block. Where its jump hangs on what is not known, `fork` says how to go on, and what
    /// other state to begin again with later.
    pub fn block(
        &mut self,
        mut state: State,
        block: &Block,
        what: &str,
        fork: &mut dyn FnMut(&mut State),
    ) -> Result<Left, Fault> {
        let begin = state.now;
        let mut jump: Option<(Jump, u64)> = None;
        let mut call: Option<(Term, u64)> = None;
        for (n, bundle) in block.bundles.iter().enumerate() {
            let place = |f: Fault, at: u64| Fault(format!("{what}, bundle {n}, cycle {}: {f}", at - begin));
            if let Some((whole, _)) = call.filter(|c| c.1 <= state.now) {
                self.fence(&mut state, whole);
                call = None;
            }
            let at = state.now;
            if jump.as_ref().is_some_and(|j| j.1 <= at) {
                return Err(place(Fault("it stands behind a jump's last delay slot".into()), at));
            }
            let asks = bundle.iter().any(|i| self.rules.effect(i.instr).conditional);
            let before = if asks { Some(state.clone()) } else { None };
            let mut done = self.bundle(&mut state, bundle).map_err(|f| place(f, at))?;
            if let (Some(before), true) = (before, done.jump.as_ref().is_some_and(|j| j.taken.is_none())) {
                state = before;
                fork(&mut state);
                done = self.bundle(&mut state, bundle).map_err(|f| place(f, at))?;
            }
            if let Some((_, annuls)) = jump.as_ref().map(|j| (j.1, j.0.annuls))
                && annuls
                && bundle.iter().any(|i| !self.rules.effect(i.instr).idle)
            {
                return Err(place(Fault("it stands where the branch before it may skip it".into()), at));
            }
            if let Some(j) = done.jump {
                if jump.is_some() || call.is_some() {
                    return Err(place(Fault("a jump stands in the delay slots of another".into()), at));
                }
                let due = at + 1 + u64::from(j.delay);
                jump = Some((j, due));
            }
            if let Some((whole, delay)) = done.call {
                if jump.is_some() || call.is_some() {
                    return Err(place(Fault("a call stands in the delay slots of a jump".into()), at));
                }
                call = Some((whole, at + 1 + u64::from(delay)));
            }
        }
        if let Some((whole, due)) = call {
            if due > state.now {
                return Err(Fault(format!("{what}: a call's delay slots are missing")));
            }
            self.fence(&mut state, whole);
        }
        if let Some((_, due)) = &jump {
            if *due > state.now {
                return Err(Fault(format!(
                    "{what}: the delay slots of its jump are {} cycles too few",
                    due - state.now
                )));
            }
            // A no-operation of several cycles ends early.
            let long = block.bundles.last().is_some_and(|b| b.iter().all(|i| self.rules.effect(i.instr).idle));
            if *due < state.now && !long {
                return Err(Fault(format!("{what}: its last bundle stands behind the jump's delay slots")));
            }
            state.now = *due;
        }
        self.land(&mut state).map_err(|f| Fault(format!("{what}, at its end: {f}")))?;
        Ok(Left { state, jump: jump.map(|j| j.0) })
    }

    /// On an exposed pipeline nothing may be under way here.
    pub fn quiet(&self, state: &State, what: &str) -> Result<(), Fault> {
        match state.pending.first() {
            Some(p) => Err(Fault(format!(
                "{what}: the result for {} is still under way, for {} cycles",
                self.rules.register(p.register),
                p.due - state.now
            ))),
            None => Ok(()),
        }
    }
}
