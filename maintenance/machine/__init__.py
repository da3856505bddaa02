"""The commit machine: a transaction of a few rows by one kernel, which reads a list of ops."""
