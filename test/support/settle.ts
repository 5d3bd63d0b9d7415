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

/**
 * Waits until each asked site gives what it should, at most `limitS`. Returns what was wrong, '' = nothing, and the seconds
 * that the last change took.
 */
export async function settle(
  asked: readonly AskedSite[],
  want: Served,
  { addresses, limitS, watchS }: SettleOptions,
): Promise<{ readonly wrong: string; readonly tookS: number }> {
  const startMs = performance.now()
  const secondsSince = (): number => (performance.now() - startMs) / 1000
  const waiting = new Set(Object.keys(want).map(Number))
  const isWatched = watchS > 0 && asked.some(({ number }) => want[number] === undefined)
  const state = { wrong: '', tookS: 0 }
  while (waiting.size > 0 || (isWatched && secondsSince() < watchS)) {
    for (const site of asked) {
      const { number } = site
      const wanted = want[number]?.map((one) => addresses[one]) ?? addresses
      const got = await site.answer()
      const isSo = got?.join() === wanted.join()
      if (got?.length === 0) return { ...state, wrong: `site${number} gives no address` }
      if (isSo && waiting.delete(number)) state.tookS = secondsSince()
      if (isSo || waiting.has(number)) continue
      const found = `site${number} gives ${got}, not ${wanted}, after ${secondsSince()} s`
      return { ...state, wrong: found }
    }
    if (waiting.size === 0 || secondsSince() <= limitS) continue
    const sites = [...waiting]
    return {
      ...state,
      wrong: `sites ${sites}: waited ${limitS} s in vain for ${JSON.stringify(want)}`,
    }
  }
  return state
}
