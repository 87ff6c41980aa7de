//! ResMII: for every set of resources, the operations that cannot do without (Rau, MICRO 1994; Hall's
//! condition).

use crate::certificate::Resources;
use crate::sets::Crowd;

/// The set whose operations take longest; none where nothing takes any.
pub fn slowest(crowds: &[Crowd]) -> Option<Resources> {
    let busy = crowds.iter().filter(|c| c.work() > 0);
    // Of those that need the same cycles the one that is fullest, and of these the smallest.
    let key = |c: &&Crowd| {
        let (work, all) = (c.work(), c.capacity);
        (work.div_ceil(all), work * 1000 / all, std::cmp::Reverse(c.set.len()))
    };
    busy.max_by_key(key).map(|c| Resources { set: c.set.clone() })
}
