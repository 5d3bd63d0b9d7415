import type { HashedName } from '../../dns/name/hashed-name.ts'
import { CompiledRules } from '../rules/compiled-rules.ts'
import { includesPort } from '../rules/connection.ts'
import type { ClientRules } from '../rules/rule.ts'
import {
  type IndexedSelector,
  SelectorIndex,
  type SelectorOwner,
} from '../selectors/selector-index.ts'
import { printRules } from './rules-text.ts'

const DNS_PORT = 53

/** Rules that clients share. */
export interface RuleProfile {
  readonly rules: ClientRules
  /** Unique among all profiles. */
  readonly text: string
  /** Made when a name is first compared: thousands of selectors take long. */
  readonly compiled: CompiledRules
  /** True: the rules let a name have an address for as long as connections are open. */
  readonly usesConnections: boolean
  /** Owners of the names that may be asked for. */
  readonly owners: Readonly<Record<'udp' | 'tcp', SelectorOwner>>
}

/** The rules of all clients. Clients with equal rules share one profile. */
export class RuleProfiles {
  #profiles = new Map<string, RuleProfile>()
  /** Texts of rules, because sources hand over the same objects again. */
  readonly #texts = new WeakMap<ClientRules, string>()
  /** The names of the DNS rules of all profiles. */
  readonly #names = new SelectorIndex()
  readonly #found: IndexedSelector[] = []
  #made = 0

  get size(): number {
    return this.#profiles.size
  }

  /** Returns the profile of the rules, and creates it if no client has it. */
  of(rules: ClientRules): RuleProfile {
    const text = this.textOf(rules)
    const known = this.#profiles.get(text)
    if (known !== undefined) return known
    const profile = this.#create(rules, text)
    this.#profiles.set(text, profile)
    return profile
  }

  /** Equal rules have equal texts. */
  textOf(rules: ClientRules): string {
    const text = this.#texts.get(rules) ?? printRules(rules)
    this.#texts.set(rules, text)
    return text
  }

  /** Forgets all other profiles. */
  keep(used: ReadonlySet<RuleProfile>): void {
    for (const profile of this.#profiles.values()) {
      if (used.has(profile)) continue
      this.#profiles.delete(profile.text)
      for (const owner of Object.values(profile.owners)) this.#names.set(owner, [])
    }
  }

  /** True if the DNS rules let clients ask for the name. @hot */
  mayAsk({ rules, owners }: RuleProfile, protocol: 'udp' | 'tcp', name: HashedName): boolean {
    if (rules.dns === undefined) return true
    const found = this.#found
    found.length = 0
    if (!this.#names.find(name, found)) return false
    const owner = owners[protocol]
    for (let i = 0; i < found.length; i++) if (found[i]!.owners.has(owner)) return true
    return false
  }

  #create(rules: ClientRules, text: string): RuleProfile {
    const object = String(this.#made++)
    const ownerOf = (consumer: string): SelectorOwner => ({ consumer, namespace: '', object })
    const owners = { udp: ownerOf('udp'), tcp: ownerOf('tcp') }
    for (const protocol of ['udp', 'tcp'] as const) {
      const meant = rules.dns?.filter(({ ports }) => includesPort(ports, protocol, DNS_PORT)) ?? []
      this.#names.set(
        owners[protocol],
        meant.flatMap(({ names }) => names),
      )
    }
    const all = rules.lists.flat().flatMap((tier) => tier.rules)
    let compiled: CompiledRules | undefined
    return {
      rules,
      text,
      get compiled() {
        compiled ??= new CompiledRules(rules.lists)
        return compiled
      },
      usesConnections: all.some(({ lasts, names }) => lasts === 'connections' && names.length > 0),
      owners,
    }
  }
}
