"""Searches below regions, from any binding, with sensitivity records, and the terms of delta rules."""
