import t from 'tap'
import { shed } from '../../../src/plugins/shed/setup.ts'
import { STACK_LOSSES } from '../../../src/transport/udp/reply-stack.ts'
import { SetUp, setupError } from '../../support/setup.ts'

t.test('accepts no arguments', async (t) => {
  for (const [given, error] of [
    ['shed', ''],
    ['shed 1024', /Wrong argument count/],
    ['shed {\n depth 1\n}', /unknown property 'depth'/],
    ['shed\nshed', /can only be used once per Server Block/],
  ] as const) {
    if (error === '') t.equal(setupError(shed, given), '')
    else t.match(setupError(shed, given), error, given)
  }
})

t.test('counts what a transport drops, and says if there is none', async (t) => {
  const c = new SetUp(shed, 'shed')
  await c.start()
  t.match(c.lines, [/nothing to shed: data threads have no queue of replies; -max-query-age/])
  const [losses] = c.block.shared.acquire(STACK_LOSSES)
  losses!.begin()
  await c.start()
  t.equal(c.lines.length, 1)
  losses!.dropQuery('dns://:53')
  losses!.dropReply('dns://:53')
  losses!.dropReply('dns://:53')
  const count = (reason: string) =>
    c.metric(`coredns_shed_dropped_total{server="dns://:53",reason="${reason}"}`)
  t.strictSame([await count('query'), await count('response')], [1, 2])
})
