"""env.mcp: any server of the Model Context Protocol as an environment (see README.md).

`settings.py` and `backend.py` declare, `tasks.py` says what a task is, `job_serve.py` is the
program; `actions.py` and `telling.py` translate between words and the protocol, and
`connection.py` alone imports the SDK.
"""
