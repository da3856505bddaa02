"""``python -m lftj``: the console script ``lftj``, with all commands, which stand in the layers above."""

from importlib import import_module

if __name__ == "__main__":
    import_module("maintenance.shell.shell").main()
