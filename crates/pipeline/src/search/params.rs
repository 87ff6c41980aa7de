//! All numbers that a search is made with, and its parts that can be left out.
//!
//! What each is worth is measured, not said: `benches/pipeline/ablate.py` leaves out part after part,
//! or takes another number, and prints what becomes of the loops.

/// Cost that a move may have: the mean at the beginning and at the end.
pub type Temperature = (i64, i64);

/// How divisions between clusters are made and compared.
#[derive(Clone, Copy, Debug)]
pub struct Divide {
    /// The price of an operation for which a set of units has no cycle, or a path.
    pub units: i64,
    /// Of a value read over a path.
    pub crossing: i64,
    /// Of a copy.
    pub copy: i64,
    /// Of a crossing on a recurrence circuit.
    pub circuit: i64,
    /// Of a value from outside on a cluster; divisions are made with either.
    pub outside: [i64; 2],
    /// Changes for each node.
    pub sweeps: u64,
    pub temperature: Temperature,
    /// Units have cycles for an interval that is by so many hundredths longer than the bound.
    pub slack: i64,
    /// A quick search looks for a division where all that are plain may come down to so many hundredths
    /// above the bound at best; a thorough one always, of forms that may come down to so many hundredths
    /// of the best at least.
    pub near: i64,
    pub worth: i64,
    /// Lifetimes are so many hundredths of what they are when each value is made as late as can be.
    pub longer: i64,
    /// A further division of a form is taken to come down less far by so many hundredths.
    pub later: i64,
}

/// One unit of work is a move: an operation that is tried in another cycle or on another cluster.
#[derive(Clone, Debug)]
pub struct Params {
    /// What a cycle costs by which a dependence fails; a value beyond the registers costs 20 and more.
    pub fault: i64,
    /// What is broken is looked for anew after so many moves, or as many as half the operations.
    pub look: usize,
    /// One move of so many takes an operation to another cluster; none does for 0.
    pub one_crosses: usize,
    /// One of so many begins with any operation, the others with one where something is broken.
    pub one_anywhere: usize,
    /// One of so many goes anywhere near, the others where that mends something.
    pub one_blind: usize,
    /// One of so many goes anywhere that dependences allow, the others not far.
    pub one_far: usize,
    /// One of so many pushes those whose dependences it breaks (none for 0), so many at once at most,
    /// each so many cycles farther than needed at most.
    pub one_pushes: usize,
    pub pushed_at_once: usize,
    pub farther: i64,
    /// Cycles that are not far.
    pub near: i64,
    /// Operations of another row that one is tried to change places with.
    pub exchanged: usize,
    /// So many times for each operation one gives way to another while a start is spread out.
    pub pushed: usize,
    /// Cycles to either side in which operations change units for a start before it goes farther.
    pub shuffled: i64,
    /// Cycles to either side of where it should stand in which an operation first looks for one
    /// that gives way.
    pub around: i64,
    pub divide: Divide,
    /// Divisions that a search begins with, and a quick one.
    pub divisions: usize,
    pub quick_divisions: usize,
    /// Other forms, too, where the first schedule is so many hundredths of the bound.
    pub poor: i64,
    /// Of these so many go on into the races behind the first.
    pub finalists: usize,
    /// Placements for each operation of an iterative start.
    pub placements: usize,
    /// Orders of the operations that are tried for the fewest live values, and in a quick search.
    pub orders: u64,
    pub quick_orders: u64,
    /// Temperatures of a fresh start, and of a schedule of which little is broken.
    pub fresh: Temperature,
    pub nearly: Temperature,
    /// Registers in use where operations are spread out, in hundredths of those there are.
    pub fills: &'static [i64],
    /// A race takes this part of the budget, and in each round this part of the entrants goes on.
    pub race_part: u64,
    pub race: &'static [usize],
    /// In a quick search, and until there is a first schedule.
    pub quick_race_part: u64,
    pub quick_race: &'static [usize],
    pub first_part: u64,
    pub first: &'static [usize],
    pub first_fills: &'static [i64],
    /// The part of the budget that placing operations one by one may take for each division, once there
    /// is a schedule of it.
    pub list_part: u64,
    /// Intervals that are tried for a first schedule, and the part of one by which the next is longer
    /// at least.
    pub ascents: u64,
    pub steepest: i64,
    /// Units leave an interval longer by this part to a start, and so many more are tried where they
    /// leave no place for all.
    pub room: i64,
    pub wider: usize,
    /// Moves for each operation with which what is broken after a race is mended.
    pub mending: u64,
    /// The part of the budget that landing may take.
    pub landing_part: u64,
    /// An interval grows by so many hundredths at once at most.
    pub growth: i64,
    /// Rows that are tried to be taken out, those first that break least, and moves for each
    /// operation that this may take: behind a race, and in the end.
    pub rows_first: &'static [(usize, u64)],
    pub rows: &'static [(usize, u64)],
    /// So many first schedules are compared at most by how far each comes when rows are taken out, for this part of the
    /// budget; the better half for twice as long.
    pub compared: usize,
    pub compared_part: u64,
    /// Races between two narrowings, and how far on the way up to the best interval so far the next one is, in
    /// hundredths.
    pub races_at_most: u64,
    pub target: i64,
    /// Behind the first race in which more is broken in the end than one rule for so many operations rows are taken out,
    /// and behind so many of them no more races follow: in loops of thousands of operations a fresh start is not mended
    /// within a race. SOSEMANUK on the C6201 takes 396 cycles without it, 379 with it.
    pub hopeless: u64,
    pub far: i64,
    /// A search ends where its interval is by less than this part above the bound.
    pub enough: i64,
    /// A search ends where less than this part of the budget is left behind a narrowing.
    pub last_part: u64,
    /// Moves for each operation of a whole search, and at most, of which one on a single cluster takes
    /// a part: of a loop that is searched for on few narrower machines, and on many. And of a quick one.
    pub thorough: (u64, u64),
    pub one_cluster: (u64, u64),
    pub quick: (u64, u64),
    /// Moves of all thorough searches of a function together. The transform of ML-KEM has twelve loops and takes 38 s on
    /// the C64x without it.
    pub together: u64,

    /// Registers are counted while operations are placed: for the first schedule and in races.
    pub lists: bool,
    /// Races begin by iterative modulo scheduling, too, and with operations spread out.
    pub iterates: bool,
    pub spreads: bool,
    pub races: bool,
    pub narrows: bool,
    /// Divisions are looked for; otherwise only plain ones are tried.
    pub divides: bool,
    /// Rounds of unrolled loops have a schedule of their own first.
    pub rerolls: bool,
    /// Other clusters than the stack pointer's may have addresses of the frame.
    pub bases: bool,
    /// Values go to the frame, and come back, while a schedule is under way.
    pub respills: bool,
}

/// A part that can be left out: its name, and how.
type Part = (&'static str, fn(&mut Params));

/// What can be left out of a search.
pub const PARTS: [Part; 14] = [
    ("pushes", |p| p.one_pushes = 0),
    ("exchanges", |p| p.exchanged = 0),
    ("crossings", |p| p.one_crosses = 0),
    ("aims", |p| p.one_blind = 1),
    ("lists", |p| p.lists = false),
    ("iterates", |p| p.iterates = false),
    ("spreads", |p| p.spreads = false),
    ("races", |p| p.races = false),
    ("hopeless", |p| p.hopeless = u64::MAX),
    ("narrows", |p| p.narrows = false),
    ("divides", |p| p.divides = false),
    ("rerolls", |p| p.rerolls = false),
    ("bases", |p| p.bases = false),
    ("respills", |p| p.respills = false),
];

/// The parts that a search goes without, a bit for each of [`PARTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without(u32);

impl Without {
    /// Without a part besides. None where there is none of that name.
    pub fn and(self, name: &str) -> Option<Without> {
        let part = PARTS.iter().position(|p| p.0 == name)?;
        Some(Without(self.0 | 1 << part))
    }
}

impl Params {
    /// Is hardly anything left to gain at an interval?
    pub fn enough(&self, ii: i64, bound: i64) -> bool {
        self.enough * (ii - bound) < ii
    }

    /// The usual ones, without some parts.
    pub fn without(parts: Without) -> Params {
        let mut params = Params::default();
        for (k, part) in PARTS.iter().enumerate() {
            if parts.0 >> k & 1 == 1 {
                part.1(&mut params);
            }
        }
        params
    }
}

impl Default for Params {
    fn default() -> Params {
        Params {
            fault: 16,
            look: 128,
            one_crosses: 8,
            one_anywhere: 6,
            one_blind: 2,
            one_far: 6,
            one_pushes: 10,
            pushed_at_once: 6,
            farther: 3,
            near: 6,
            exchanged: 4,
            pushed: 1,
            shuffled: 10,
            around: 30,
            divide: Divide {
                units: 40,
                crossing: 2,
                copy: 6,
                circuit: 12,
                outside: [20, 400],
                sweeps: 12,
                temperature: (30, 1),
                slack: 6,
                near: 25,
                worth: 110,
                longer: 135,
                later: 2,
            },
            divisions: 4,
            quick_divisions: 2,
            poor: 150,
            finalists: 1,
            placements: 20,
            orders: 12,
            quick_orders: 3,
            fresh: (16, 1),
            nearly: (6, 1),
            fills: &[95, 70],
            race_part: 10,
            race: &[3, 3, 2, 1],
            quick_race_part: 3,
            quick_race: &[4, 2, 1],
            first_part: 20,
            first: &[2, 2, 2],
            first_fills: &[80],
            list_part: 32,
            ascents: 16,
            steepest: 12,
            room: 64,
            wider: 4,
            mending: 60,
            landing_part: 20,
            growth: 12,
            rows_first: &[(3, 40)],
            rows: &[(4, 20), (3, 100), (3, 400), (2, 1200)],
            compared: 4,
            compared_part: 40,
            races_at_most: 4,
            enough: 100,
            last_part: 8,
            target: 65,
            hopeless: 2,
            far: 16,
            thorough: (80_000, 30_000_000),
            one_cluster: (4, 16),
            quick: (2_000, 3_000_000),
            together: 60_000_000,
            lists: true,
            iterates: true,
            spreads: true,
            races: true,
            narrows: true,
            divides: true,
            rerolls: true,
            bases: true,
            respills: true,
        }
    }
}
