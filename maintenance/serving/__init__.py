"""A workspace behind Arrow Flight: ``lftj serve`` (docs/flight.md)."""
