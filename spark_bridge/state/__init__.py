"""The files that a maintained join keeps, and who may write them."""
