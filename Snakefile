# Runs a compiled plan: one rule for each stage kind of it, and `session` for jobs that share one
# start of a server. Generic: everything comes from plan.json, which `agentc compile` writes.
#
#   snakemake -c2                                    in a compiled directory
#   snakemake -c2 --config plan=DIR/plan.json store=DIR/store
#
# The store is content-addressed: a manifest that exists is a result that is whole and never
# changes. So only missing manifests are made (inputs are `ancient`), and `update` keeps Snakemake
# from deleting a manifest that somebody else published while this run was waiting for it. The
# flags that belong to this are in `profiles/default/config.yaml` beside a compiled plan.
import json
import os
import sys

if os.path.exists(os.path.join(workflow.basedir, "config.yaml")):

    configfile: os.path.join(workflow.basedir, "config.yaml")


PLAN = os.path.abspath(config.get("plan") or os.path.join(workflow.basedir, "plan.json"))
STORE = os.path.abspath(config.get("store") or os.environ.get("AGENTC_STORE") or ".agentc/store")

if config.get("spec_directory"):
    os.environ.setdefault(
        "AGENTC_SPEC_DIR",
        os.path.normpath(os.path.join(workflow.basedir, config["spec_directory"])),
    )

# A bundle brings the runtime and the job programs along, for machines without agentc.
PACKAGES = os.path.join(workflow.basedir, "packages")
if os.path.isdir(os.path.join(PACKAGES, "agentc", "runtime")):
    others = [path for path in [os.environ.get("PYTHONPATH")] if path]
    os.environ["PYTHONPATH"] = os.pathsep.join([PACKAGES, *others])

with open(PLAN, encoding="utf-8") as text:
    DOCUMENT = json.load(text)

# Snakemake walks a chain of jobs by recursion; hundreds of rounds are longer than Python's limit.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 10 * len(DOCUMENT["jobs"])))

BY_ID = {job["id"]: job for job in DOCUMENT["jobs"]}
WORK = {}  # object -> jobs that it stands for; of two jobs with one key, the first
for job in DOCUMENT["jobs"]:
    WORK.setdefault(job["kind"] + "/" + job["key"], [job])
FUSED = {}  # object of a member -> object of its session
for session in DOCUMENT["sessions"]:
    members = [BY_ID[member] for member in session["members"]]
    WORK["session/" + session["key"]] = members
    FUSED.update((job["kind"] + "/" + job["key"], "session/" + session["key"]) for job in members)
UNITS = {}  # rule name -> objects that it makes
for name in WORK:
    if name not in FUSED:
        UNITS.setdefault(name.split("/")[0], []).append(name)


def manifest(name):
    return os.path.join(STORE, "objects", FUSED.get(name, name), "artifact.json")


def inputs_of(kind):
    """What an output waits for: nothing once it exists. Else a session that runs again for one
    new member would start every job behind it, if only to find that there is nothing to do."""

    def manifests(wildcards):
        if os.path.exists(manifest(kind + "/" + wildcards.key)):
            return []
        needed = [
            name
            for job in WORK[kind + "/" + wildcards.key]
            for role in sorted(job["inputs"])
            for name in job["inputs"][role]
        ]
        return [ancient(path) for path in dict.fromkeys(map(manifest, needed))]

    return manifests


def command_of(kind):
    def words(wildcards):
        if kind == "session":
            session = next(s for s in DOCUMENT["sessions"] if s["key"] == wildcards.key)
            return ["--session", session["id"]]
        return ["--job", WORK[kind + "/" + wildcards.key][0]["id"]]

    return words


def most(kind, ask):
    """What an output asks of the machine: the most that any of its jobs does."""
    return lambda wildcards: max(map(ask, WORK[kind + "/" + wildcards.key]))


def resources_of(kind):
    """Only what some job of the kind asks for, so that a profile's defaults hold otherwise."""
    asks = {
        "mem_mb": lambda job: job["resources"]["mem_mb"] or 0,
        "runtime": lambda job: job["resources"]["minutes"] or 0,
        "gpu": lambda job: job["resources"]["gpus"] or 0,
        "slurm_partition": lambda job: job["placement"].get("partition") or "",
    }
    jobs = [job for name in UNITS[kind] for job in WORK[name]]
    return {name: most(kind, ask) for name, ask in asks.items() if any(map(ask, jobs))}


wildcard_constraints:
    key="[0-9a-f]{32}",


localrules:
    all,


rule all:
    input:
        [ancient(manifest(name)) for name in DOCUMENT["targets"]],


for KIND in sorted(UNITS):

    rule:
        name:
            KIND
        input:
            inputs_of(KIND),
        output:
            update(manifest(KIND + "/{key}")),
        params:
            work=command_of(KIND),
            plan=PLAN,
            store=STORE,
            python=sys.executable,
        threads: most(KIND, lambda job: job["resources"]["cpus"])
        resources:
            **resources_of(KIND),
        shell:
            "exec {params.python:q} -m agentc.runtime.job --plan {params.plan:q} --store {params.store:q}"
            " {params.work:q}"
