"""Event time: streams, whose rows come late, or too late, and leave by a clock that they set."""
