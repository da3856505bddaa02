//! `File`: the edges to begin with and the transactions that follow, read whole.

use std::io::{Error, ErrorKind, Result};

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
        let (words, rest) = bytes.as_chunks::<8>();
        let mut words = Words(words.iter());
        let edges = words.changes(false)?;
        let in_flight = words.count()?.max(1);
        let most_seconds = words.count()? as f64 / 1e3;
        let n_transactions = words.count()?;
        let transactions = (0..n_transactions).map(|_| words.changes(true)).collect::<Result<_>>()?;
        match words.0.next() {
            None if rest.is_empty() => Ok(File { edges, in_flight, most_seconds, transactions }),
            _ => Err(Error::new(ErrorKind::InvalidData, "there is something after the last transaction")),
        }
    }
}

struct Words<'a>(std::slice::Iter<'a, [u8; 8]>);

impl Words<'_> {
    fn word(&mut self) -> Result<i64> {
        let ended = || Error::new(ErrorKind::UnexpectedEof, "ends before the last transaction does");
        self.0.next().map(|bytes| i64::from_le_bytes(*bytes)).ok_or_else(ended)
    }

    fn checked<T: TryFrom<i64>>(&mut self) -> Result<T> {
        let word = self.word()?;
        T::try_from(word).map_err(|_| Error::new(ErrorKind::InvalidData, format!("{word} is out of range")))
    }

    fn count(&mut self) -> Result<usize> {
        self.checked()
    }

    fn changes(&mut self, weighted: bool) -> Result<Changes> {
        (0..self.count()?)
            .map(|_| {
                let edge = (self.checked()?, self.checked()?);
                let weight = if weighted { self.word()? as isize } else { 1 };
                Ok((edge, weight))
            })
            .collect()
    }
}
