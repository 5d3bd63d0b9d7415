import t from 'tap'
import { carrySince, toPeerEndpoints } from '../../src/peering/to-peer-endpoint.ts'
import { dnsRecord, layout } from './records.ts'
import { shared } from './samples.ts'

const GATEWAY = {
  host: '*.k.example.com',
  cluster: 'c1',
  geo: 'GEO-EU',
  isDefault: true,
  weight: 120,
  addresses: ['192.0.2.1', '192.0.2.2'],
}
const record = dnsRecord({ rootHost: GATEWAY.host, endpoints: layout(GATEWAY) })

function health(down: readonly string[], up: readonly string[]): string[] {
  const facts = { site: 'a', down, up, sinceSeconds: 1 }
  return toPeerEndpoints(record, facts).map((e) => `${e.dnsName} ${e.targets.join()} ${e.health}`)
}

t.test('a record is exported with the host as the record writes it', async (t) => {
  const exported = toPeerEndpoints(record, { site: 'a', down: [], up: [], sinceSeconds: 1 })
  t.match(exported[0], {
    site: 'a',
    rootHost: '*.k.example.com',
    dnsName: '*.k.example.com',
    recordType: 'CNAME',
    ttlSeconds: 300,
    targets: ['klb.k.example.com'],
    sinceSeconds: 1,
  })
  t.match(exported[2], { setIdentifier: 'default', geoCodes: [], isDefault: true })
})

t.test('health of addresses goes up their chain', async (t) => {
  const chain = (word: string) => [
    `*.k.example.com klb.k.example.com ${word}`,
    `klb.k.example.com geo-eu.klb.k.example.com ${word}`,
    `klb.k.example.com geo-eu.klb.k.example.com ${word}`,
    `geo-eu.klb.k.example.com c1.klb.k.example.com ${word}`,
  ]
  const both = 'c1.klb.k.example.com 192.0.2.1,192.0.2.2'
  const [one, two] = ['192.0.2.1', '192.0.2.2']
  t.strictSame(health([], []), [...chain('unknown'), `${both} unknown`])
  t.strictSame(health([one, two], []), [...chain('down'), `${both} down`])
  t.strictSame(health([], [one, two]), [...chain('up'), `${both} up`])
  t.strictSame(health([], [one]), [...chain('unknown'), `${both} unknown`])
  t.strictSame(health([one], []).at(-1), `c1.klb.k.example.com 192.0.2.2 unknown`)
  t.strictSame(health([one], [two]).at(-1), `c1.klb.k.example.com 192.0.2.2 up`)
})

t.test('times go on where content and health are the same', async (t) => {
  const before = [shared({ sinceSeconds: 5 }), shared({ sinceSeconds: 6, weight: 1 })]
  const after = [shared(), shared({ weight: 2 }), shared({ health: 'down' })]
  t.strictSame(
    carrySince(before, after, 9).map((e) => e.sinceSeconds),
    [5, 9, 9],
  )
})
