//! The programs, and what they find.
//!
//!     closure     path(a, b) <- edge(a, b).  path(a, c) <- path(a, b), edge(b, c).
//!     generation  same(x, y) <- edge(p, x), edge(p, y).
//!                 same(x, y) <- same(p, q), edge(p, x), edge(q, y).
//!     galen       p(x, z)    <- p(x, y), p(y, z).
//!                 p(x, z)    <- p(y, w), u(w, r, z), q(x, r, y).
//!                 p(x, z)    <- c(y, w, z), p(x, w), p(x, y).
//!                 q(x, r, z) <- p(x, y), q(y, r, z).
//!                 q(x, q, z) <- q(x, r, z), s(r, q).
//!                 q(x, e, o) <- q(x, y, z), q(z, u, o), r(y, u, e).
//!     crdt        the text of a document, in `bench/joins/recursion.py`; here a position, a counter and a node,
//!                 is one value.  What its recursions read is complete before them, and made without datafrog.
//!
//! Datafrog joins a variable with another by their first fields and sorts what it finds, so a variable
//! stands once in each order in which it is joined, and bodies of three atoms go by a variable between.
//! What only stands in another order needs no second search for duplicates (`variable_indistinct`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{Error, ErrorKind, Result};

use datafrog::{Iteration, Relation};

use crate::hash::hash;
use crate::words::Words;

pub const NAMES: [&str; 4] = ["closure", "generation", "galen", "crdt"];

type Pair = (u32, u32);
type Triple = (u32, u32, u32);

/// A program with what its relations hold, in no order.
pub enum Program {
    /// `edge`
    Closure(Vec<Pair>),
    /// `edge`
    Generation(Vec<Pair>),
    Galen(Box<Galen>),
    Crdt(Crdt),
}

pub struct Galen {
    c: Vec<Triple>,
    p: Vec<Pair>,
    q: Vec<Triple>,
    r: Vec<Triple>,
    s: Vec<Pair>,
    u: Vec<Triple>,
}

/// A counter and a node.
type Position = (u32, u32);

pub struct Crdt {
    /// Positions and their parents.
    insert: Vec<(Position, Position)>,
    remove: Vec<Position>,
}

/// The rows of the last head, `q` of `galen`.
pub enum Answer {
    /// Each (b, a) stands for the row (a, b).
    Reversed(Relation<Pair>),
    Pairs(Relation<Pair>),
    /// Each (a, (b, c)) stands for the row (a, b, c).
    Triples(Relation<(u32, Pair)>),
}

impl Program {
    /// The program called `name`, one of `NAMES`.
    pub fn read(name: &str, words: &mut Words) -> Result<Self> {
        let program = match name {
            "closure" => Program::Closure(pairs(words)?),
            "generation" => Program::Generation(pairs(words)?),
            "galen" => Program::Galen(Box::new(Galen {
                c: triples(words)?,
                p: pairs(words)?,
                q: triples(words)?,
                r: triples(words)?,
                s: pairs(words)?,
                u: triples(words)?,
            })),
            "crdt" => Program::Crdt(Crdt {
                insert: (0..words.count()?).map(|_| Ok((pair(words)?, pair(words)?))).collect::<Result<_>>()?,
                remove: pairs(words)?,
            }),
            _ => unreachable!("checked against NAMES"),
        };
        if !words.is_over() {
            return Err(Error::new(ErrorKind::InvalidData, "there is something after the last relation"));
        }
        Ok(program)
    }

    pub fn evaluated(&self) -> Answer {
        match self {
            Program::Closure(edges) => closure(edges),
            Program::Generation(edges) => generation(edges),
            Program::Galen(given) => galen(given),
            Program::Crdt(edits) => crdt(edits),
        }
    }
}

impl Answer {
    pub fn len(&self) -> usize {
        match self {
            Answer::Reversed(rows) | Answer::Pairs(rows) => rows.len(),
            Answer::Triples(rows) => rows.len(),
        }
    }

    /// The sum of the rows' hashes modulo 2^64.
    pub fn checksum(&self) -> u64 {
        let sum = |total: u64, hash: u64| total.wrapping_add(hash);
        match self {
            Answer::Reversed(rows) => rows.iter().map(|&(b, a)| hash(&[a.into(), b.into()])).fold(0, sum),
            Answer::Pairs(rows) => rows.iter().map(|&(a, b)| hash(&[a.into(), b.into()])).fold(0, sum),
            Answer::Triples(rows) => {
                rows.iter().map(|&(a, (b, c))| hash(&[a.into(), b.into(), c.into()])).fold(0, sum)
            }
        }
    }
}

fn pair(words: &mut Words) -> Result<Pair> {
    Ok((words.checked()?, words.checked()?))
}

fn pairs(words: &mut Words) -> Result<Vec<Pair>> {
    (0..words.count()?).map(|_| pair(words)).collect()
}

fn triples(words: &mut Words) -> Result<Vec<Triple>> {
    (0..words.count()?).map(|_| Ok((words.checked()?, words.checked()?, words.checked()?))).collect()
}

fn closure(edges: &[Pair]) -> Answer {
    let edge: Relation<Pair> = edges.iter().collect();
    let mut iteration = Iteration::new();
    let path = iteration.variable::<Pair>("path"); // (b, a)
    path.extend(edge.iter().map(|&(a, b)| (b, a)));
    while iteration.changed() {
        // path(a, c) <- path(a, b), edge(b, c).
        path.from_join(&path, &edge, |_b, &a, &c| (c, a));
    }
    Answer::Reversed(path.complete())
}

fn generation(edges: &[Pair]) -> Answer {
    let edge: Relation<Pair> = edges.iter().collect();
    let mut iteration = Iteration::new();
    let same = iteration.variable::<Pair>("same");
    let halfway = iteration.variable_indistinct::<Pair>("halfway"); // (q, x)
    same.insert(Relation::from_join(&edge, &edge, |_p, &x, &y| (x, y)));
    while iteration.changed() {
        // same(x, y) <- same(p, q), edge(p, x), edge(q, y).
        halfway.from_join(&same, &edge, |_p, &q, &x| (q, x));
        same.from_join(&halfway, &edge, |_q, &x, &y| (x, y));
    }
    Answer::Pairs(same.complete())
}

fn galen(given: &Galen) -> Answer {
    let c_by_second: Relation<(u32, Pair)> = given.c.iter().map(|&(y, w, z)| (w, (y, z))).collect();
    let r_by_first: Relation<(u32, Pair)> = given.r.iter().map(|&(y, u, e)| (y, (u, e))).collect();
    let s: Relation<Pair> = given.s.iter().collect();
    let u_by_first: Relation<(u32, Pair)> = given.u.iter().map(|&(w, r, z)| (w, (r, z))).collect();

    let mut iteration = Iteration::new();
    let p = iteration.variable::<Pair>("p");
    let q = iteration.variable::<(u32, Pair)>("q");
    // the same in other orders: p(x, z), q(x, r, z)
    let p_by_second = iteration.variable_indistinct::<Pair>("p by z");
    let p_by_both = iteration.variable_indistinct::<(Pair, ())>("p by x, z");
    let q_by_second = iteration.variable_indistinct::<(u32, Pair)>("q by r");
    let q_by_ends = iteration.variable_indistinct::<(Pair, u32)>("q by r, z");
    let q_by_first = iteration.variable_indistinct::<(Pair, u32)>("q by x, r");
    // of bodies with three atoms, the first two
    let above = iteration.variable::<(Pair, u32)>("p(y, w), u(w, r, z) by r, y");
    let both = iteration.variable::<(Pair, u32)>("p(x, w), c(y, w, z) by x, y");
    let chain = iteration.variable::<(Pair, Pair)>("q(x, y, z), r(y, u, e) by z, u");

    p.extend(given.p.iter());
    q.extend(given.q.iter().map(|&(x, r, z)| (x, (r, z))));
    while iteration.changed() {
        p_by_second.from_map(&p, |&(x, z)| (z, x));
        p_by_both.from_map(&p, |&pair| (pair, ()));
        q_by_second.from_map(&q, |&(x, (r, z))| (r, (x, z)));
        q_by_ends.from_map(&q, |&(x, (r, z))| ((r, z), x));
        q_by_first.from_map(&q, |&(x, (r, z))| ((x, r), z));
        // p(x, z) <- p(x, y), p(y, z).
        p.from_join(&p_by_second, &p, |_y, &x, &z| (x, z));
        // p(x, z) <- p(y, w), u(w, r, z), q(x, r, y).
        above.from_join(&p_by_second, &u_by_first, |_w, &y, &(r, z)| ((r, y), z));
        p.from_join(&above, &q_by_ends, |_, &z, &x| (x, z));
        // p(x, z) <- c(y, w, z), p(x, w), p(x, y).
        both.from_join(&p_by_second, &c_by_second, |_w, &x, &(y, z)| ((x, y), z));
        p.from_join(&both, &p_by_both, |&(x, _y), &z, &()| (x, z));
        // q(x, r, z) <- p(x, y), q(y, r, z).
        q.from_join(&p_by_second, &q, |_y, &x, &rest| (x, rest));
        // q(x, q, z) <- q(x, r, z), s(r, q).
        q.from_join(&q_by_second, &s, |_r, &(x, z), &other| (x, (other, z)));
        // q(x, e, o) <- q(x, y, z), q(z, u, o), r(y, u, e).
        chain.from_join(&q_by_second, &r_by_first, |_y, &(x, z), &(u, e)| ((z, u), (x, e)));
        q.from_join(&chain, &q_by_first, |_, &(x, e), &o| (x, (e, o)));
    }
    Answer::Triples(q.complete())
}

fn crdt(edits: &Crdt) -> Answer {
    let mut children: HashMap<Position, BTreeMap<u64, Position>> = HashMap::new();
    for &(own, parent) in &edits.insert {
        children.entry(parent).or_default().insert(key_of(own), own);
    }
    let first: HashMap<Position, Position> =
        children.iter().map(|(&parent, own)| (parent, *own.last_key_value().expect("a child").1)).collect();
    let sibling: HashMap<Position, Position> = children
        .values()
        .flat_map(|own| own.values().skip(1).zip(own.values()))
        .map(|(&later, &before)| (later, before))
        .collect();
    let removed: HashSet<Position> = edits.remove.iter().copied().collect();
    let value: HashSet<Position> =
        edits.insert.iter().map(|&(own, _)| own).filter(|own| !removed.contains(own)).collect();

    // later(x, y) <- sibling(x, y).  later(x, y) <- insert(x, p), !sibling(x, _), later(p, y).
    let inherits: Relation<(Position, Position)> = edits
        .insert
        .iter()
        .filter(|(own, _)| !sibling.contains_key(own))
        .map(|&(own, parent)| (parent, own))
        .collect();
    let mut iteration = Iteration::new();
    let later = iteration.variable::<(Position, Position)>("later");
    later.extend(sibling.iter().map(|(&x, &y)| (x, y)));
    while iteration.changed() {
        later.from_join(&later, &inherits, |_p, &y, &x| (x, y));
    }
    let later = later.complete();

    // next(x, y) <- first(x, y).  next(x, y) <- later(x, y), !insert(_, x).
    let next = first
        .iter()
        .map(|(&x, &y)| (x, y))
        .chain(later.iter().copied().filter(|(x, _)| !children.contains_key(x)));
    let (from_value, from_blank): (Vec<_>, Vec<_>) = next.partition(|(x, _)| value.contains(x));

    // The one who stands before blanks, by the last of them: (v, x) of
    // next_by_blanks(x, v) <- value(x), next(x, v).
    // next_by_blanks(x, y) <- next_by_blanks(x, v), next(v, y), !value(v).
    let from_blank = Relation::from_vec(from_blank);
    let mut iteration = Iteration::new();
    let by_blanks = iteration.variable::<(Position, Position)>("next by blanks");
    by_blanks.extend(from_value.iter().map(|&(x, v)| (v, x)));
    while iteration.changed() {
        by_blanks.from_join(&by_blanks, &from_blank, |_v, &x, &y| (y, x));
    }
    let result: BTreeSet<(u32, Pair)> = by_blanks
        .complete()
        .iter()
        .filter(|(y, _)| value.contains(y))
        .map(|&(y, (counter, _node))| (counter, y))
        .collect();
    Answer::Triples(result.into_iter().collect())
}

/// By which positions are ordered.
fn key_of((counter, node): Position) -> u64 {
    10 * u64::from(counter) + u64::from(node)
}
