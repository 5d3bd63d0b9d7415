# Installs the Debian package $2 in a copy of this machine below the folder $1, starts it, upgrades and removes it.
# It runs in mount, PID and network namespaces of its own.
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount -t tmpfs tmpfs "$1/root/run"
mount --rbind /dev "$1/root/dev"
cp "$2" "$1/root/root/sextant.deb"
ip link set lo up
chroot "$1/root" sh -eu <<'INSIDE'
ask() {
  dig @127.0.0.1 -p 1053 app.k.example.com +subnet=8.8.8.0/24 +short +tries=4
}
# As systemd does for the unit.
as_service() {
  setpriv --reuid=sextant --regid=sextant --clear-groups --bounding-set=-all,+net_bind_service \
    --inh-caps=-all,+net_bind_service --ambient-caps=-all,+net_bind_service --no-new-privs "$@"
}
unit=/usr/lib/systemd/system/sextant.service
dpkg -i /root/sextant.deb
systemctl is-enabled sextant
[ "$(stat -c %U:%a /var/lib/sextant)" = sextant:750 ]
install -d -o sextant -g sextant /run/sextant
cd /var/lib/sextant
as_service $(sed -n 's/^ExecStart=//p' "$unit") &
started=$!
until [ -s /run/sextant/pid ]; do kill -0 "$started"; sleep 0.1; done
old=$(cat /run/sextant/pid)
echo "before: $(ask)"

# An edited file is kept, a reload in the same process reads it, and after an upgrade a new process takes over.
echo '# edited' >>/etc/sextant/Corefile
as_service /usr/lib/sextant/reload "$old"
[ "$(cat /run/sextant/pid)" = "$old" ]
dpkg -i /root/sextant.deb
grep -q '^# edited' /etc/sextant/Corefile
as_service /usr/lib/sextant/reload "$old"
new=$(cat /run/sextant/pid)
[ "$new" != "$old" ]
wait "$started"
echo "upgraded: $(ask)"

kill -TERM "$new"
while kill -0 "$new" 2>/dev/null; do sleep 0.1; done
# What is removed and installed again starts with the machine, as before.
dpkg --remove sextant
dpkg -i /root/sextant.deb
systemctl is-enabled sextant
dpkg --purge sextant
[ ! -L /etc/systemd/system/multi-user.target.wants/sextant.service ]
[ ! -e /etc/sextant ] && [ ! -e /usr/lib/sextant ] && [ ! -e /var/lib/sextant ]
echo purged
INSIDE
