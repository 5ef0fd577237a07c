"""`evaluate.agent`: rolls a policy out and measures reward and success, with intervals.

`intervals.py` is shared with `compare_paired`.
"""
