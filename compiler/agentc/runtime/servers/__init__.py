"""Servers that a job leases: started, probed, shared between jobs, on one or
several nodes, ended.
"""
