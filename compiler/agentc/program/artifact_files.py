"""Names of the files that artifacts and staging directories hold, once for everybody.

The programs that write them, those that read them, the contracts that check them and the compiler
all import them from here. What is in the files is in docs/design/contracts.md, section 4.
"""

# Rows, one JSON object a line.
TRAJECTORIES_FILE = "trajectories.jsonl"
ROWS_FILE = "rows.jsonl"
PAIRS_FILE = "pairs.jsonl"
TREES_FILE = "trees.jsonl"
PRIVILEGED_FILE = "privileged.jsonl"
CANDIDATES_FILE = "candidates.jsonl"
SCORES_FILE = "scores.jsonl"
TURNS_FILE = "turns.jsonl"

# A run of online RL, next to the files of its checkpoint.
RUN_FILE = "run.json"
CURVE_FILE = "curve.jsonl"
EPISODES_FILE = "episodes.jsonl"
EVALUATIONS_FILE = "evaluations.jsonl"

# Results.
METRICS_FILE = "metrics.json"
COMPARISON_FILE = "comparison.json"
VERDICTS_FILE = "claims.json"
REPORT_PAGE = "index.html"

# What agentc adds to a model directory in Hugging Face layout.
CHAT_FILE = "agentc_chat.json"
CRITIC_FILE = "agentc_critic.json"
VALUE_HEAD_FILE = "value_head.safetensors"
SCORED_FILE = "agentc_log_probs.json"

# Next to an artifact while its job runs, and among its logs.
FACTS_FILE = "facts.json"
PROGRESS_FILE = "progress.json"
STEP_LOG_FILE = "steps.jsonl"
