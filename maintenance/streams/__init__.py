"""Circuits over streams: the algebra of DBSP (arXiv 2203.16684) as a library, to learn from and test by."""
