import t from 'tap'
import { LocalTeller } from '../../src/peering/local-teller.ts'
import { scanShared } from '../../src/peering/shared-text.ts'
import { unpackRecord } from '../../src/record/pack.ts'
import type { StoredRecord } from '../../src/record/source.ts'
import { dnsRecord, stored } from './records.ts'

const HOST = 'k.example.com'
const CREATED = '2026-01-01T00:00:00Z'
const CREATED_SECONDS = Date.parse(CREATED) / 1000

function record(addresses: readonly string[], down: readonly string[] = []): StoredRecord {
  const endpoints = addresses.map((address, i) => {
    return { dnsName: `${i}.${HOST}`, recordType: 'A', targets: [address], recordTTL: 60 }
  })
  return stored(dnsRecord({ rootHost: HOST, endpoints, created: CREATED }), down)
}

function teller() {
  const clock = { now: () => 0 }
  const local = new LocalTeller('a', clock)
  const tell = (after: StoredRecord, before?: StoredRecord) => {
    const told = local.tell(after, unpackRecord(after.packed), before)
    return told.map((rdata) => {
      const e = scanShared(rdata)
      if (typeof e === 'string') throw new Error(e)
      return `${e.targets.join()} ${e.health} ${e.sinceSeconds}`
    })
  }
  return { clock, tell }
}

t.test('an endpoint is as old as its record until it changes', async (t) => {
  const { clock, tell } = teller()
  const first = record(['192.0.2.1', '192.0.2.2'])
  t.strictSame(tell(first), [
    `192.0.2.1 unknown ${CREATED_SECONDS}`,
    `192.0.2.2 unknown ${CREATED_SECONDS}`,
  ])
  clock.now = () => 1_800_000_000_500
  const second = record(['192.0.2.1', '192.0.2.3'])
  const want = [`192.0.2.1 unknown ${CREATED_SECONDS}`, '192.0.2.3 unknown 1800000000']
  t.strictSame(tell(second, first), want)
  clock.now = () => 1_900_000_000_000
  t.strictSame(tell(second), want, 'the same record is always told the same way')
  t.strictSame(tell(second, first), want)
  t.strictSame(tell(first), [
    `192.0.2.1 unknown ${CREATED_SECONDS}`,
    `192.0.2.2 unknown ${CREATED_SECONDS}`,
  ])
  const third = record(['192.0.2.1', '192.0.2.3'], ['192.0.2.1'])
  t.strictSame(tell(third, second), ['192.0.2.1 down 1900000000', '192.0.2.3 unknown 1800000000'])
})
