import type { Test } from 'tap'
import { Rcode } from '../../../src/dns/iana/index.ts'
import { forward } from '../../../src/plugins/forward/setup.ts'
import { type Answer, ScriptedServer } from '../../support/scripted-server.ts'
import { FakeTimers, SetUp } from '../../support/setup.ts'
import { answering, type Question } from '../../support/transaction.ts'

/* A `forward` to upstreams of this process, with fake timers. */

export const WWW: Question = { name: 'www.example.org.', recursionDesired: true }
export const ADDRESS = 'www.example.org. 60 IN A c0000201'
export const REFUSING = answering(() => Rcode.REFUSED)

export async function started(t: Test, corefile: string) {
  const timers = new FakeTimers()
  const c = new SetUp(forward, corefile, undefined, { timers })
  await c.start()
  t.teardown(async () => {
    await c.stop()
    // Checks of health that still wait end too.
    await timers.advance(1000)
  })
  return { c, timers, handler: c.handler(REFUSING) }
}

/** `forward . ADDRESS... { properties }` to upstreams that answer so. */
export async function forwarding(t: Test, answers: readonly Answer[], properties = '') {
  const upstreams: ScriptedServer[] = []
  for (const answer of answers) upstreams.push(await ScriptedServer.openRaw(t, answer))
  const to = upstreams.map(({ address }) => address).join(' ')
  const parts = await started(t, `forward . ${to} {\npolicy sequential\n${properties}\n}`)
  return { ...parts, upstreams, first: upstreams[0]! }
}
