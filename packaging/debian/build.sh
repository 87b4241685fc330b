#!/usr/bin/env bash
# Makes dist/pdbmux_VERSION_ARCH.deb of dist/pdbmux, which `make build` makes. Needs dpkg-dev and
# xz; installs cargo-deb where it is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."

# The pinned version is the one that [package.metadata.deb] was written for.
tool=3.8.0
[[ $(cargo deb --version 2>/dev/null) == "cargo-deb $tool" ]] ||
  cargo install --quiet --locked --no-default-features "cargo-deb@$tool"

program=dist/pdbmux
made=dist/debian
rm -rf "$made"
mkdir -p "$made"

# The program writes its own documents. The defaults are commented out in the configuration, so
# that an edited file does not hold on to those of an old version.
{
  printf '# Name your PuppetDBs under backends, then: systemctl start pdbmux\n#\n'
  HOME=$PWD/$made "$program" config init --config "$made/init.yaml" >/dev/null
  sed 's/^[a-z]/#&/' "$made/init.yaml"
} >"$made/config.yaml"
rm "$made/init.yaml"
"$program" man >"$made/pdbmux.8"
for shell in bash zsh fish; do "$program" completions "$shell" >"$made/completion.$shell"; done

# One change is one time: the same sources make the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
version=$("$program" version)
cat >"$made/changelog" <<END
pdbmux (${version#pdbmux }-1) stable; urgency=medium

  * See changelog.gz beside this file.

 -- pdbmux maintainers <maintainers@pdbmux.example>  $(date -Rud "@$SOURCE_DATE_EPOCH")
END

rm -f dist/pdbmux_*.deb
cargo deb --quiet --locked --no-build --no-strip --output dist
