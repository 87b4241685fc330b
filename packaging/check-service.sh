#!/usr/bin/env bash
# Lets systemd itself run the packaged service, with all that the unit forbids in force. Boots this
# machine's own systemd on a copy of its root that lives in memory, in namespaces of its own, and
# installs the package there. As root; nothing of it outlives the script.
#
#   packaging/check-service.sh [DEB]   the package (default: the one in dist/)
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
deb=$(realpath "${1:-$(echo "$repository"/dist/pdbmux_*.deb)}")

say() { printf 'service: %s\n' "$*"; }
fail() {
  say "$*" >&2
  exit 1
}

# Makes the copy of the root and becomes its systemd, which starts nothing but what the probe needs.
boot() {
  local work=$1 root=$1/root
  mount --make-rprivate /
  mount -t tmpfs tmpfs "$root"
  mkdir "$root/changed" "$root/work" "$root/new"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$root/changed,workdir=$root/work" "$root/new"
  root=$root/new
  mount -t proc proc "$root/proc"
  # Read-only, as in any container: systemd leaves devices and the like alone.
  mount -t sysfs -o ro sysfs "$root/sys"
  mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  mount -t tmpfs tmpfs "$root/run"
  mount -t tmpfs tmpfs "$root/tmp"
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  mkdir "$root/dev/pts" "$root/dev/shm" "$root/run/check"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
  ln -s pts/ptmx "$root/dev/ptmx"
  for node in null zero full random urandom tty; do
    touch "$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
  done
  mount --bind "$work/shared" "$root/run/check"

  ln -sf /dev/null "$root/etc/systemd/system/network-online.target"
  rm -f "$root/usr/sbin/policy-rc.d"
  cat >"$root/etc/systemd/system/check.service" <<END
[Unit]
After=basic.target
Requires=basic.target
[Service]
ExecStart=/bin/bash -c 'bash -eE /run/check/probe >/run/check/log 2>&1; echo \$? >/run/check/status'
END
  mkdir "$root/tmp/old"
  cd "$root"
  pivot_root . tmp/old
  umount -l tmp/old
  exec env -i container=check /lib/systemd/systemd --unit=check.service --log-target=journal
}

if [[ ${1:-} == boot ]]; then
  boot "$2"
fi

[[ $EUID -eq 0 ]] || fail "must run as root"
[[ -f $deb ]] || fail "there is no package: run make deb"
[[ -x /lib/systemd/systemd ]] || fail "systemd is missing"
control=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)
[[ -n $control ]] || fail "systemd needs control groups, and no cgroup2 is mounted here"
control=$control/pdbmux-check.$$
work=$(mktemp -d)
booted=
end() {
  # With the first process of its namespace everything that systemd started is gone.
  if [[ -n $booted ]]; then
    kill -KILL $(cat "/proc/$booted/task/$booted/children") || true
    wait "$booted" || true
  fi 2>/dev/null
  find "$control" -depth -type d -exec rmdir {} +
  rm -rf "$work"
}
trap end EXIT
mkdir -p "$control" "$work/root" "$work/shared"
mkfifo "$work/shared/status"
cp "$deb" "$work/shared/pdbmux.deb"
cat >"$work/shared/probe" <<'END'
trap 'echo "failed: $BASH_COMMAND"; systemctl status --no-pager -l pdbmux' ERR
export DEBIAN_FRONTEND=noninteractive
is() { [[ $(systemctl show --value -p "$1" pdbmux) == "$2" ]]; }
answers() { curl -s --noproxy '*' --retry 40 --retry-connrefused --retry-delay 1 "http://127.0.0.1:8080$1"; }

echo 'installed: enabled, not started'
dpkg -i /run/check/pdbmux.deb
systemctl is-enabled pdbmux
is ActiveState inactive

echo 'without backends: ends once, with status 2'
systemctl start --wait pdbmux || true
is ExecMainStatus 2
is ActiveState failed

echo 'with two sample PuppetDBs: serves'
coproc pdbmux demo --listen 127.0.0.1:0 </dev/null
config=/etc/pdbmux/config.yaml
printf 'listen: 127.0.0.1:8080\nbackends:\n' >$config
while read -r line <&"${COPROC[0]}" && [[ $line != *'no more input'* ]]; do
  sed -nE 's,.* (pdb-[a-z]+) .*(http://[0-9.:]+)$,  - {name: \1\, url: "\2"},p' <<<"$line" >>$config
done
systemctl start pdbmux
answers /livez
nodes=$(answers /pdb/query/v4/nodes)
[[ $nodes == *'"pdbmux_source":"pdb-old"'* && $nodes == *'"pdbmux_source":"pdb-new"'* ]]

echo 'reloaded: the same process, by the new configuration'
process=$(systemctl show --value -p MainPID pdbmux)
[[ $(systemctl show --value -p StatusText pdbmux) == 'serving 2 backends' ]]
echo 'source_fact: whence' >>$config
systemctl reload pdbmux
is MainPID "$process"
# Before 253, systemd does not wait for what it asked for.
for _ in {1..50}; do
  [[ $(answers /pdb/query/v4/nodes) == *'"whence":"pdb-old"'* ]] && break
  sleep 0.2
done
[[ $(answers /pdb/query/v4/nodes) == *'"whence":"pdb-old"'* ]]
is ActiveState active

echo 'a configuration that cannot be used: stays, and says why'
echo 'merge: newest' >>$config
systemctl reload pdbmux
for _ in {1..50}; do
  [[ $(systemctl show --value -p StatusText pdbmux) == *'merge "newest"'* ]] && break
  sleep 0.2
done
[[ $(systemctl show --value -p StatusText pdbmux) == *'merge "newest"'* ]]
sed -i '/^merge: newest$/d' $config
[[ $(answers /pdb/query/v4/nodes) == *'"whence":"pdb-old"'* ]]

echo 'confined: no root, no capability, a filter of system calls'
status=$(cat "/proc/$process/status")
[[ $status == *$'\nNoNewPrivs:\t1\n'* && $status == *$'\nSeccomp:\t2\n'* ]]
[[ $status == *$'\nCapBnd:\t0000000000000000\n'* && $status != *$'\nUid:\t0\t'* ]]
# What is in its memory is root's: so are its files here.
[[ $(stat -c %u "/proc/$process/environ") == 0 ]]
grep -Eq '^Max core file size +0 +0 ' "/proc/$process/limits"

echo 'upgraded: restarted, and serves'
dpkg -i /run/check/pdbmux.deb
is ActiveState active
[[ $(systemctl show --value -p MainPID pdbmux) != "$process" ]]
answers /livez

echo 'removed: stopped'
dpkg -r pdbmux
is ActiveState inactive
END

(
  echo "$BASHPID" >"$control/cgroup.procs"
  exec unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup "$0" boot "$work"
) >"$work/shared/boot" 2>&1 &
booted=$!
# The pipe is opened for both ways, so that a systemd that never comes up is no wait without end.
read -r -t 60 status <>"$work/shared/status" || fail "systemd did not come up: $(cat "$work/shared/"{boot,log})"
[[ $status -eq 0 ]] || fail "$(cat "$work/shared/log")"
say "systemd started, confined, restarted and stopped it, in ${SECONDS}s"
