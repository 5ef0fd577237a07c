"""Trackio as a tracker."""
