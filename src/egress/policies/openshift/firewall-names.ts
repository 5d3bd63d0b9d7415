/** Rules that count: OVN-Kubernetes gives them the priorities from 10 000 down to 2 000. */
export const RULES_MAX = 8001

const NAME_LENGTH_MAX = 254
const NAME =
  /^(\*\.)?([a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?\.?$/

/** The DNS names of the rules of an EgressFirewall. */
interface FirewallNames {
  /** Lower case, with the final dot. */
  readonly names: ReadonlySet<string>
  /** The first rule with an invalid name, from 0; then there are no names. Undefined = all are valid. */
  readonly invalid: number | undefined
}

/**
 * Reads the names as OVN-Kubernetes does with its DNS name resolver: one invalid name makes the whole
 * object yield none, and rules beyond RULES_MAX do not count. `dnsNames`: `to.dnsName` of each rule;
 * '' = a rule without one.
 */
export function namesOfRules(dnsNames: readonly string[]): FirewallNames {
  const names = new Set<string>()
  for (const [index, dnsName] of dnsNames.slice(0, RULES_MAX).entries()) {
    if (dnsName === '') continue
    const name = (dnsName.endsWith('.') ? dnsName : `${dnsName}.`).toLowerCase()
    if (name.length > NAME_LENGTH_MAX || !NAME.test(dnsName)) {
      return { names: new Set(), invalid: index }
    }
    names.add(name)
  }
  return { names, invalid: undefined }
}
