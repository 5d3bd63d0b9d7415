import t from 'tap'
import { scanName } from '../../../src/dns/name/name.ts'
import { BindComparison } from '../../authority/inline/bind-comparison.ts'
import { needs } from '../../support/peer.ts'
import { namesOf, ZONES } from './zones.ts'

// Long: it signs each zone with BIND, and compares thousands of answers.

/** With opt-out, empty names with only delegations without DS below them may have no NSEC3 record. */
const KEPT = 'kept.e.insecurely TXT "x"\nkept.name TXT "x"\n'

/** With NSEC3, dnssec-signzone refuses names that leave no room for a label below them. */
const LONG_OWNER = /^\S{240,} .*\n/gm

/** The zone that dnssec-signzone refuses. */
const REFUSED = 'DS without NS'

for (const denial of ['NSEC', 'NSEC3', 'NSEC3 with opt-out'] as const) {
  for (const [name, zone] of Object.entries(ZONES)) {
    if (name === REFUSED) continue
    t.test(`${denial}: ${name}`, needs('dnssec-signzone', 'dnssec-keygen'), async (t) => {
      const comparison = await BindComparison.create(t, denial)
      const kept = zone.includes('insecurely') ? zone + KEPT : zone
      const text = denial === 'NSEC' ? kept : kept.replaceAll(LONG_OWNER, '')
      const names = namesOf(text).filter((one) => scanName(one) !== undefined)
      await comparison.compare(text, names)
      t.ok(comparison.asked > 50, `${comparison.asked} answers`)
    })
  }
}
