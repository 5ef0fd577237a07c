"""Diagnostic codes 620 to 659 and 690 on: rules over several settings (`agentc.passes.checks`)."""

from agentc.diagnostics.codes.code import Code

CHECKS: tuple[Code, ...] = (
    Code(
        "AGC620",
        "fewer rows than a batch",
        "`limit` and `attempts` say how many rows can reach the trainer at most. With fewer than "
        "global_batch, every step is smaller than asked for, and an epoch is one step.",
    ),
    Code(
        "AGC621",
        "more training processes than GPUs",
        "Each training process takes a GPU of its own; two on one GPU end in an error after the "
        "job has waited in the queue.",
    ),
    Code(
        "AGC622",
        "GPUs that stay idle",
        "The stage reserves GPUs that nothing in it can use: fewer processes than GPUs, a server "
        "on CPUs or elsewhere, or no model at all.",
    ),
    Code(
        "AGC623",
        "fewer CPU cores than processes",
        "Training processes that share a core wait for each other at every step.",
    ),
    Code(
        "AGC624",
        "a server that needs more devices than it gets",
        "tensor_parallel x pipeline_parallel is the number of devices that the server spreads "
        "over; `placement.gpus` of the stage, or of a shared server, is the number that it gets.",
    ),
    Code(
        "AGC625",
        "attention heads that tensor_parallel does not divide",
        "Tensor parallelism gives each device the same number of attention heads.",
    ),
    Code(
        "AGC626",
        "less memory than any job needs",
        "`mem_mb` counts MiB. A number that suits GiB makes a cluster end the job at its start.",
    ),
    Code(
        "AGC627",
        "a server longer than its model",
        "The server would be told to hold more tokens than the model has positions, which it "
        "refuses when it starts.",
    ),
    Code(
        "AGC628",
        "no room for a prompt",
        "Prompt and reply share the server's window. Replies as long as the window leave nothing "
        "for the prompt.",
    ),
    Code(
        "AGC629",
        "replies longer than a training row",
        "A trajectory whose reply fills `max_length` cannot be a whole training row. `truncation` "
        "says what happens to it: the stage fails, or the row is lost or cut.",
    ),
    Code(
        "AGC630",
        "replies longer than those trained on",
        "The policy never saw a conversation of that length, and its replies have no reason to end "
        "well there.",
    ),
    Code(
        "AGC631",
        "a prompt that does not fit",
        "The prompt's own words, each at least a token, take all the room that the server's "
        "window or a training row has.",
    ),
    Code(
        "AGC632",
        "a stop text inside every reply",
        "Servers cut a reply at the first stop text and leave it out. A stop text that stands "
        "before the action in every reply of the prompt's format leaves no action at all.",
    ),
    Code(
        "AGC633",
        "the same rows twice",
        "Two inputs are one stage, or two stages that differ in nothing: episodes have seeds of "
        "their own, so the same settings give the same episodes.",
    ),
    Code(
        "AGC634",
        "training on a held-out split",
        "The split's name says that it is for evaluation. Once trained on, no number on it says "
        "how well a policy does on tasks that it has not seen.",
    ),
    Code(
        "AGC635",
        "a threshold that all or no episodes reach",
        "`success_at` lies outside the rewards of the environment. Success is then the same for "
        "every policy. Such slips come from rewards given in percent.",
    ),
    Code(
        "AGC637",
        "nothing to compare",
        "A comparison needs two evaluations: several under `of`, or one and a `baseline`.",
    ),
    Code(
        "AGC638",
        "evaluations under different protocols",
        "The evaluations are of the same tasks, but differ in decoding, turns, attempts or prompt "
        "as well as in their policies. A table does not show which of these made a difference.",
    ),
    Code(
        "AGC639",
        "another prompt than in training",
        "Every trajectory that the policy was trained on was collected under another prompt than "
        "the one it acts under here.",
    ),
    Code(
        "AGC640",
        "a warm-up that does not suit the schedule",
        "`warmup_ratio` is a share of all steps, no number of them; and a schedule that is named "
        "for its warm-up needs one.",
    ),
    Code(
        "AGC641",
        "a checkpoint that is never saved",
        "`save_every` lies beyond `max_steps`, so a run that is cut off has nothing to continue "
        "from.",
    ),
    Code(
        "AGC642",
        "a learning rate that destroys the model",
        "AdamW moves each weight by about the learning rate in every step. A lost minus sign in "
        "an exponent makes 2e5 of 2e-5.",
    ),
    Code(
        "AGC643",
        "adapters on layers that are not there",
        "`lora.targets` names a layer that the model lacks. PEFT is silent about it as long as "
        "it finds another one.",
    ),
    Code(
        "AGC644",
        "adapters that are not low-rank",
        "Adapters of a rank as large as the layer have more weights than the layer itself.",
    ),
    Code(
        "AGC645",
        "examples of the prompt are trained",
        "In-context examples stand at the beginning of every row, and by default their replies "
        "are trained like all others: the same few texts, once for every row.",
    ),
    Code(
        "AGC646",
        "a reward filter that keeps all or nothing",
        "`min_reward` lies outside the rewards of the environments that the rows come from, or "
        "rows come from a file and have none.",
    ),
    Code(
        "AGC647",
        "a beta of another size",
        "DPO's beta (arXiv 2305.18290, equation 7) scales the log-ratio of policy and reference. "
        "A large one stops learning at once, a tiny one lets the policy go anywhere.",
    ),
    Code(
        "AGC648",
        "a reference unlike the policy",
        "DPO compares log-probabilities of the same tokens under two models. With another "
        "tokenizer or chat format these are not the same tokens.",
    ),
    Code(
        "AGC649",
        "pairs from an earlier policy",
        "The episodes were explored by a policy that the trained one descends from. In a repeat "
        "this happens when the rollout does not name the carried policy, and the experiment "
        "silently turns off-policy.",
    ),
    Code(
        "AGC650",
        "a margin that no pair reaches",
        "Two trajectories make a pair when their rewards differ by more than `margin`; the "
        "environment's rewards never do.",
    ),
    Code(
        "AGC651",
        "expert and exploration share no task",
        "Pairs are made of trajectories of the same task. Different splits or environments have "
        "none in common.",
    ),
    Code(
        "AGC652",
        "explored tasks without an expert",
        "The expert's `limit` is smaller than the rollout's, so many episodes are played and "
        "then paired with nothing.",
    ),
    Code(
        "AGC653",
        "self-play without a second episode",
        "Explored trajectories are paired with each other only when they began with the same "
        "prompt; here each attempt gets a prompt of its own.",
    ),
    Code(
        "AGC654",
        "another chat format than the model's",
        "A model trained with one format reads another as unfamiliar text: it answers worse, and "
        "nothing fails. The name of the model speaks for another format than the spec gives.",
    ),
    Code(
        "AGC655",
        "epochs beside a number of steps",
        "`max_steps` alone says when a training ends; `epochs` beside it is read by people, but by "
        "no trainer.",
    ),
    Code(
        "AGC656",
        "a nucleus for greedy replies",
        "At temperature 0 nothing is sampled, so `top_p` is without effect. The authors of ETO "
        "published a temperature that a top_p of 0 undid in the same way.",
    ),
    Code(
        "AGC657",
        "more values than rounds",
        "`per_round:` gives values for rounds that the repeat does not have. Where the number of "
        "rounds is an expression, spare values are for other choices of it, and nothing is said.",
    ),
    Code(
        "AGC658",
        "rounds that are all the same",
        "Nothing is carried from one round to the next and nothing depends on the round, so every "
        "round gives the same result. Most often `carry` is missing, or its name is not used.",
    ),
    Code(
        "AGC690",
        "an alpha that no trajectory passes",
        "A trajectory is good when its reward is above `alpha` (or at least alpha). Agent-R's "
        "third iteration states alpha = 1 under a strict comparison: where rewards end at 1, that "
        "keeps nothing.",
    ),
    Code(
        "AGC691",
        "a beta that no pair passes",
        "`beta` tells the bad trajectory of a pair from the good one: by the gap between their "
        "rewards, or as a ceiling of the bad one. The environment's rewards never are that far "
        "apart.",
    ),
    Code(
        "AGC692",
        "an alpha that sorts nothing out",
        "Bars are in the environment's own range of rewards. The published ones are for rewards "
        "from 0 to 1; where rewards go up to 100 they let nearly everything pass.",
    ),
    Code(
        "AGC693",
        "marked replies, and a training that does not say whether it heeds them",
        "A revision begins with replies that were mistakes, marked `loss: false`. By default a "
        "trainer imitates every reply, mistakes included. The paper leaves them out of the loss, "
        "its released code trains them: so it has to be said.",
    ),
    Code(
        "AGC694",
        "trees of another environment or actor",
        "A revise stage reads the rewards of trees and replays their actions in its environment, "
        "and its policy judges what the searching policy did. Both are those of the search as a "
        "rule.",
    ),
    Code(
        "AGC698",
        "nodes that nothing spreads over",
        "Several nodes are for trainers and servers that start a process on each and let them find "
        "each other. Anything else would run on the first node and hold the others idle.",
    ),
    Code(
        "AGC699",
        "nodes that do not share equally",
        "`processes`, `placement.gpus` and a server's tensor_parallel x pipeline_parallel count "
        "all nodes together. Each node starts the same number of processes, and each process has "
        "one GPU or none.",
    ),
)
