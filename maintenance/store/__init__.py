"""Files that survive: steps on the disk, files that are there whole or not at all, places near and far."""
