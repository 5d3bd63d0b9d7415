import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { CLOSED } from '../../../src/steering/rules.ts'
import { addressOf, boundsOf, type SimulatedSite, SimulatedSites } from './simulated-sites.ts'

/** Set QUORUM_SEEDS to try more schedules. */
const SEEDS = Number(process.env.QUORUM_SEEDS ?? 30)
/** Faults in a row, and then a time without faults, in each schedule. */
const ROUNDS = 8

/** Breaks or mends something. */
function disturb(network: SimulatedSites, random: Random): void {
  const { numbers, sites, generations } = network
  const pick = (): number => random.below(numbers.length)
  const [one, other] = [pick(), pick()]
  const isUp = random.below(2) === 0
  const kinds = ['both', 'queries', 'probes'] as const
  switch (random.below(9)) {
    case 0:
      network.setSite(one, isUp)
      return
    case 1:
    case 2:
      network.setLink(one, other, isUp, kinds[random.below(3)]!)
      return
    case 3:
      network.setPair(one, other, isUp)
      return
    case 4:
      network.heal()
      return
    case 5:
      for (const number of numbers) network.setSite(number, false)
      return
    case 6:
    case 7:
      sites[one]!.isGatewayUp = isUp
      return
    default:
      if (!isUp) sites[one]!.isUp = false
      else if (!sites[one]!.isUp || generations[one] === 'v2') {
        sites[one]!.start(random.below(2) === 0)
      }
  }
}

/** What the schedules showed. */
interface Figures {
  answers: number
  /** Addresses that were left out at the end of a round. */
  leftOut: number
  /** Pairs of sites that were compared. */
  pairs: number
}

/** Returns why the answers of a site are wrong after a time without faults; '' = they are right. */
function faultOf(network: SimulatedSites, site: SimulatedSite, isClosed: boolean): string {
  const { sites, numbers } = network
  const { number, answers } = site
  if (answers.length === 0 && !isClosed) return 'failures alone emptied the answer'
  const isServed = (of: number): boolean => answers.includes(addressOf(of))
  const reached = numbers.filter((of) => {
    return site.foundOf(of) === 'up' && network.reaches(number, of)
  })
  const dead = numbers.filter((of) => isServed(of) && !sites[of]!.isGatewayUp)
  // With an endpoint that it reaches, a server gives no dead one.
  if (reached.length > 0 && dead.length > 0) return `serves the dead ${dead.map(addressOf)}`
  // An address that it and all sites that it hears reach is served, also that of a silent site.
  const heard = sites.filter((one) => one === site || (one.isUp && site.heard(one.number)))
  const left = reached.find((of) => {
    return !isServed(of) && heard.every((one) => network.reaches(one.number, of))
  })
  return left === undefined ? '' : `leaves out ${addressOf(left)}, which all reach`
}

/** Returns about which address two sites that hear the same sites differ, although neither of them has it; '' = none. */
function differenceOf(network: SimulatedSites, one: SimulatedSite, other: SimulatedSite): string {
  const hears = (site: SimulatedSite): string => {
    return network.numbers.filter((n) => n === site.number || site.heard(n)).join()
  }
  if (hears(one) !== hears(other)) return ''
  // A site that was restarted without stored data does not know the endpoints of a silent one.
  const isForeign = (n: number): boolean => {
    return (
      n !== one.number && n !== other.number && one.foundOf(n) !== '' && other.foundOf(n) !== ''
    )
  }
  const known = (site: SimulatedSite, n: number): boolean => {
    return site.answers.includes(addressOf(n))
  }
  // Where all that a server knows is down, it serves all.
  const isAllOut = [one, other].some(({ answers, number }) => {
    return answers.every((address) => {
      const of = network.numbers.find((n) => addressOf(n) === address)!
      return of !== number && !network.sites[of]!.isGatewayUp
    })
  })
  const found = network.numbers.find((n) => isForeign(n) && known(one, n) !== known(other, n))
  if (found === undefined || isAllOut) return ''
  return `${one.name} and ${other.name} differ about ${addressOf(found)}`
}

function runSchedule(seed: number, figures: Figures): string {
  const random = new Random(seed)
  const count = 2 + random.below(6)
  const times = {
    probeS: [2, 5, 10][random.below(3)]!,
    failures: 1 + random.below(4),
    successes: 1 + random.below(2),
  }
  const isOld = count > 2 ? random.below(3) === 0 : random.below(4) === 0
  const generations = Array.from({ length: count }, (_, i) => {
    return isOld && i === count - 1 ? ('v1' as const) : ('v2' as const)
  })
  const isClosed = random.below(4) === 0
  const settings = { allDown: isClosed ? CLOSED : 'open', sticky: undefined }
  const weight = random.below(2) === 0 ? 100 : undefined
  const network = new SimulatedSites({ seed, generations, times, weight, settings })
  const { downS, upS } = boundsOf(times)
  const ours = network.sites.filter(({ number }) => generations[number] === 'v2')
  let fault = ''
  network.run(upS + downS)
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = random.below(4); i >= 0; i--) {
      disturb(network, random)
      network.run(random.below(2) === 0 ? random.below(5) : random.below(2 * downS))
    }
    network.run(Math.max(downS, upS))
    for (const site of ours.filter(({ isUp }) => isUp)) {
      figures.answers++
      const wrong = faultOf(network, site, isClosed)
      if (wrong !== '') fault ||= `${site.name} ${wrong} at ${network.nowS} s`
      if (site.answers.length < count) figures.leftOut++
      for (const other of ours.filter((one) => one.isUp && one.number > site.number)) {
        const difference = differenceOf(network, site, other)
        if (difference !== '') fault ||= `${difference} at ${network.nowS} s`
        figures.pairs++
      }
    }
    if (fault !== '') break
  }
  const setting = JSON.stringify({ times, generations, isClosed, weight })
  return fault === '' ? '' : `seed ${seed}: ${fault}\n${setting}\n${network.log.join('\n')}`
}

t.test('random sites, partitions, deaths and restarts', async (t) => {
  const figures: Figures = { answers: 0, leftOut: 0, pairs: 0 }
  const faults: string[] = []
  for (let seed = 1; seed <= SEEDS; seed++) {
    const fault = runSchedule(seed, figures)
    if (fault !== '') faults.push(fault)
    if (fault !== '') console.error(fault)
  }
  t.equal(faults.length, 0, faults[0] ?? 'no fault')
  const { answers, leftOut, pairs } = figures
  t.comment(
    `${SEEDS} schedules, ${answers} answers, ${leftOut} with an address less, ${pairs} pairs`,
  )
  t.ok(leftOut > 0 && leftOut < answers && pairs > 0)
})
