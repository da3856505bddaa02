"""The engines that are measured, each behind one protocol."""
