import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FileZone } from '../../src/authority/file-zone.ts'
import type { ServedZone } from '../../src/authority/file-zones.ts'
import { ThreadedFileZones } from '../../src/authority/threaded-file-zones.ts'
import { RRType } from '../../src/dns/iana/index.ts'
import type { Directive } from '../../src/plugin/directive.ts'
import { auto } from '../../src/plugins/auto/setup.ts'
import { file } from '../../src/plugins/file/setup.ts'
import type { ControlChannel } from '../../src/server/thread-channel.ts'
import { backdate } from '../support/backdate.ts'
import { putFile } from '../support/server.ts'
import { FakeTimers, followerOf, SetUp } from '../support/setup.ts'
import { type Question, show, transaction } from '../support/transaction.ts'
import { until } from '../support/until.ts'
import { wire } from '../support/zone-text.ts'

const text = (serial: number, last: number): string =>
  `@ 60 IN SOA a b ${serial} 2 3 4 5\n@ 60 IN NS a\na 60 IN A 192.0.2.${last}\n`

/** A directive that is nothing but shared zones. */
function sharing() {
  const made: ThreadedFileZones[] = []
  const directive: Directive = {
    name: 'sharing',
    setup: (c) => {
      c.dispenser.next()
      const zones = new ThreadedFileZones(c, 'file')
      made.push(zones)
      return zones.part
    },
  }
  const c = new SetUp(directive, 'sharing')
  const follower = followerOf(c, directive, 'sharing')
  let published = 0
  const sent: number[] = []
  const channel = c.channel as ControlChannel
  const post = channel.onPublish
  channel.onPublish = (index, value) => {
    published++
    sent.push((value as ReadonlyMap<string, unknown>).size)
    post(index, value)
  }
  const comeLate = (): ThreadedFileZones => {
    followerOf(c, directive, 'sharing')
    return made.at(-1)!
  }
  return {
    c,
    follower,
    comeLate,
    control: made[0]!,
    data: made[1]!,
    published: () => published,
    sent,
  }
}

function zoneIn(dir: string, c: SetUp, name: string, content: string): FileZone {
  const path = join(dir, `db.${name}`)
  writeFileSync(path, content)
  const options = {
    clock: c.clock,
    log: c.log,
    byMtime: false,
    nsInAuthority: true,
    isWhole: true,
    isUnsigned: false,
  }
  return new FileZone(wire(name), path, options)
}

const match = (zones: ThreadedFileZones, name: string, type: number = RRType.A) => {
  return zones.table.match(transaction({ name, type }).query)
}

t.test('others get the zones, in order, with what they answer from', async (t) => {
  const dir = t.testdir({})
  const { c, control, data, published } = sharing()
  const loaded = zoneIn(dir, c, 'example.org.', text(1, 1))
  const waiting = zoneIn(dir, c, 'sub.example.org.', 'no zone')
  t.strictSame(await loaded.load(), [])
  t.not((await waiting.load()).length, 0)
  control.publish([loaded, waiting])
  t.equal(published(), 1)
  t.strictSame(
    data.table.zones.map(({ zone }) => Buffer.from(zone).toString('latin1')),
    ['\x07example\x03org\0', '\x03sub\x07example\x03org\0'],
  )
  t.ok(match(data, 'a.example.org.')?.answerer)
  t.equal(match(data, 'a.sub.example.org.')?.zone.length, waiting.zone.length)
  t.equal(match(data, 'a.sub.example.org.')?.answerer, undefined, 'not loaded: SERVFAIL')
  t.equal(match(data, 'sub.example.org.', RRType.DS)?.zone.length, loaded.zone.length)
  t.equal(match(data, 'example.net.'), undefined)
})

t.test('only changes are published, and only new versions get another answerer', async (t) => {
  const dir = t.testdir({})
  const { c, control, data, published } = sharing()
  const still = zoneIn(dir, c, 'still.example.', text(1, 1))
  const moving = zoneIn(dir, c, 'moving.example.', text(1, 1))
  backdate(dir)
  await still.load()
  await moving.load()
  control.publish([still, moving])
  control.publish([still, moving])
  t.equal(published(), 1)
  const before = { still: match(data, 'still.example.'), moving: match(data, 'moving.example.') }
  writeFileSync(moving.path, text(2, 2))
  await moving.reload()
  control.publish([still, moving])
  t.equal(published(), 2)
  t.equal(match(data, 'still.example.')?.answerer, before.still?.answerer)
  t.not(match(data, 'moving.example.')?.answerer, before.moving?.answerer)
  control.publish([still])
  t.equal(match(data, 'moving.example.'), undefined)
  t.equal(match(data, 'still.example.')?.answerer, before.still?.answerer)
})

/** What both have for `a.NAME`: status and address. */
async function answers(c: SetUp, follower: SetUp, name: string): Promise<string[]> {
  const question: Question = { name: `a.${name}` }
  const both = [c, follower].map(async (side) => {
    const { status, answer } = await show(side.handler(), transaction(question))
    return [status, ...answer.map((line) => line.split(' ')[4])].join(' ')
  })
  return Promise.all(both)
}

t.test('file: a data thread answers what the control thread answers', async (t) => {
  const dir = t.testdir({ db: text(1, 1) })
  backdate(dir)
  const timers = new FakeTimers()
  const corefile = `file ${join(dir, 'db')} {\n reload 1s\n}\nfile ${join(dir, 'none')} example.net`
  const c = new SetUp(file, corefile, undefined, { timers })
  t.teardown(() => c.stop())
  const follower = followerOf(c, file, corefile)
  const servfail = ['SERVFAIL (sent: NOERROR)', 'SERVFAIL (sent: NOERROR)']
  t.strictSame(await answers(c, follower, 'example.org.'), servfail, 'before the start')
  await c.start()
  t.strictSame(await answers(c, follower, 'example.org.'), ['NOERROR c0000201', 'NOERROR c0000201'])
  t.strictSame(await answers(c, follower, 'example.net.'), servfail)
  writeFileSync(join(dir, 'db'), text(2, 2))
  await timers.advance(1000)
  const isNew = async () => (await answers(c, follower, 'example.org.'))[1] === 'NOERROR c0000202'
  await until(isNew, 'the new version')
  const late = followerOf(c, file, corefile)
  t.strictSame(await answers(c, late, 'example.org.'), ['NOERROR c0000202', 'NOERROR c0000202'])
})

t.test('auto: zones come, change and go', async (t) => {
  const dir = t.testdir({ 'db.example.org': text(1, 1) })
  backdate(dir)
  const timers = new FakeTimers()
  const corefile = `auto . {\n directory ${dir}\n reload 1s\n}`
  const c = new SetUp(auto, corefile, undefined, { timers })
  t.teardown(() => c.stop())
  const follower = followerOf(c, auto, corefile)
  const both = (shown: string): string[] => [shown, shown]
  const soon = async (name: string, shown: string): Promise<void> => {
    await timers.advance(1000)
    const isSo = async () => (await answers(c, follower, name))[1] === shown
    await until(isSo, shown).catch(() => {})
    t.strictSame(await answers(c, follower, name), both(shown), `${name} ${shown}`)
  }
  await c.start()
  await soon('example.org.', 'NOERROR c0000201')
  writeFileSync(join(dir, 'db.example.net'), text(1, 7))
  await soon('example.net.', 'NOERROR c0000207')
  putFile(dir, 'db.example.net', text(2, 8))
  await soon('example.net.', 'NOERROR c0000208')
  writeFileSync(join(dir, 'db.example.net'), 'no zone')
  await soon('example.net.', 'NOERROR c0000208')
  rmSync(join(dir, 'db.example.net'))
  await soon('example.net.', 'REFUSED (sent: NOERROR)')
})

const octetsOf = (zone: ServedZone | undefined): Buffer => {
  return Buffer.from(zone!.answerer!.reader.handle.buffer)
}

t.test('of many zones, only what has changed is sent', async (t) => {
  const dir = t.testdir({})
  const { c, control, data, sent, comeLate } = sharing()
  const names = Array.from({ length: 50 }, (_, i) => `z${i}.example.`)
  const zones = names.map((name) => zoneIn(dir, c, name, text(1, 1)))
  backdate(dir)
  for (const zone of zones) await zone.load()
  control.publish(zones)
  const before = data.table.zones
  const moving = zones[7]!
  writeFileSync(moving.path, text(2, 2))
  t.equal(await moving.reload(), true)
  t.equal(await moving.reload(), false)
  control.publish(zones)
  t.equal(data.table.zones.length, 50)
  t.not(data.table.zones, before, 'what a query has found is not used any more')
  const moved = data.table.zones.filter((zone, i) => zone !== before[i])
  t.equal(moved.length, 1)
  t.strictSame(octetsOf(moved[0]), Buffer.from(moving.shared!.buffer))
  // One more, and two that are gone.
  const added = zoneIn(dir, c, 'added.example.', text(1, 9))
  await added.load()
  const rest = [...zones.slice(1, 30), added, ...zones.slice(31)]
  control.publish(rest)
  t.strictSame(sent, [50, 1, 3])
  for (const side of [control, data]) {
    t.equal(side.table.zones.length, 49)
    t.equal(match(side, 'a.z0.example.'), undefined)
    t.equal(match(side, 'a.z30.example.'), undefined)
    t.ok(match(side, 'a.added.example.')?.answerer)
    t.strictSame(octetsOf(match(side, 'a.z7.example.')), Buffer.from(moving.shared!.buffer))
  }
  const late = comeLate()
  t.equal(late.table.zones.length, 49)
  t.strictSame(octetsOf(match(late, 'a.z7.example.')), Buffer.from(moving.shared!.buffer))
})
