"""`report.html`: one static page over a whole experiment; opens without a network.

`collect.py` reads what the jobs left in the store, the `*_tables.py` say what is shown,
`drawings.py` draws, `page.py` puts it together.
"""
