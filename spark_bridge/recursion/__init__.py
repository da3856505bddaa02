"""Heads that depend on themselves, and that cells can't share: round by round."""
