"""Snakemake profiles: which file a name means, and what becomes of it on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc import resources
from agentc.cli import main
from agentc.placement.profile import Profile, ProfileError, find_profile, require_executor
from agentc.run.snakemake_process import DriverOptions, at_once, driver_argv
from agentc.runtime.store.layout import StoreLayout


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A user without profiles."""
    return {"HOME": str(tmp_path / "home"), "XDG_CONFIG_DIRS": str(tmp_path / "site")}


def write(folder: Path, text: str, name: str = "config.yaml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def find(name: str | None, environ: dict[str, str]) -> Profile:
    found = find_profile(name, environ)
    assert found is not None
    return found


def argv(profile: Profile | None, jobs: int | None = None, token: str | None = None) -> str:
    options = DriverOptions(jobs=jobs, profile=profile, token=token)
    return " ".join(driver_argv(Path("/plan"), StoreLayout("/store"), [], options))


def test_name_of_the_user_comes_before_the_site_and_the_shipped_one(
    environ: dict[str, str], tmp_path: Path
) -> None:
    shipped = find("slurm", environ)
    assert shipped.shipped
    assert shipped.file == resources.profile("slurm") / "config.yaml"
    assert (shipped.executor, shipped.queued) == ("slurm", True)
    of_site = write(tmp_path / "site" / "snakemake" / "slurm", "executor: slurm\n")
    assert find("slurm", environ).file == of_site
    own = write(tmp_path / "home" / ".config" / "snakemake" / "slurm", "executor: slurm\n")
    assert find("slurm", environ).file == own
    assert not find("slurm", environ).shipped


def test_folder_file_and_variable(environ: dict[str, str], tmp_path: Path) -> None:
    file = write(tmp_path / "mine", "jobs: 3\n")
    assert find(str(tmp_path / "mine"), environ).file == file
    assert find(str(file), environ).file == file
    assert find(None, {**environ, "SNAKEMAKE_PROFILE": str(file)}).file == file
    assert find_profile(None, environ) is None
    assert find_profile("none", {**environ, "SNAKEMAKE_PROFILE": str(file)}) is None


def test_file_for_the_newest_snakemake_that_is_there(
    environ: dict[str, str], tmp_path: Path
) -> None:
    write(tmp_path / "mine", "jobs: 1\n")
    newer = write(tmp_path / "mine", "jobs: 9\n", "config.v9+.yaml")
    write(tmp_path / "mine", "jobs: 99\n", "config.v99+.yaml")
    assert find(str(tmp_path / "mine"), environ).file == newer


def test_unknown_name_is_told_with_those_there_are(
    environ: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "home" / ".config" / "snakemake" / "raven", "executor: slurm\n")
    with pytest.raises(ProfileError, match="did you mean `raven`"):
        find_profile("ravn", environ)
    spec = str(resources.data_directory() / "specs" / "quickstart.yaml")
    store = str(tmp_path / "store")
    assert main(["run", spec, "--store", store, "--profile", "no-such-profile"]) == 2
    assert "neither a folder with a config.yaml nor a name" in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def test_executor_that_is_not_installed(environ: dict[str, str], tmp_path: Path) -> None:
    file = write(tmp_path / "mine", "executor: punch-cards\n")
    with pytest.raises(ProfileError, match="snakemake-executor-plugin-punch-cards is not"):
        require_executor(find(str(file), environ))


def test_estimates_count_the_jobs_that_the_profile_allows(
    environ: dict[str, str], tmp_path: Path
) -> None:
    write(tmp_path / "queue", "executor: slurm\njobs: 50\n")
    write(tmp_path / "open", "executor: slurm\n")
    write(tmp_path / "here", "cores: 3\n")
    queue, unbound, here = (find(str(tmp_path / n), environ) for n in ("queue", "open", "here"))
    assert [at_once(each, None) for each in (queue, unbound, here, None)] == [50, 100, 3, None]
    assert at_once(queue, 7) == 7


def test_what_the_profile_says_stands_unless_typed(environ: dict[str, str], tmp_path: Path) -> None:
    silent = find(str(write(tmp_path / "silent", "executor: slurm\n")), environ)
    assert f"--profile {silent.file} --jobs 100 " in argv(silent)
    file = write(tmp_path / "own", "executor: slurm\njobs: 7\nslurm-jobname-prefix: mine\n")
    own = find(str(file), environ)
    assert "--jobs" not in argv(own)
    assert "--jobs 3 " in argv(own, jobs=3)
    assert "--slurm-jobname-prefix mine-agentc-0123 " in argv(own, token="0123")
    assert " -m agentc.run.slurm_plugin " in argv(own, token="0123")
    assert "--cores" not in argv(own)
    here = find(str(write(tmp_path / "here", "cores: 2\n")), environ)
    assert "--cores" not in argv(here)
    assert "--slurm-jobname-prefix" not in argv(here, token="0123")
    assert " -m snakemake " in argv(here, token="0123"), (
        "nothing is adapted where SLURM has no jobs"
    )
    assert "--cores 5 " in argv(here, jobs=5)


def test_gpus_are_counted_where_jobs_run_here(tmp_path: Path) -> None:
    def words(profile: Profile | None, **told: int) -> str:
        options = DriverOptions(profile=profile, **told)
        return " ".join(driver_argv(Path("/plan"), StoreLayout("/store"), [], options))

    assert "--resources" not in words(None)
    assert "--resources gpu=4 " in words(None, gpus=4, jobs=2)
    assert "--cores 2 " in words(None, gpus=4, jobs=2, cores=1)
    assert "--cores 9 " in words(None, gpus=4, jobs=2, cores=9)

    def local(settings: dict[str, object]) -> Profile:
        return Profile(name="mine", file=tmp_path / "config.yaml", settings=settings)

    assert "--resources mem_mb=9 gpu=4 " in words(local({"resources": {"mem_mb": 9}}), gpus=4)
    assert "--resources mem_mb=9 gpu=4 " in words(local({"resources": ["mem_mb=9"]}), gpus=4)
    assert "--resources" not in words(local({"resources": ["gpu=1"]}), gpus=4), "theirs holds"
    assert "--cores" not in words(local({"cores": 9}), gpus=4, cores=9)
    assert "--cores 9 " in words(local({"cores": 3}), gpus=4, cores=9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('cluster: "sbatch -p {resources.partition}"\n', "write `executor: slurm`, or `executor:"),
        ("jobs: 5\ncluster-config: c.yaml\n", ":2: `cluster-config` is an option of Snakemake 7"),
        ("cluster-status: status.py\n", "`cluster-generic-status-cmd`"),
        ("cluster-cancel: scancel\n", "`cluster-generic-cancel-cmd`"),
        ("drmaa: ''\n", "`executor: drmaa`"),
        ("use-singularity: true\n", "`software-deployment-method: apptainer`"),
        ("use-conda: true\n", "`software-deployment-method: conda`"),
        ("immediate-submit: true\n", "agentc submits a job when its inputs are there"),
        ("no-shared-fs: true\n", "`shared-fs-usage: none`"),
        ("kep-going: true\n", "did you mean `keep-going`?"),
        ("default_resources: []\n", "did you mean `default-resources`?"),
        ("executor: slurm\nslurm-logdirr: x\n", "did you mean `slurm-logdir`?"),
        ("wholly-unheard-of: 1\n", "long options without `--`"),
    ],
)
def test_keys_that_snakemake_does_not_take_are_rejected_by_name(
    text: str, words: str, environ: dict[str, str], tmp_path: Path
) -> None:
    file = write(tmp_path / "mine", text)
    with pytest.raises(ProfileError) as caught:
        find(str(file), environ)
    assert words in str(caught.value)
    assert f"{file}:" in str(caught.value)


def test_every_option_of_the_installed_snakemake_is_a_key(
    environ: dict[str, str], tmp_path: Path
) -> None:
    from snakemake.cli import get_argument_parser

    options = {
        option.removeprefix("--")
        for action in get_argument_parser()._actions
        for option in action.option_strings
        if option.startswith("--")
    } - {"executor", "help", "immediate-submit", "use-conda", "use-singularity", "use-envmodules"}
    text = "".join(f"{name}: 1\n" for name in sorted(options))
    file = write(tmp_path / "mine", f"executor: slurm\n__definitions__: []\n{text}")
    assert find(str(file), environ).executor == "slurm"


@pytest.mark.parametrize("command", ["plan", "plan --preflight", "run"])
def test_profile_of_snakemake_7_ends_each_command_before_any_work(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "old", "cluster: sbatch\njobs: 5\n")
    spec = str(resources.data_directory() / "specs" / "quickstart.yaml")
    store = str(tmp_path / "store")
    assert main([*command.split(), spec, "--store", store, "--profile", str(file.parent)]) == 2
    assert "`cluster` is an option of Snakemake 7; write" in capsys.readouterr().err
    assert not (tmp_path / "store").exists()
