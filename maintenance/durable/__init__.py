"""A workspace's folder: the journal of its changes, checkpoints, and who may write there."""
