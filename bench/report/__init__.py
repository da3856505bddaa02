"""Measurements as figures, tables and plots, and the machine that they were made on."""
