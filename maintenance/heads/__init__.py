"""Maintained heads: the rules behind them, their bodies, and how their rows come together."""
