"""What lowering a stage needs: a trial of its backend, what the trial left unread, resources,
software, secrets. The passes `choose_backends` and `lower` beside this folder use it.
"""
