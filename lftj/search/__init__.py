"""The two search machines over tries (ENGINE.md section 3): ``base`` and ``regions``."""
