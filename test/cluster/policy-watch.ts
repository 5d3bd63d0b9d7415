import type { EgressSite, PolicyState } from './egress-site.ts'

/**
 * Watches a FQDNNetworkPolicy and its NetworkPolicy while parts are killed, and notes what must never happen:
 *
 * - an address that no answer had
 * - an address that disappears; the expiration period is longer than the test
 */
export class PolicyWatch {
  readonly #site: EgressSite
  readonly #name: string
  readonly #dnsNames: readonly string[]
  readonly #violations = new Set<string>()
  #allowed: ReadonlySet<string> = new Set()

  constructor(site: EgressSite, name: string, dnsNames: readonly string[]) {
    this.#site = site
    this.#name = name
    this.#dnsNames = dnsNames
  }

  get violations(): readonly string[] {
    return [...this.#violations]
  }

  /** Compares the policy with its last state. Returns undefined if the API is away. */
  async look(): Promise<PolicyState | undefined> {
    const found = await this.#site.policyState(this.#name)
    if (found === undefined) return undefined
    const allowed = found.allowed ?? new Set()
    for (const ip of allowed) {
      if (this.#isExplained(ip)) continue
      this.#violations.add(`${ip} in the NetworkPolicy`)
    }
    for (const ip of this.#allowed) {
      if (!allowed.has(ip)) this.#violations.add(`${ip} left the NetworkPolicy early`)
    }
    this.#allowed = allowed
    return found
  }

  #isExplained(ip: string): boolean {
    return this.#dnsNames.some((name) => this.#site.zone.explains(name, ip))
  }
}
