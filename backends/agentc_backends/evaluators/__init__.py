"""External evaluators, unmodified, over a stage's model server: `kind: benchmark`.

`common` has what they share: how a stage becomes two jobs, how their program is run, and metrics of
the scores. Each other folder is one evaluator, and knows nothing of the rest.
"""
