"""Searches over values of params: the study, the library that proposes, a trial's measure; rounds
that stop: the rule, what is sure to be run.

What runs a trial or a round is `agentc run`, by the command line; what proposes is a program of its
own.
"""
