"""The commands ``lftj query`` and ``lftj explain``."""
