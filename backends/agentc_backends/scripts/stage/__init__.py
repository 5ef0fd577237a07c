"""`kind: script`: a Python file or a command of the user's own."""
