"""`auto`: what a body is kept by is chosen by what it costs, and changed when that changes."""
