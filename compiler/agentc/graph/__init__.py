"""`agentc graph`: the stages of a plan as a picture.

`stages` makes the graph of a review, `layers` and `layout` place it, `text`, `dot`, `mermaid`,
`svg` and `page` write it down. Nothing here knows a store or a spec.
"""
