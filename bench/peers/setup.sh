#!/usr/bin/env bash
# Makes one environment per peer below ENVS (default: envs beside this file). PY: Python 3.12 or newer (oban needs it).
#   [ENVS=directory] [PY=python3.12] bench/peers/setup.sh [NAME...]      names: pgqueuer awa oban chancy procrastinate node ours-py312
# What is there already stays as it is. Nothing is installed outside ENVS.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
envs=${ENVS:-$here/envs}
python=${PY:-python3.12}
mkdir -p "$envs"
[ $# -gt 0 ] || set -- pgqueuer awa oban chancy procrastinate node ours-py312

make_node() {
  mkdir -p "$envs/node"
  cp "$here/requirements/node.json" "$envs/node/package.json"
  (cd "$envs/node" && npm install --silent --force)   # brings a Node 22 of its own, which both peers need
}

make_python() {
  "$python" -m venv "$envs/$1"
  "$envs/$1/bin/pip" install --quiet --disable-pip-version-check "${@:2}"
}

failed=0
for name in "$@"; do
  if [ -e "$envs/$name/made" ]; then
    echo "$name: already there"
    continue
  fi
  case $name in
    node) make_node ;;
    ours-py312) make_python "$name" --editable "$here/../.." ;;
    *) make_python "$name" --requirement "$here/requirements/$name.txt" ;;
  esac && touch "$envs/$name/made" && echo "$name: made" || { echo "$name: failed; it will be left out" >&2; failed=1; }
done
exit "$failed"
