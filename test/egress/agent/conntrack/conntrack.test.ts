import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Random } from '../../../../src/base/random.ts'
import { createLogger } from '../../../../src/base/telemetry/log.ts'
import { systemTimers } from '../../../../src/base/timers.ts'
import type { Flow } from '../../../../src/egress/agent/connections.ts'
import { Conntrack } from '../../../../src/egress/agent/conntrack/conntrack.ts'
import { flowOf } from '../../../support/egress-stage.ts'
import { HostNetwork } from '../../../support/host-network.ts'
import { needs, needsRoot, run } from '../../../support/peer.ts'
import { FakeTimers } from '../../../support/setup.ts'
import { until } from '../../../support/until.ts'

function conntrack(t: Test, command: readonly string[], timers = systemTimers) {
  const lines: string[] = []
  const log = createLogger(
    '',
    (line) => lines.push(line),
    () => true,
  )
  const made = new Conntrack({ command, timers, random: new Random(1), log })
  t.teardown(() => made.close())
  return { conntrack: made, lines }
}

function print({ source, destination }: Flow): string {
  return `${source} ${destination}`
}

async function dump(from: Conntrack): Promise<{ fault: string; found: readonly string[] }> {
  const found: string[] = []
  const fault = await from.dump((flow) => void found.push(print(flow)))
  return { fault, found: found.sort() }
}

/** A program in place of conntrack. */
function script(t: Test, body: string): readonly string[] {
  const file = join(t.testdir({}), 'conntrack')
  writeFileSync(file, `#!/bin/sh\n${body}\n`)
  chmodSync(file, 0o755)
  return [file]
}

t.test('the kernel', { ...needsRoot(), ...needs('conntrack', 'nft') }, async (t) => {
  const network = await HostNetwork.create(t)
  const host = await network.addHost('node', ['192.0.2.1/24', '2001:db8::1/64'])
  const inHost = ['ip', 'netns', 'exec', network.nameOf('node')]
  const [tool = '', ...args] = inHost
  const on = (...words: readonly string[]) => run(tool, [...args, ...words])
  // The kernel tracks connections only where rules ask for it.
  await host.run(
    'nft',
    'add table inet x; add chain inet x y { type filter hook output priority 0; }',
  )
  await host.run('nft', 'add rule inet x y ct state new counter')
  const { conntrack: tracked, lines } = conntrack(t, [...inHost, 'conntrack'])
  t.strictSame(await dump(tracked), { fault: '', found: [] })

  const events: string[] = []
  tracked.watch((flow) => void events.push(print(flow)))
  const send = async (family: 4 | 6, to: string): Promise<void> => {
    const code = `const s=require('node:dgram').createSocket('udp${family}');s.send('x',9,'${to}',()=>s.close())`
    const { code: exit } = await on(process.execPath, '-e', code)
    t.equal(exit, 0)
  }
  const inEvents = async (pair: string, family: 4 | 6, to: string) => {
    // The process may not listen yet.
    await until(async () => {
      await send(family, to)
      return events.includes(pair)
    }, `an event of ${pair}`)
  }
  await inEvents('192.0.2.1 192.0.2.77', 4, '192.0.2.77')
  await inEvents('2001:db8::1 2001:db8::77', 6, '2001:db8::77')
  await send(4, '192.0.2.78')
  const { fault, found } = await dump(tracked)
  t.equal(fault, '')
  const pairs = ['192.0.2.1 192.0.2.77', '192.0.2.1 192.0.2.78', '2001:db8::1 2001:db8::77']
  t.strictSame([...new Set(found)], pairs)

  const flows = new Map<string, Flow>()
  await tracked.dump((flow) => void flows.set(print(flow), flow))
  for (const pair of [pairs[0]!, pairs[2]!]) {
    const { count, fault: reason } = await tracked.cut(flows.get(pair)!)
    t.equal(reason, '')
    t.ok(count > 0, `all of ${pair}, whatever port they come from`)
  }
  const other = { ...flows.get(pairs[1]!)!, port: 10 }
  t.strictSame(await tracked.cut(other), { count: 0, fault: '' }, 'another port')
  t.strictSame(await tracked.cut({ ...other, protocol: 6 }), { count: 0, fault: '' })
  t.strictSame(await tracked.cut({ ...other, protocol: 47, port: 0 }), { count: 0, fault: '' })
  t.strictSame(await dump(tracked), { fault: '', found: ['192.0.2.1 192.0.2.78'] })
  t.strictSame(lines, [])
  t.equal(tracked.counts.unknownLines, 0)
})

t.test('dumps that are not complete', async (t) => {
  const line = 'udp 17 29 src=10.1.0.1 dst=192.0.2.1 sport=1 dport=2'
  const table = [
    { body: `echo '${line}'`, fault: '', count: 2 },
    { body: `echo '${line}'; echo '1 flow entries have been shown.' >&2`, fault: '', count: 2 },
    { body: `echo '${line}'; echo '2 flow entries have been shown.' >&2`, fault: 'wrote 1 of 2' },
    { body: `echo '${line}'; exit 3`, fault: 'conntrack ended with exit code 3' },
    { body: `[ $3 = ipv4 ] || { echo no IPv6 >&2; exit 1; }; echo '${line}'`, fault: 'no IPv6' },
    { body: `echo '${line}'; kill -9 $$`, fault: 'SIGKILL' },
    { body: `printf 'udp 17 29 src=10.1'`, fault: 'incomplete line' },
    { body: `head -c 5000 /dev/zero | tr '\\0' x; echo`, fault: 'incomplete line', unknown: 1 },
    { body: `echo nonsense; echo '${line}'`, fault: '', count: 2, unknown: 2 },
  ]
  for (const { body, fault, count, unknown } of table) {
    await t.test(body, async (t) => {
      const { conntrack: tracked } = conntrack(t, script(t, body))
      const result = await dump(tracked)
      t.equal(fault === '' ? result.fault : result.fault.includes(fault), fault === '' ? '' : true)
      if (count !== undefined) t.equal(result.found.length, count)
      t.equal(tracked.counts.unknownLines, unknown ?? 0)
    })
  }
  const { conntrack: missing } = conntrack(t, ['/nonexistent/conntrack'])
  t.match(await dump(missing), { fault: /ENOENT/, found: [] })
  const flow = flowOf('10.1.0.1 192.0.2.1 6 1')
  const cut = missing.cut(flow)
  t.match(await cut, { count: 0, fault: /ENOENT/ })
})

t.test('a dump that does not end', async (t) => {
  const timers = new FakeTimers()
  const { conntrack: tracked } = conntrack(t, script(t, 'echo x; exec sleep 1000'), timers)
  const result = dump(tracked)
  await until(() => tracked.counts.unknownLines === 1, 'its first line')
  await timers.advance(60_000)
  t.equal((await result).fault, 'conntrack did not end within 60 s')
})

t.test('the process of the events is started again', async (t) => {
  const timers = new FakeTimers()
  const line = '[NEW] udp 17 29 src=10.1.0.1 dst=192.0.2.1 sport=1 dport=2'
  const file = join(t.testdir({}), 'ok')
  const body = `if [ -e ${file} ]; then echo '${line}'; exec sleep 1000; fi; echo ENOBUFS >&2; exit 1`
  const { conntrack: tracked, lines } = conntrack(t, script(t, body), timers)
  const found: string[] = []
  tracked.watch((flow) => void found.push(print(flow)))
  for (let starts = 1; starts < 6; starts++) {
    await until(() => timers.count === 1, 'the next start')
    t.equal(tracked.counts.watches, starts)
    if (starts === 5) writeFileSync(file, '')
    await timers.advance(15_000)
  }
  await until(() => found.length === 1, 'an event')
  t.strictSame(lines, [
    '[WARNING] no events of connections: conntrack ended with exit code 1: ENOBUFS',
    '[INFO] events of connections are reported again',
  ])
  tracked.close()
  t.equal(await tracked.dump(() => {}), 'closed')
})
