# Installs the Debian package in /mnt by /mnt/commands, upgrades and removes it, with the systemd of systemd.sh.
ask() {
  dig @127.0.0.1 -p 1053 app.k.example.com +subnet=8.8.8.0/24 +short +tries=4
}
main() {
  systemctl show sextant --property=MainPID --value
}
ended() {
  while [ -e "/proc/$1" ]; do sleep 0.1; done
}
fails() {
  if "$@"; then
    echo "did not fail: $*"
    return 1
  fi
}
install() {
  dpkg --force-unsafe-io -i /mnt/*.deb
}
trap '[ $? = 0 ] || journalctl --no-pager --unit=sextant | grep -v NOERROR' EXIT

# The index of man pages takes longer than all that is tested.
rm -f /var/lib/man-db/auto-update

# It serves when the installation or a start ends.
(cd /mnt && sh -eu commands)
systemctl is-enabled sextant
[ "$(stat -c %U:%a /var/lib/sextant)" = sextant:750 ]
old=$(main)

# An edited file is kept, a reload in the same process reads it, and at an upgrade a new process takes over.
echo '# edited' >>/etc/sextant/Corefile
systemctl reload sextant
[ "$(main)" = "$old" ]
/usr/lib/sextant/node /mnt/load-client.mjs app.k.example.com 127.0.0.1:1053:5:1 >load &
load=$!
install
grep -q '^# edited' /etc/sextant/Corefile
new=$(main)
[ "$new" != "$old" ]
ended "$old"
systemctl is-active sextant
[ "$(main)" = "$new" ]
kill -TERM "$load"
wait "$load"
echo "lost at the upgrade: $(grep -o '"failed":[0-9]*' load)"
echo "upgraded: $(ask)"
journalctl --quiet --identifier=sextant _PID="$new" | grep -c 'udp: batch'

# A process that took over is started again after a crash.
kill -KILL "$new"
while [ -e "/proc/$new" ] || [ "$(systemctl is-active sextant)" != active ]; do sleep 0.1; done
echo "crashed: $(ask)"

# If the new process does not start, the old one is kept.
old=$(main)
cp /usr/lib/sextant/node new
mv new /usr/lib/sextant/node
cp /etc/sextant/Corefile .
echo '{' >>/etc/sextant/Corefile
fails systemctl reload sextant
[ "$(main)" = "$old" ]
echo "kept: $(ask)"

# In a take-over, a stop ends both processes.
cp Corefile /etc/sextant
systemctl reload sextant
new=$(main)
[ "$new" != "$old" ]
systemctl stop sextant
fails ls -d "/proc/$old"
fails ls -d "/proc/$new"

# A start that fails says so.
echo '{' >>/etc/sextant/Corefile
fails systemctl start sextant
cp Corefile /etc/sextant

# What is removed and installed again starts with the machine, as before.
dpkg --remove sextant
install
systemctl is-enabled sextant
dpkg --purge sextant
for path in /etc/systemd/system/multi-user.target.wants/sextant.service /etc/sextant /usr/lib/sextant /var/lib/sextant; do
  fails ls -d "$path"
done
echo purged
