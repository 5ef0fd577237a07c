"""`revise.splice`: from search trees to conversations that correct a mistake. See README.md.

`pairs.py` reads trees and pairs their leaves, `judge.py` finds the first error, `splice.py` makes
rows and tries them out, `collect.py` puts these together; `job_revise.py` runs it.
"""
