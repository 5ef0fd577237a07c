"""Detective, a Z-machine game, as ArCHer plays it; see README.md.

The game's interpreter (Frotz, by way of jericho) is GPL-2.0-or-later: it runs in processes of its
own (`interpreter.py`), in a software stack of its own, and nothing else imports it.
"""
