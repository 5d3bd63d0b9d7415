import { join } from 'node:path'
import { masterFile, PLAIN_ZONE, plainLines } from '../content.mjs'
import { write } from '../files.mjs'

/** Plain zones only: it chooses nothing. */
export const nsd = {
  name: 'NSD',
  command: 'nsd',
  debian: 'nsd',
  withoutGeo: true,
  prepare({ directory, port, names }) {
    const file = join(directory, 'zone')
    write(file, masterFile(PLAIN_ZONE, plainLines(names)))
    return writeConfig({ directory, port }, [{ zone: PLAIN_ZONE, file }])
  },
}

/** Writes nsd.conf for `zones`; returns the arguments of nsd. */
export function writeConfig({ directory, port }, zones) {
  const path = join(directory, 'nsd.conf')
  write(path, [
    `server:
  ip-address: 127.0.0.1@${port}
  username: ""
  server-count: 1
  tcp-count: 4000
  rrl-ratelimit: 0
  pidfile: "${directory}/nsd.pid"
  xfrdfile: ""
  zonelistfile: "${directory}/nsd.list"
  logfile: "${directory}/nsd.log"
remote-control:
  control-enable: no
`,
    ...zones.map(({ zone, file }) => `zone:\n  name: ${zone}\n  zonefile: ${file}\n`),
  ])
  return ['-d', '-c', path]
}
