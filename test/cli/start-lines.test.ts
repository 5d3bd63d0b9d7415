import t from 'tap'
import { startLines } from '../../src/cli/start-lines.ts'
import type { ListenPlan } from '../../src/server/listen-plan.ts'

function plan(host: string, port: number, zones: readonly string[]): ListenPlan {
  const blocks = zones.map((zoneText) => ({ zoneText }) as ListenPlan['blocks'][number])
  return { address: `dns://${host}:${port}`, host, port, blocks } as unknown as ListenPlan
}

t.test('zones are listed in order, with their addresses', async (t) => {
  const plans = [plan('', 1053, ['example.org.', '.']), plan('127.0.0.1', 53, ['a.example.'])]
  t.strictSame(startLines(plans), ['.:1053', 'a.example.:53 on 127.0.0.1', 'example.org.:1053'])
})

t.test('a zone served by several blocks is listed once', async (t) => {
  t.strictSame(startLines([plan('', 53, ['a.', 'a.'])]), ['a.:53'])
})

t.test('names that RFC 1035 would not have are warned of', async (t) => {
  const zones = ['a_b.', '1a.', 'a-.', 'ok-1.', '10.in-addr.arpa.', '8.b.d.ip6.arpa.']
  t.strictSame(startLines([plan('', 53, zones)]), [
    '10.in-addr.arpa.:53',
    'Warning: Domain "1a." does not follow RFC1035 preferred syntax',
    '1a.:53',
    '8.b.d.ip6.arpa.:53',
    'Warning: Domain "a-." does not follow RFC1035 preferred syntax',
    'a-.:53',
    'Warning: Domain "a_b." does not follow RFC1035 preferred syntax',
    'a_b.:53',
    'ok-1.:53',
  ])
})
