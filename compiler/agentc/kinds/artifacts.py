"""Artifact types: what flows along the edges of an experiment, with file format and row schema.

The contracts (post-conditions) of each type are checked in the job by `agentc.runtime.contracts`.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentc.program.artifact_files import (
    CANDIDATES_FILE,
    EPISODES_FILE,
    PAIRS_FILE,
    PRIVILEGED_FILE,
    ROWS_FILE,
    SCORES_FILE,
    TRAJECTORIES_FILE,
    TREES_FILE,
    TURNS_FILE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactType:
    """A type of artifact. `rows` names the JSONL file in `data/` of row-like artifacts; `meant_for`
    says where one belongs that people are tempted to wire elsewhere. One that `extends` another is
    taken wherever that one is: its folder holds all that the other's does, and more."""

    name: str
    schema_version: int
    rows: str | None
    doc: str
    meant_for: str | None = None
    extends: ArtifactType | None = None

    def fits(self, *accepted: ArtifactType) -> bool:
        """Whether it is one of these types, or extends one."""
        return self in accepted or (self.extends is not None and self.extends.fits(*accepted))


CHECKPOINT = ArtifactType(
    name="Checkpoint",
    schema_version=1,
    rows=None,
    doc="A model in Hugging Face layout: config, safetensors weights, tokenizer, template.",
)
TRAJECTORIES = ArtifactType(
    name="Trajectories",
    schema_version=1,
    rows=TRAJECTORIES_FILE,
    doc="Episodes by an expert or by a policy: messages, reward, how they ended.",
)
SFT_DATASET = ArtifactType(
    name="SFTDataset",
    schema_version=1,
    rows=ROWS_FILE,
    doc="Conversations to imitate; a reply may be marked as not to be trained.",
)
SEARCH_TREES = ArtifactType(
    name="SearchTrees",
    schema_version=1,
    rows=TREES_FILE,
    doc="One search tree for each task, or for each prefix that trees begin behind; a node holds "
    "only what it adds to its parent.",
)
PREFERENCE_PAIRS = ArtifactType(
    name="PreferencePairs",
    schema_version=1,
    rows=PAIRS_FILE,
    doc="A prompt with a chosen and a rejected continuation, each of one or more turns.",
)
CANDIDATES = ArtifactType(
    name="Candidates",
    schema_version=1,
    rows=CANDIDATES_FILE,
    doc="Turns of episodes, each with several replies that a policy might have given, and what the "
    "policy made of their tokens.",
)
CANDIDATE_SCORES = ArtifactType(
    name="CandidateScores",
    schema_version=1,
    rows=SCORES_FILE,
    doc="The log-probabilities that a model gives the candidates of turns; of a job inside `rank`.",
)
REWARDED_TURNS = ArtifactType(
    name="RewardedTurns",
    schema_version=1,
    rows=TURNS_FILE,
    doc="The same turns with an advantage of each candidate.",
)
METRICS = ArtifactType(
    name="Metrics",
    schema_version=1,
    rows=None,
    doc="metrics.json: means with intervals, and the score of every task.",
)
COMPARISON = ArtifactType(
    name="Comparison",
    schema_version=1,
    rows=None,
    doc="comparison.json: several Metrics on the same tasks, or several revisions, with paired "
    "differences.",
)
VERDICTS = ArtifactType(
    name="Verdicts",
    schema_version=1,
    rows=None,
    doc="claims.json: each claim with the paper's interval, ours, and the verdict.",
)
REPORT = ArtifactType(
    name="Report",
    schema_version=1,
    rows=None,
    doc="index.html: one static page that opens without a network.",
)
PRIVILEGED_INFORMATION = ArtifactType(
    name="PrivilegedInformation",
    schema_version=1,
    rows=PRIVILEGED_FILE,
    doc="What is known of each task while training and never shown to anyone who acts, such as its "
    "solution; for critics only.",
    meant_for="hidden texts are for critics only, for no model that acts: name this stage as "
    "`privileged` of a critic",
)
CRITIC_CHECKPOINT = ArtifactType(
    name="CriticCheckpoint",
    schema_version=1,
    rows=None,
    doc="A model that scores what others did, in the layout of a Checkpoint, with "
    "agentc_critic.json; it is no Checkpoint, for it never acts.",
    meant_for="a critic scores what others did and never acts, for it may know what no agent may "
    "see: rank by it, and train the policy on what it preferred",
)
VISION_ENCODER = ArtifactType(
    name="VisionEncoder",
    schema_version=1,
    rows=None,
    doc="A model that makes features of pictures, in Hugging Face layout. It is no Checkpoint, for "
    "it has no tokenizer and says nothing.",
    meant_for="an encoder measures pictures: name this stage as the model of an environment's "
    "`scorer`",
)
TEXT_ENCODER = ArtifactType(
    name="TextEncoder",
    schema_version=1,
    rows=None,
    doc="A model that makes features of texts, in Hugging Face layout with its tokenizer. It is no "
    "Checkpoint, for it says nothing.",
    meant_for="an encoder of texts is under a critic: name this stage as `encoder` of a run of RL",
)
POLICY_RUN = ArtifactType(
    name="PolicyRun",
    schema_version=1,
    rows=EPISODES_FILE,
    doc="The policy at the end of a run of RL, as a Checkpoint, and beside it run.json, "
    "curve.jsonl, its episodes and its critic.",
    extends=CHECKPOINT,
)
FOLDER = ArtifactType(
    name="Folder",
    schema_version=1,
    rows=None,
    doc="Files of a script's own, which other scripts read.",
    meant_for="only scripts know what is in it: have the script make one of the other outputs",
)
TASK_SCORES = ArtifactType(
    name="TaskScores",
    schema_version=1,
    rows=SCORES_FILE,
    doc="A score for each attempt at a task, by a script or an external evaluator; of a job "
    "inside `script` or `benchmark`, which makes Metrics of them.",
)
SESSION = ArtifactType(
    name="Session",
    schema_version=1,
    rows=None,
    doc="Several jobs that shared one server; lists the objects they published.",
)

ARTIFACT_TYPES: tuple[ArtifactType, ...] = (
    CHECKPOINT,
    TRAJECTORIES,
    SFT_DATASET,
    SEARCH_TREES,
    PREFERENCE_PAIRS,
    CANDIDATES,
    CANDIDATE_SCORES,
    REWARDED_TURNS,
    METRICS,
    COMPARISON,
    VERDICTS,
    REPORT,
    PRIVILEGED_INFORMATION,
    CRITIC_CHECKPOINT,
    VISION_ENCODER,
    TEXT_ENCODER,
    POLICY_RUN,
    FOLDER,
    TASK_SCORES,
    SESSION,
)
