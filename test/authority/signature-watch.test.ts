import t, { type Test } from 'tap'
import { SignatureWatch, type WatchedZone } from '../../src/authority/signature-watch.ts'
import { runWhole } from '../../src/base/slices.ts'
import { MetricsRegistry } from '../../src/base/telemetry/metrics.ts'
import { keyTag } from '../../src/dns/dnssec/key-tag.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { checkSignatures } from '../../src/zone/zonefile/check-signatures.ts'
import { loadZoneText } from '../../src/zone/zonefile/load.ts'
import { recordLog } from '../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { until } from '../support/until.ts'
import { imageOf } from '../support/zone-version.ts'

const TICK_MS = 60_000

const APEX = 's.example.'
const zone = scanName(APEX)!
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const KEY_OCTETS = Buffer.alloc(64, 7)
const TAG = keyTag(Buffer.concat([Buffer.from([1, 1, 3, 13]), KEY_OCTETS]))

/** The time that signatures carry, `days` after the start of the clock. */
function stamp(days: number): string {
  const date = new Date(new FakeClock().nowMs + days * DAY_MS)
  return date.toISOString().replace(/\D/g, '').slice(0, 14)
}

/** A zone whose signatures, which sign nothing, expire after `days`. */
function zoneText(serial: number, days: number, without = ''): string {
  const signature = (type: string, labels: number): string => {
    return `60 RRSIG ${type} 13 ${labels} 60 ${stamp(days)} ${stamp(-1)} ${TAG} ${APEX} AAAA`
  }
  const apex = ['SOA', 'NS', 'DNSKEY', 'NSEC'].map((type) => `@ ${signature(type, 2)}\n`)
  const www = ['A', 'NSEC'].map((type) => `www ${signature(type, 3)}\n`)
  const text = `@ 60 SOA ns host ${serial} 2 3 4 60
@ 60 NS ns.invalid.
@ 60 DNSKEY 257 3 13 ${KEY_OCTETS.toString('base64')}
@ 60 NSEC www NS SOA RRSIG NSEC DNSKEY
www 60 A 192.0.2.1
www 60 NSEC @ A RRSIG NSEC
${apex.join('')}${www.join('')}`
  const lines = text.split('\n')
  return lines.filter((line) => without === '' || !line.includes(without)).join('\n')
}

/** As an owner has it that did not check, or with what a load found. */
function zoneOf(serial: number, text: string, isChecked: boolean, clock: FakeClock): WatchedZone {
  const { version } = imageOf(text, APEX)
  const load = runWhole(loadZoneText({ file: 'db', text: Buffer.from(text), stamp: '' }, zone))
  if (load.kind !== 'loaded') throw new Error(load.kind)
  const nowSeconds = clock.nowMs / 1000
  const signatures = isChecked
    ? runWhole(checkSignatures(load.records, zone, nowSeconds))
    : undefined
  return { zone, zoneText: APEX, serial, shared: { buffer: version.buffer }, signatures }
}

function setUp(t: Test) {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const metrics = new MetricsRegistry()
  const { lines, log } = recordLog()
  const watch = new SignatureWatch({ clock, log, metrics })
  watch.start(timers)
  t.teardown(() => watch.stop())
  const pass = async (ms: number): Promise<void> => {
    clock.pass(ms)
    await timers.advance(TICK_MS)
  }
  const gauge = async (): Promise<number | undefined> => {
    const found = /expire_timestamp_seconds\{zone="s\.example\."\} (\d+)/.exec(
      await metrics.print(),
    )
    return found === null ? undefined : Number(found[1])
  }
  return { clock, watch, lines, pass, gauge, timers }
}

t.test('signatures that expire while a zone is served are warned of once a day', async (t) => {
  const { clock, watch, lines, pass, gauge } = setUp(t)
  const expires = clock.nowMs / 1000 + (4 * DAY_MS) / 1000
  watch.follow([zoneOf(1, zoneText(1, 4), true, clock)])
  await pass(TICK_MS)
  t.equal(await gauge(), expires)
  for (let hour = 0; hour < 47; hour++) await pass(HOUR_MS)
  t.same(lines, [], 'more than 48 hours are left')
  for (let hour = 0; hour < 24; hour++) await pass(HOUR_MS)
  t.equal(lines.length, 1, lines.join('\n'))
  t.match(
    lines[0],
    'signatures expire soon: zone s.example., first s.example. NS at 2023-11-18T22:13:20.000Z; sign the zone again',
  )
  for (let hour = 0; hour < 48; hour++) await pass(HOUR_MS)
  t.equal(lines.length, 3, lines.join('\n'))
  t.match(lines[2], 'signatures have expired: zone s.example., first')
  // Signed again: the new version is good.
  watch.follow([zoneOf(2, zoneText(2, 30), true, clock)])
  for (let day = 0; day < 3; day++) await pass(DAY_MS)
  t.equal(lines.length, 3, lines.join('\n'))
  t.equal(await gauge(), expires + (26 * DAY_MS) / 1000)
  watch.follow([])
  await pass(TICK_MS)
  t.equal(await gauge(), undefined, 'the zone is not served any more')
})

t.test('a warning of the load is not repeated on the same day', async (t) => {
  const { clock, watch, lines, pass } = setUp(t)
  watch.follow([zoneOf(1, zoneText(1, 1), true, clock)])
  for (let hour = 0; hour < 23; hour++) await pass(HOUR_MS)
  t.same(lines, [])
  for (let hour = 0; hour < 3; hour++) await pass(HOUR_MS)
  t.equal(lines.length, 1, lines.join('\n'))
})

t.test('a version that its owner did not check is checked, once', async (t) => {
  const { clock, watch, lines, pass, gauge } = setUp(t)
  watch.follow([zoneOf(1, zoneText(1, 30), true, clock)])
  await pass(TICK_MS)
  t.same(lines, [])
  const broken = 'zone s.example. is signed, but will not validate as served'
  watch.follow([zoneOf(2, zoneText(2, 30, 'www 60 NSEC'), false, clock)])
  await pass(TICK_MS)
  await until(() => lines.length > 0, 'the warning')
  t.match(lines[0], `${broken}: 1 name(s) without NSEC (first: www.s.example.); the NSEC chain is`)
  for (let i = 0; i < 5; i++) await pass(TICK_MS)
  t.equal(lines.length, 1, lines.join('\n'))
  watch.follow([zoneOf(3, zoneText(3, 30, 'www 60 NSEC'), false, clock)])
  await pass(TICK_MS)
  await pass(TICK_MS)
  t.equal(lines.length, 1, 'the same fault of the next version is not logged again')
  watch.follow([zoneOf(4, zoneText(4, 29), false, clock)])
  const expires = new FakeClock().nowMs / 1000 + (29 * DAY_MS) / 1000
  await pass(TICK_MS)
  await until(async () => (await gauge()) === expires, 'the check of the good version')
  t.equal(lines.length, 1, lines.join('\n'))
})

t.test('zones that are not signed have neither warnings nor a gauge', async (t) => {
  const { clock, watch, lines, pass, gauge } = setUp(t)
  const text = '@ 60 SOA ns host 1 2 3 4 60\n@ 60 NS ns.invalid.\n'
  watch.follow([zoneOf(1, text, false, clock)])
  await pass(TICK_MS)
  await pass(TICK_MS)
  t.same(lines, [])
  t.equal(await gauge(), undefined)
})

t.test('a watch has a timer only while it may have something to check', async (t) => {
  const { clock, watch, timers } = setUp(t)
  const unsigned = '@ 60 SOA ns host 1 2 3 4 60\n@ 60 NS ns.invalid.\n'
  const steps = [
    { name: 'no zones', zones: [], want: 0 },
    { name: 'signed', zones: [zoneOf(1, zoneText(1, 30), true, clock)], want: 1 },
    { name: 'not signed', zones: [zoneOf(2, unsigned, true, clock)], want: 0 },
    { name: 'not checked', zones: [zoneOf(3, unsigned, false, clock)], want: 1 },
  ]
  for (const { name, zones, want } of steps) {
    watch.follow(zones)
    t.equal(timers.count, want, name)
  }
  watch.stop()
  t.equal(timers.count, 0, 'stopped')
  watch.follow([zoneOf(4, zoneText(4, 30), true, clock)])
  t.equal(timers.count, 0, 'zones that come later')
})
