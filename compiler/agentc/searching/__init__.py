"""Searches over values of params: the study, the library that proposes, a trial's measure.

What runs a trial is `agentc run`, by the command line; what proposes is a program of its own.
"""
