"""The region machine: step by step over index versions, from any binding, with sensitivity records."""
