"""`report.html`: one static page over a whole experiment; opens without a network.

`collect.py` reads what the jobs left in the store, `charts.py` draws, `page.py` puts it together.
"""
