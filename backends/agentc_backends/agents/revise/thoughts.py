"""What the agent thinks when it notices its mistake: the built-in pool of signals."""

THOUGHTS: tuple[str, ...] = (
    "My last action was a mistake. I will go back to what worked and choose differently.",
    "This is not getting me closer to the goal. Let me reconsider and take another way.",
    "I see now that I went wrong. I should correct this before I go on.",
    "What I just did does not fit the task. I need to change my plan.",
    "That did not help. I will drop this idea and try a better one.",
    "I have been on the wrong track. Let me think again about what the task asks for.",
    "Looking at the results so far, I made an error. I will put it right with my next action.",
    "This was a wrong turn. I had better return to my earlier plan and follow it with more care.",
    "I misjudged the situation. Another approach should bring me further.",
    "Something in my reasoning was off. I will stop here and continue in a different way.",
)
"""Our own sentences. The paper prints ten and the released code draws from ten others; both pools
can be given as `signal.thoughts`."""
