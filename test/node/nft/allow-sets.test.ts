import { spawnSync } from 'node:child_process'
import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { scanCidr } from '../../../src/dns/text/address.ts'
import { AllowSets } from '../../../src/node/nft/allow-sets.ts'
import { ALLOW_SETS, type AllowedElement } from '../../../src/node/nft/allowed-element.ts'
import { tableStatements } from '../../../src/node/nft/egress-table.ts'
import { NftSession } from '../../../src/node/nft/nft-session.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

const hasNft = spawnSync('unshare', ['-n', 'nft', 'list', 'ruleset']).status === 0
const OPTIONS = {
  table: 'egress',
  elementsMax: 100,
  clusterNetworks: ['10.96.0.0/12', 'fd00::/8'].map((text) => scanCidr(text)!),
  dnsPort: 5300,
}

function element(client: number, address: number, port?: string): AllowedElement {
  const [protocol, first, last] = port?.split(/[ -]/) ?? []
  const ports =
    protocol === 'tcp' || protocol === 'udp'
      ? ({ protocol, first: Number(first), last: Number(last ?? first) } as const)
      : undefined
  if (address % 3 === 0)
    return { family: 2, client: `2001:db8::${client}`, address: `2001:db8:1::${address}`, ports }
  return { family: 1, client: `10.0.0.${client}`, address: `192.0.2.${address}`, ports }
}

interface Place {
  readonly sets: AllowSets
  readonly clock: FakeClock
  readonly advance: (milliseconds: number) => Promise<void>
  readonly faults: string[]
  /** The next transactions fail with this reason; '' = they reach nft. */
  fault: string
}

function place(session: NftSession): Place {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const faults: string[] = []
  const sets = new AllowSets({
    table: OPTIONS.table,
    elementsMax: OPTIONS.elementsMax,
    create: tableStatements(OPTIONS),
    commit: async (statements) => (made.fault === '' ? session.commit(statements) : made.fault),
    clock,
    timers,
    onFault: (fault) => faults.push(fault),
  })
  const advance = async (milliseconds: number) => {
    clock.pass(milliseconds)
    await timers.advance(milliseconds)
  }
  const made: Place = { sets, clock, advance, faults, fault: '' }
  return made
}

/** Elements of all sets in the kernel. */
async function inKernel(session: NftSession): Promise<string> {
  const found: string[] = []
  for (const set of ALLOW_SETS) {
    const listed = await session.list(`list set inet ${OPTIONS.table} ${set}`)
    const body = /elements = \{([^}]*)\}/.exec(listed)?.[1] ?? ''
    for (const one of body.split(',')) {
      const text = one.replace(/timeout.*/s, '').trim()
      if (text !== '') found.push(text)
    }
  }
  return found.sort().join('\n')
}

t.test('the sets in the kernel', { skip: hasNft ? false : 'needs root and nft' }, async (t) => {
  const session = new NftSession({ command: ['unshare', '-n', 'nft'], onEnd: () => {} })
  t.teardown(() => session.close())

  await t.test('an element is in force when the wait ends', async (t) => {
    const { sets, advance } = place(session)
    t.equal(
      await sets.allow([element(1, 1, 'tcp 443'), element(1, 2), element(1, 3, 'udp 5-9')], 60_000),
      '',
    )
    t.equal(
      await inKernel(session),
      '10.0.0.1 . 192.0.2.1 . tcp . 443\n10.0.0.1 . 192.0.2.2\n2001:db8::1 . 2001:db8:1::3 . udp . 5-9',
    )
    t.equal(sets.allow([element(1, 1, 'tcp 443')], 50_000), undefined, 'it is there for longer')
    const { transactions } = sets.counts
    sets.allow([element(1, 1, 'tcp 443')], 80_000)
    t.equal(
      sets.allow([element(1, 1, 'tcp 443')], 80_000),
      undefined,
      'a refresh need not be waited for',
    )
    t.equal(await sets.allow([element(2, 1, 'tcp 443')], 80_000), '')
    t.ok(sets.counts.transactions - transactions <= 2)
    sets.withdraw([element(1, 2), element(9, 9)])
    await advance(60_001)
    sets.collect()
    t.equal(await sets.allow([element(3, 1)], 200_000), '')
    t.equal(
      await inKernel(session),
      '10.0.0.1 . 192.0.2.1 . tcp . 443\n10.0.0.2 . 192.0.2.1 . tcp . 443\n10.0.0.3 . 192.0.2.1',
    )
    sets.close()
  })

  await t.test('a start brings the kernel to what is wanted', async (t) => {
    const { sets } = place(session)
    t.equal(await sets.allow([element(7, 7)], 60_000), '')
    t.equal(await inKernel(session), '10.0.0.7 . 192.0.2.7')
    t.equal(sets.counts.resyncs, 1)
    await session.commit([`flush ruleset`])
    sets.resync()
    t.equal(await sets.allow([element(8, 8)], 60_000), '')
    t.equal(await inKernel(session), '10.0.0.7 . 192.0.2.7\n10.0.0.8 . 192.0.2.8')
    sets.close()
  })

  await t.test('a table that others delete is written again', async (t) => {
    const { sets, advance, faults } = place(session)
    t.equal(await sets.allow([element(1, 1)], 600_000), '')
    await session.commit([`delete table inet ${OPTIONS.table}`])
    t.match(await sets.allow([element(1, 2)], 600_000), /No such file/)
    await advance(1000)
    t.equal(await sets.allow([element(1, 4)], 600_000), '')
    t.equal(
      await inKernel(session),
      '10.0.0.1 . 192.0.2.1\n10.0.0.1 . 192.0.2.2\n10.0.0.1 . 192.0.2.4',
    )
    t.match(faults, [/No such file/, ''])
    sets.close()
  })

  await t.test('a full set', async (t) => {
    const { sets, advance } = place(session)
    const many = Array.from({ length: 100 }, (_, i) => element(i + 1, 1))
    t.equal(await sets.allow(many, 60_000), '')
    t.equal(await sets.allow([element(200, 2)], 60_000), 'set any4 is full')
    t.equal(await sets.allow([element(2, 3)], 60_000), '', 'another set')
    t.equal(sets.counts.refused, 1)
    await advance(60_001)
    sets.collect()
    t.equal(await sets.allow([element(200, 2)], 200_000), '')
    t.equal(await inKernel(session), '10.0.0.200 . 192.0.2.2')
    sets.close()
  })

  await t.test('after random changes and faults, the kernel has what is wanted', async (t) => {
    const random = new Random(11)
    const made = place(session)
    const { sets, clock, advance } = made
    const wanted = new Map<string, { one: AllowedElement; endMs: number }>()
    const ports = [undefined, 'tcp 80', 'udp 53', 'tcp 1000-2000', 'tcp 1500-2500']
    for (let step = 0; step < 300; step++) {
      const one = element(random.below(4), random.below(9), ports[random.below(ports.length)])
      const key = JSON.stringify(one)
      const known = wanted.get(key)
      made.fault = random.below(6) === 0 ? 'Error: out of memory' : ''
      const roll = random.below(10)
      if (roll < 6) {
        const endMs = clock.monotonic() + 1000 * random.below(60)
        wanted.set(key, { one, endMs: Math.max(endMs, known?.endMs ?? 0) })
        void sets.allow([one], endMs)
      } else if (roll < 8) {
        wanted.delete(key)
        sets.withdraw([one])
      } else {
        await advance(1000 * random.below(8))
        for (const [other, { endMs }] of wanted) {
          if (endMs < clock.monotonic()) wanted.delete(other)
        }
        sets.collect()
      }
    }
    made.fault = ''
    const isEqual = async (): Promise<boolean> => {
      await advance(1000)
      for (const [other, { endMs }] of wanted) if (endMs < clock.monotonic()) wanted.delete(other)
      sets.collect()
      const found = (await inKernel(session)).split('\n').filter((text) => text !== '')
      return found.length === wanted.size && sets.size === wanted.size
    }
    await until(isEqual, 'the kernel to have what is wanted')
    t.ok(sets.counts.failures > 0)
    sets.close()
  })
})
