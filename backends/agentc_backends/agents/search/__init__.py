"""`search.mcts`: grows a tree of attempts at each task (Agent-R, arXiv 2501.11425, section 3.1).

`tree.py` is the search's arithmetic and where trees begin, `tree_search.py` its loop over a policy,
`navigator.py` brings the environment to a node; `job_search.py` is the program.
"""
