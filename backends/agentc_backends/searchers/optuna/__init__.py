"""Optuna as a searcher."""
