"""Nexmark: auctions and bids as streams, 24 queries kept up to date, beside DuckDB."""
