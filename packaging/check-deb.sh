#!/usr/bin/env bash
# Installs the Debian package into a Debian root, runs it as its unit does, upgrades, removes and
# purges it, and looks at what each step leaves behind. As root; the machine's own packages are
# left alone, the root is changed in memory only, and every process ends with the script.
#
#   packaging/check-deb.sh [DEB]   the package (default: the one in dist/)
#
#   PDBMUX_RIG_DIR                 the rig's folder (default: .rig in the repository); its Debian 13
#                                  is used, and a Debian 12 is put there if it has none
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
rig=${PDBMUX_RIG_DIR:-$repository/.rig}
deb=$(realpath "${1:-$(echo "$repository"/dist/pdbmux_*.deb)}")

say() { printf 'package: %s\n' "$*"; }
fail() {
  say "$*" >&2
  exit 1
}

# The mirror this machine itself uses, whatever it is.
mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1
}

# Prints the folder of a Debian.
find_base() {
  local base=$rig/bookworm
  if [[ -d $rig/trixie ]]; then
    base=$rig/trixie
  elif [[ ! -d $base ]]; then
    say "bootstrapping a Debian into $base" >&2
    rm -rf "$base.part"
    debootstrap --variant=minbase bookworm "$base.part" "$(mirror)" >"$base.log" 2>&1 ||
      fail "debootstrap failed (see $base.log)"
    mv "$base.part" "$base"
  fi
  echo "$base"
}

# Mounts and processes of their own, which end with it.
if [[ -z ${PDBMUX_CHECK_BASE:-} ]]; then
  [[ $EUID -eq 0 ]] || fail "must run as root"
  [[ -f $deb ]] || fail "there is no package: run make deb"
  for tool in chroot curl dpkg-deb setpriv systemd-analyze unshare; do
    command -v "$tool" >/dev/null || fail "$tool is missing"
  done
  mkdir -p "$rig"
  base=$(find_base)
  mount_point=$(mktemp -d)
  trap 'rmdir "$mount_point"' EXIT
  PDBMUX_CHECK_BASE=$base PDBMUX_CHECK_IN=$mount_point \
    unshare --mount --pid --fork --kill-child --mount-proc "$0" "$deb"
  exit
fi

work=$PDBMUX_CHECK_IN
root=$work/root
mount -t tmpfs tmpfs "$work"
mkdir "$work/changed" "$work/work" "$root"
mount -t overlay overlay -o "lowerdir=$PDBMUX_CHECK_BASE,upperdir=$work/changed,workdir=$work/work" "$root"
mount -t proc proc "$root/proc"
mkdir -p "$root/media"
mount --bind "$(dirname "$deb")" "$root/media"

export DEBIAN_FRONTEND=noninteractive LC_ALL=C
dpkg_in_root() { chroot "$root" dpkg "$@" </dev/null >"$work/dpkg" 2>&1 || fail "dpkg $* failed: $(cat "$work/dpkg")"; }

# Everything in the root but what dpkg notes about itself.
list() {
  (cd "$root" && find . -xdev \( -path ./proc -o -path ./media -o -path ./var/lib/dpkg -o -path ./var/log -o \
    -path ./var/cache \) -prune -o -print) | sort
}

# Fails where another file is there than before the installation. What arguments match may be.
nothing_left_but() {
  local allowed=$1 left
  list >"$work/now"
  left=$(comm -3 "$work/before" "$work/now" | tr -d '\t' | grep -Evx "$allowed" || true)
  [[ -z $left ]] || fail "left behind, or lost: $left"
}

unit=$root/usr/lib/systemd/system/pdbmux.service
config=$root/etc/pdbmux/config.yaml

# Runs what the unit runs, with its variables, as a user with no name and no rights, on a root that
# cannot be written. The process replaces the caller's.
exec_start() {
  exec env -i unshare --mount bash -ec '
    mount -o remount,bind,ro "$0"
    exec chroot "$0" sh -ec "set -a; . /etc/default/pdbmux; exec setpriv --reuid 61184 --regid 61184 \
      --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all $1"
  ' "$root" "$(sed -n 's/^ExecStart=//p' "$unit")"
}

# Waits for a line of a log that the process is writing, and prints what stands behind the text.
await() {
  local process=$1 log=$2 text=$3 found
  until found=$(sed -n "s/.*$text//p" "$log" | head -n 1) && [[ -n $found ]]; do
    kill -0 "$process" 2>/dev/null || fail "ended before it said '$text': $(cat "$log")"
    ((SECONDS < 120)) || fail "'$text' was not said in time: $(cat "$log")"
    sleep 0.02
  done
  echo "$found"
}

say "installing ${deb##*/} into ${PDBMUX_CHECK_BASE##*/}"
list >"$work/before"
dpkg_in_root -i "/media/${deb##*/}"
chroot "$root" pdbmux --version >/dev/null
! chroot "$root" env PDBMUX_OTLP_ENDPOINT=http://h pdbmux config show >/dev/null 2>&1 ||
  fail "it is built with the feature otlp, which is not for everybody"
[[ -L $root/etc/systemd/system/multi-user.target.wants/pdbmux.service ]] || fail "the service is not enabled"

say "checking the unit"
complaints=$(systemd-analyze --root="$root" --man=no --recursive-errors=no verify "$unit" 2>&1 || true)
# What does not know the second type takes the first.
complaints=$(grep -v 'Failed to parse service type, ignoring: notify-reload$' <<<"$complaints" || true)
[[ -z $complaints ]] || fail "the unit is not valid: $complaints"
# Tenths: what is left is that it may use the network.
systemd-analyze --root="$root" --offline=true --threshold=13 security pdbmux.service >"$work/security" ||
  fail "the unit is less confined than it was: $(cat "$work/security")"

say "starting it unconfigured: one sentence, and the status after which systemd does not restart it"
status=0
(exec_start) 2>"$work/said" || status=$?
[[ $(wc -l <"$work/said") -eq 1 ]] || fail "it said $(cat "$work/said")"
grep -qx "RestartPreventExitStatus=$status" "$unit" || fail "it ended with status $status: $(cat "$work/said")"

say "serving two sample PuppetDBs from the edited configuration"
"$root/usr/bin/pdbmux" demo --listen 127.0.0.1:0 </dev/null >"$work/demo" 2>&1 &
await $! "$work/demo" 'no more input' >/dev/null
cat >"$config" <<END
listen: 127.0.0.1:0
backends:
$(sed -nE 's,.* (pdb-[a-z]+) .*(http://[0-9.:]+)$,  - {name: \1\, url: "\2"},p' "$work/demo")
END
cp "$config" "$work/edited"
exec_start 2>"$work/log" &
service=$!
address=$(await "$service" "$work/log" 'listening on ')
[[ $(curl -sS --noproxy "*" -o /dev/null -w '%{http_code}' "http://$address/livez") == 200 ]] || fail "/livez is not 200"
curl -sS --noproxy "*" -D "$work/head" -o "$work/nodes" "http://$address/pdb/query/v4/nodes"
for sample in pdb-old pdb-new; do
  grep -q "\"pdbmux_source\":\"$sample\"" "$work/nodes" || fail "no node of $sample: $(cat "$work/head" "$work/nodes")"
done
kill -TERM "$service"
wait "$service" || fail "SIGTERM ended it with status $?: $(cat "$work/log")"

say "upgrading, over itself and to a version with another configuration"
dpkg_in_root -i "/media/${deb##*/}"
cmp -s "$config" "$work/edited" || fail "an upgrade over itself changed the edited configuration"
dpkg-deb -R "$deb" "$work/next"
sed -i 's/^Version: .*/&.1/' "$work/next/DEBIAN/control"
echo '# of the next version' | tee -a "$work/next/etc/default/pdbmux" >>"$work/next/etc/pdbmux/config.yaml"
dpkg-deb -Znone -b "$work/next" "$root/tmp/next.deb" >/dev/null
dpkg_in_root --force-confold -i /tmp/next.deb
rm "$root/tmp/next.deb"
cmp -s "$config" "$work/edited" || fail "an upgrade changed the edited configuration"
cmp -s "$root/etc/default/pdbmux" "$work/next/etc/default/pdbmux" || fail "an upgrade left an unedited file as it was"

say "removing, then purging"
dpkg_in_root -r pdbmux
cmp -s "$config" "$work/edited" || fail "removing it took the configuration"
# The rest is the state of the service, which Debian keeps for the next installation.
nothing_left_but '\./etc/(default/pdbmux|pdbmux(/config\.yaml(\.dpkg-dist)?)?|systemd/system/.*)|\./var/lib/systemd/.*'
dpkg_in_root -P pdbmux
nothing_left_but ''
say "passed in ${SECONDS}s"
