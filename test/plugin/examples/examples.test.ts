import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import { root } from '../../support/server.ts'
import { FakeTimers, SetUp, setupError } from '../../support/setup.ts'
import { answering, show, transaction } from '../../support/transaction.ts'
import { maxTtl } from './max-ttl.ts'
import { motd } from './motd.ts'
import { slow } from './slow.ts'

/** Answers with one A record of a TTL of an hour. */
const below = answering(({ query, response }) => {
  const address = Uint8Array.of(192, 0, 2, 1)
  response.add(Section.Answer, query.qname, 0, RRType.A, RRClass.IN, 3600, address, 0, 4)
  return Rcode.NOERROR
})

t.test('the guide shows the examples', async (t) => {
  const page = readFileSync(join(root, 'docs/how-to/write-a-directive.md'), 'utf8')
  const shown = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code)
  const files = ['motd', 'max-ttl'].map((name) =>
    readFileSync(join(root, `test/plugin/examples/${name}.ts`), 'utf8'),
  )
  // The files are nearer to src than the folder of a directive.
  t.strictSame(
    shown,
    files.map((text) => text.replaceAll("'../../../src/", "'../../")),
  )
})

t.test('a handler that answers', async (t) => {
  const handler = new SetUp(motd, 'motd "be kind"').handler(below)
  const text = await show(handler, transaction({ name: 'a.example.org.', type: RRType.TXT }))
  t.strictSame(text.answer, ['a.example.org. 60 IN TXT 076265206b696e64'])
  const other = await show(handler, transaction({ name: 'a.example.org.' }))
  t.strictSame(other.answer, ['a.example.org. 3600 IN A c0000201'])
  t.match(setupError(motd, `motd ${'x'.repeat(256)}`), /Corefile:1.*the text has 256 octets/)
})

t.test('a link', async (t) => {
  const handler = new SetUp(maxTtl, 'max_ttl 300').handler(below)
  const shown = await show(handler, transaction({ name: 'a.example.org.' }))
  t.strictSame(shown.answer, ['a.example.org. 300 IN A c0000201'])
  t.match(setupError(maxTtl, 'max_ttl many'), /Corefile:1.*TTL is "many"/)
})

t.test('a handler that waits', async (t) => {
  const timers = new FakeTimers()
  const c = new SetUp(slow, 'slow 2s', undefined, { timers })
  const handler = c.handler(below)
  await c.start()
  t.match(c.lines, [/replies are 2000 ms late/])
  let answers = 0
  const ask = async (): Promise<void> => {
    await handler.serve(transaction({ name: 'a.example.org.' }))
    answers++
  }
  const first = ask()
  timers.advance(1999)
  t.equal(answers, 0)
  timers.advance(1)
  await first
  const second = ask()
  await c.stop()
  await second
  t.equal(answers, 2, 'the end of the instance ends the wait')
  t.match(setupError(slow, 'slow long'), /Corefile:1.*invalid duration "long"/)
})
