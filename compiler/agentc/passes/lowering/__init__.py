"""What lowering a stage needs: a trial of its backend, what the trial ignored, resources,
software, secrets. The passes `choose_backends` and `lower` beside this folder use it.
"""
