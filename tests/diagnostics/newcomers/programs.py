"""Slips in settings of servers and of programs that are not agentc's: what they change in
`programs.yaml`, as in `slips.py`. Each was written before any output was seen.

`FILES` lie beside the spec.
"""

# ruff: noqa: E501 - a table of one line each
from __future__ import annotations

from tests.diagnostics.newcomers.slips import Slip

FILES = {
    "walk.py": "print(1)\n",
    "agents/crafter.py": "import sys\n",
    "single/agent.py": "import sys\n",
    "agents/broken.py": "def act(:\n",
    "tasks/sums.yaml": "task: sums\noutput_type: generate_until\n",
}


def _slip(
    name: str, cause: str, old: str, new: str, *words: str, most: int = 1, line: str | None = None
) -> Slip:
    return Slip(name, cause, ((old, new),), words, most, line)


_COMMAND = "command: [python, walk.py], sources: [walk.py]"
_RUN = "run: agents/crafter.py, params: {style: short}"
_OPTIONS = "    options: {command: [python, walk.py], sources: [walk.py], episode_s: 60}\n"
_LAUNCH = "    launch: {command: [mcp-server-time, --local-timezone, UTC]}\n"
_VLLM = "gpu_memory_utilization: 0.9, tool_parser: none"
_ONLINE = "kind: online_rl, algorithm: grpo"

PROGRAMS = (
    # An agent's program, and its files.
    _slip("command_as_text", "a command as one text", _COMMAND, "command: python walk.py, sources: [walk.py]", "command", "[python, walk.py]"),
    _slip("command_with_quotes", "a command as a shell has it", _COMMAND, "command: \"python 'my walk.py' -x\", sources: [walk.py]", '[python, "my walk.py", -x]'),
    _slip("command_without_program", "the first word is empty", "[python, walk.py]", "['', walk.py]", "first word", "program"),
    _slip("command_empty", "a command of no words", _COMMAND, "command: []", "needs a program", "options: {command:", line="  explore:"),
    _slip("run_and_command", "both of run and command", _COMMAND, "run: walk.py, command: [python, walk.py]", "run", "remove one"),
    _slip("file_not_among_sources", "the command names a file that is no source", _COMMAND, "command: [python, walk.py]", "walk.py", "sources: [walk.py]"),
    _slip("source_misspelt", "a source that does not exist", "sources: [walk.py]", "sources: [wlak.py]", "wlak.py", "did you mean `walk.py`?"),
    _slip("folder_misspelt", "a folder that does not exist", _RUN, "run: agnets/crafter.py", "did you mean `agents/crafter.py`?"),
    _slip("file_in_a_folder", "a file of a folder by its name alone", _RUN, "run: crafter.py", "did you mean `agents/crafter.py`?"),
    _slip("run_is_a_folder", "a folder where a file is wanted", _RUN, "run: agents", "agents: it is a folder", "each file"),
    _slip("run_is_a_folder_of_one", "a folder with one file", _RUN, "run: single", "single: it is a folder", "did you mean `single/agent.py`?"),
    _slip("source_is_a_folder", "the spec's own folder as a source", "sources: [walk.py]", "sources: [.]", ".: it is a folder", "each file"),
    _slip("source_outside", "a source outside of the spec's folder", "sources: [walk.py]", "sources: [../walk.py]", "outside", "--allow-path"),
    _slip("run_is_no_python", "a program with a syntax error", _RUN, "run: agents/broken.py", "agents/broken.py line 1"),
    _slip("params_as_words", "params as a list of words", "params: {style: short}", "params: [style=short]", "params", "{style: short}"),
    _slip("episode_in_minutes", "a unit behind seconds", "episode_s: 60", "episode_s: 10 min", "episode_s", "write `600`"),
    _slip("options_beside", "options of a backend as keys of the stage", _OPTIONS, "    command: [python, walk.py]\n", "unknown key `command`", "`options: {command: ...}`"),
    _slip("agent_on_a_remote_server", "rows of an endpoint that tells no tokens", "    model: sft\n    split: train\n    options", "    model: sft\n    server: hosted\n    split: train\n    options", "tokens", "transformers"),
    # Model servers.
    _slip("memory_as_percentage", "a share as a percentage", "gpu_memory_utilization: 0.9", "gpu_memory_utilization: 90", "gpu_memory_utilization", "0.9"),
    _slip("server_port", "the address of a server that agentc starts", _VLLM, "port: 8000", "port", "leave it out"),
    _slip("tool_parser_unknown", "a parser that vLLM has by another name", "tool_parser: none", "tool_parser: llama3", "llama3_json"),
    _slip("url_without_scheme", "an address without its scheme", "https://api.example.org/v1", "api.example.org/v1", "an address that starts with", "https://api.example.org/v1"),
    _slip("key_in_the_clear", "a key in the spec", "{secret: EXAMPLE_API_KEY}", "sk-abcdefgh1234", "api_key: {secret: NAME}"),
    _slip("model_name_empty", "a model without a name", "model: some-model", "model: ''", "`model` cannot be empty"),
    _slip("server_backend_remote", "a remote server by that word", "backend: openai", "backend: remote", "did you mean `openai`?"),
    _slip("rules_as_mapping", "rules as a mapping", '      - {match: "goal", turn: 0, reply: "Action: look"}\n      - {reply: ["Action: wait", "Action: look"]}', '      goal: "Action: look"', "a list of mappings", "`- `"),
    _slip("rule_with_response", "a key of a rule by another word", 'turn: 0, reply:', 'turn: 0, response:', "response", "did you mean `reply`?"),
    _slip("rule_is_no_expression", "a bracket that is never closed", 'match: "goal"', 'match: "goal("', "`match` of rule 0", r"goal\("),
    # An MCP server.
    _slip("launch_as_text", "the command of a server as one text", "[mcp-server-time, --local-timezone, UTC]", "mcp-server-time --local-timezone UTC", "[mcp-server-time, --local-timezone, UTC]"),
    _slip("launch_with_args", "args, as MCP's clients have them", "UTC]}\n", "UTC], args: [--verbose]}\n", "args", "command: [program, --option, value]"),
    _slip("launch_with_env", "env, as MCP's clients have it", "UTC]}\n", "UTC], env: {TZ: UTC}}\n", "env", "variables: {NAME: value}"),
    _slip("launch_and_url", "both of an address and a command", _LAUNCH, _LAUNCH + '    url: "http://127.0.0.1:8000/mcp"\n', "`url` names a server", "`url` or `launch`"),
    _slip("neither_launch_nor_url", "no server", _LAUNCH, "", "neither", "launch", line="  clock:"),
    _slip("launch_folder_empty", "a folder without a name", "UTC]}\n", "UTC], cwd: ''}\n", "`launch.cwd` cannot be empty", "leave it out"),
    _slip("answer_and_pattern", "two successes of one task", 'answer: "01:30"}', 'answer: "01:30", pattern: "01"}', "row 0", "remove one", line="    tasks:"),
    _slip("no_success", "a task without a success", ', answer: "01:30"}', "}", "row 0", "`answer` or a `pattern`", line="    tasks:"),
    _slip("tool_out_of_reach", "a result of a tool that agents cannot call", "tool: convert_time, pattern", "tool: get_time, pattern", "get_time", "`tools`", line="    tools: [convert_time]"),
    # Environments, benchmarks, methods.
    _slip("gymnasium_id_empty", "an environment without a name", "id: FrozenLake-v1", "id: ''", "`id` cannot be empty"),
    _slip("rewards_upside_down", "the lowest reward above the highest", "{highest: 1.0}", "{lowest: 30, highest: 20}", "`lowest` is 30", "`highest` is 20"),
    _slip("success_beyond_scores", "a threshold that no sample reaches", "success_at: 1\n", "success_at: 2\n", "success_at", "0 to 1"),
    _slip("task_file_misspelt", "a file of tasks that does not exist", "tasks/sums.yaml", "tasks/sum.yaml", "did you mean `tasks/sums.yaml`?"),
    _slip("search_over_nothing", "a search over no param", "stages:\n", "search: {over: {}, stage: walks}\nstages:\n", "`search.over` cannot be empty", "at least 1 key"),
    _slip("grpo_as_backend", "a method as a backend", _ONLINE, "kind: online_rl, backend: grpo", "GRPO is", "algorithm: grpo"),
    _slip("grpo_for_sft", "a method as a backend of another kind", "sft: {kind: sft,", "sft: {kind: sft, backend: grpo,", "GRPO is", "algorithm: grpo"),
    _slip("ipo_for_online_rl", "a loss as a backend of another kind", _ONLINE, "kind: online_rl, backend: ipo", "IPO is `kind: dpo`"),
    _slip("dpo_on_rollouts", "episodes where pairs are wanted", "dpo: {kind: dpo, model: sft, data: prefs", "dpo: {kind: dpo, model: sft, data: visits", "PreferencePairs", "`pair` (which reads `visits`", "between"),
    _slip("rank_of_a_rollout", "episodes where candidates are wanted", "candidates: turns", "candidates: visits", "Candidates", "`sample` (which reads `visits`", "between"),
    _slip("rank_by_no_critic", "a policy where a critic is wanted", "critic: critic", "critic: sft", "CriticCheckpoint", "`critic`"),
)  # fmt: skip
