import t from 'tap'
import { ask } from '../support/dig.ts'
import { freePort } from '../support/free-port.ts'
import { getText } from '../support/get-text.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'

const NOTHING = /plugin\/shed: nothing to shed: data threads have no queue of replies/

for (const udp of ['dgram', 'batch']) {
  t.test(`shed with UDP over ${udp}`, needs('dig'), async (t) => {
    const metrics = await freePort()
    const block = (directive: string) => `example.org:{PORT} {
  bind 127.0.0.1
  ${directive}
  prometheus 127.0.0.1:${metrics}
  whoami
}
`
    const env = udp === 'dgram' ? { SEXTANT_UDP: udp } : {}
    const server = await startServer(t, { corefile: block('shed'), env })
    const isBatch = server.output().includes('udp: batch')
    t.match(await ask('dig', server.port, ['example.org', 'A']), { status: 'NOERROR' })
    t.equal(NOTHING.test(server.output()), isBatch, server.output())
    const { text } = await getText(`http://127.0.0.1:${metrics}/metrics`)
    t.match(text, /^# TYPE coredns_shed_dropped_total counter$/m)
    server.process.kill('SIGTERM')
    t.equal(await server.exited(), 0, server.output())
  })
}
