//! `Words`: a file of little-endian 64-bit integers, one after the other.

use std::io::{Error, ErrorKind, Result};

pub struct Words<'a> {
    left: std::slice::Iter<'a, [u8; 8]>,
    /// What is too short for one more.
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        Words { left: words.iter(), rest }
    }

    pub fn word(&mut self) -> Result<i64> {
        let ended = || Error::new(ErrorKind::UnexpectedEof, "the file ends too early");
        self.left.next().map(|bytes| i64::from_le_bytes(*bytes)).ok_or_else(ended)
    }

    /// The next one as a narrower type.
    pub fn checked<T: TryFrom<i64>>(&mut self) -> Result<T> {
        let word = self.word()?;
        T::try_from(word).map_err(|_| Error::new(ErrorKind::InvalidData, format!("{word} is out of range")))
    }

    pub fn count(&mut self) -> Result<usize> {
        self.checked()
    }

    pub fn is_over(&self) -> bool {
        self.left.len() == 0 && self.rest.is_empty()
    }
}
