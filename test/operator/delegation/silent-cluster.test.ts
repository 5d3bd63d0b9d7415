import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { SITES_ANNOTATION } from '../../../src/records/site-facts.ts'
import { expandRecord } from '../../../src/sources/kubernetes/expand-record.ts'
import { boundsOf, type CheckTimes } from '../../peering/quorum/simulated-probes.ts'
import { annotated } from '../../support/cluster-server.ts'
import { AUTHORITATIVE, address, HOST } from '../../support/delegation-fixture.ts'
import { at } from '../../support/operator-objects.ts'
import { DelegationSimulation, type SimulatedSite } from '../delegation-simulation.ts'

// Long: it simulates hours of several clusters, for each fault.

const TIMES: CheckTimes = { probeS: 5, failures: 3, successes: 2 }
const { downS, upS } = boundsOf(TIMES)
const healthCheck = {
  ...{ protocol: 'TCP', port: 443, interval: `${TIMES.probeS}s` },
  ...{ failureThreshold: TIMES.failures, successThreshold: TIMES.successes },
}
const [OURS, BOSTON, CHICAGO] = ['198.51.100.1', '198.51.100.2', '198.51.100.3'] as const
const HOURS_24 = 24 * 3_600_000

interface Stage {
  readonly simulation: DelegationSimulation
  readonly dublin: SimulatedSite
  readonly others: readonly SimulatedSite[]
  /** Addresses that do not answer, from any cluster or `cluster address`. */
  readonly dead: Set<string>
}

/** dublin, which publishes, and other clusters. `checked`: those whose records have a health check. */
async function stage({
  count = 2,
  silentMs = HOURS_24,
  checked = ['dublin', 'boston', 'chicago'],
}: {
  readonly count?: number
  readonly silentMs?: number
  readonly checked?: readonly string[]
} = {}): Promise<Stage> {
  const dead = new Set<string>()
  const reaches = (from: string, to: string): boolean => !dead.has(to) && !dead.has(`${from} ${to}`)
  const simulation = new DelegationSimulation(silentMs, reaches)
  const dublin = simulation.add('dublin')
  const names = ['boston', 'chicago'].slice(0, count - 1)
  const others = names.map((name) => simulation.add(name, 'secondary'))
  for (const [i, site] of [dublin, ...others].entries()) {
    const spec = checked.includes(site.name) ? { healthCheck } : {}
    site.delegate('app', [address(HOST, [OURS, BOSTON, CHICAGO][i]!)], spec)
  }
  await simulation.pass(20)
  return { simulation, dublin, others, dead }
}

/** Addresses in service, as other programs read them and as a Sextant server serves them; equal, or an error. */
function served(site: SimulatedSite): string {
  const object = site.cluster.stored(`a/${AUTHORITATIVE}`)!
  const { resource } = site.cluster.record(`a/${AUTHORITATIVE}`)!
  if (resource.kind !== 'record') throw new Error('the authoritative record is not valid')
  const { records, fault = '' } = expandRecord(
    { ...object, apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord' },
    { ...resource.record, isAggregate: true },
  )
  if (fault !== '') throw new Error(fault)
  const annotation = (object.metadata as ApiObject).annotations as ApiObject
  const { parts } = JSON.parse(String(annotation[SITES_ANNOTATION])) as {
    readonly parts: readonly { readonly down?: object; readonly decided?: object }[]
  }
  const out = parts.flatMap(({ down = {}, decided = down }) => Object.keys(decided))
  const known = records.flatMap(({ down }) => Object.keys(down))
  t.strictSame(known.sort(), out.sort(), 'the server reads what the operator decided')
  const ours = [OURS, BOSTON, CHICAGO].filter((one) => site.served().join().includes(one))
  return ours.join()
}

for (const { fault, begin, end, two, three } of [
  {
    fault: 'the API server dies, the application lives',
    begin: ({ others }: Stage) => {
      others[0]!.isUp = false
    },
    end: ({ others }: Stage) => {
      others[0]!.isUp = true
    },
    two: [OURS, BOSTON],
    three: [OURS, BOSTON, CHICAGO],
  },
  {
    fault: 'both die',
    begin: ({ others, dead }: Stage) => {
      others[0]!.isUp = false
      dead.add(BOSTON)
    },
    end: ({ others, dead }: Stage) => {
      others[0]!.isUp = true
      dead.delete(BOSTON)
    },
    two: [OURS],
    three: [OURS, CHICAGO],
  },
  {
    fault: 'both die, and the application returns first',
    begin: ({ others, dead }: Stage) => {
      others[0]!.isUp = false
      dead.add(BOSTON)
    },
    end: ({ dead }: Stage) => {
      dead.delete(BOSTON)
    },
    two: [OURS],
    three: [OURS, CHICAGO],
  },
  {
    fault: 'the application dies, and the other operator reports it before its API server dies',
    begin: ({ others, dead }: Stage) => {
      dead.add(BOSTON)
      report(others[0]!, [BOSTON])
    },
    end: ({ others, dead }: Stage) => {
      others[0]!.isUp = false
      dead.delete(BOSTON)
    },
    two: [OURS],
    three: [OURS, CHICAGO],
  },
  {
    fault: 'this cluster does not reach the application',
    begin: ({ dead }: Stage) => {
      dead.add(`dublin ${BOSTON}`)
    },
    end: ({ dead }: Stage) => {
      dead.clear()
    },
    two: [OURS],
    three: [OURS, CHICAGO],
  },
  {
    fault: 'everything is dead',
    begin: ({ others, dead, dublin }: Stage) => {
      for (const one of others) one.isUp = false
      for (const one of [OURS, BOSTON, CHICAGO]) dead.add(one)
      dublin.cluster.health.set('a/app', { down: [OURS], up: [], probes: [] })
    },
    end: ({ others, dead, dublin }: Stage) => {
      for (const one of others) one.isUp = true
      dead.clear()
      dublin.cluster.health.clear()
    },
    two: [OURS, BOSTON],
    three: [OURS, BOSTON, CHICAGO],
  },
]) {
  for (const count of [2, 3]) {
    t.test(`${count} clusters: ${fault}`, async (t) => {
      const all = [OURS, BOSTON, CHICAGO].slice(0, count).join()
      const it = await stage({ count })
      t.equal(served(it.dublin), all, 'before')
      begin(it)
      const want = (count === 2 ? two : three).join()
      await it.simulation.pass(downS)
      let found = ''
      await it.simulation.pass(
        30,
        () => (found = served(it.dublin) === want ? found : served(it.dublin)),
      )
      t.equal(found, '', 'after the bound, and later')
      it.dublin.restart()
      await it.simulation.pass(
        40,
        () => (found = served(it.dublin) === want ? found : served(it.dublin)),
      )
      t.equal(found, '', 'also while another operator starts')
      end(it)
      await it.simulation.pass(upS)
      await it.simulation.pass(
        30,
        () => (found = served(it.dublin) === all ? found : served(it.dublin)),
      )
      t.equal(found, '', 'after the recovery, and later')
    })
  }
}

function report(site: SimulatedSite, down: readonly string[]): void {
  site.cluster.health.set('a/app', { down, up: [], probes: [] })
}

t.test('without a health check, silent-site decides', async (t) => {
  for (const { silentMs, want } of [
    { silentMs: 60_000, want: OURS },
    { silentMs: HOURS_24, want: `${OURS},${BOSTON}` },
  ]) {
    const it = await stage({ silentMs, checked: [] })
    it.others[0]!.isUp = false
    await it.simulation.pass(55)
    t.equal(served(it.dublin), `${OURS},${BOSTON}`, 'served before')
    await it.simulation.pass(10)
    t.equal(served(it.dublin), want, `after ${silentMs} ms`)
    it.dublin.restart()
    let found = ''
    await it.simulation.pass(
      90,
      () => (found = served(it.dublin) === want ? found : served(it.dublin)),
    )
    t.equal(found, '', 'also after a restart')
    it.others[0]!.isUp = true
    await it.simulation.pass(5)
    t.equal(served(it.dublin), `${OURS},${BOSTON}`, 'after the return')
  }
})

t.test('silence counts over changes of the leader', async (t) => {
  const it = await stage({ silentMs: 80_000, checked: [] })
  const all = `${OURS},${BOSTON}`
  const peers = () => at(it.dublin.cluster.stored(`a/${AUTHORITATIVE}`), 'status', 'peers')
  t.equal(peers(), undefined, 'nothing is stored of a cluster that is heard')
  it.others[0]!.isUp = false
  let seen = ''
  for (let seconds = 32; seconds <= 96; seconds += 32) {
    await it.simulation.pass(32)
    it.dublin.restart()
    const [peer] = peers() as readonly ApiObject[]
    t.match(peer, { address: 'boston', state: 'Silent', site: 'boston' })
    t.equal(peer!.lastSeenTime, (seen ||= String(peer!.lastSeenTime)), 'it does not change')
    t.equal(served(it.dublin), seconds < 80 ? all : OURS, `${seconds} s`)
  }
  it.others[0]!.isUp = true
  await it.simulation.pass(12)
  t.equal(served(it.dublin), all, 'after the return')
  t.equal(peers(), undefined)
})

t.test('silence of an API server for some seconds writes nothing', async (t) => {
  for (const checked of [[], ['boston']]) {
    const it = await stage({ checked })
    it.others[0]!.isUp = false
    it.simulation.writes.length = 0
    await it.simulation.pass(25)
    it.others[0]!.isUp = true
    await it.simulation.pass(5)
    t.strictSame(it.simulation.writes, [])
  }
})

t.test(
  'silence removes no address that a check finds up, also while a leader begins',
  async (t) => {
    const it = await stage({ silentMs: 20_000 })
    const all = `${OURS},${BOSTON}`
    it.others[0]!.isUp = false
    let found = ''
    for (const seconds of [30, 15]) {
      await it.simulation.pass(seconds, () => {
        found = served(it.dublin) === all ? found : served(it.dublin)
      })
      it.dublin.restart()
    }
    t.equal(found, '')
  },
)

t.test('an address that is ours too is served, and no Event says that it is down', async (t) => {
  const it = await stage({ silentMs: 60_000, checked: [] })
  it.others[0]!.delegate('app', [address(HOST, OURS, BOSTON)])
  await it.simulation.pass(5)
  it.others[0]!.isUp = false
  await it.simulation.pass(70)
  t.equal(served(it.dublin), OURS)
  const down = `AddressDown: ${BOSTON} of boston is down: its site is silent`
  t.strictSame(it.simulation.happenings, [down])
  it.others[0]!.isUp = true
  await it.simulation.pass(5)
  t.strictSame(it.simulation.happenings, [down, `AddressUp: ${BOSTON} of boston is up`])
})

t.test('a drain of a cluster that is silent since then ends at its time', async (t) => {
  const it = await stage({ count: 3 })
  it.dublin.cluster.records.delete('a/app')
  const { cluster } = it.others[0]!
  const until = new Date(it.simulation.clock.now() + 20_000).toISOString()
  const drain = { 'sextant.io/drain': 'racks move', 'sextant.io/drain-until': until }
  cluster.put(annotated(cluster.stored('a/app')!, drain))
  await it.simulation.pass(5)
  for (const one of it.others) one.isUp = false
  it.dublin.restart()
  await it.simulation.pass(14)
  t.equal(served(it.dublin), CHICAGO, 'before')
  t.equal(it.dublin.againMs.get(`a/${AUTHORITATIVE}`), 5000, 'reconciled at its time')
  await it.simulation.pass(2)
  t.equal(served(it.dublin), `${BOSTON},${CHICAGO}`, 'after')
})

t.test('the log says once that silence removes an address, and that it returns', async (t) => {
  const it = await stage({ silentMs: 60_000, checked: [] })
  const takeLines = (): readonly string[] => {
    const lines = it.simulation.log.filter((line) => / is (taken|served)/.test(line))
    it.simulation.log.length = 0
    return lines.map((line) => line.replace(/^\[(\w+)\] dublin: /, '$1 '))
  }
  it.others[0]!.delegate('app', [address(HOST, OURS, BOSTON)])
  it.others[0]!.isUp = false
  await it.simulation.pass(70)
  t.strictSame(takeLines(), [
    `WARNING ${BOSTON} of ${HOST} is taken out: its site boston is silent for longer than silent-site allows`,
  ])
  it.dublin.restart()
  await it.simulation.pass(30)
  t.strictSame(takeLines(), [], 'the next leader does not repeat it')
  it.others[0]!.isUp = true
  await it.simulation.pass(5)
  const up = `INFO ${BOSTON} of ${HOST} is served again: its site boston is no longer silent`
  t.strictSame(takeLines(), [up])
})

t.test('the health check of any of the records holds', async (t) => {
  for (const name of ['dublin', 'boston', 'chicago']) {
    const it = await stage({ count: 3, checked: [name] })
    it.dead.add(BOSTON)
    await it.simulation.pass(downS)
    t.equal(served(it.dublin), `${OURS},${CHICAGO}`, name)
  }
})

t.test('a cluster that publishes nothing itself decides about the others', async (t) => {
  const it = await stage({ count: 3 })
  it.dublin.cluster.records.delete('a/app')
  await it.simulation.pass(20)
  t.equal(served(it.dublin), `${BOSTON},${CHICAGO}`)
  it.dead.add(BOSTON)
  it.others[0]!.isUp = false
  await it.simulation.pass(downS)
  t.equal(served(it.dublin), CHICAGO)
})

/** Adds an annotation to a record, so that only so many octets are left for its annotations. */
function fill({ cluster }: SimulatedSite, key: string, left: number): void {
  const object = cluster.stored(key)!
  const annotations = (object.metadata as ApiObject).annotations as ApiObject
  const octets = Object.entries({ ...annotations, filler: '' })
    .flat()
    .join('').length
  cluster.put(annotated(object, { ...annotations, filler: 'x'.repeat(262_144 - octets - left) }))
}

t.test(
  'a decision that has no room in the record changes nothing, and Ready says it',
  async (t) => {
    const it = await stage({ count: 3 })
    const key = `a/${AUTHORITATIVE}`
    fill(it.dublin, key, 0)
    it.others[0]!.isUp = false
    it.dead.add(BOSTON)
    await it.simulation.pass(downS + 30)
    t.equal(served(it.dublin), `${OURS},${BOSTON},${CHICAGO}`)
    t.match(it.dublin.ready(AUTHORITATIVE), /^True .*has no room for all endpoints that are down/)
  },
)

t.test('what had no room is in Ready until its owner writes it again', async (t) => {
  const it = await stage({ count: 3 })
  const [boston, chicago] = it.others as [SimulatedSite, SimulatedSite]
  boston.isUp = false
  it.dead.add(BOSTON)
  await it.simulation.pass(downS)
  t.equal(served(it.dublin), `${OURS},${CHICAGO}`)
  t.equal(it.dublin.ready(AUTHORITATIVE), 'True ProviderSuccess: Provider ensured the dns record')
  fill(it.dublin, `a/${AUTHORITATIVE}`, 0)
  const app = chicago.cluster.stored('a/app')!
  chicago.cluster.put(annotated(app, { 'sextant.io/sticky': '16 48' }))
  const note = /^True .*has no room for all endpoints that are down$/
  await it.simulation.pass(30)
  t.match(it.dublin.ready(AUTHORITATIVE), note)
  fill(it.dublin, `a/${AUTHORITATIVE}`, 1000)
  it.dead.add(CHICAGO)
  await it.simulation.pass(downS)
  t.equal(served(it.dublin), OURS, 'other decisions are in force')
  t.match(it.dublin.ready(AUTHORITATIVE), note)
  boston.isUp = true
  it.dead.clear()
  await it.simulation.pass(upS)
  t.equal(served(it.dublin), `${OURS},${BOSTON},${CHICAGO}`)
  t.notMatch(it.dublin.ready(AUTHORITATIVE), /no room/)
})

t.test('nothing is written while nothing changes', async (t) => {
  const it = await stage({ count: 3 })
  it.dead.add(BOSTON)
  it.others[0]!.isUp = false
  await it.simulation.pass(downS)
  await it.simulation.pass(30)
  it.simulation.writes.length = 0
  await it.simulation.pass(100)
  t.strictSame(it.simulation.writes, [])
})

t.test('what happens if a cluster dies is logged', async (t) => {
  const it = await stage({ count: 3 })
  const goes = `1 of 3 addresses is removed within ${downS} s`
  const wanted = ['boston', 'chicago', 'dublin'].map((name) => `if ${name} dies: ${HOST}: ${goes}`)
  const lines = it.simulation.log.filter((line) => line.includes('dies'))
  t.strictSame(
    lines.map((line) => line.replace('[INFO] dublin: ', '')),
    wanted,
  )
})

t.test('a short silent-site does not remove clusters between two questions', async (t) => {
  const it = await stage({ silentMs: 1000, checked: [] })
  const all = `${OURS},${BOSTON}`
  let found = ''
  const expect = (want: string) => () => {
    found = served(it.dublin) === want ? found : served(it.dublin)
  }
  await it.simulation.pass(60, expect(all))
  t.equal(found, '', 'all are heard')
  it.others[0]!.isUp = false
  await it.simulation.pass(15)
  t.equal(served(it.dublin), OURS)
  it.others[0]!.isUp = true
  await it.simulation.pass(5)
  t.equal(served(it.dublin), all, 'after the return')
})

t.test('of two clusters with one site name, each is heard for itself', async (t) => {
  const simulation = new DelegationSimulation(60_000)
  const dublin = simulation.add('dublin')
  const others = ['boston', 'chicago'].map((name) => simulation.add(name, 'secondary', 'america'))
  for (const [i, site] of [dublin, ...others].entries()) {
    site.delegate('app', [address(HOST, [OURS, BOSTON, CHICAGO][i]!)])
  }
  await simulation.pass(20)
  const messages = others.map((site) => site.ready('app', dublin))
  const isNamed = messages.filter((one) => one.includes('the name of another cluster'))
  t.equal(isNamed.length, 1, messages.join('; '))
  others[0]!.isUp = false
  await simulation.pass(70)
  t.equal(served(dublin), `${OURS},${CHICAGO}`)
})

t.test('a restart keeps what the check of a dead cluster found', async (t) => {
  const it = await stage({ checked: ['boston'] })
  it.dead.add(BOSTON)
  it.others[0]!.isUp = false
  await it.simulation.pass(downS)
  t.equal(served(it.dublin), OURS)
  it.dublin.restart()
  let found = ''
  const expectOurs = (): void => {
    found = served(it.dublin) === OURS ? found : served(it.dublin)
  }
  await it.simulation.pass(60, expectOurs)
  t.equal(found, '', 'while it is dead')
  it.others[0]!.isUp = true
  await it.simulation.pass(60, expectOurs)
  t.equal(found, '', 'while its API server answers')
  it.dead.clear()
  await it.simulation.pass(upS)
  t.equal(served(it.dublin), `${OURS},${BOSTON}`)
})

t.test('a restart removes no address that a check of a silent cluster found up', async (t) => {
  const it = await stage({ checked: ['boston'], silentMs: 60_000 })
  const all = `${OURS},${BOSTON}`
  let found = ''
  const expectAll = (): void => {
    found = served(it.dublin) === all ? found : served(it.dublin)
  }
  it.others[0]!.isUp = false
  for (const seconds of [10, 60, 40]) {
    await it.simulation.pass(seconds, expectAll)
    it.dublin.restart()
  }
  t.equal(found, '', 'its health check cannot be read')
  it.others[0]!.isUp = true
  await it.simulation.pass(20, expectAll)
  t.equal(found, '', 'while its API server answers')
  it.dead.add(BOSTON)
  await it.simulation.pass(downS)
  t.equal(served(it.dublin), OURS, 'the check holds again')
})

t.test('a downtime of the operator removes no cluster that answers meanwhile', async (t) => {
  const it = await stage({ checked: [], silentMs: 60_000 })
  const all = `${OURS},${BOSTON}`
  it.others[0]!.isUp = false
  await it.simulation.pass(40)
  it.dublin.isUp = false
  it.others[0]!.isUp = true
  await it.simulation.pass(40)
  it.dublin.isUp = true
  it.dublin.restart()
  let found = ''
  await it.simulation.pass(30, () => {
    found = served(it.dublin) === all ? found : served(it.dublin)
  })
  t.equal(found, '')
  t.strictSame(it.simulation.happenings, [])
})
