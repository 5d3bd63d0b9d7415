import { createServer, Packet } from 'dns2'
import t, { type Test } from 'tap'
import { ask } from '../support/dig.ts'
import { freePort } from '../support/free-port.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/*
 * dns2 is a DNS library by others. Its server is a peer that knows nothing of ours: it answers queries for the zone
 * kdrnt as Kuadrant's operator of 2025 expects them (v1), refuses transfers, and has no v2 records.
 */

const HOST = 'app.k.example.org'
const { A, CNAME, SOA, TXT, AXFR } = Packet.TYPE
const REFUSED = 5
type Data = Partial<Packet['answers'][number]>

/** The zone of the peer: owner, type, data. */
const kdrnt = (serial: number): readonly (readonly [string, number, Data])[] => [
  [
    'kdrnt',
    SOA,
    {
      ...{ primary: 'ns.kdrnt', admin: 'host.kdrnt', serial },
      ...{ refresh: 60, retry: 60, expiration: 3600, minimum: 60 },
    },
  ],
  [`${HOST}.kdrnt`, CNAME, { domain: `klb.${HOST}.kdrnt` }],
  [`klb.${HOST}.kdrnt`, CNAME, { domain: `geo-na.klb.${HOST}.kdrnt` }],
  [`geo-na.klb.${HOST}.kdrnt`, CNAME, { domain: `na1.klb.${HOST}.kdrnt` }],
  [`na1.klb.${HOST}.kdrnt`, A, { address: serial === 1 ? '192.0.2.2' : '192.0.2.3' }],
  [`w.${HOST}.kdrnt`, TXT, { data: [`120,geo-na.klb.${HOST}.kdrnt`] }],
  [`g.${HOST}.kdrnt`, TXT, { data: ['geo=GEO-NA', 'type=continent', 'default=false'] }],
]

interface Peer {
  readonly port: number
  /** What it serves; every query is answered from it. */
  serial: number
  /** Names and types of the queries that arrived, in order. */
  readonly asked: string[]
}

async function startPeer(t: Test): Promise<Peer> {
  const peer: Peer = { port: await freePort(), serial: 1, asked: [] }
  const server = createServer({
    udp: true,
    tcp: true,
    handle: (request, send) => {
      const reply = Packet.createResponseFromRequest(request)
      const [question] = request.questions
      reply.header.aa = 1
      peer.asked.push(`${question?.name} ${question?.type}`)
      if (question === undefined || question.type === AXFR) reply.header.rcode = REFUSED
      else reply.answers.push(...answersTo(question.name, question.type, peer.serial))
      send(reply)
    },
  })
  const at = { port: peer.port, address: '127.0.0.1' }
  await server.listen({ udp: at, tcp: at })
  t.teardown(() => server.close())
  return peer
}

/** The records of a name, and of those that its CNAMEs lead to. */
function answersTo(name: string, type: number, serial: number): Packet['answers'] {
  const found: Packet['answers'] = []
  let owner = name.toLowerCase()
  for (let step = 0; step < 8; step++) {
    const records = kdrnt(serial).filter(([other]) => other === owner)
    for (const [, recordType, data] of records) {
      if (recordType !== type && recordType !== CNAME) continue
      const base = { name: owner, type: recordType, class: Packet.CLASS.IN, ttl: 5 }
      found.push({ ...base, ...data } as Packet['answers'][number])
    }
    const next = records.find(([, recordType]) => recordType === CNAME)?.[2].domain
    if (next === undefined) break
    owner = next
  }
  return found
}

const to = (name: string, target: string, more: string) =>
  `  - {dnsName: ${name}, recordType: CNAME, recordTTL: 60, targets: [${target}]${more}}`
const geo = (code: string) => `providerSpecific: [{name: geo-code, value: '${code}'}]`

/** Our own site: Europe, and every client that no other site matches. */
const RECORD = `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: app, namespace: gateways}
spec:
  rootHost: ${HOST}
  endpoints:
${to(HOST, `klb.${HOST}`, '')}
${to(`klb.${HOST}`, `geo-eu.klb.${HOST}`, `, setIdentifier: GEO-EU, ${geo('GEO-EU')}`)}
${to(`klb.${HOST}`, `geo-eu.klb.${HOST}`, `, setIdentifier: default, ${geo('*')}`)}
${to(`geo-eu.klb.${HOST}`, `eu1.klb.${HOST}`, '')}
  - {dnsName: eu1.klb.${HOST}, recordType: A, recordTTL: 60, targets: [192.0.2.1]}
`

t.test('a server of dns2 is a peer of the first version', needs('dig'), async (t) => {
  const peer = await startPeer(t)
  const server = await startServer(t, {
    corefile: `k.example.org:{PORT} {
  bind 127.0.0.1
  geoip {
    edns-subnet
    net 203.0.113.0/24 US
    net 198.51.100.0/24 DE
  }
  kuadrant {
    manifests records
    site berlin
    peer 127.0.0.1:${peer.port}
  }
}
`,
    files: { 'records/app.yaml': RECORD },
  })
  const addressFor = async (subnet: string): Promise<string> => {
    const { answer } = await ask('dig', server.port, [HOST, 'A', `+subnet=${subnet}`])
    return (
      answer
        .find((line) => line.includes(' IN A '))
        ?.split(' ')
        .at(-1) ?? ''
    )
  }
  const servesAmerica = (address: string) =>
    until(async () => (await addressFor('203.0.113.0/24')) === address, `${address} of the peer`)

  await servesAmerica('192.0.2.2')
  t.equal(await addressFor('198.51.100.0/24'), '192.0.2.1', 'Europe is ours')
  t.equal(await addressFor('192.0.2.0/24'), '192.0.2.1', 'and so are all others')
  for (const want of [`kdrnt ${AXFR}`, `v2.${HOST}.kdrnt ${TXT}`, `w.${HOST}.kdrnt ${TXT}`]) {
    t.ok(peer.asked.includes(want), `it was asked for ${want}`)
  }
  peer.serial = 2
  await servesAmerica('192.0.2.3')
  await server.prints(/is queried for each host/)
})
