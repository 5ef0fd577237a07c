"""Cross-field rules by topic: what no single field can state.

`RULES` is the whole list; `check_settings` runs them, and the generated page
The site shows them (`agentc.reference`). A rule is added to the tuple of its topic.
"""

from agentc.passes.checks.batches import BATCHES
from agentc.passes.checks.critics import CHOICES, CRITICS, RERANKING
from agentc.passes.checks.episodes import EPISODES, PROMPT_MEMORY
from agentc.passes.checks.evaluations import EVALUATIONS
from agentc.passes.checks.lengths import LENGTHS
from agentc.passes.checks.machines import MACHINES
from agentc.passes.checks.measures import MEASURES
from agentc.passes.checks.memory import MEMORY
from agentc.passes.checks.model_servers import MODEL_SERVERS
from agentc.passes.checks.models import ALIKE, FUNCTIONS, MODELS, PLAIN_TEXT
from agentc.passes.checks.preferences import PAIR_REWARDS, PREFERENCES
from agentc.passes.checks.revisions import REVISIONS
from agentc.passes.checks.rounds import REINFORCEMENT, ROUNDS
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.scripts import SCRIPTS
from agentc.passes.checks.searches import CONTINUATIONS, SEARCHES
from agentc.passes.checks.servers import EXTERNAL_SERVERS, SERVER_BATCHES
from agentc.passes.checks.training import TRAINING
from agentc.passes.checks.turns import TURNS

__all__ = ["RULES", "TOPICS", "Finding", "Rule"]

TOPICS: tuple[tuple[str, tuple[Rule, ...]], ...] = (
    ("Batches and rows", BATCHES),
    ("Processes, GPUs, memory", (*MACHINES, *MODEL_SERVERS)),
    ("What fits into a GPU", MEMORY),
    ("Tokens", (*LENGTHS, *SERVER_BATCHES)),
    ("Episodes", (*EPISODES, *EXTERNAL_SERVERS)),
    ("Evaluations and comparisons", (*MEASURES, *EVALUATIONS)),
    ("Training", TRAINING),
    ("Pairs and preferences", (*PREFERENCES, *ALIKE, *PAIR_REWARDS)),
    ("Critics", CRITICS),
    ("Candidates of turns", (*TURNS, *CHOICES)),
    ("Prefixes", CONTINUATIONS),
    ("Memory of prompts", PROMPT_MEMORY),
    ("Online RL", REINFORCEMENT),
    ("Reranked replies", RERANKING),
    ("Searches", SEARCHES),
    ("Revisions and marks", REVISIONS),
    ("Models", (*MODELS, *PLAIN_TEXT, *FUNCTIONS)),
    ("Scripts", SCRIPTS),
    ("Rounds", ROUNDS),
)

RULES: tuple[Rule, ...] = tuple(rule for _, rules in TOPICS for rule in rules)
