#!/bin/sh
# agentc and software stacks into PREFIX: what Dockerfile and apptainer.def both do, and what a
# test does into a temporary folder. SOURCE is a checkout; SOFTWARE names locks such as `light torch`.
set -eu
: "${SOURCE:?a checkout of agentc}" "${PREFIX:?where to install}"
python3 -m venv "$PREFIX/python"
# Whatever comes from the index has a hash; agentc itself is built from SOURCE, without the index.
"$PREFIX/python/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check \
  --require-hashes -r "$SOURCE/requirements/uv.lock"
"$PREFIX/python/bin/uv" pip install --quiet --no-cache --python "$PREFIX/python/bin/python" \
  --require-hashes -r "$SOURCE/requirements/run.lock"
"$PREFIX/python/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check \
  --no-index --no-deps --no-build-isolation "$SOURCE"
locks=$("$PREFIX/python/bin/python" -c \
  'import agentc_backends.software as s; print(s.__path__[0])')
AGENTC_SOFTWARE="$PREFIX/software"
UV_NO_CACHE=1
export AGENTC_SOFTWARE UV_NO_CACHE
mkdir -p "$AGENTC_SOFTWARE"
for name in ${SOFTWARE:-}; do
  "$PREFIX/python/bin/python" -m agentc.runtime.build_software "$locks/$name.lock"
done
"$PREFIX/python/bin/agentc" --version
