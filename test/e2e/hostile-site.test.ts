import t, { type Test } from 'tap'
import { ask, questionOf } from '../../src/client/ask.ts'
import { printRcode, printType, RRType } from '../../src/dns/iana/index.ts'
import type { Message, ResourceRecord } from '../../src/dns/message/message.ts'
import { printName, scanName } from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import type { PeerEndpoint } from '../../src/peering/peer-endpoint.ts'
import { peerRecord, record } from '../support/exported-zone.ts'
import { getText } from '../support/get-text.ts'
import { framed, HostilePeer, replyTo } from '../support/hostile-peer.ts'
import { endpoint, type PeerText } from '../support/peer-text.ts'
import { freePort } from '../support/server.ts'
import { until } from '../support/until.ts'
import { pairOf, Site, ZONE } from './sites.ts'

const manifest = (host: string, endpoints: readonly string[]): string => `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: ${host.replace('*', 'any')}, namespace: zz, creationTimestamp: "2020-01-01T00:00:00Z"}
spec:
  rootHost: "${host}.${ZONE}"
  endpoints:
${endpoints.map((text) => `  - {recordTTL: 60, ${text}}`).join('\n')}
`
const named = (name: string) => `dnsName: "${name}.${ZONE}"`
const OWN = [
  manifest('app', [`${named('app')}, recordType: A, targets: [192.0.2.1]`]),
  manifest('alias', [`${named('alias')}, recordType: CNAME, targets: [lb.example.net]`]),
  manifest('*.any', [`${named('*.any')}, recordType: A, targets: [192.0.2.2]`]),
  manifest('set', [
    `${named('set')}, recordType: A, targets: [192.0.2.3], setIdentifier: x, providerSpecific: [{name: weight, value: "10"}]`,
  ]),
  manifest('deep', [`${named('in.deep')}, recordType: A, targets: [192.0.2.4]`]),
].join('')

const EVIL = '203.0.113.66'
const evil = (rootHost: string, more: Partial<PeerText>): PeerEndpoint => {
  const host = rootHost === '' ? ZONE : `${rootHost}.${ZONE}`
  return endpoint({ site: '0evil', rootHost: host, dnsName: host, targets: [EVIL], ...more })
}
const alias = { recordType: 'CNAME', targets: ['evil.example'] }
const ns = { recordType: 'NS', targets: ['ns.evil.example'] }

/**
 * Each of them would take something of ours. Not here: weights, codes, set identifiers and CNAMEs beside a CNAME, which count
 * as in one record.
 */
const ATTACKS: readonly PeerEndpoint[] = [
  evil('app', { targets: ['192.0.2.1'], health: 'down' }),
  evil('app', { ttlSeconds: 0 }),
  evil('app', alias),
  evil('app', ns),
  evil('app', { recordType: 'HTTPS', targets: ['0 evil.example.'] }),
  evil('app', { dnsName: `_acme-challenge.app.${ZONE}`, recordType: 'TXT', targets: ['token'] }),
  evil('alias', { targets: [EVIL] }),
  evil('www.any', {}),
  evil('*.any', { dnsName: `www.any.${ZONE}` }),
  evil('in.deep', alias),
  evil('', ns),
  evil('', { recordType: 'MX', targets: ['10 mx.evil.example.'] }),
  evil('', { dnsName: `app.${ZONE}`, ...alias }),
  evil('*', {}),
  evil('ns1', {}),
  evil('_acme-challenge', { recordType: 'TXT', targets: ['token'] }),
]
/** What the peer may say. */
const GOOD = [evil('good', {}), evil('app', { dnsName: `c.app.${ZONE}` })]

const soa = () => record('kdrnt.', 'SOA', 'ns1.kdrnt. hostmaster.kdrnt. 7 7200 1800 86400 60')

/** What a site answers: `TYPE ttl rdata` of each record, sorted, or an rcode. */
async function answers(site: Site, name: string, type: keyof typeof RRType): Promise<string> {
  const { address: host, port } = site.options
  const query = questionOf(scanName(name === '' ? `${ZONE}.` : `${name}.${ZONE}.`)!, RRType[type])
  const answered = await ask({ server: { host, port }, query, timeoutMs: 5000, tries: 6 })
  if (answered.kind === 'failed') return answered.reason
  const { answer, authority, rcode } = answered.message
  if (answer.length === 0) return `${printRcode(rcode)} ${authority.map((r) => printType(r.type))}`
  const lines = answer.map(
    (r) => `${printType(r.type)} ${r.ttlSeconds} ${printRdata(r.type, r.rdata)}`,
  )
  return lines.sort().join(', ')
}

async function holds(t: Test, site: Site): Promise<void> {
  for (const [name, type, want] of [
    ['alias', 'A', 'CNAME 60 lb.example.net.'],
    ['www.any', 'A', 'A 60 192.0.2.2'],
    ['set', 'A', 'A 60 192.0.2.3'],
    ['in.deep', 'A', 'A 60 192.0.2.4'],
    ['', 'NS', `NS 60 ns1.${ZONE}.`],
    ['', 'MX', 'NOERROR SOA'],
    ['nothing', 'A', 'NXDOMAIN SOA'],
    ['ns1', 'A', 'NXDOMAIN SOA'],
    ['app', 'HTTPS', 'NOERROR SOA'],
    ['app', 'NS', 'NOERROR SOA'],
    ['_acme-challenge', 'TXT', 'NXDOMAIN SOA'],
    ['_acme-challenge.app', 'TXT', 'NXDOMAIN SOA'],
  ] as const) {
    t.equal(await answers(site, name, type), want, `${name} ${type}`)
  }
}

t.test('a hostile peer takes nothing from a site (v2)', async (t) => {
  const peer = await HostilePeer.open(t, {
    datagram: (query) => replyTo(query, [soa()]),
    *stream(query: Message) {
      yield framed(replyTo(query, [soa(), ...[...GOOD, ...ATTACKS].map(peerRecord), soa()]))
    },
  })
  const readyPort = await freePort()
  const { west } = await pairOf()
  const options = { ...west, peers: [`127.0.0.1:${peer.port}`], readyPort }
  const site = await Site.start(t, { ...options, files: { 'zones/own.yaml': OWN } })
  await site.prints(/peer without tsig: any host that can forge packets/)
  await until(async () => (await site.ask('127.0.50.0/24', `good.${ZONE}`)) === EVIL, 'the peer')
  const app = async () => answers(site, 'app', 'A')
  await until(async () => /192\.0\.2\.1/.test(await app()), 'our address')
  const both = new RegExp(String.raw`^A (\d) 192\.0\.2\.1, A \1 ${EVIL}$`)
  t.match(await app(), both, 'all addresses alike, with the lowest TTL')
  t.equal(await answers(site, 'c.app', 'A'), `A 60 ${EVIL}`, 'what it may say')
  await holds(t, site)
  const page = async (path: string) => (await getText(`http://127.0.0.1:${readyPort}/${path}`)).text
  await until(async () => /^OK/.test(await page('ready')), 'the server to be ready')
  const metrics = await page('metrics')
  t.match(metrics, /sextant_kuadrant_conflicts\{source="[^"]*",zone="k\.example\.com\."\} [1-9]/)
  t.match(
    metrics,
    /sextant_peer_denied\{zones="k\.example\.com\.",peer="127\.0\.0\.1:\d+",site="[^"]+"\} 1\d/,
  )
  await site.prints(
    /app\.k\.example\.com\.: CNAME \(0evil: .*\) beside A \(zz\/app\): the CNAME is not served/,
  )
  await site.prints(/peer 127\.0\.0\.1:\d+: refused: "k\.example\.com" NS: peers may not delegate/)
})

/** A server of 2025 that is hostile: what it answers for a host, and the CNAMEs and addresses that it leads to. */
function oldAnswers(query: Message): readonly ResourceRecord[] {
  const { name, type } = query.question!
  const text = printName(name).toLowerCase()
  if (type === RRType.SOA) return [soa()]
  const isA = type === RRType.A
  if (isA && text === `app.${ZONE}.kdrnt.`) {
    return [record(text, 'CNAME', 'evil.example.'), record(text, 'A', EVIL)]
  }
  if (isA && text === `alias.${ZONE}.kdrnt.`) {
    return [{ ...record(text, 'A', EVIL), ttlSeconds: 0 }]
  }
  if (isA && text === `deep.${ZONE}.kdrnt.`) {
    const taken = `in.deep.${ZONE}.kdrnt.`
    return [record(text, 'CNAME', taken), record(taken, 'CNAME', 'evil.example.')]
  }
  if (isA && text === `*.any.${ZONE}.kdrnt.`) {
    return [record(text, 'A', EVIL), record(`www.any.${ZONE}.kdrnt.`, 'CNAME', 'evil.example.')]
  }
  if (isA && text === `set.${ZONE}.kdrnt.`) return [record(text, 'A', EVIL)]
  if (type === RRType.TXT && text === `w.set.${ZONE}.kdrnt.`) {
    return [record(text, 'TXT', `"1,set.${ZONE}.kdrnt"`)]
  }
  return []
}

t.test('a hostile peer takes nothing from a site (v1)', async (t) => {
  const peer = await HostilePeer.open(t, {
    datagram: (query) => replyTo(query, oldAnswers(query)),
    *stream(query: Message) {
      yield framed(replyTo(query, [soa(), record(`app.${ZONE}.kdrnt.`, 'A', EVIL), soa()]))
    },
  })
  const { west } = await pairOf()
  const options = { ...west, peers: [`127.0.0.1:${peer.port}`] }
  const site = await Site.start(t, { ...options, files: { 'zones/own.yaml': OWN } })
  const app = async () => answers(site, 'app', 'A')
  await until(async () => (await app()).includes(EVIL), 'the peer')
  t.equal(await app(), `A 60 192.0.2.1, A 60 ${EVIL}`)
  await site.prints(/refused: "www\.any\.k\.example\.com" CNAME: our wildcard answers/)
  const draws = await site.draws('127.0.50.0/24', 60, `set.${ZONE}`)
  t.ok(draws.size <= 2 && (draws.get('192.0.2.3') ?? 0) > 20, 'weights count beside weights')
  t.equal(await answers(site, 'alias', 'A'), 'CNAME 60 lb.example.net.')
  t.equal(await answers(site, 'in.deep', 'A'), 'A 60 192.0.2.4')
  t.equal(await answers(site, 'www.any', 'A'), `A 60 192.0.2.2, A 60 ${EVIL}`, 'the wildcard')
})
