import t from 'tap'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { UdpClient } from '../support/client.ts'
import { startServer } from '../support/server.ts'

const ASKS = 300
const IN_FLIGHT = 50
/** Nearly seven standard deviations of a quarter's share: by chance it is off by more less than once in 10^11 times. */
const SHARE_OFF = 0.17

/** Every type of endpoint: target number N, as it is written and as it is served. */
const TYPES: readonly (readonly [type: string, target: string])[] = [
  ['A', '192.0.2.N'],
  ['AAAA', '2001:db8::N'],
  ['CNAME', 'hN.example.net.'],
  ['NS', 'nsN.example.net.'],
  ['TXT', '"tN"'],
  ['MX', 'N mxN.example.net.'],
  ['SRV', 'N 1 5060 sN.example.net.'],
  ['CAA', '0 issue "caN.example.net"'],
  ['PTR', 'pN.example.net.'],
  ['NAPTR', 'N 1 "u" "e2u+sip" "" .'],
  ['HTTPS', 'N . alpn="h2"'],
  ['SVCB', 'N sN.example.net.'],
]

const OWNERS = {
  apex: { owner: 'k.example.com', ask: 'k.example.com' },
  ordinary: { owner: 'app.k.example.com', ask: 'app.k.example.com' },
  wildcard: { owner: '*.wild.k.example.com', ask: 'some.wild.k.example.com' },
} as const

/** Target number, geo code, weight: Europe has a quarter, three quarters and a standby. */
const ENDPOINTS = [
  [1, 'GEO-EU', '10'],
  [2, 'GEO-EU', '30'],
  [3, 'GEO-EU', '0'],
  [4, 'IE', '5'],
  [5, '*', '5'],
] as const

const COREFILE = `k.example.com:{PORT} {
    bind 127.0.0.1
    geoip {
        edns-subnet
        net 198.51.100.0/24 IE
        net 203.0.113.0/25 GEO-EU
        net 203.0.113.128/25 GEO-SA
    }
    kuadrant {
        manifests records
    }
}
`
const [IRELAND, EUROPE, ELSEWHERE] = ['198.51.100.0/24', '203.0.113.0/25', '203.0.113.128/25']

/** A CNAME has its owner to itself and none at the apex; NS below the apex would delegate. */
function suits(type: string, where: keyof typeof OWNERS): boolean {
  if (type === 'NS') return where === 'apex'
  return type !== 'CNAME' || where !== 'apex'
}

function ownerOf(name: string, type: string): string {
  return type === 'CNAME' ? name.replace(/(^|\.)(app|wild)\./, '$1cname-$2.') : name
}

function manifest(): string {
  const endpoints = TYPES.flatMap(([type, target]) =>
    (['apex', 'ordinary', 'wildcard'] as const)
      .filter((where) => suits(type, where))
      .flatMap((where) =>
        ENDPOINTS.map(([number, code, weight]) => ({
          dnsName: ownerOf(OWNERS[where].owner, type),
          recordType: type,
          setIdentifier: String(number),
          targets: [target.replaceAll('N', String(number))],
          providerSpecific: [
            { name: 'geo-code', value: code },
            { name: 'weight', value: weight },
          ],
        })),
      ),
  )
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'all', namespace: 'tests' },
    spec: { rootHost: 'k.example.com', endpoints },
  })
}

t.test('GEO, then weight, for every type at every kind of owner', async (t) => {
  const server = await startServer(t, {
    corefile: COREFILE,
    files: { 'records/all.json': manifest() },
  })
  const client = await UdpClient.connect(server.port)
  t.teardown(() => client.close())
  const answer = async (name: string, type: string, subnet: string): Promise<string> => {
    const message = parseMessage(await client.ask({ name, type, subnet }))
    return message!.answer.map((record) => printRdata(record.type, record.rdata)).join('+')
  }
  for (const [type, target] of TYPES) {
    for (const where of ['apex', 'ordinary', 'wildcard'] as const) {
      if (!suits(type, where)) continue
      await t.test(`${type}, ${where}`, async (t) => {
        const name = ownerOf(OWNERS[where].ask, type)
        const want = (number: number) => target.replaceAll('N', String(number))
        t.equal(await answer(name, type, IRELAND), want(4), 'country beats continent')
        t.equal(await answer(name, type, ELSEWHERE), want(5), 'the default')
        const answers: string[] = []
        while (answers.length < ASKS) {
          const asked = Array.from({ length: IN_FLIGHT }, () => answer(name, type, EUROPE))
          answers.push(...(await Promise.all(asked)))
        }
        t.strictSame([...new Set(answers)].sort(), [want(1), want(2)], 'never the standby')
        const share = answers.filter((text) => text === want(1)).length / ASKS
        t.ok(Math.abs(share - 0.25) <= SHARE_OFF, `${share} instead of a quarter`)
      })
    }
  }
})
