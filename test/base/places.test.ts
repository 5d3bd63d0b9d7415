import fc from 'fast-check'
import t from 'tap'
import { type Holder, Places } from '../../src/base/places.ts'

class Held implements Holder {
  readonly network: string
  readonly client: string
  readonly rank: number

  constructor(network: number, client: number, rank: number) {
    this.network = `${network}`
    this.client = `${network}.${client}`
    this.rank = rank
  }

  precedence(): number {
    return this.rank
  }
}

/** The arguments `limit` and `count` of `worstBelow`. */
const [BELOW, SEVERAL] = [5, 3]

const count = <T>(items: readonly T[], is: (item: T) => boolean): number => items.filter(is).length

const step = fc.record({
  act: fc.constantFrom('open', 'open', 'close', 'evict', 'evict of', 'twice'),
  network: fc.nat(2),
  client: fc.nat(2),
  rank: fc.nat(9),
  which: fc.nat(99),
  few: fc.integer({ min: 1, max: 4 }),
})

t.test('counts are those of what is open, whatever was opened, closed and evicted', async () => {
  const property = fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
    const places = new Places<Held>()
    const open: Held[] = []
    const same = (a: Held) => (b: Held) => b.client === a.client
    const end = (held: Held | undefined): void => {
      if (held === undefined) return
      open.splice(open.indexOf(held), 1)
      if (!places.leave(held)) throw new Error('it had no place')
    }
    for (const { act, network, client, rank, which, few } of steps) {
      const held = new Held(network, client, rank)
      const one = open[which % Math.max(1, open.length)]
      if (act === 'open') {
        open.push(held)
        places.enter(held, held)
      } else if (act === 'close') {
        end(one)
      } else if (act === 'twice' && one !== undefined) {
        end(one)
        if (places.leave(one)) throw new Error('it left twice')
      } else if (act === 'evict of') {
        const first = places.worstOf(held, 0)
        const rivals = open.filter(same(held))
        if (first?.rank !== rivals.map(({ rank }) => rank).sort()[0]) return false
        end(first)
      } else if (act === 'evict') {
        const first = places.worst(0, few)
        const inNetwork = (a: Held) =>
          Math.max(
            few,
            count(open, (b) => b.network === a.network),
          )
        const inClient = (a: Held) => Math.max(few, count(open, same(a)))
        const networks = open.filter((a) => inNetwork(a) === Math.max(...open.map(inNetwork)))
        const clients = networks.filter((a) => inClient(a) === Math.max(...networks.map(inClient)))
        if (first?.rank !== clients.map(({ rank }) => rank).sort()[0]) return false
        if (first !== undefined && !clients.includes(first)) return false
        const several = open.every((a) => inNetwork(a) === few) ? SEVERAL : 1
        const ranks = clients.map(({ rank }) => rank).filter((rank) => rank < BELOW)
        const below = places.worstBelow(0, few, BELOW, SEVERAL).map(({ rank }) => rank)
        if (`${below.reverse()}` !== `${ranks.sort().slice(0, several)}`) return false
        end(first)
      }
      if (places.size !== open.length) return false
      if (places.countOf(held) !== count(open, same(held))) return false
    }
    for (const held of [...open]) end(held)
    const clients = [0, 1, 2].flatMap((network) => [0, 1, 2].map((c) => new Held(network, c, 0)))
    return places.size === 0 && clients.every((client) => places.countOf(client) === 0)
  })
  fc.assert(property, { seed: 16, numRuns: 500 })
})
