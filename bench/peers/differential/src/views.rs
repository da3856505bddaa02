//! The views, and the tally of what comes out of them.
//!
//!     triangles(a, b, c) <- e(a, b), e(b, c), e(a, c)
//!     hubs(a)            <- e(a, b), e(b, c), e(a, c)
//!     degrees[a] = count() <- e(a, _)
//!     sums[a] = sum(c)   <- e(a, b), e(b, c)
//!     closure(a, b) <- e(a, b).            closure(a, c) <- closure(a, b), e(b, c).
//!     reach(a, b)   <- e(a, b), a <= 100.  reach(a, c)   <- reach(a, b), e(b, c).
//!     labels[x] = min(l) <- (e(x, _) ; e(_, x)), l = x.
//!     labels[y] = min(l) <- labels[x] = l, (e(x, y) ; e(y, x)).
//!
//! Triangles are the worst-case optimal delta query of differential-dogs3 as its example
//! `delta_query_wcoj` has it: one query per atom, the atoms before it read as they are now, those
//! after it as they were before.  The edges of a recursion are arranged once, outside of its loop.

use std::cell::Cell;
use std::rc::Rc;

use differential_dataflow::operators::{CountTotal, Iterate, ThresholdTotal};
use differential_dataflow::VecCollection;
use differential_dogs3::altneu::AltNeu;
use differential_dogs3::{CollectionIndex, ProposeExtensionMethod};
use timely::dataflow::operators::probe::Handle;

use crate::hash::hash;

pub const NAMES: [&str; 7] = ["triangles", "hubs", "degrees", "sums", "closure", "reach", "labels"];

/// What is reached is asked of the vertices numbered up to this one.
const LAST_START: u32 = 100;

type Edges<'scope> = VecCollection<'scope, u64, (u32, u32), isize>;

/// What came out so far: number of changes, sum of weights, sum of weighted hashes modulo 2^64.
#[derive(Clone, Default)]
pub struct Tally(Rc<Cell<(u64, i64, u64)>>);

impl Tally {
    fn add(&self, row: &[i64], weight: isize) {
        let (changes, count, checksum) = self.0.get();
        let weighted = (weight as u64).wrapping_mul(hash(row));
        self.0.set((changes + 1, count + weight as i64, checksum.wrapping_add(weighted)));
    }

    pub fn changes(&self) -> u64 {
        self.0.get().0
    }

    /// Weight and checksum, as the lines of events have them.
    pub fn sums(&self) -> String {
        let (_, count, checksum) = self.0.get();
        format!("{count} {checksum}")
    }
}

/// Build the view called `name`, one of `NAMES`, over the edges.
pub fn build(name: &str, edges: Edges<'_>, tally: &Tally, probe: &Handle<u64>) {
    let tally = tally.clone();
    match name {
        "triangles" => {
            triangles(edges)
                .inspect(move |((a, b, c), _, weight)| {
                    tally.add(&[i64::from(*a), i64::from(*b), i64::from(*c)], *weight);
                })
                .probe_with(probe);
        }
        "hubs" => {
            // `distinct_total` of this version never takes a row back, so the threshold is spelled out.
            triangles(edges)
                .map(|(a, _, _)| a)
                .threshold_total(|_, weight| isize::from(*weight > 0))
                .inspect(move |(a, _, weight)| tally.add(&[i64::from(*a)], *weight))
                .probe_with(probe);
        }
        "degrees" => {
            edges
                .map(|(a, _)| a)
                .count_total()
                .inspect(move |((a, n), _, weight)| tally.add(&[i64::from(*a), *n as i64], *weight))
                .probe_with(probe);
        }
        "sums" => {
            // The number of paths goes along, so that a group whose sum is 0 is still there.
            let by_end = edges.clone().map(|(a, b)| (b, a)).arrange_by_key();
            by_end
                .join_core(edges.arrange_by_key(), |_, a, c| Some((*a, *c)))
                .explode(|(a, c)| Some((a, (1isize, c as isize))))
                .count_total()
                .inspect(move |((a, (_, sum)), _, weight): &((u32, (isize, isize)), u64, isize)| {
                    tally.add(&[i64::from(*a), *sum as i64], *weight);
                })
                .probe_with(probe);
        }
        "closure" | "reach" => {
            let is_start: fn(&(u32, u32)) -> bool =
                if name == "closure" { |_| true } else { |(a, _)| *a <= LAST_START };
            let first = edges.clone().filter(is_start).map(|(a, b)| (b, a));
            continued(first, edges)
                .inspect(move |((b, a), _, weight)| tally.add(&[i64::from(*a), i64::from(*b)], *weight))
                .probe_with(probe);
        }
        "labels" => {
            labels(edges)
                .inspect(move |((x, l), _, weight)| tally.add(&[i64::from(*x), i64::from(*l)], *weight))
                .probe_with(probe);
        }
        _ => unreachable!("checked against NAMES"),
    }
}

fn triangles<'scope>(edges: Edges<'scope>) -> VecCollection<'scope, u64, (u32, u32, u32), isize> {
    let outer = edges.scope();
    let reverse = edges.clone().map(|(a, b)| (b, a));
    outer.scoped::<AltNeu<u64>, _, _>("triangles", |inner| {
        let forward = edges.enter(inner);
        let reverse = reverse.enter(inner);
        let later = |time: &AltNeu<u64>| AltNeu::neu(time.time);
        let forward_before = CollectionIndex::index(forward.clone());
        let reverse_before = CollectionIndex::index(reverse.clone());
        let forward_now = CollectionIndex::index(forward.clone().delay(later));
        let reverse_now = CollectionIndex::index(reverse.delay(later));

        let of_first = forward
            .clone()
            .extend(&mut [
                &mut forward_now.extend_using(|(_a, b): &(u32, u32)| *b),
                &mut forward_now.extend_using(|(a, _b): &(u32, u32)| *a),
            ])
            .map(|((a, b), c)| (a, b, c));
        let of_second = forward
            .clone()
            .extend(&mut [
                &mut reverse_before.extend_using(|(b, _c): &(u32, u32)| *b),
                &mut reverse_now.extend_using(|(_b, c): &(u32, u32)| *c),
            ])
            .map(|((b, c), a)| (a, b, c));
        let of_third = forward
            .extend(&mut [
                &mut forward_before.extend_using(|(a, _c): &(u32, u32)| *a),
                &mut reverse_before.extend_using(|(_a, c): &(u32, u32)| *c),
            ])
            .map(|((a, c), b)| (a, b, c));
        of_first.concat(of_second).concat(of_third).leave(outer)
    })
}

/// The paths of which `first` are the first edges, as (last vertex, first vertex).
fn continued<'scope>(first: Edges<'scope>, edges: Edges<'scope>) -> Edges<'scope> {
    let forward = edges.arrange_by_key();
    first.clone().iterate(|scope, paths| {
        let forward = forward.enter(scope);
        let first = first.enter(scope);
        paths.arrange_by_key().join_core(forward, |_b, a, c| Some((*c, *a))).concat(first).distinct()
    })
}

/// Of each vertex the least that it is connected with, itself included: (vertex, least).
fn labels<'scope>(edges: Edges<'scope>) -> Edges<'scope> {
    let both = edges.clone().map(|(a, b)| (b, a)).concat(edges);
    let own = both.clone().map(|(a, _)| (a, a)).distinct();
    let both = both.arrange_by_key();
    own.clone().iterate(|scope, labels| {
        let both = both.enter(scope);
        let own = own.enter(scope);
        labels
            .arrange_by_key()
            .join_core(both, |_x, l, y| Some((*y, *l)))
            .concat(own)
            .reduce(|_y, labels, least| least.push((*labels[0].0, 1)))
    })
}
