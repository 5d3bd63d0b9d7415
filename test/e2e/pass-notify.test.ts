import t from 'tap'
import { ask, questionOf } from '../../src/client/ask.ts'
import { Opcode, Rcode, RRType } from '../../src/dns/iana/index.ts'
import { KDRNT_ZONE } from '../../src/dnsrecord/local-zone.ts'
import { getText } from '../support/get-text.ts'
import { freePort, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const NOTIFY = { ...questionOf(KDRNT_ZONE, RRType.SOA), opcode: Opcode.NOTIFY, edns: undefined }
const PEER = '127.0.0.30'
const RING = ['127.0.0.21', '127.0.0.22', '127.0.0.23']
/** One at most: UDP is not lost on this machine, and a second NOTIFY would be passed on as well. */
const PATIENCE = { timeoutMs: 20_000, tries: 1 }
const SECRET = 'NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk='

const WAYS = [
  { name: 'signed', more: 'pass-notify-key ring.example.' },
  { name: 'unsigned', more: '' },
]
for (const { name, more } of WAYS) {
  t.test(`three servers that pass NOTIFYs on in a ring come to rest, ${name}`, async (t) => {
    const httpPort = await freePort()
    const blockOf = (host: string, i: number): string => `kdrnt:{PORT} {
    bind ${host}
    prometheus 127.0.0.1:${httpPort}
    tsig {
        secret ring.example. ${SECRET}
    }
    kuadrant {
        manifests records
        pass-notify ${RING[(i + 1) % RING.length]}:{PORT}
        pass-notify-from ${PEER}/32 ${more === '' ? '127.0.0.0/24' : ''}
        ${more}
    }
}
`
    const server = await startServer(t, {
      corefile: RING.map(blockOf).join(''),
      files: { 'records/none.yaml': '' },
    })
    const count = async (outcome: string): Promise<number> => {
      const { text } = await getText(`http://127.0.0.1:${httpPort}/metrics`)
      const series = `sextant_kuadrant_notifies_total{outcome="${outcome}"} `
      return Number(
        text
          .split('\n')
          .find((line) => line.startsWith(series))
          ?.slice(series.length),
      )
    }
    const first = { host: RING[0]!, port: server.port }
    const answered = await ask({ server: first, query: NOTIFY, source: PEER, ...PATIENCE })
    t.match(answered, { kind: 'reply', message: { rcode: Rcode.NOERROR } })
    // Without the mark the second passes it on as well, and nobody ever refuses any.
    await until(async () => (await count('refused')) > 0, 'the ring to end').catch((e: Error) => {
      throw new Error(`${e.message}:\n${server.output()}`)
    })
    t.equal(await count('passed'), 1)
    await server.prints(/NOTIFY of 127\.0\.0\.21 is not passed on: it was passed on before/)
  })
}
