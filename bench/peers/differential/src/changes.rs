//! `File`: the edges to begin with and the transactions that follow, read whole.

use std::io::{Error, ErrorKind, Result};

use crate::words::Words;

/// Changes of edges, each with its weight.
pub type Changes = Vec<((u32, u32), isize)>;

pub struct File {
    pub edges: Changes,
    /// Transactions handed over before the work on them is waited for; at least 1.
    pub in_flight: usize,
    /// No further transaction begins after so much processor time.
    pub most_seconds: f64,
    pub transactions: Vec<Changes>,
}

impl File {
    pub fn read(path: &str) -> Result<Self> {
        let bytes = std::fs::read(path)?;
        let mut words = Words::of(&bytes);
        let edges = changes(&mut words, false)?;
        let in_flight = words.count()?.max(1);
        let most_seconds = words.count()? as f64 / 1e3;
        let n_transactions = words.count()?;
        let transactions =
            (0..n_transactions).map(|_| changes(&mut words, true)).collect::<Result<_>>()?;
        if !words.is_over() {
            return Err(Error::new(ErrorKind::InvalidData, "there is something after the last transaction"));
        }
        Ok(File { edges, in_flight, most_seconds, transactions })
    }
}

fn changes(words: &mut Words, weighted: bool) -> Result<Changes> {
    (0..words.count()?)
        .map(|_| {
            let edge = (words.checked()?, words.checked()?);
            let weight = if weighted { words.word()? as isize } else { 1 };
            Ok((edge, weight))
        })
        .collect()
}
