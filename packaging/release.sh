#!/usr/bin/env bash
# Makes a release: raises the version, dates the changelog, commits and tags. Pushes nothing.
#
#   packaging/release.sh patch|minor|major
set -euo pipefail
cd "$(dirname "$0")/.."

refuse() {
  printf 'release: %s\n' "$*" >&2
  exit 1
}

[[ $# == 1 ]] || refuse "say which part of the version to raise: patch, minor or major"
part=$1

[[ $(git branch --show-current) == main ]] || refuse "releases are made on main"
[[ -z $(git status --porcelain) ]] || refuse "the working tree has changes that are not committed"

old=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
[[ $old =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || refuse "Cargo.toml has no version of three numbers"
IFS=. read -r major minor patch <<<"$old"
case $part in
  patch) new=$major.$minor.$((patch + 1)) ;;
  minor) new=$major.$((minor + 1)).0 ;;
  major) new=$((major + 1)).0.0 ;;
  *) refuse "$part is no part of a version: say patch, minor or major" ;;
esac
tag=v$new

git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null && refuse "the tag $tag exists already"
# Between its heading and the next one, or the end.
awk '/^## /{ unreleased = /^## Unreleased$/ } unreleased && /^- /{ found = 1 } END { exit !found }' CHANGELOG.md ||
  refuse "CHANGELOG.md has nothing under Unreleased"

sed -i '/^\[workspace\.package\]/,/^\[/s/^version = ".*"/version = "'"$new"'"/' Cargo.toml
# Our own packages have the workspace's version; the lock of the fuzz targets has the core in it.
sed -i '/^name = "pdbmux/{n;s/^version = "'"${old//./\\.}"'"/version = "'"$new"'"/}' Cargo.lock fuzz/Cargo.lock
sed -i "s/^## Unreleased\$/&\n\n## $new - $(date -u +%F)/" CHANGELOG.md

git commit --quiet --all --message "Release $new"
git tag --annotate --message "pdbmux $new" "$tag"
printf 'release: %s is committed and tagged; git push --follow-tags publishes it\n' "$tag"
