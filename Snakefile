# Runs a compiled plan: one rule for each stage kind of it, and `session` for jobs that share one
# start of a server. Generic: everything comes from plan.json, which `agentc bundle --bare` writes.
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
import time

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
    sys.path.insert(0, PACKAGES)

from agentc.runtime.placement import RuleResources

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

# Who says what a job asks for: the profile, the spec (docs/design/placement.md).
REQUESTS = RuleResources(workflow.resource_settings)

# Jobs of seconds that need no GPU run on the submit host where others go to a queue. A rule whose
# jobs differ in that is two, of which each makes its own.
LOCAL = {name for name in WORK if REQUESTS.is_local(name.split("/")[0], WORK[name])}
RULES = {}  # rule name -> kind, whether its jobs are local, pattern of their keys
for KIND, names in sorted(UNITS.items()):
    here = [name for name in names if name in LOCAL]
    keys = "|".join(name.split("/")[1] for name in here)
    if len(here) in (0, len(names)):
        RULES[KIND] = (KIND, bool(here), "[0-9a-f]{32}")
    else:
        RULES[KIND] = (KIND, False, "(?!%s)[0-9a-f]{32}" % keys)
        RULES[KIND + "_local"] = (KIND, True, keys)


# A server of scope `shared` is started by a local job and runs beside Snakemake, which does not
# count it among its cores: its clients could otherwise wait for ever for a server that waits for
# theirs. What that job makes is this run's lease on the server; it ends with this process.
SERVERS = {s["key"]: s for s in DOCUMENT.get("servers", []) if s["scope"] == "shared"}
SERVER_KEYS = {server["id"]: key for key, server in SERVERS.items()}
RUN_LEASE = os.path.join(
    STORE,
    "servers",
    str(os.getuid()),
    "{key}",
    "leases",
    "run-%s-%d-%d" % (os.uname().nodename, os.getpid(), time.time()),
)
SERVER_RESOURCES = (
    "slurm_account slurm_partition qos constraint reservation clusters runtime nodes cpus_per_task gpu"
    " gres gpu_model mem_mb mem_mb_per_cpu slurm_extra"
).split()


def servers_of(jobs):
    """Keys of the shared servers that jobs lease."""
    names = [lease.get("server") for job in jobs for lease in job["leases"]]
    return [SERVER_KEYS[name] for name in dict.fromkeys(names) if name in SERVER_KEYS]


def manifest(name):
    return os.path.join(STORE, "objects", FUSED.get(name, name), "artifact.json")


def inputs_of(kind):
    """What an output waits for: nothing once it exists. Else a session that runs again for one
    new member would start every job behind it, if only to find that there is nothing to do."""

    def manifests(wildcards):
        if os.path.exists(manifest(kind + "/" + wildcards.key)):
            return []
        unit = kind + "/" + wildcards.key
        needed = [
            name
            for job in WORK[unit]
            for role in sorted(job["inputs"])
            for name in job["inputs"][role]
            if FUSED.get(name) != unit  # members wait for each other inside their session
        ]
        paths = list(dict.fromkeys(map(manifest, needed)))
        if workflow.is_main_process:  # a job on a node finds its server by itself
            paths += [RUN_LEASE.format(key=key) for key in servers_of(WORK[unit])]
        return [ancient(path) for path in paths]

    return manifests


def inputs_of_server(wildcards):
    """What all of its clients need, the checkpoint that it serves above all: before that is there,
    none of them could run."""
    clients = [BY_ID[name] for name in SERVERS[wildcards.key]["clients"]]
    wanted = [c for c in clients if not os.path.exists(manifest(c["kind"] + "/" + c["key"]))]
    needs = [{n for names in c["inputs"].values() for n in names} for c in wanted or clients]
    return [ancient(manifest(name)) for name in sorted(set.intersection(*needs))]


def resources_of_server(wildcards, resources):
    """What a profile and the plan give the server, for whoever submits it."""
    found = ((name, getattr(resources, name, None)) for name in SERVER_RESOURCES)
    return ["--resource=%s=%s" % pair for pair in found if pair[1] not in (None, "", 0, "TBD")]


def command_of(kind):
    def words(wildcards):
        if kind == "session":
            session = next(s for s in DOCUMENT["sessions"] if s["key"] == wildcards.key)
            return ["--session", session["id"]]
        return ["--job", WORK[kind + "/" + wildcards.key][0]["id"]]

    return words


def threads_of(kind):
    return lambda wildcards: max(
        job["resources"]["cpus"] for job in WORK[kind + "/" + wildcards.key]
    )


def granted(here):
    """What a job asks for in the end, for its wrapper to compare with what it got; nothing where
    others go to a queue and it stays on the submit host (`here`)."""

    def words(wildcards, resources, threads):
        if here and not workflow.local_exec:
            return []
        names = ("gpu", "gres", "mem_mb", "runtime", "nodes")
        asked = {name: resources.get(name) for name in names}
        if not workflow.is_main_process:  # a queue has given the job what it has
            asked["submitted"] = 1
        text = ",".join(f"{name}={value}" for name, value in asked.items() if value)
        return ["--asked", text] if text else []

    return words


wildcard_constraints:
    key="[0-9a-f]{32}",


localrules:
    all,
    server,


rule all:
    input:
        [ancient(manifest(name)) for name in DOCUMENT["targets"]],


if SERVERS:

    rule server:
        input:
            inputs_of_server,
        output:
            RUN_LEASE,
        params:
            server=lambda wildcards: SERVERS[wildcards.key]["id"],
            plan=PLAN,
            store=STORE,
            python=sys.executable,
            run=os.getpid(),
            executor=lambda wildcards: workflow.executor_plugin.name,
            asked=resources_of_server,
        resources:
            **REQUESTS.of_servers(SERVERS),
        shell:
            "exec {params.python:q} -m agentc.runtime.serve up --plan {params.plan:q} --store {params.store:q}"
            " --server {params.server:q} --lease {output:q} --run {params.run} --executor {params.executor:q}"
            " {params.asked:q}"


for RULE, (KIND, HERE, KEYS) in RULES.items():

    rule:
        name:
            RULE
        wildcard_constraints:
            key=KEYS,
        localrule: HERE
        input:
            inputs_of(KIND),
        output:
            update(manifest(KIND + "/{key}")),
        params:
            work=command_of(KIND),
            plan=PLAN,
            store=STORE,
            python=sys.executable,
            asked=granted(HERE),
            parent=os.getpid(),  # of a job on a node: the Snakemake that runs it there
        threads: threads_of(KIND)
        resources:
            **REQUESTS.of_rule(KIND, {name.split("/")[1]: WORK[name] for name in UNITS[KIND]}),
        shell:
            "exec {params.python:q} -m agentc.runtime.job --plan {params.plan:q} --store {params.store:q}"
            " {params.work:q} {params.asked:q} --parent {params.parent}"
