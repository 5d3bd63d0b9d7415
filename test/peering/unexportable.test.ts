import t from 'tap'
import { UnexportableRecords } from '../../src/peering/unexportable.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../../src/records/record-source.ts'
import { recordLog } from '../support/recorded-log.ts'
import { FakeClock } from '../support/setup.ts'
import { until } from '../support/until.ts'
import { dnsRecord, stored } from './records.ts'

class Records implements RecordSource {
  readonly given = new Map<string, StoredRecord>()
  readonly recordCount = 0
  readonly listeners = new Set<(changes: readonly RecordChange[]) => void>()

  records() {
    return this.given.values()
  }
  find(key: string) {
    return this.given.get(key)
  }
  problems() {
    return []
  }
  unreadyReason() {
    return ''
  }
  subscribe(listener: (changes: readonly RecordChange[]) => void) {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  set(key: string, after: StoredRecord | undefined): void {
    const before = this.given.get(key)
    if (after === undefined) this.given.delete(key)
    else this.given.set(key, after)
    for (const listener of this.listeners) listener([{ before, after }])
  }
}

function record(key: string, rootHost: string, ...targets: readonly string[]): StoredRecord {
  const recordType = targets[0]!.startsWith('192.') ? 'A' : 'TXT'
  const endpoints = [{ dnsName: rootHost, recordType, targets, recordTTL: 60 }]
  return { ...stored(dnsRecord({ rootHost, endpoints })), key }
}

/** A host of that many octets on the wire, as far as there is room in labels of 60. */
function hostOf(octets: number): string {
  const labels: string[] = []
  let left = octets - 1
  for (; left > 60; left -= 31) labels.push('a'.repeat(30))
  return [...labels, 'b'.repeat(left - 1)].join('.')
}

function start(source: Records) {
  const { lines, log } = recordLog()
  const clock = new FakeClock()
  const allows = ({ key }: StoredRecord) => !key.startsWith('other/')
  const unexportable = new UnexportableRecords({ source, allows, site: 'east', log, clock })
  return { unexportable, clock, take: () => lines.splice(0) }
}

const SMALL = '192.0.2.1'
/** Of one endpoint: more than a TXT record holds. */
const LARGE = Array.from({ length: 20 }, (_, i) => `${i}${'x'.repeat(4000)}`)

function withFailover(count: number): StoredRecord {
  const failover = Array.from({ length: 60 }, (_, i) => `AS${i + 1}: a, b, c`).join('\n')
  const endpoints = Array.from({ length: count }, (_, i) => {
    return { dnsName: `n${i}.k.example.com`, recordType: 'A', targets: [SMALL], recordTTL: 60 }
  })
  const annotations = { 'sextant.io/failover': failover }
  const rootHost = 'k.example.com'
  return { ...stored(dnsRecord({ rootHost, endpoints, annotations })), key: 'n/a' }
}

t.test('endpoints that cannot be exported are logged for existing records', async (t) => {
  const long = hostOf(247)
  const table: readonly { name: string; given: StoredRecord; want: RegExp | undefined }[] = [
    { name: 'a host as any', given: record('n/a', 'k.example.com', SMALL), want: undefined },
    { name: 'the longest host', given: record('n/a', hostOf(246), SMALL), want: undefined },
    {
      name: 'one that is longer',
      given: record('n/a', long, SMALL),
      want: new RegExp(`n/a: it is not exported to other sites: ${long} is too long for a name`),
    },
    {
      name: 'an endpoint that a record can not hold',
      given: record('n/a', 'k.example.com', ...LARGE),
      want: /n\/a: 1 of its endpoints are not exported to other sites: they are too long for a record/,
    },
    {
      name: 'a large one that a record holds',
      given: record('n/a', 'k.example.com', ...LARGE.slice(0, 3)),
      want: undefined,
    },
    {
      name: 'a failover list that its endpoints can not all have',
      given: withFailover(900),
      want: /n\/a: its failover list is not exported to other sites: 900 endpoints .* at most 262144/,
    },
    { name: 'one that they can have', given: withFailover(100), want: undefined },
    { name: 'one that is not for us', given: record('other/a', long, SMALL), want: undefined },
  ]
  for (const { name, given, want } of table) {
    const source = new Records()
    source.set(given.key, given)
    // The last one shows that all were checked.
    source.set('n/z', record('n/z', hostOf(248), SMALL))
    const { unexportable, take } = start(source)
    const lines: string[] = []
    await until(() => {
      lines.push(...take())
      return lines.some((line) => line.includes('n/z'))
    }, name)
    const [line] = lines.filter((one) => !one.includes('n/z'))
    if (want === undefined) t.equal(line, undefined, name)
    else t.match(line, want, name)
    unexportable.close()
    t.equal(source.listeners.size, 0)
  }
})

t.test('each is said once, and again when it was otherwise meanwhile', async (t) => {
  const source = new Records()
  const { unexportable, clock, take } = start(source)
  const long = record('n/a', hostOf(250), SMALL)
  const fine = record('n/a', 'k.example.com', SMALL)
  const said = (line: string | undefined): boolean =>
    line?.includes('n/a: it is not exported') === true
  source.set('n/a', long)
  t.ok(said(take()[0]))
  source.set('n/a', record('n/a', hostOf(250), '192.0.2.2'))
  t.strictSame(take(), [], 'an edit')
  source.set('n/a', fine)
  source.set('n/a', long)
  t.ok(said(take()[0]), 'it was exportable in between')
  source.set('n/a', undefined)
  source.set('n/a', long)
  t.ok(said(take()[0]), 'it was gone in between')
  for (let i = 0; i < 200; i++) source.set(`n/${i}`, record(`n/${i}`, hostOf(250), SMALL))
  t.ok(take().length < 110, 'not too many at a time')
  clock.pass(3_600_000)
  source.set('n/199', record('n/199', hostOf(250), '192.0.2.2'))
  t.ok(take().length > 0, 'what found no room is said later')
  unexportable.close()
  source.set('n/b', record('n/b', hostOf(250), SMALL))
  t.strictSame(take(), [])
})
