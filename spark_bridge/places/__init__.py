"""Where a maintained join's state lives, and steps: on the executors, or in the driver."""
