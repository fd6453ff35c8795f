//! The kernel refuses memory for a larger index. The test runs in a separate process, because the limit
//! holds for the whole process.

use namewire_tables::{Fib, FibRefusal, HashKey};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn name(number: u64) -> Vec<u8> {
    [&[8, 8][..], &number.to_be_bytes()].concat()
}

#[test]
fn an_index_that_cannot_double_refuses_until_there_is_memory() {
    let mut fib = Fib::new(1_000_000, HashKey::from_seed(1));
    let insert = |fib: &mut Fib, number| fib.insert(&name(number), &[], 7, false).map(|inserted| inserted.replaced);
    // 8, doubled 13 times: the next index takes 1 MiB.
    const INDEX_ENTRIES: u64 = 65_536;
    (0..INDEX_ENTRIES).for_each(|number| assert_eq!(insert(&mut fib, number), Ok(false)));
    let before = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some(1 << 20), ..before }).expect("lower than before");
    let refused = [insert(&mut fib, INDEX_ENTRIES), insert(&mut fib, INDEX_ENTRIES)];
    let replaced = insert(&mut fib, 1);
    setrlimit(Resource::As, before).expect("the hard limit was not touched");
    assert_eq!(refused, [Err(FibRefusal::NoMemory); 2]);
    assert_eq!(replaced, Ok(true), "what needs no memory goes on");
    assert_eq!(fib.len() as u64, INDEX_ENTRIES, "nothing changed");
    assert!((0..INDEX_ENTRIES).all(|number| fib.get(&name(number)).is_some()));
    assert_eq!(insert(&mut fib, INDEX_ENTRIES), Ok(false), "with memory it doubles");
    assert!((0..=INDEX_ENTRIES).all(|number| fib.get(&name(number)).is_some()));
}
