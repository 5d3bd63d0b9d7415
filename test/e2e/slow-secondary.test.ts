import t from 'tap'
import { composeQuery } from '../support/client.ts'
import { HostNetwork } from '../support/host-network.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

// Long: it waits for timeouts.

/*
 * A secondary that reads 64 KiB/s. With a send buffer of 1 MiB, the kernel has no room for more than `write` at a time:
 * Linux reports room once a third of the buffer is free. The reader prints how many octets came when it has them all.
 */

t.setTimeout(300_000)

const RECORDS = 10_000
const ZONE = [
  '$ORIGIN z.example.\n$TTL 300',
  '@ SOA ns hostmaster 1 3600 600 86400 300\n@ NS ns\nns A 192.0.2.53',
  ...Array.from({ length: RECORDS }, (_, i) => `host-${i} TXT ${'x'.repeat(180)}`),
].join('\n')
const COREFILE = `z.example:{PORT} {
    timeouts {
        write 1s
    }
    errors
    file zone
    transfer {
        to *
    }
}
`
const OCTETS_MIN = RECORDS * 200
const QUERY = composeQuery({ name: 'z.example', type: 'AXFR' }, 1)

const reader = (port: number): string => `
const socket = require('node:net').connect(${port}, '127.0.0.1')
let octets = 0
const report = () => { console.log('octets ' + octets); process.exit() }
socket.pause()
socket.write(Buffer.from('${Buffer.of(0, QUERY.length, ...QUERY).toString('hex')}', 'hex'))
setInterval(() => {
  octets += (socket.read(6554) ?? socket.read())?.length ?? 0
  if (octets >= ${OCTETS_MIN}) report()
}, 100)
socket.on('error', report)
socket.on('end', report)
`

t.test(
  'a slow secondary gets its zone',
  { ...needsRoot(), ...needs('ip', 'sysctl') },
  async (t) => {
    const network = await HostNetwork.create(t)
    const host = await network.addHost('site', ['192.0.2.1/24'])
    await host.run('sysctl', '-qw', 'net.ipv4.tcp_wmem=4096 16384 1048576')
    await host.run('sysctl', '-qw', 'net.ipv4.tcp_rmem=4096 65536 65536')
    const server = await startServer(t, {
      corefile: COREFILE,
      files: { zone: ZONE },
      wrapper: ['ip', 'netns', 'exec', network.nameOf('site')],
    })
    const startMs = performance.now()
    const secondary = host.start([process.execPath, '-e', reader(server.port)])
    await until(() => /octets \d+\n/.test(secondary.output()), 'the zone')
    const octets = Number(/octets (\d+)/.exec(secondary.output())?.[1])
    t.comment(`${octets} octets, ${(performance.now() - startMs).toFixed(0)} ms`)
    t.ok(octets >= OCTETS_MIN, `${secondary.output()}${server.output()}`)
    await secondary.end('SIGKILL')
  },
)
