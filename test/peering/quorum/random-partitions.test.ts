import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { majorityOf } from '../../../src/peering/quorum/decide.ts'
import {
  addressOf,
  FAILURES,
  HOLD_DOWN_S,
  POLL_S_MAX,
  PROBE_S,
  type SimulatedSite,
  SimulatedSites,
} from './simulated-sites.ts'

/** Set QUORUM_SEEDS to try more schedules. */
const SEEDS = Number(process.env.QUORUM_SEEDS ?? 50)
const START_S = 60
const SCHEDULE_S = 400
/** Longest silence of a site whose failures count. */
const HEARD_S = 20
/** From a death to the decision at all sites. */
const DECIDED_S = HOLD_DOWN_S + (FAILURES + 2) * PROBE_S + POLL_S_MAX
/** From the end of all partitions to the same answers: a poll, a probe and the check after it. */
const HEALED_S = POLL_S_MAX + PROBE_S + 2

/** Breaks or mends something. Returns true if a site or a gateway changed, not only links. */
function disturb(network: SimulatedSites, random: Random): boolean {
  const { numbers, sites } = network
  const pick = (): number => random.below(numbers.length)
  const [one, other] = [pick(), pick()]
  const isUp = random.below(2) === 0
  const kinds = ['both', 'queries', 'probes'] as const
  switch (random.below(10)) {
    case 0:
    case 1:
      network.setSite(one, isUp)
      return false
    case 2:
    case 3:
      network.setLink(one, other, isUp, kinds[random.below(3)]!)
      return false
    case 4:
      network.setLink(one, other, isUp)
      network.setLink(other, one, isUp)
      return false
    case 5:
      network.heal()
      return false
    case 6:
      for (const number of numbers) network.setSite(number, false)
      return false
    case 7:
      network.setLoss(one, other, (1 + random.below(9)) / 10)
      return false
    case 8:
      sites[one]!.isGatewayUp = isUp
      return true
    default:
      if (isUp) sites[one]!.start()
      else sites[one]!.isUp = false
      return true
  }
}

/** Returns why a site may leave out the address of another one, from the events themselves; '' = it may not. */
function reasonFor(network: SimulatedSites, site: SimulatedSite, owner: number): string {
  const { nowS, numbers } = network
  const received = site.received[owner]
  if (received?.health === 'down') return 'its own site says so'
  if (nowS - Math.max(site.startS, received?.heardS ?? 0) < HOLD_DOWN_S) return ''
  const failing = numbers.filter((number) => {
    if (number === owner) return false
    if (number === site.number) return nowS - site.probed[owner]!.successS >= HOLD_DOWN_S
    const heard = site.received[number]
    if (heard === undefined || nowS - heard.heardS > HEARD_S) return false
    return nowS - heard.successS[owner]! >= HOLD_DOWN_S
  })
  return failing.length >= majorityOf(numbers.length) ? 'a majority finds it down' : ''
}

/** What the schedules showed. */
interface Figures {
  /** Addresses that a site took out, each with a reason. */
  failovers: number
  /** Answers that were checked, each second at each site. */
  answers: number
  /** Seconds from the end of all faults to the same answers everywhere, if the last fault of a site is old. */
  healedS: number[]
}

function runSchedule(seed: number, figures: Figures): string {
  const random = new Random(seed)
  const network = new SimulatedSites(2 + random.below(4), seed)
  const { numbers, sites } = network
  const before = new Map<SimulatedSite, ReadonlySet<string>>()
  let fault = ''
  const check = (): void => {
    for (const site of sites) {
      if (!site.isUp) continue
      figures.answers++
      if (site.answers.length === 0) fault ||= `${site.name}: empty answer at ${network.nowS}`
      for (const owner of numbers) {
        const address = addressOf(owner)
        const isKnown = owner === site.number || site.received[owner] !== undefined
        const wasServed = before.get(site)?.has(address) === true
        if (!isKnown || !wasServed || site.answers.includes(address) || owner === site.number)
          continue
        figures.failovers++
        if (reasonFor(network, site, owner) === '')
          fault ||= `${site.name}: wrong failover of ${address} at ${network.nowS}`
      }
      before.set(site, new Set(site.answers))
    }
  }
  const sameAnswers = (): boolean => {
    const alive = sites.filter((site) => site.isUp)
    return new Set(alive.map(({ answers }) => [...answers].sort().join())).size <= 1
  }
  network.run(START_S, check)
  let changedS = Number.NEGATIVE_INFINITY
  for (const endS = START_S + SCHEDULE_S; network.nowS < endS; ) {
    if (disturb(network, random)) changedS = network.nowS
    network.run(1 + random.below(random.below(2) === 0 ? 10 : 100), check)
  }
  network.heal()
  const alive = sites.filter((site) => site.isUp).length
  if (alive < majorityOf(numbers.length)) return fault
  const isOld = network.nowS - changedS >= DECIDED_S
  const healedS = network.nowS
  let lastS = healedS
  network.run(isOld ? HEALED_S : DECIDED_S + HEALED_S, () => {
    check()
    if (!sameAnswers()) lastS = network.nowS
  })
  if (isOld) figures.healedS.push(lastS === healedS ? 0 : lastS + 1 - healedS)
  network.run(PROBE_S, () => {
    check()
    if (!sameAnswers())
      fault ||= `at ${network.nowS}: ${sites.map((s) => `${s.name} ${s.isUp} ${s.answers}`).join('; ')}`
  })
  return fault === '' ? '' : `seed ${seed}: ${fault}\n${network.log.join('\n')}`
}

t.test('random partitions, deaths and restarts', async (t) => {
  const figures: Figures = { failovers: 0, answers: 0, healedS: [] }
  for (let seed = 1; seed <= SEEDS; seed++) {
    const fault = runSchedule(seed, figures)
    if (fault !== '') t.fail(fault)
  }
  const { failovers, answers, healedS } = figures
  const most = healedS.reduce((a, b) => Math.max(a, b), 0)
  t.comment(`${SEEDS} schedules, ${answers} answers, ${failovers} failovers`)
  t.comment(
    `the same answers at most ${most} s after the last fault, in ${healedS.length} schedules`,
  )
  t.ok(failovers > 0 && healedS.length > 0)
})
