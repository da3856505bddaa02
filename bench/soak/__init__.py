"""Long runs of random changes: heads stay right, what is held stays as large, and no commit pays for all."""
