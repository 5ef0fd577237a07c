"""`search.mcts`: grows a tree of attempts at each task (Agent-R, arXiv 2501.11425, section 3.1).

`tree.py` is the search's arithmetic, `grow.py` its loop over a policy, `reach.py` brings the
environment to a node, `root.py` says where trees begin; `job_search.py` is the program.
"""
