# Starts a systemd as process 1 in a copy of this machine, where it runs the shell script $2. Prints what that prints, and
# ends with its exit code. The script finds the files of the folder $1 in /mnt.
# It runs in a mount and a PID namespace of its own.
mount -t cgroup2 cgroup2 /sys/fs/cgroup
group=$(mktemp -d /sys/fs/cgroup/sextant-test-XXXXXX)
: >"$1/output"
code=0
# systemd moves all processes of the topmost group that it sees.
sh -euc 'echo 0 >"$0/cgroup.procs"; exec "$@"' "$group" \
  timeout --signal=KILL 500 unshare --mount --pid --net --cgroup --ipc --uts --fork --kill-child sh -euc '
root=$1/root
mkdir "$root"
mount -t tmpfs tmpfs "$root"
mkdir "$root/upper" "$root/work" "$root/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$root/upper,workdir=$root/work" "$root/root"
root=$root/root
mount -t proc proc "$root/proc"
mount --bind -o ro "$root/proc/sys" "$root/proc/sys"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -o remount,ro "$root/sys"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
# systemd makes links in its /dev.
mount -t tmpfs tmpfs "$root/dev"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for name in null zero full random urandom tty; do
  : >"$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
mount --bind "$1" "$root/mnt"
ip link set lo up
# Of the services of the machine, only the journal.
rm -rf "$root/etc/systemd/system" "$root"/lib/systemd/system/sysinit.target.wants/*
mkdir "$root/etc/systemd/system"
printf %s "$2" >"$root/root/script"
cat >"$root/etc/systemd/system/script.service" <<UNIT
[Unit]
DefaultDependencies=no
Wants=systemd-journald.service
[Service]
Type=oneshot
WorkingDirectory=/root
StandardOutput=append:/mnt/output
StandardError=inherit
ExecStart=/bin/sh -c "sh -eu script; systemctl exit --force \\$?"
UNIT
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  chroot "$root" /lib/systemd/systemd --unit=script.service --log-target=journal --show-status=no </dev/null
' systemd.sh "$1" "$2" || code=$?
cat "$1/output"
# What was killed may need a moment to end.
until find "$group" -depth -type d -exec rmdir {} + 2>/dev/null; do sleep 0.1; done
exit "$code"
