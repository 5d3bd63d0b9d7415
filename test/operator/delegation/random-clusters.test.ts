import fc from 'fast-check'
import t from 'tap'
import { HEARD_MS } from '../../../src/peering/quorum/heard-sites.ts'
import { boundsOf, type CheckTimes } from '../../peering/quorum/simulated-probes.ts'
import { address, HOST } from '../../support/delegation-fixture.ts'
import { DelegationSimulation, type SimulatedSite } from '../delegation-simulation.ts'

/** Set CLUSTER_RUNS to try more schedules. */
const RUNS = Number(process.env.CLUSTER_RUNS ?? 6)
const TIMES: CheckTimes = { probeS: 1, failures: 1, successes: 1 }
const { downS, upS } = boundsOf(TIMES)
const healthCheck = {
  ...{ protocol: 'TCP', port: 443, interval: `${TIMES.probeS}s` },
  ...{ failureThreshold: TIMES.failures, successThreshold: TIMES.successes },
}
const SILENT_S = 12
/** An API server is asked every 3 s, and operators act within a second. */
const ASK_S = 4
/** A leader that begins before a cluster counts as silent assumes that this cluster was heard just now. */
const STORED_S = HEARD_MS / 1000 + 1
const NAMES = ['dublin', 'boston', 'chicago', 'denver']

/** A change of one cluster, and the seconds that pass then. Leaders change at most every STORED_S. */
interface Step {
  readonly kind: 'API server' | 'application' | 'leader'
  readonly site: number
  readonly seconds: number
}

interface Schedule {
  /** True for each cluster that is a primary. The first one is. */
  readonly primaries: readonly boolean[]
  readonly isChecked: boolean
  readonly steps: readonly Step[]
}

const schedules: fc.Arbitrary<Schedule> = fc.record({
  primaries: fc
    .array(fc.boolean(), { minLength: 1, maxLength: NAMES.length - 1 })
    .map((others) => [true, ...others]),
  isChecked: fc.boolean(),
  steps: fc.array(
    fc.record({
      kind: fc.constantFrom('API server', 'application', 'leader'),
      site: fc.nat(NAMES.length - 1),
      seconds: fc.integer({ min: STORED_S, max: 3 * STORED_S }),
    }),
    { minLength: 3, maxLength: 5 },
  ),
})

/** A cluster, and the times, in seconds, of its last changes that other clusters can see. */
interface Member {
  readonly site: SimulatedSite
  readonly address: string
  isAlive: boolean
  /** Its API server died or returned. */
  apiS: number
  /** Its application died or returned. */
  applicationS: number
  /** Its operator started. */
  startS: number
}

class Clusters {
  readonly members: readonly Member[]
  readonly #simulation: DelegationSimulation
  readonly #isChecked: boolean
  readonly faults: string[] = []
  /** Number of checks of addresses that must be served, and of addresses that must not be served. */
  readonly checked = { served: 0, removed: 0 }
  /** Pairs of clusters, each with the time of a change of the other one, for which the bounds have passed once. */
  readonly #settled = new Set<string>()
  #nowS = 0

  constructor({ primaries, isChecked }: Schedule) {
    this.#isChecked = isChecked
    const isAlive = (one: string): boolean =>
      this.members.some((m) => m.address === one && m.isAlive)
    this.#simulation = new DelegationSimulation(SILENT_S * 1000, (_, target) => isAlive(target))
    this.members = primaries.map((isPrimary, i) => {
      const role = isPrimary ? 'primary' : 'secondary'
      const site = this.#simulation.add(NAMES[i]!, role)
      const target = `198.51.100.${i + 1}`
      site.delegate('app', [address(HOST, target)], isChecked ? { healthCheck } : {})
      return { site, address: target, isAlive: true, apiS: 0, applicationS: 0, startS: 0 }
    })
  }

  async run(seconds: number): Promise<void> {
    await this.#simulation.pass(seconds, () => {
      this.#nowS++
      for (const primary of this.members) {
        if (primary.site.role === 'primary' && primary.site.isUp) this.#check(primary)
      }
    })
  }

  async step({ kind, site, seconds }: Step): Promise<void> {
    const member = this.members[site % this.members.length]!
    if (kind === 'API server') {
      member.site.isUp = !member.site.isUp
      member.apiS = this.#nowS
    } else if (kind === 'application') {
      member.isAlive = !member.isAlive
      member.applicationS = this.#nowS
    }
    if (member.site.isUp && kind !== 'application') {
      member.site.restart()
      member.startS = this.#nowS
    }
    await this.run(seconds)
  }

  /** Notes the addresses that a primary serves, or does not serve, by mistake. */
  #check(primary: Member): void {
    const served = primary.site.served().join()
    for (const other of this.members) {
      const wanted = this.#wanted(primary, other)
      if (wanted === undefined) continue
      this.checked[wanted ? 'served' : 'removed']++
      if (served.includes(other.address) === wanted) continue
      const what = wanted ? 'lacks' : 'serves'
      this.faults.push(
        `${primary.site.name} ${what} ${other.address} of ${other.site.name} at ${this.#nowS} s`,
      )
    }
  }

  /** Whether a primary must serve the address of a cluster now; undefined = the bounds have not passed. */
  #wanted(primary: Member, other: Member): boolean | undefined {
    if (other === primary) return true
    const { isUp } = other.site
    const want = this.#isChecked ? other.isAlive : isUp
    const changedS = this.#isChecked ? other.applicationS : other.apiS
    // Probes begin again with each leader, and a primary without its API server stores no time.
    const beganS = this.#isChecked ? primary.startS : primary.apiS
    const bounds = this.#isChecked
      ? { upS, downS }
      : { upS: ASK_S, downS: SILENT_S + STORED_S + ASK_S }
    const isSettled = this.#nowS - Math.max(changedS, beganS) > (want ? bounds.upS : bounds.downS)
    const pair = `${primary.address} ${other.address} ${changedS}`
    if (isSettled) this.#settled.add(pair)
    // The bounds passed once: the address must also be right while another leader begins.
    return this.#settled.has(pair) ? want : undefined
  }
}

t.test('random clusters whose API servers and applications die, and leaders change', async (t) => {
  const total = { served: 0, removed: 0 }
  const property = fc.asyncProperty(schedules, async (schedule) => {
    const clusters = new Clusters(schedule)
    await clusters.run(upS + 1)
    for (const step of schedule.steps) await clusters.step(step)
    await clusters.run(upS)
    total.served += clusters.checked.served
    total.removed += clusters.checked.removed
    if (clusters.faults.length > 0) throw new Error(clusters.faults.slice(0, 5).join('; '))
  })
  const examples = [true, false].map((isChecked): [Schedule] => {
    const kind = isChecked ? 'application' : 'API server'
    return [{ primaries: [true, false], isChecked, steps: [{ kind, site: 1, seconds: 27 }] }]
  })
  await fc.assert(property, { numRuns: RUNS, examples })
  t.comment(`${RUNS} schedules: ${total.served} times served, ${total.removed} times removed`)
  t.ok(total.served > 0 && total.removed > 0)
})
