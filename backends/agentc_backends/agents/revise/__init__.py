"""`revise.splice`: from search trees to conversations that mend a mistake. See README.md.

`trees.py` reads trees, `pairs.py` pairs their leaves, `judge.py` finds the first error, `splice.py`
makes rows, `replay.py` tries them out, `collect.py` puts these together; `job_revise.py` runs it.
"""
