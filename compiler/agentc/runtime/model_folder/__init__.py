"""Model directories in Hugging Face layout: the rules that `agentc check` and the jobs share.

Standard library only: `agentc check` applies them to local folders, model jobs to whatever they
take, downloads included, so that neither accepts what the other refuses.
"""
