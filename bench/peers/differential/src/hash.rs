//! The hash of a row, which `bench.digest` computes too.

pub fn hash(row: &[i64]) -> u64 {
    row.iter().fold(0, |found: u64, &value| {
        let mixed = (found ^ value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 32)
    })
}
