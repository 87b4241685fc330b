#!/usr/bin/env bash
# Holds the Kubernetes manifests against Kubernetes' own schemas: every kind is known, and so is
# every key. Needs Python; installs the validator into a folder of its own, once.
#
#   deploy/check.sh [FOLDER]   the manifests (default: those beside this script)
#
#   PDBMUX_RIG_DIR             where the validator goes (default: .rig in the repository)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
manifests=${1:-$here/kubernetes}
venv=${PDBMUX_RIG_DIR:-$(dirname "$here")/.rig}/manifests
# The oldest Kubernetes in which every key that is used works by itself, and the newest.
versions=(1.30 1.37)

if ! cmp -s "$here/requirements.txt" "$venv/requirements.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check -r "$here/requirements.txt"
  cp "$here/requirements.txt" "$venv/requirements.txt"
fi

files=()
for file in "$manifests"/*.yaml; do
  # Kustomize's own file never reaches a cluster, and has no schema there.
  [[ ${file##*/} == kustomization.yaml ]] || files+=("$file")
done

said=$("$venv/bin/kubernetes-validate" --strict "${versions[@]/#/-k}" "${files[@]}") || {
  grep -v '^INFO ' <<<"$said" >&2
  exit 1
}
# A kind or version that no schema tells of is only warned about, an empty file not even that.
passed=$(grep -c '^INFO ' <<<"$said" || true)
if ((passed != ${#files[@]} * ${#versions[@]})); then
  grep -v '^INFO ' <<<"$said" >&2 || true
  printf 'deploy: not each file in %s is one manifest that a schema is known for\n' "$manifests" >&2
  exit 1
fi
printf 'deploy: %s manifests hold against Kubernetes %s\n' "${#files[@]}" "${versions[*]}"
