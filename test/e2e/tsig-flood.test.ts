import t from 'tap'
import { scanName } from '../../src/dns/name/name.ts'
import { HMAC_SHA256 } from '../../src/dns/tsig/algorithm.ts'
import { createTsigKey } from '../../src/dns/tsig/key.ts'
import { RequestSigner } from '../../src/dns/tsig/request-signer.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { wireQuery } from '../support/wire.ts'
import { SpoofingClient } from './spoofing-client.ts'

// Long: it floods a server for tens of seconds.

t.setTimeout(300_000)

const QUERIES = 20_000
/** Of `errors`: 100 lines in 10 s for each of two data threads and the control thread. */
const LINES_PER_PERIOD = 300
const PERIOD_MS = 10_000
const ZONE = `$ORIGIN z.example.
@ 3600 SOA ns hostmaster 1 3600 600 86400 60
a 60 A 192.0.2.1
`

for (const transport of ['batch', 'dgram']) {
  t.test(`${transport}: forged signatures fill no log`, async (t) => {
    const secret = new Uint8Array(32).fill(7)
    const server = await startServer(t, {
      corefile: `z.example:{PORT} {
        bind 127.0.0.1
        multisocket 2
        errors
        tsig {
          secret k.example. ${Buffer.from(secret).toString('base64')}
        }
        file db.z
      }\n`,
      files: { 'db.z': ZONE },
      env: { SEXTANT_UDP: transport },
    })
    const client = new SpoofingClient(t, server.port)
    const query = wireQuery({ name: 'a.z.example' })
    const sign = (name: string, with_: Uint8Array): Uint8Array => {
      const key = createTsigKey(scanName(name)!, HMAC_SHA256, with_)
      return new RequestSigner(key).sign(query, Math.floor(Date.now() / 1000))
    }
    const startMs = performance.now()
    const before = server.output().length
    await client.flood(1, QUERIES, sign('k\\010\\[ERROR]forged.example.', secret))
    t.ok(client.replies > QUERIES * 0.98, `${client.replies} of an unknown key are refused`)
    const refused = client.replies
    await client.flood(1, 3000, sign('k.example.', new Uint8Array(32)))
    const periods = Math.ceil((performance.now() - startMs) / PERIOD_MS) + 1
    t.ok(client.replies - refused < 1000 * 3 * periods, 'few wrong MACs are verified')
    await server.prints(/plugin\/errors: errors not logged: \d+ in the last 10s/)
    const printed = server.output().slice(before)
    const lines = printed.split('\n')
    t.comment(`${lines.length} lines, ${printed.length} octets, ${client.sent} queries`)
    t.ok(lines.length <= (LINES_PER_PERIOD + 1) * periods + 1, `${lines.length} lines`)
    t.notOk(lines.some((line) => line.startsWith('[ERROR]forged')))
    const first = new SpoofingClient(t, server.port)
    const right = sign('k.example.', secret)
    await until(async () => {
      await first.flood(0x10000, 1, right)
      return first.replies > 0
    }, 'the debt of the flood to be paid')
    // Of its own: replies to the first one that come late do not count.
    const honest = new SpoofingClient(t, server.port)
    await honest.flood(0x10000, 500, right)
    t.equal(honest.replies, 500, 'right signatures are answered afterwards')
    t.ok(honest.replyOctets > 500 * 100)
  })
}
