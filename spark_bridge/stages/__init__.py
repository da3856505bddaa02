"""The chain of stages that a head is made by, and what a worker does in each."""
