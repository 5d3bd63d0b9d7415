import t from 'tap'
import { RRType } from '../../src/dns/iana/types.ts'
import { printName, scanName } from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import {
  type RecordHealth,
  type RecordState,
  UNKNOWN_HEALTH,
} from '../../src/health/address-health.ts'
import { LocalExporter } from '../../src/peering/local-exporter.ts'
import { scanPeerEndpoint } from '../../src/peering/v2-codec.ts'
import type { OwnerSet } from '../../src/publish/build/owner-set.ts'
import { RecordZone } from '../../src/publish/build/record-zone.ts'
import { unpackRecord } from '../../src/records/pack.ts'
import { recordId } from '../../src/records/record-source.ts'
import { targetsOf } from '../support/peer-text.ts'
import { TestHealth } from '../support/test-health.ts'
import { dnsRecord, stored } from './records.ts'

const HOST = 'k.example.com'
const CREATED = '2026-01-01T00:00:00Z'
const CREATED_SECONDS = Date.parse(CREATED) / 1000

function stateOf(addresses: readonly string[], health: RecordHealth = UNKNOWN_HEALTH): RecordState {
  const endpoints = addresses.map((address, i) => {
    return { dnsName: `${i}.${HOST}`, recordType: 'A', targets: [address], recordTTL: 60 }
  })
  const record = stored(dnsRecord({ rootHost: HOST, endpoints, created: CREATED }))
  return { record, health }
}

function exporter() {
  const clock = { now: () => 0 }
  const local = new LocalExporter('a', clock)
  const exportOf = (after: RecordState, before?: RecordState) => {
    const rdatas = local.composeRdata(after, unpackRecord(after.record.packed), before)
    return rdatas.map((rdata) => {
      const e = scanPeerEndpoint(rdata)
      if (typeof e === 'string') throw new Error(e)
      return `${targetsOf([e]).join()} ${e.health} ${e.sinceSeconds}`
    })
  }
  return { clock, exportOf }
}

t.test('an endpoint is as old as its record until it changes', async (t) => {
  const { clock, exportOf } = exporter()
  const first = stateOf(['192.0.2.1', '192.0.2.2'])
  t.strictSame(exportOf(first), [
    `192.0.2.1 unknown ${CREATED_SECONDS}`,
    `192.0.2.2 unknown ${CREATED_SECONDS}`,
  ])
  clock.now = () => 1_800_000_000_500
  const second = stateOf(['192.0.2.1', '192.0.2.3'])
  const want = [`192.0.2.1 unknown ${CREATED_SECONDS}`, '192.0.2.3 unknown 1800000000']
  t.strictSame(exportOf(second, first), want)
  clock.now = () => 1_900_000_000_000
  t.strictSame(exportOf(second), want, 'the same record always has the same form')
  t.strictSame(exportOf(second, first), want)
  t.strictSame(exportOf(first), [
    `192.0.2.1 unknown ${CREATED_SECONDS}`,
    `192.0.2.2 unknown ${CREATED_SECONDS}`,
  ])
  const third = stateOf(['192.0.2.1', '192.0.2.3'], { down: ['192.0.2.1'], up: [] })
  t.strictSame(exportOf(third, second), [
    '192.0.2.1 down 1900000000',
    '192.0.2.3 unknown 1800000000',
  ])
})

t.test('a zone kdrnt with a site exports every record, and its changes', async (t) => {
  const clock = { now: () => 1_800_000_000_000 }
  const local = new LocalExporter('a', clock)
  const health = new TestHealth()
  const sets = new Map<string, OwnerSet>()
  const key = (owner: Uint8Array, type: number) => `${printName(owner)} ${type}`
  const apex = scanName('kdrnt.')!
  const unsteered = { setIdentifier: '', weight: undefined, codes: [], isDefault: false }
  const zone = new RecordZone({
    apex,
    isLocalForm: true,
    exportV2: (state, content, before) => local.composeRdata(state, content, before),
    fixed: [],
    health,
    defaultNs: { owner: apex, type: RRType.NS, ttlSeconds: 60, rdata: [apex], ...unsteered },
    sink: {
      put: (owner, set) => sets.set(key(owner, set.type), set),
      remove: (owner, type) => sets.delete(key(owner, type)),
      declare: () => {},
    },
    onConflict: (text) => t.fail(text),
    onOut: () => {},
  })
  const empty = zone.digest
  const exported = () => sets.get(`v2.${HOST}.kdrnt. 16`)?.rdata.map((r) => printRdata(16, r)) ?? []
  const head = `"v=2" "site=a" "host=${HOST}" "name=0.${HOST}" "type=A" "ttl=60"`
  const ofRecord = `"created=${CREATED_SECONDS}" "record=${recordId('n/r')}"`
  const { record: first } = stateOf(['192.0.2.1'])
  zone.apply([{ before: undefined, after: first }])
  t.strictSame(exported(), [
    `${head} "health=unknown" "since=${CREATED_SECONDS}" ${ofRecord} "target=192.0.2.1"`,
  ])
  const { record: second } = stateOf(['192.0.2.2'])
  zone.apply([{ before: first, after: second }])
  t.strictSame(exported(), [
    `${head} "health=unknown" "since=1800000000" ${ofRecord} "target=192.0.2.2"`,
  ])
  const digest = zone.digest
  clock.now = () => 1_900_000_000_000
  zone.apply([{ before: second, after: second }])
  t.equal(zone.digest, digest, 'time alone changes nothing')
  health.put('n/r', ['192.0.2.2'])
  zone.apply([{ before: second, after: second }])
  t.strictSame(exported(), [
    `${head} "health=down" "since=1900000000" ${ofRecord} "target=192.0.2.2"`,
  ])
  zone.apply([{ before: second, after: undefined }])
  t.strictSame(exported(), [])
  t.equal(zone.digest, empty)
})

// It was exported as unknown, whatever probes had found.
t.test('an endpoint is exported as up only if probes found all of its targets up', async (t) => {
  const { clock, exportOf } = exporter()
  const before = stateOf(['192.0.2.1', '192.0.2.2'])
  exportOf(before)
  clock.now = () => 1_800_000_000_000
  const found: RecordState = { ...before, health: { down: [], up: ['192.0.2.1'] } }
  const want = ['192.0.2.1 up 1800000000', `192.0.2.2 unknown ${CREATED_SECONDS}`]
  t.strictSame(exportOf(found, before), want, 'a change of health is a change')
  const both: RecordState = { ...before, health: { down: ['192.0.2.2'], up: ['192.0.2.1'] } }
  t.match(exportOf(both)[1], '192.0.2.2 down')
})

t.test(
  'an endpoint is exported with the place where a DNSHealthCheckProbe probes it',
  async (t) => {
    const endpoints = [
      { dnsName: HOST, recordType: 'A', targets: ['192.0.2.1', '192.0.2.2'] },
      { dnsName: HOST, recordType: 'AAAA', targets: ['2001:db8::1'] },
      { dnsName: `c.${HOST}`, recordType: 'CNAME', targets: ['LB.example.net'] },
      { dnsName: `d.${HOST}`, recordType: 'A', targets: ['192.0.2.4'] },
      { dnsName: `e.${HOST}`, recordType: 'A', targets: ['192.0.2.5'] },
    ].map((endpoint, i) => {
      const providerSpecific = i === 4 ? [{ name: 'health-port', value: '8081' }] : []
      return { ...endpoint, recordTTL: 60, providerSpecific }
    })
    const record = stored(dnsRecord({ rootHost: HOST, endpoints, created: CREATED }))
    const at = (address: string, port: number) => ({ address, probeAt: { address: '', port } })
    const probedAt = [
      at('192.0.2.2', 2000),
      at('192.0.2.5', 5000),
      at('2001:db8::1', 3000),
      at('lb.example.net', 4000),
    ]
    const placesOf = (health: RecordHealth) => {
      const content = unpackRecord(record.packed)
      const local = new LocalExporter('a', { now: () => 0 })
      return local.composeRdata({ record, health }, content, undefined).map((rdata) => {
        const endpoint = scanPeerEndpoint(rdata)
        return typeof endpoint === 'string' ? endpoint : endpoint.endpoint.probeAt?.port
      })
    }
    t.strictSame(placesOf(UNKNOWN_HEALTH), [undefined, undefined, undefined, undefined, 8081])
    const health = { down: ['192.0.2.2'], up: [], probedAt }
    t.strictSame(placesOf(health), [2000, 3000, 4000, undefined, 5000])
  },
)
