import type { ResourceLease } from '../../base/resource-registry.ts'
import { printName } from '../../dns/name/name.ts'
import type { DirectivePart } from '../../plugin/description.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import type { KeySource } from '../../signing/zone-keys.ts'
import type { SigningZones } from './signing-zones.ts'

/** The directives in force. During a reload, those of both configurations. */
class DirectivesInForce {
  readonly all = new Set<SigningZones>()
}

/** Warns of zones that a reload leaves unsigned: while their parent has a DS, validators reject all answers of them. */
export function warnOfUnsigned(
  { resources, log }: SetupContext,
  signing: SigningZones,
  keys: Pick<KeySource, 'find'>,
): DirectivePart {
  let lease: ResourceLease<DirectivesInForce> | undefined
  let isExiting = false
  return {
    serving: () => {
      lease = resources.acquire(DirectivesInForce, '', () => new DirectivesInForce())
      lease.item.all.add(signing)
    },
    exit: () => {
      isExiting = true
    },
    stop: () => {
      if (lease === undefined) return
      const { all } = lease.item
      all.delete(signing)
      for (const zone of signing.apexes) {
        const isSigned = [...all].some((one) => one.of(zone) !== undefined)
        if (isExiting || isSigned || keys.find(zone) === undefined) continue
        const name = printName(zone)
        log.warning(
          `zone ${name} is not signed any more: while its parent has a DS, resolvers that validate reject its answers; ` +
            `restore \`dnssec\`, and remove it after the DS: sextant keys roll ${name} --delegation unsigned`,
          'zone-unsigned',
          { zone: name },
        )
      }
      lease.release()
    },
  }
}
