use super::*;

/// An address in bytes behind a pointer that takes such a step.
fn at(constant: u32, step: u32, bytes: i64) -> Address {
    let sum = Sum::root(Root::Outside(VReg(0))).plus(&Sum::root(Root::Turn).times(step));
    Address { sum: sum.plus(&Sum::number(constant)), bytes, bits: BTreeMap::new() }
}

#[test]
fn distances_by_hand() {
    let (word, before) = (at(0, 4, 4), at(-12i32 as u32, 4, 4));
    // What is stored here is loaded three iterations later, and never the other way round.
    assert_eq!(word.meets(&before, 0), Meeting::After(3));
    assert_eq!(before.meets(&word, 0), Meeting::Never);
    assert_eq!(word.meets(&word, 0), Meeting::After(0));
    assert_eq!(word.meets(&word, 1), Meeting::Never);
    // A pointer that stands still, and one that goes back.
    assert_eq!(at(8, 0, 4).meets(&at(8, 0, 4), 1), Meeting::After(1));
    assert_eq!(at(8, 0, 4).meets(&at(12, 0, 4), 1), Meeting::Never);
    assert_eq!(at(0, -4i32 as u32, 4).meets(&at(9, -4i32 as u32, 4), 1), Meeting::After(2));
    // Steps of one byte: a word meets itself three times more.
    assert_eq!(at(0, 1, 4).meets(&at(0, 1, 4), 1), Meeting::After(1));
    assert_eq!(at(0, 1, 1).meets(&at(-5i32 as u32, 1, 4), 1), Meeting::After(2));
    // Other roots and steps, and a step that comes round soon.
    assert_eq!(word.meets(&at(0, 8, 4), 1), Meeting::Unknown);
    assert_eq!(at(0, 1 << 30, 4).meets(&at(0, 1 << 30, 4), 1), Meeting::Unknown);
    let other = Address { sum: Sum::root(Root::Outside(VReg(1))), ..at(0, 0, 4) };
    assert_eq!(at(0, 0, 4).meets(&other, 1), Meeting::Unknown);
    // Of what one iteration makes, another iteration may make something else.
    let made = |constant| Address { sum: Sum::root(Root::Made(3)).plus(&Sum::number(constant)), ..at(0, 0, 4) };
    assert_eq!(made(0).meets(&made(0), 1), Meeting::Unknown);
    assert!(made(0).apart(&made(4)) && !made(0).apart(&made(3)));
}

/// Every distance up to some is tried, with addresses as the machine counts them.
#[test]
fn the_least_distance_is_the_first_at_which_bytes_overlap() {
    let seed = 0x5eed_0002u64;
    println!("seed {seed:#x}");
    let mut state = seed;
    let mut random = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % n
    };
    let mut met = 0;
    for _ in 0..20_000 {
        let step = (random(41) as u32).wrapping_sub(20);
        let sizes = [1, 2, 4, 8];
        let (x, y) = ((random(121) as u32).wrapping_sub(60), (random(121) as u32).wrapping_sub(60));
        let (a, b) = (sizes[random(4) as usize], sizes[random(4) as usize]);
        let least = random(3) as u32;
        let pointer = random(1 << 32) as u32;
        let bytes = |first: u32, n: u32| (0..n).map(move |k| pointer.wrapping_add(first).wrapping_add(k));
        let overlap = |d: &u32| {
            let later = y.wrapping_add(step.wrapping_mul(*d));
            bytes(x, a).any(|i| bytes(later, b).any(|j| i == j))
        };
        let wanted = (least..200).find(overlap).map_or(Meeting::Never, Meeting::After);
        let found = at(x, step, i64::from(a)).meets(&at(y, step, i64::from(b)), least);
        assert_eq!(found, wanted, "{x} {a} {y} {b} step {step} from {least} on");
        met += usize::from(wanted != Meeting::Never);
    }
    assert!(met > 1000, "{met} of them meet");
}

/// A table of `count` words that begins so far behind the pointer, at an index that is only known to be in it.
fn table(begin: u32, count: u32, index: usize) -> Address {
    let index = Root::Made(index);
    let sum = Sum::root(Root::Outside(VReg(0))).plus(&Sum::root(index).times(4)).plus(&Sum::number(begin));
    Address { sum, bytes: 4, bits: BTreeMap::from([(index, count - 1)]) }
}

#[test]
fn tables_beside_each_other_are_apart_whatever_the_indices() {
    let (p, q) = (table(0, 512, 1), table(2048, 512, 1));
    assert_eq!((p.meets(&q, 1), q.meets(&p, 0)), (Meeting::Never, Meeting::Never));
    assert!(p.apart(&q) && p.apart(&table(2048, 512, 2)) && !p.apart(&table(2044, 512, 2)));
    assert_eq!(p.meets(&table(2044, 512, 1), 1), Meeting::After(1));
    assert_eq!(p.meets(&p, 1), Meeting::After(1));
    // A pointer that goes through the second table reaches the first in the end, and not the other way round.
    assert_eq!(at(2048, 16, 4).meets(&p, 1), Meeting::Unknown);
}

#[test]
fn fields_of_the_elements_of_an_array_are_apart_whatever_the_indices() {
    let element = |field: u32, root: Root, bytes| {
        let sum = Sum::root(Root::Outside(VReg(0))).plus(&Sum::root(root).times(12)).plus(&Sum::number(field));
        Address { sum, bytes, bits: BTreeMap::new() }
    };
    let (x, y) = (element(0, Root::Made(1), 2), element(2, Root::Made(1), 2));
    assert_eq!((x.meets(&y, 1), y.meets(&x, 1)), (Meeting::Never, Meeting::Never));
    assert_eq!(x.meets(&element(1, Root::Made(2), 2), 1), Meeting::Unknown);
    assert!(x.apart(&element(2, Root::Made(2), 2)) && !x.apart(&element(4, Root::Made(2), 2)));
    // Steps that differ are no matter then.
    assert_eq!(at(0, 4, 2).meets(&at(2, 8, 2), 1), Meeting::Never);
    assert_eq!(at(0, 4, 2).meets(&at(2, 2, 2), 1), Meeting::Unknown);
}

/// All indices and many distances are tried.
#[test]
fn what_is_known_of_an_index_tells_no_two_apart_that_meet() {
    let seed = 0x5eed_0004u64;
    println!("seed {seed:#x}");
    let mut state = seed;
    let mut random = |n: u32| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 11) % u64::from(n)) as u32
    };
    let (mut never, mut after) = (0, 0);
    for _ in 0..3_000 {
        let bits = [random(16), random(16)];
        let factor = [random(9), random(9)].map(|f| f.wrapping_sub(4));
        let step = random(17).wrapping_sub(8);
        let constant = [random(80), random(80)];
        let bytes = [1i64 << random(3), 1 << random(3)];
        let pointer = random(1 << 31) * 2;
        let address = |k: usize| Address {
            bits: BTreeMap::from([(Root::Made(k), bits[k])]),
            sum: Sum::root(Root::Made(k)).times(factor[k]).plus(&at(constant[k], step, 4).sum),
            ..at(0, 0, bytes[k])
        };
        let members = |k: usize| (0..16u32).filter(move |x| x & !bits[k] == 0);
        let begin = |k: usize, index: u32, turn: u32| {
            pointer
                .wrapping_add(constant[k])
                .wrapping_add(factor[k].wrapping_mul(index))
                .wrapping_add(step.wrapping_mul(turn))
        };
        let meet = |d: u32| {
            members(0).flat_map(|x| members(1).map(move |y| (x, y))).any(|(x, y)| {
                let between = i64::from(begin(1, y, d).wrapping_sub(begin(0, x, 0)) as i32);
                -bytes[1] < between && between < bytes[0]
            })
        };
        let first = (1..64).find(|d| meet(*d));
        match address(0).meets(&address(1), 1) {
            Meeting::Never => assert_eq!(first, None, "{bits:?} {factor:?} {step} {constant:?} {bytes:?}"),
            Meeting::After(d) => assert!(first.is_none_or(|first| d <= first)),
            Meeting::Unknown => {}
        }
        never += u32::from(address(0).meets(&address(1), 1) == Meeting::Never);
        after += u32::from(first.is_some());
    }
    assert!(never > 300 && after > 300, "{never} {after}");
}

#[test]
fn sums_are_modulo_two_to_the_32() {
    let x = Sum::root(Root::Outside(VReg(0)));
    let y = Sum::root(Root::Outside(VReg(1)));
    let sum = x.clone().times(4).plus(&y).plus(&Sum::number(7));
    assert_eq!(sum.clone().minus(&y).minus(&x.clone().times(3)).minus(&x).known(), Some(7));
    assert_eq!(sum.clone().minus(&y).known(), None);
    assert_eq!(x.times(1 << 31).times(2).known(), Some(0));
}
