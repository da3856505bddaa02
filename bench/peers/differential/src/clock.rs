//! Processor time, time that passed, and peak memory, of this process.

use std::time::Instant;

pub struct Clock {
    processor: f64,
    passed: Instant,
}

impl Clock {
    pub fn start() -> Self {
        Clock { processor: processor_seconds(), passed: Instant::now() }
    }

    /// Seconds of processor time since the start.
    pub fn processor_seconds(&self) -> f64 {
        processor_seconds() - self.processor
    }

    /// Processor time and passed time since the start, in seconds, as the lines of events have them.
    pub fn taken(&self) -> String {
        format!("{:.9} {:.9}", self.processor_seconds(), self.passed.elapsed().as_secs_f64())
    }
}

fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for one timespec, and is all that the call writes to.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0, "this system has no clock of processor time");
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The largest resident set so far; 0 where the system does not tell.
pub fn peak_bytes() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        })
        .map_or(0, |kibibytes| kibibytes * 1024)
}
