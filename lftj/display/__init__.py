"""What results and databases look like at a prompt and in a notebook: aligned text, and HTML tables."""
