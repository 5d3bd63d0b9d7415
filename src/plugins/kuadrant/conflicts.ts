import { printProbing } from '../../publish/health-options.ts'
import type { PublishOptions } from '../../publish/options.ts'
import { groupOf, probingOf, siteOf, sourceFileOf } from '../../publish/same-source.ts'

/** Returns why a block can't serve beside the others of its Corefile; '' = it can. */
export function conflictWith(options: PublishOptions, others: readonly PublishOptions[]): string {
  const { snapshot, site, group, health, source, peering } = options
  if (snapshot !== undefined && others.some((o) => o.snapshot?.path === snapshot.path)) {
    return `snapshot ${snapshot.path} belongs to another server block; name another file`
  }
  const otherSite = siteOf({ ...options, site: '' }, others)
  if (site !== '' && otherSite !== '' && otherSite !== site) {
    return `another server block names site ${otherSite} for the same records`
  }
  const probing = probingOf(source, others)
  const isProbed = [health?.probe, probing.probe].every((probe) => {
    return probe !== undefined && (probe === 'off' || probe.isDefault !== true)
  })
  if (isProbed && health !== undefined && printProbing(probing) !== printProbing(health)) {
    return 'probe settings differ from another server block that reads the same records'
  }
  const fileConflict = conflictOfFiles(options, others)
  if (fileConflict !== '') return fileConflict
  const otherGroup = groupOf(source, others)?.name
  if (group !== undefined && otherGroup !== undefined && otherGroup !== group.name) {
    return `another server block that reads the same records has the group ${otherGroup}`
  }
  const path = peering.peerCache?.path
  const ofPath = others.filter((other) => other.peering.peerCache?.path === path)
  if (path !== undefined && ofPath.some((other) => other.site !== site)) {
    return 'peer-cache: the file belongs to another site; name another one'
  }
  return ''
}

/** Each of these files is one for all blocks that read the same records. */
function conflictOfFiles(
  { health, source }: PublishOptions,
  others: readonly PublishOptions[],
): string {
  for (const which of ['drainFile', 'shiftFile'] as const) {
    const path = health?.[which]?.path
    const other = sourceFileOf(which, source, others)?.path
    if (path !== undefined && (other ?? path) !== path) {
      const what = which === 'drainFile' ? 'drain' : 'shift'
      return `another server block that reads the same records has the ${what} file ${other}`
    }
  }
  return ''
}
