import { setTimeout as delay } from 'node:timers/promises'

/** What the sites serve, by site: numbers of the sites whose addresses it gives; missing = those of all, all the time. */
export type Served = Readonly<Record<number, readonly number[]>>

/** A site whose nameserver is up. */
export interface AskedSite {
  readonly number: number
  /** Returns the addresses of one answer, sorted; undefined if it does not answer. */
  answer(): Promise<readonly string[] | undefined>
}

export interface SettleOptions {
  /** Address of each site. */
  readonly addresses: readonly string[]
  readonly limitS: number
  /** Sites that should not change are asked at least this long. */
  readonly watchS: number
}

/** A site has settled if all its answers were right for so long. A late report of another site can change it once more. */
const QUIET_S = 1
/** Asking without a pause takes the CPU time that the sites need. */
const PAUSE_MS = 10

/**
 * Waits until each asked site gives what it should, and nothing else from then on, at most `limitS`. Returns what was wrong,
 * '' = nothing, and the seconds that the last change took.
 */
export async function settle(
  asked: readonly AskedSite[],
  want: Served,
  { addresses, limitS, watchS }: SettleOptions,
): Promise<{ readonly wrong: string; readonly tookS: number }> {
  const startMs = performance.now()
  const secondsSince = (): number => (performance.now() - startMs) / 1000
  /** Seconds at which a site began to give what it should; missing = it does not. */
  const since = new Map<number, number>()
  const changing = asked.filter(({ number }) => want[number] !== undefined)
  const isWatched = watchS > 0 && changing.length < asked.length
  const tookS = (): number => Math.max(0, ...since.values())
  const isSettled = (): boolean => {
    const isQuiet = changing.length === 0 || secondsSince() - tookS() >= QUIET_S
    return since.size === changing.length && isQuiet && !(isWatched && secondsSince() < watchS)
  }
  while (!isSettled()) {
    await delay(PAUSE_MS)
    for (const site of asked) {
      const { number } = site
      const wanted = want[number]?.map((one) => addresses[one]) ?? addresses
      const got = await site.answer()
      const found = `site${number} gives ${got}, not ${wanted}, after ${secondsSince()} s`
      if (got?.length === 0) return { wrong: `site${number} gives no address`, tookS: tookS() }
      if (got?.join() !== wanted.join()) {
        since.delete(number)
        if (want[number] === undefined || secondsSince() > limitS)
          return { wrong: found, tookS: tookS() }
      } else if (want[number] !== undefined && !since.has(number)) {
        since.set(number, secondsSince())
      }
    }
  }
  const wrong = tookS() > limitS ? `the last change took ${tookS()} s` : ''
  return { wrong, tookS: tookS() }
}
