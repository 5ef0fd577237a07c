"""MLflow as a tracker."""
