import t from 'tap'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { DryEnforcer } from '../../../src/plugins/egress/dry-enforcer.ts'
import { clientOf, portsOf } from '../../support/egress-client.ts'

const A = clientOf('a/web/1', '10.1.0.1 fd01::1', [{ names: 'x.example' }])
const B = clientOf('a/db/2', '10.1.0.2', [{ names: 'x.example' }])
const PAIR = { client: '10.1.0.1', address: '192.0.2.1' }

function place() {
  const lines: string[] = []
  let nowMs = 0
  const log = createLogger(
    '',
    (line) => lines.push(line),
    () => false,
  )
  const enforcer = new DryEnforcer(log, () => nowMs)
  /** The lines since the last call. */
  const logged = () => lines.splice(0).map((line) => line.replace('[INFO] dry run: ', ''))
  return { enforcer, logged, pass: (ms: number) => (nowMs += ms) }
}

t.test('each change is a line', async (t) => {
  const { enforcer, logged } = place()
  t.equal(await enforcer.setClients([A, B]), '')
  t.strictSame(logged(), ['a/web/1: enforce (10.1.0.1 fd01::1)', 'a/db/2: enforce (10.1.0.2)'])
  await enforcer.setClients([A, B])
  t.strictSame(logged(), [], 'nothing has changed')
  const [tcp, udp] = portsOf('tcp 443, udp 53-60')
  const allow = (...ports: readonly (typeof tcp | undefined)[]) =>
    enforcer.allow(
      PAIR,
      ports.map((one) => ({ ports: one, endMs: 1000 })),
    )
  t.equal(allow(tcp, udp), undefined, 'no reply waits')
  t.strictSame(logged(), ['allow 10.1.0.1 to 192.0.2.1, tcp 443, udp 53-60'])
  allow(tcp, udp)
  t.strictSame(logged(), [], 'an address that is allowed for longer')
  allow(undefined)
  allow()
  allow()
  t.strictSame(logged(), ['allow 10.1.0.1 to 192.0.2.1, all ports', 'deny 10.1.0.1 to 192.0.2.1'])
  await enforcer.setClients([{ ...A, rules: B.rules }])
  t.strictSame(logged(), ['a/web/1: enforce (10.1.0.1 fd01::1)', 'a/db/2: release'])
  await enforcer.close()
})

t.test('at most 100 lines a minute', async (t) => {
  const { enforcer, logged, pass } = place()
  const many = (prefix: string) => {
    for (let i = 0; i < 200; i++)
      enforcer.allow({ client: '10.1.0.1', address: `${prefix}.${i}` }, [
        { ports: undefined, endMs: 1 },
      ])
  }
  many('192.0.2')
  t.equal(logged().length, 100)
  pass(60_000)
  many('198.51.100')
  t.equal(logged().filter((line) => line.startsWith('allow')).length, 100)
})
