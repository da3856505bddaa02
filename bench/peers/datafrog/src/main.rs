//! Datafrog evaluates one of four recursive programs from nothing, as often as it is asked.
//!
//!     datafrog-peer PROGRAM FILE
//!
//! FILE holds little-endian 64-bit integers, of each relation of the program in turn (`programs::NAMES`):
//!
//!     n, then n rows
//!
//! A line on standard input asks, a line on standard output answers:
//!
//!     (at first)    loaded
//!     count         count ROWS CPU WALL PEAK     the program evaluated; seconds, and bytes
//!     checksum      checksum SUM                 of the rows that were counted last
//!
//! Invariants
//!
//! 1. SUM is the sum of the rows' hashes modulo 2^64.
//! 2. Nothing is read, parsed or given back while time is taken.  Taken is the time from rows in memory,
//!    in no order, to the sorted rows of the result.
//! 3. The program ends with its standard input, whatever it is at.

#[path = "../../differential/src/clock.rs"]
mod clock;
#[path = "../../differential/src/hash.rs"]
mod hash;
mod programs;
#[path = "../../differential/src/words.rs"]
mod words;

use std::io::BufRead;
use std::sync::mpsc;
use std::thread;

use clock::Clock;
use programs::{Answer, Program};
use words::Words;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, name, file] = arguments.as_slice() else {
        stop(&format!("usage: datafrog-peer {} FILE", programs::NAMES.join("|")), 2);
    };
    if !programs::NAMES.contains(&name.as_str()) {
        stop(&format!("no program is called {name:?}; choose from {}", programs::NAMES.join(", ")), 2);
    }
    let bytes = std::fs::read(file).unwrap_or_else(|error| stop(&format!("{file}: {error}"), 1));
    let program =
        Program::read(name, &mut Words::of(&bytes)).unwrap_or_else(|error| stop(&format!("{file}: {error}"), 1));
    drop(bytes);
    println!("loaded");
    let mut answer: Option<Answer> = None;
    let (sender, questions) = mpsc::channel();
    thread::spawn(move || {
        let lines = std::io::stdin().lock().lines().map_while(Result::ok);
        lines.for_each(|line| sender.send(line).unwrap_or(()));
        std::process::exit(0);
    });
    for question in questions {
        match question.as_str() {
            "count" => {
                drop(answer.take());
                let clock = Clock::start();
                let found = program.evaluated();
                let taken = clock.taken();
                println!("count {} {taken} {}", found.len(), clock::peak_bytes());
                answer = Some(found);
            }
            "checksum" => println!("checksum {}", answer.as_ref().map_or(0, Answer::checksum)),
            _ => stop(&format!("{question:?} is no question"), 2),
        }
    }
}

fn stop(why: &str, status: i32) -> ! {
    eprintln!("{why}");
    std::process::exit(status)
}
