/** Sites whose links can be cut. */
export abstract class SimulatedNetwork {
  abstract readonly sites: readonly { readonly isUp: boolean; readonly isGatewayUp: boolean }[]
  abstract readonly numbers: readonly number[]
  /** Queries and probes from one site to another, `FROM TO`, that fail. */
  readonly #cutQueries = new Set<string>()
  readonly #cutProbes = new Set<string>()

  hears(from: number, to: number): boolean {
    return this.sites[to]!.isUp && !this.#cutQueries.has(`${from} ${to}`)
  }

  reaches(from: number, to: number): boolean {
    return this.sites[to]!.isGatewayUp && !this.#cutProbes.has(`${from} ${to}`)
  }

  /** Cuts or restores what `from` sends to `to`. */
  setLink(
    from: number,
    to: number,
    isUp: boolean,
    of: 'both' | 'queries' | 'probes' = 'both',
  ): void {
    const link = `${from} ${to}`
    for (const [kind, cut] of [
      ['queries', this.#cutQueries] as const,
      ['probes', this.#cutProbes] as const,
    ]) {
      if (of !== 'both' && of !== kind) continue
      if (isUp || from === to) cut.delete(link)
      else cut.add(link)
    }
  }

  /** Cuts both directions between two sites, or restores them. */
  setPair(one: number, other: number, isUp: boolean): void {
    this.setLink(one, other, isUp)
    this.setLink(other, one, isUp)
  }

  /** Cuts all links of a site, or restores them. */
  setSite(number: number, isUp: boolean): void {
    for (const other of this.numbers) this.setPair(number, other, isUp)
  }

  heal(): void {
    this.#cutQueries.clear()
    this.#cutProbes.clear()
  }
}
