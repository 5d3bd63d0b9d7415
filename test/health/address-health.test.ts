import t from 'tap'
import { AddressHealth, type Finding, UNKNOWN_HEALTH } from '../../src/health/address-health.ts'
import { Findings } from '../../src/health/findings.ts'

const finding = (address: string, health: Finding['health'], recordKey = 'n/a'): Finding => {
  return { recordKey, address, health }
}

function listen(health: AddressHealth): string[][] {
  const batches: string[][] = []
  health.subscribe((keys) => batches.push([...keys]))
  return batches
}

t.test('an address is down if any probe of the record finds it down', async (t) => {
  const health = new AddressHealth()
  t.equal(health.healthOf('n/a'), UNKNOWN_HEALTH)
  health.add(finding('192.0.2.2', 'up'))
  health.add(finding('192.0.2.1', 'up'))
  health.add(finding('192.0.2.1', 'down'))
  health.add(finding('192.0.2.1', 'down'))
  t.strictSame(health.healthOf('n/a'), { down: ['192.0.2.1'], up: ['192.0.2.2'] })
  t.equal(health.healthOf('n/b'), UNKNOWN_HEALTH, 'another record')
  health.remove(finding('192.0.2.1', 'down'))
  t.strictSame(health.healthOf('n/a').down, ['192.0.2.1'], 'one probe is left')
  health.remove(finding('192.0.2.1', 'down'))
  t.strictSame(health.healthOf('n/a'), { down: [], up: ['192.0.2.1', '192.0.2.2'] })
})

t.test('listeners hear of a change when it is published, once', async (t) => {
  const health = new AddressHealth()
  const batches = listen(health)
  health.add(finding('192.0.2.1', 'down'))
  health.add(finding('192.0.2.1', 'down', 'n/b'))
  t.strictSame(batches, [])
  health.publish()
  health.publish()
  t.strictSame(batches, [['n/a', 'n/b']])
})

t.test('the health of a record is the same object while its content is the same', async (t) => {
  const health = new AddressHealth()
  health.add(finding('192.0.2.1', 'down'))
  const before = health.healthOf('n/a')
  health.remove(finding('192.0.2.1', 'down'))
  health.add(finding('192.0.2.1', 'down'))
  t.equal(health.healthOf('n/a'), before)
  health.remove(finding('192.0.2.1', 'down'))
  t.equal(health.healthOf('n/a'), UNKNOWN_HEALTH)
  health.publish()
  t.strictSame([...health.recordKeys], [], 'no row is left')
})

t.test('two writers find the same address down, and one of them ends', async (t) => {
  const health = new AddressHealth()
  const [one, other] = [new Findings(health), new Findings(health)]
  one.set('p', finding('192.0.2.1', 'down'))
  other.set('p', finding('192.0.2.1', 'down'))
  one.set('p', finding('192.0.2.2', 'down'))
  t.strictSame(health.healthOf('n/a').down, ['192.0.2.1', '192.0.2.2'])
  other.clear()
  t.strictSame(health.healthOf('n/a').down, ['192.0.2.2'])
  one.set('p', undefined)
  t.equal(health.healthOf('n/a'), UNKNOWN_HEALTH)
  t.strictSame([...one.ids()], [])
})

t.test('an address is down for the reason of a probe that still finds it down', async (t) => {
  const health = new AddressHealth()
  const findings = new Findings(health)
  const down = (reason: string): Finding => ({ ...finding('192.0.2.1', 'down'), reason })
  const reason = (): string => health.reasonOf('n/a', '192.0.2.1')
  t.equal(reason(), '')
  findings.set('p', down('status 503'))
  findings.set('q', down('timed out'))
  t.equal(reason(), 'status 503')
  findings.set('p', down('connection refused'))
  t.equal(reason(), 'timed out')
  findings.set('q', finding('192.0.2.1', 'up'))
  t.equal(reason(), 'connection refused')
  findings.set('p', undefined)
  t.equal(reason(), '')
})
