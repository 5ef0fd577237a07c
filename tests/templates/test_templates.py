"""Templates: put in place with places kept, merged by stated rules, closed over their own names."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.compilation import Compilation, compile_spec
from agentc.diagnostics.render import render_text
from agentc.templates.library import shipped_names

HEAD = "agentc: 1\nname: demo\nparams:\n  seed: {type: int, default: 7}\n"
MODEL = (
    "agentc: 1\ntemplate: model\ndoc: A small model.\nparams:\n"
    "  width: {type: int, default: 64, min: 8}\n"
    '  seed: {type: int}\nbody:\n  backend: scratch\n  hidden_size: "{{ 2 * width }}"\n'
    '  seed: "{{ seed }}"\n  heads: 2\n  corpus: expert\n'
)


TAIL = (
    "\nenvironments:\n  craft: {backend: textcraft}\nprompts:\n  react: {instruction: Act.}\n"
    "stages:\n  expert: {kind: expert, split: train}\n"
)


def compile_text(folder: Path, spec: str, **files: str) -> Compilation:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    path = folder / "spec.yaml"
    path.write_text(spec, encoding="utf-8")
    return compile_spec(path, {}, load_backends())


def codes(compiled: Compilation) -> list[str]:
    return [found.code for found in compiled.diagnostics if found.severity == "error"]


def test_values_come_from_where_they_are_written(tmp_path: Path) -> None:
    """`seed` under `with` is the spec's param; `seed` in the body is the template's."""
    use = (
        'models:\n  base: {use: ./small.yaml, with: {seed: "{{ seed + 1 }}", width: 16}, layers: 3}'
    )
    compiled = compile_text(tmp_path, HEAD + use + TAIL, small=MODEL)
    assert codes(compiled) == []
    assert compiled.module is not None
    fields = compiled.module.stages["base"].fields
    found = {name: fields[name].json for name in ("hidden_size", "seed", "layers", "heads")}
    assert found == {"hidden_size": 32, "seed": 8, "layers": 3, "heads": 2}


def test_a_template_cannot_see_the_params_of_the_spec(tmp_path: Path) -> None:
    body = "agentc: 1\ntemplate: model\ndoc: d\nbody:\n  backend: scratch\n"
    leaky = body + '  seed: "{{ seed }}"\n'
    compiled = compile_text(tmp_path, HEAD + "models:\n  base: {use: ./leaky.yaml}\n", leaky=leaky)
    assert codes(compiled) == ["AGC301"]
    assert "template `./leaky.yaml` has no parameter `seed`" in compiled.diagnostics[0].message


def test_messages_tell_the_whole_way(tmp_path: Path) -> None:
    """A wrong value deep in a template names each use that led to it."""
    inner = "agentc: 1\ntemplate: model\ndoc: d\nbody:\n  backend: scratch\n  layers: many\n"
    outer = "agentc: 1\ntemplate: model\ndoc: d\nbody:\n  use: ./inner.yaml\n  heads: 2\n"
    spec = HEAD + 'models:\n  base: {use: ./outer.yaml, seed: "{{ seed }}"}\n'
    compiled = compile_text(tmp_path, spec, inner=inner, outer=outer)
    text = render_text(compiled.diagnostics)
    assert f"{tmp_path}/inner.yaml:6:11: error[AGC203]" in text
    used = [line.strip() for line in text.splitlines() if "used at:" in line]
    assert used == [f"used at: {tmp_path}/outer.yaml:5:8", f"used at: {tmp_path}/spec.yaml:6:15"]


@pytest.mark.parametrize(
    ("use", "code", "line", "column"),
    [
        ("{use: ./smal.yaml, with: {seed: 1}}", "AGC421", 6, 15),
        ("{use: small, with: {seed: 1}}", "AGC421", 6, 15),
        ("{use: [./small.yaml]}", "AGC421", 6, 15),
        ("{use: ../x.yaml}", "AGC422", 6, 15),
        ("{use: ./small.yaml}", "AGC428", 6, 15),
        ("{use: ./small.yaml, with: {seed: 1, wide: 3}}", "AGC429", 6, 45),
        ("{use: ./small.yaml, with: {seed: 1, width: 3}}", "AGC424", 6, 52),
        ("{use: ./small.yaml, with: {seed: much}}", "AGC424", 6, 42),
        ("{use: ./small.yaml, with: 3}", "AGC203", 6, 35),
        ("{use: eto/sft, with: {model: base}}", "AGC426", 6, 15),
        ("{backend: scratch, with: {seed: 1}, corpus: expert}", "AGC423", 6, 28),
        ("{use: ./small.yaml, with: {seed: 1}, append: {corpus: [a]}}", "AGC425", 6, 63),
        ("{use: ./small.yaml, with: {seed: 1}, append: {seed: 3}}", "AGC425", 6, 61),
    ],
)
def test_wrong_uses(tmp_path: Path, use: str, code: str, line: int, column: int) -> None:
    spec = HEAD + f"models:\n  base: {use}" + TAIL
    compiled = compile_text(tmp_path, spec, small=MODEL)
    found = [each for each in compiled.diagnostics if each.severity == "error"]
    places = [(each.code, each.span.line, each.span.column) for each in found if each.span]
    assert (code, line, column) in places


def test_circles_end(tmp_path: Path) -> None:
    one = "agentc: 1\ntemplate: model\ndoc: d\nbody: {use: ./two.yaml}\n"
    two = "agentc: 1\ntemplate: model\ndoc: d\nbody: {use: ./one.yaml}\n"
    compiled = compile_text(
        tmp_path, HEAD + "models:\n  base: {use: ./one.yaml}\n", one=one, two=two
    )
    assert codes(compiled) == ["AGC427"]


def test_a_doubling_template_is_bounded(tmp_path: Path) -> None:
    """Twelve levels of thirty uses each would be more than the universe holds."""
    files = {
        f"t{level}": "agentc: 1\ntemplate: stage\ndoc: d\nbody:\n  repeat:\n    n: 1\n    stages:\n"
        + "".join(f"      s{n}: {{use: ./t{level + 1}.yaml}}\n" for n in range(30))
        for level in range(11)
    }
    files["t11"] = "agentc: 1\ntemplate: stage\ndoc: d\nbody: {kind: report}\n"
    compiled = compile_text(tmp_path, HEAD + "stages:\n  a: {use: ./t0.yaml}\n", **files)
    assert "AGC105" in codes(compiled)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text(MODEL)
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    compiled = compile_text(inside, HEAD + "models:\n  base: {use: ./link.yaml}\n")
    assert codes(compiled) == ["AGC422"]


def test_what_is_written_beside_use_is_merged(tmp_path: Path) -> None:
    stage = (
        "agentc: 1\ntemplate: stage\ndoc: d\nbody:\n  kind: evaluate\n  model: base\n"
        "  split: test\n  decode: {temperature: 0.5, max_tokens: 9, stop: [a]}\n"
    )
    spec = (
        HEAD + "environments:\n  craft: {backend: textcraft}\nservers:\n"
        "  local: {backend: transformers}\n"
        "prompts:\n  react: {instruction: Act.}\n"
        "models:\n  base: {backend: scratch}\nstages:\n"
        "  one: {use: ./score.yaml, decode: {temperature: 0.0}, append: {decode: {stop: [b]}}}\n"
    )
    compiled = compile_text(tmp_path, spec, score=stage)
    assert compiled.module is not None
    decode = compiled.module.stages["one"].fields["decode"].json
    assert decode == {"temperature": 0.0, "max_tokens": 9, "stop": ["a", "b"]}


def test_a_whole_spec_may_come_from_a_template(tmp_path: Path) -> None:
    whole = (
        "agentc: 1\ntemplate: spec\ndoc: d\nparams: {width: {type: int, default: 64}}\nbody:\n"
        "  params: {seed: {type: int, default: 0}}\n"
        '  models:\n    base: {backend: scratch, hidden_size: "{{ width }}", heads: 2,\n'
        "      corpus: expert}\n"
    )
    spec = (
        "agentc: 1\nname: demo\nuse: ./whole.yaml\nwith: {width: 32}\n"
        'models:\n  base: {layers: 5, seed: "{{ seed }}"}\n'
    )
    compiled = compile_text(tmp_path, spec + TAIL, whole=whole)
    assert codes(compiled) == []
    assert compiled.module is not None
    fields = compiled.module.stages["base"].fields
    assert [fields[name].json for name in ("hidden_size", "layers", "seed")] == [32, 5, 0]


def test_every_shipped_template_reads_and_documents_its_parameters() -> None:
    from agentc.diagnostics import Sink
    from agentc.diagnostics.diagnostic import Source, Span
    from agentc.source.tree import Scalar
    from agentc.templates.library import TemplateLibrary

    sink = Sink()
    library = TemplateLibrary(Path(), sink)
    at = Span(Source("spec.yaml", ""), 1, 1, 1, 1)
    for name in shipped_names():
        template = library.find(Scalar(name, False, at))
        assert template is not None, sink.sorted()
        assert template.doc
        assert all(param.doc for param in template.params.values()), name
    assert len(shipped_names()) >= 6


@pytest.mark.parametrize(
    ("stage", "meant"),
    [
        ("{use: ./all.yaml, placement: {pus: 2}}", "did you mean `cpus` or `gpus`?"),
        ("{kind: expert, split: train, placement: {gpus: 0, pus: 2}}", "did you mean `cpus`?"),
    ],
)
def test_a_slip_may_mean_what_the_template_sets_already(
    tmp_path: Path, stage: str, meant: str
) -> None:
    """What stands in the same braces cannot be meant once more."""
    body = "body: {kind: expert, split: train, placement: {gpus: 0}}\n"
    spec = HEAD + TAIL.replace("{kind: expert, split: train}", stage)
    template = f"agentc: 1\ntemplate: stage\ndoc: d\n{body}"
    compiled = compile_text(tmp_path, spec, all=template)
    assert [found.fix for found in compiled.diagnostics if found.code == "AGC201"] == [meant]
