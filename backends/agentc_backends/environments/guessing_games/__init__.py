"""`env.twenty_questions` and `env.guess_my_city`: find a secret by asking (ArCHer's games).

The names of objects and cities are ArCHer's lists; what is true of them stands in `data/`.
"""
