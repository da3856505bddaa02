//! Differential dataflow keeps one of seven views up to date, on one worker.
//!
//!     differential-peer VIEW FILE
//!
//! FILE holds little-endian 64-bit integers:
//!
//!     n, then n edges a b
//!     transactions in flight, most milliseconds of processor time, number of transactions
//!     of each transaction: n, then n changes a b weight
//!
//! A line on standard output per event:
//!
//!     loaded CPU WALL WEIGHT CHECKSUM            seconds; the view of the edges
//!     commit CPU WALL CHANGES WEIGHT CHECKSUM    seconds; the view after it
//!     end PEAK                                   bytes
//!
//! Invariants
//!
//! 1. WEIGHT is the number of rows of the view, CHECKSUM the sum of their hashes modulo 2^64; both
//!    are sums over all changes so far, so each commit adds its own.
//! 2. A commit is over when nothing of it is left to do.  Where several transactions are in flight a
//!    line stands for all of them.
//! 3. Nothing is read or parsed while time is taken.

mod changes;
mod clock;
mod hash;
mod views;
mod words;

use changes::{Changes, File};
use clock::Clock;
use views::Tally;

use differential_dataflow::input::InputSession;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

type Input = InputSession<u64, (u32, u32), isize>;

/// One running dataflow: its input, how far it is, and what came out of it.
struct Running<'a> {
    worker: &'a mut Worker,
    input: Input,
    probe: Handle<u64>,
    tally: Tally,
}

impl Running<'_> {
    /// Hand over changes that belong to one moment, and go on to the next.
    fn hand_over(&mut self, changes: &Changes) {
        for &(edge, weight) in changes {
            self.input.update(edge, weight);
        }
        self.input.advance_to(self.input.time() + 1);
    }

    /// Work until nothing that was handed over is left to do.
    fn finish(&mut self) {
        self.input.flush();
        while self.probe.less_than(self.input.time()) {
            self.worker.step();
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, view, file] = arguments.as_slice() else {
        eprintln!("usage: differential-peer {} FILE", views::NAMES.join("|"));
        std::process::exit(2);
    };
    if !views::NAMES.contains(&view.as_str()) {
        eprintln!("no view is called {view:?}; choose from {}", views::NAMES.join(", "));
        std::process::exit(2);
    }
    let file = File::read(file).unwrap_or_else(|error| {
        eprintln!("{file}: {error}");
        std::process::exit(1);
    });
    let view = view.clone();
    timely::execute_directly(move |worker| keep(worker, &view, &file));
}

fn keep(worker: &mut Worker, view: &str, file: &File) {
    let tally = Tally::default();
    let probe = Handle::new();
    let mut input = Input::new();
    worker.dataflow(|scope| {
        let edges = input.to_collection(scope);
        views::build(view, edges, &tally, &probe);
    });
    let mut running = Running { worker, input, probe, tally };

    let clock = Clock::start();
    running.hand_over(&file.edges);
    running.finish();
    println!("loaded {} {}", clock.taken(), running.tally.sums());

    let began = Clock::start();
    for group in file.transactions.chunks(file.in_flight) {
        let before = running.tally.changes();
        let clock = Clock::start();
        for transaction in group {
            running.hand_over(transaction);
        }
        running.finish();
        let taken = clock.taken();
        println!("commit {taken} {} {}", running.tally.changes() - before, running.tally.sums());
        if began.processor_seconds() > file.most_seconds {
            break;
        }
    }
    println!("end {}", clock::peak_bytes());
}
