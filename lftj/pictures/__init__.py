"""Drawings as SVG text, for notebooks, files and pages: no other package is needed to make them."""
