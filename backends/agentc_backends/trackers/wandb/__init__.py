"""Weights & Biases as a tracker."""
