import { plural } from '../../base/plural.ts'
import type { SiteDeath } from './if-site-dies.ts'

/** Lines that a list keeps. The rest is counted. */
const KEPT_MAX = 1000
/** Hosts of one site alone that have lines of their own, and that a summary names. */
const ALONE_MAX = 3

/** One line without its beginning, `if SITE dies: `. */
interface DeathLine {
  readonly site: string
  readonly text: string
  /** Addresses are kept because of a setting. */
  readonly isWarning: boolean
}

const RANKS: Readonly<Record<SiteDeath['kind'], number>> = {
  setting: 0,
  unchecked: 1,
  slow: 2,
  fine: 3,
  alone: 4,
}

/** What happens when sites die, as lines in order of urgency: settings first, then missing and slow checks. */
export class DeathList {
  readonly #kept: SiteDeath[] = []
  /** Hosts without another site, by site: some, and their number. */
  readonly #alone = new Map<string, { readonly first: SiteDeath[]; count: number }>()
  #more = 0

  add(death: SiteDeath): void {
    if (death.kind === 'alone') {
      const known = this.#alone.get(death.site) ?? { first: [], count: 0 }
      this.#alone.set(death.site, known)
      if (known.count++ < ALONE_MAX) known.first.push(death)
    } else if (this.#kept.length < KEPT_MAX) this.#kept.push(death)
    else this.#more++
  }

  /** Number of lines that are not kept. */
  get more(): number {
    return this.#more
  }

  lines(): readonly DeathLine[] {
    const ranked = this.#kept.map((death, i) => ({ death, i }))
    ranked.sort((a, b) => RANKS[a.death.kind] - RANKS[b.death.kind] || a.i - b.i)
    const lines = ranked.map(({ death }) => lineOf(death))
    for (const [site, { first, count }] of this.#alone) {
      if (count <= ALONE_MAX) lines.push(...first.map(lineOf))
      else {
        const named = first.map(({ host }) => host).join(', ')
        const text = `${named} and ${plural(count - ALONE_MAX, 'more host')} keep their addresses: no other site has an address`
        lines.push({ site, text, isWarning: false })
      }
    }
    return lines
  }
}

function lineOf({ site, host, text, kind }: SiteDeath): DeathLine {
  return { site, text: `${host}: ${text}`, isWarning: kind === 'setting' }
}
