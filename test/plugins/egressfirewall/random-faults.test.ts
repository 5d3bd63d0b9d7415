import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { GATE_MS, place, RESOLVERS, spec } from './servers.ts'

const SEEDS = 40
const STEPS = 40
const SERVERS = 3
const WILD = '*.example.com.'
const NAMES = ['a.example.com.', 'b.example.com.', WILD]
const TTL_SECONDS = 3600

interface Entry {
  readonly resolvedAddresses: readonly { readonly ip: string }[]
}

// Three servers write two objects of one API, which fails, is cut off and loses its objects at random.
t.test('no address without an answer that explains it, and none is lost', async (t) => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = new Random(seed)
    const pick = <T>(list: readonly T[]): T => list[random.below(list.length)]!
    const gateMs = seed % 2 === 0 ? GATE_MS : 0
    const stage = await place(t, { servers: SERVERS, gateMs })
    const { api, clock, timers, settle, answer, fail } = stage
    /** `name ip` of every answer. */
    const answered = new Set<string>()
    /** Of those, what the objects must have in the end. */
    const wanted = new Set<string>()
    const objects = [
      { name: 'wild', text: WILD },
      { name: 'regular', text: 'a.example.com.' },
    ]
    for (const { name, text } of objects) api.put(RESOLVERS, 'n', name, spec(text))
    await settle()
    const check = (when: string): void => {
      for (const { name } of objects) {
        for (const entry of api.read(RESOLVERS, 'n', name)?.status?.resolvedNames ?? []) {
          for (const { ip } of entry.resolvedAddresses) {
            const grant = `${entry.dnsName} ${ip}`
            if (!answered.has(grant)) t.fail(`seed ${seed}, ${when}: ${grant} was never answered`)
          }
        }
      }
    }
    const wait = async (ms: number): Promise<void> => {
      clock.pass(ms)
      await timers.advance(ms)
      await settle()
    }
    /** Until all servers follow the API again, they may not know that an object is a new one. */
    const recreate = async (): Promise<void> => {
      api.isAway = false
      await wait(20_000)
      const { name, text } = pick(objects)
      api.delete(RESOLVERS, 'n', name)
      api.put(RESOLVERS, 'n', name, spec(text))
      await settle()
      // The status is empty. What was answered before is written with the next answer.
      wanted.clear()
    }
    const steps: readonly (() => void | Promise<void>)[] = [
      () => {
        const dnsName = pick(NAMES)
        const ip = `192.0.2.${random.below(250)}`
        answered.add(`${dnsName} ${ip}`)
        wanted.add(`${dnsName} ${ip}`)
        answer([ip], { server: random.below(SERVERS), ttl: TTL_SECONDS, dnsName })
      },
      () => void fail(random.below(SERVERS)),
      () => {
        api.isAway = random.below(2) === 0
      },
      () => api.cut(),
      () => {
        const code = pick([409, 429, 500, 503])
        api.refuse = ({ method }) => {
          return method === 'PATCH' && random.below(2) === 0 ? [code, 'no'] : undefined
        }
      },
      recreate,
    ]
    for (let step = 0; step < STEPS; step++) {
      const isRare = random.below(4) === 0
      if (isRare) await pick(steps)()
      else await steps[0]!()
      if (random.below(3) === 0) await wait(random.below(2000))
      check(`step ${step}`)
    }
    api.isAway = false
    api.refuse = () => undefined
    await wait(60_000)
    check('in the end')
    const shown = (name: string): ReadonlySet<string> => {
      const names = api.read(RESOLVERS, 'n', name)?.status?.resolvedNames ?? []
      const ips = names.flatMap(({ resolvedAddresses }: Entry) => resolvedAddresses)
      return new Set(ips.map(({ ip }: { ip: string }) => ip))
    }
    for (const grant of wanted) {
      const [dnsName = '', ip = ''] = grant.split(' ')
      if (!shown('wild').has(ip)) t.fail(`seed ${seed}: ${grant} is missing in the wildcard`)
      if (dnsName !== objects[1]!.text) continue
      if (!shown('regular').has(ip)) t.fail(`seed ${seed}: ${grant} is missing`)
    }
    for (const follower of stage.followers) follower.close()
  }
  t.pass(`${SEEDS} runs`)
})
