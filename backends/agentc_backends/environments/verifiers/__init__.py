"""`env.verifiers`: tasks of a taskset of the package `verifiers`, which stages of the backend
`verifiers` play (docs/external.md)."""
