"""The command ``lftj maintain``: change files in, changes of heads out."""
